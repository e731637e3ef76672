"""What a class tree promises: Definition 1.1, immutability, and texts that can be read back."""

import copy
import pickle
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margintree.class_tree import ClassTree, NestedClasses

ARRAYS = (
    "children_left",
    "children_right",
    "leaf_class",
    "depth",
    "parent",
    "leaf_of_class",
    "internal_nodes",
)
DEEP = 20_000
# A generous limit for slow machines: quadratic work on the deep chain takes minutes.
DEEP_SECONDS = 5.0


@st.composite
def nested_trees(draw: st.DrawFn, max_classes: int = 25) -> NestedClasses:
    """Join random neighbours of a shuffled list of classes until one tree is left."""
    n_classes = draw(st.integers(1, max_classes))
    parts: list[NestedClasses] = list(draw(st.permutations(range(n_classes))))
    while len(parts) > 1:
        at = draw(st.integers(0, len(parts) - 2))
        parts[at : at + 2] = [(parts[at], parts[at + 1])]
    return parts[0]


def brute_force(nested: NestedClasses, depth: int = 0) -> list[tuple[list[int], int]]:
    """Return (sorted classes below, depth) of each node in preorder, by recursion."""
    if isinstance(nested, int):
        return [([nested], depth)]
    left, right = brute_force(nested[0], depth + 1), brute_force(nested[1], depth + 1)
    return [(sorted(left[0][0] + right[0][0]), depth), *left, *right]


def chain(n_classes: int, deep_side: str) -> NestedClasses:
    nested: NestedClasses = n_classes - 1
    for k in reversed(range(n_classes - 1)):
        nested = (k, nested) if deep_side == "right" else (nested, k)
    return nested


@given(nested_trees())
def test_nested_round_trip(nested: NestedClasses) -> None:
    assert ClassTree.from_nested(nested).to_nested() == nested


@given(nested_trees())
def test_arrays_round_trip(nested: NestedClasses) -> None:
    tree = ClassTree.from_nested(nested)
    assert ClassTree(tree.children_left, tree.children_right, tree.leaf_class) == tree


@given(nested_trees())
def test_newick_round_trip_without_names(nested: NestedClasses) -> None:
    tree = ClassTree.from_nested(nested)
    assert ClassTree.from_newick(tree.to_newick()) == tree


@given(st.data())
def test_newick_round_trip_with_any_names(data: st.DataObject) -> None:
    tree = ClassTree.from_nested(data.draw(nested_trees(max_classes=8)))
    text = st.text() | st.text(alphabet="ab '\"()[],:;_\n\t=")
    names = data.draw(st.lists(text, min_size=tree.n_classes, max_size=tree.n_classes, unique=True))
    assert ClassTree.from_newick(tree.to_newick(names), names) == tree


@given(nested_trees(), st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_pickle_and_copies_are_equal_and_read_only(nested: NestedClasses, protocol: int) -> None:
    tree = ClassTree.from_nested(nested)
    for twin in (pickle.loads(pickle.dumps(tree, protocol)), copy.copy(tree), copy.deepcopy(tree)):
        assert twin == tree
        assert hash(twin) == hash(tree)
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(twin, name), getattr(tree, name))
            assert not getattr(twin, name).flags.writeable


@given(nested_trees())
def test_classes_below_and_depth_match_brute_force(nested: NestedClasses) -> None:
    tree = ClassTree.from_nested(nested)
    expected = brute_force(nested)
    assert [tree.classes_below(node).tolist() for node in range(tree.n_nodes)] == [below for below, _ in expected]
    assert tree.depth.tolist() == [depth for _, depth in expected]
    assert tree.max_depth == max(depth for _, depth in expected)


@given(nested_trees())
def test_children_divide_the_classes_of_their_parent(nested: NestedClasses) -> None:
    tree = ClassTree.from_nested(nested)
    assert tree.classes_below(0).tolist() == list(range(tree.n_classes))
    for node in tree.internal_nodes:
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        joined = np.sort(np.concatenate([tree.classes_below(left), tree.classes_below(right)]))
        np.testing.assert_array_equal(joined, tree.classes_below(node))
        assert left == node + 1
        assert tree.parent[left] == tree.parent[right] == node


@given(nested_trees())
def test_leaves_and_internal_nodes_are_all_nodes(nested: NestedClasses) -> None:
    tree = ClassTree.from_nested(nested)
    leaves = [node for node in range(tree.n_nodes) if tree.is_leaf(node)]
    assert sorted(tree.leaf_of_class) == leaves
    assert sorted([*leaves, *tree.internal_nodes]) == list(range(tree.n_nodes))
    assert tree.leaf_class[tree.leaf_of_class].tolist() == list(range(tree.n_classes))
    assert tree.n_classes == len(leaves)
    assert tree.parent[0] == -1


@given(nested_trees(), nested_trees())
def test_trees_are_equal_exactly_when_their_nested_forms_are(first: NestedClasses, second: NestedClasses) -> None:
    assert (ClassTree.from_nested(first) == ClassTree.from_nested(second)) == (first == second)


@given(nested_trees(), st.integers(0, 10))
def test_a_drawing_has_one_line_per_node_that_is_not_cut_off(nested: NestedClasses, max_depth: int) -> None:
    tree = ClassTree.from_nested(nested)
    assert len(tree.to_text().splitlines()) == tree.n_nodes
    assert len(tree.to_text(max_depth=max_depth).splitlines()) == np.sum(tree.depth <= max_depth)


def test_arrays_are_int32_in_preorder() -> None:
    tree = ClassTree.from_nested(((3, 0), (1, 2)))
    assert tree.children_left.tolist() == [1, 2, -1, -1, 5, -1, -1]
    assert tree.children_right.tolist() == [4, 3, -1, -1, 6, -1, -1]
    assert tree.leaf_class.tolist() == [-1, -1, 3, 0, -1, 1, 2]
    assert tree.parent.tolist() == [-1, 0, 1, 1, 0, 4, 4]
    assert tree.leaf_of_class.tolist() == [3, 5, 6, 2]
    assert tree.internal_nodes.tolist() == [0, 1, 4]
    assert all(getattr(tree, name).dtype == np.int32 for name in ARRAYS)


def test_a_single_class_is_one_leaf() -> None:
    tree = ClassTree.from_nested(0)
    assert (tree.n_nodes, tree.n_classes, tree.max_depth) == (1, 1, 0)
    assert tree.is_leaf(0)
    assert tree.internal_nodes.size == 0
    assert tree.to_newick() == "0;"
    assert tree.to_text(["only"], max_depth=0) == "only"
    assert ClassTree.from_newick("0;") == tree


def test_swapped_children_make_another_tree() -> None:
    assert ClassTree.from_nested((0, 1)) != ClassTree.from_nested((1, 0))
    assert ClassTree.from_nested((0, 1)) != (0, 1)


def test_equal_trees_are_one_key() -> None:
    assert len({ClassTree.from_nested((0, (1, 2))), ClassTree.from_newick("(0,(1,2));")}) == 1


def test_repr_is_short() -> None:
    assert repr(ClassTree.from_nested((0, (1, 2)))) == "ClassTree(n_classes=3, max_depth=2)"


@pytest.mark.parametrize("name", ARRAYS)
def test_writing_into_a_tree_raises(name: str) -> None:
    tree = ClassTree.from_nested((0, (1, 2)))
    array = getattr(tree, name)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.setflags(write=True)
    with pytest.raises(AttributeError, match="cannot assign"):
        setattr(tree, name, array)
    with pytest.raises(AttributeError, match="cannot delete"):
        delattr(tree, name)


def test_a_tree_does_not_follow_changes_of_the_arrays_it_was_made_of() -> None:
    leaf_class = np.array([-1, 0, 1], dtype=np.int32)
    tree = ClassTree([1, -1, -1], [2, -1, -1], leaf_class)
    leaf_class[1:] = [1, 0]
    assert tree.to_nested() == (0, 1)


@pytest.mark.parametrize(
    ("left", "right", "leaf_class", "message"),
    [
        pytest.param([1, 0, -1], [2, 2, -1], [-1, -1, 0], "node 0 twice: a cycle", id="cycle through the root"),
        pytest.param([0], [0], [-1], "node 0 twice: a cycle", id="node is its own child"),
        pytest.param([1, -1, -1], [1, -1, -1], [-1, 0, 1], "node 1 twice", id="both children are one node"),
        pytest.param(
            [1, -1, -1, 4, 3], [2, -1, -1, 4, 3], [-1, 0, 1, -1, -1], "Got only 3", id="cycle apart from the root"
        ),
        pytest.param([1, -1, -1, -1], [2, -1, -1, -1], [-1, 0, 1, 2], "Got only 3", id="unreachable leaf"),
        pytest.param(
            [1, -1, -1], [2, -1, -1], [-1, 1, 1], "class 1 2 times and class 0 not at all", id="repeated class"
        ),
        pytest.param(
            [1, -1, -1], [2, -1, -1], [-1, 0, 2], r"leaf_class must lie in -1\.\.1 .* Got 2", id="missing class"
        ),
        pytest.param([1, -1], [-1, -1], [-1, 0], "two children.*left 1 and right -1 at node 0", id="one child"),
        pytest.param([2, -1, -1], [1, -1, -1], [-1, 0, 1], "node 2 where node 1 is expected", id="children swapped"),
        pytest.param(
            [1, 3, -1, -1, -1],
            [2, 4, -1, -1, -1],
            [-1, -1, 0, 1, 2],
            "node 3 where node 2 is expected",
            id="level order",
        ),
        pytest.param([1, -1, -1], [3, -1, -1], [-1, 0, 1], r"children_right must lie in -1\.\.2 .* Got 3", id="beyond"),
        pytest.param([-2], [-1], [0], r"children_left must lie in -1\.\.0 .* Got -2", id="below -1"),
        pytest.param([1, -1, -1], [2, -1, -1], [0, 1, 2], "-1 at an internal node. Got 0 at node 0", id="class inside"),
        pytest.param([1, -1, -1], [2, -1, -1], [-1, 0, -1], "at a leaf. Got -1 at node 2", id="leaf without class"),
        pytest.param([1, -1, -1], [2, -1], [-1, 0, 1], r"same length. Got \(3, 2, 3\)", id="lengths differ"),
        pytest.param([], [], [], r"at least one node. Got shape \(0,\)", id="no node"),
        pytest.param([[-1]], [[-1]], [[0]], r"one-dimensional .* Got shape \(1, 1\)", id="two dimensions"),
        pytest.param([-1.0], [-1], [0], "children_left must hold signed integers .* float64", id="floats"),
        pytest.param([-1], [-1], [False], "leaf_class must hold signed integers .* bool", id="booleans"),
        pytest.param([-1], [-1], [2**70], "leaf_class must hold signed integers .* object", id="huge integers"),
    ],
)
def test_arrays_that_are_no_class_tree_are_refused(
    left: list[int], right: list[int], leaf_class: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ClassTree(left, right, leaf_class)


@given(st.data())
def test_random_arrays_are_a_preorder_tree_or_a_value_error(data: st.DataObject) -> None:
    n_nodes = data.draw(st.integers(1, 5))
    values = st.lists(st.integers(-1, n_nodes - 1), min_size=n_nodes, max_size=n_nodes)
    left, right, leaf_class = data.draw(values), data.draw(values), data.draw(values)
    try:
        tree = ClassTree(left, right, leaf_class)
    except ValueError:
        return
    again = ClassTree.from_nested(tree.to_nested())
    assert (again.children_left.tolist(), again.children_right.tolist()) == (left, right)
    assert again.leaf_class.tolist() == leaf_class


@pytest.mark.parametrize(
    ("nested", "message"),
    [
        ((0, 1, 2), "Got a tuple of length 3"),
        ((0,), "Got a tuple of length 1"),
        ([0, 1], "Got a list"),
        ((0, "1"), "Got 1"),
        ((0, 1.0), "Got 1.0"),
        ((True, 0), "Got True"),
        ((0, -1), "Got -1"),
        ((0, None), "Got a NoneType"),
        ((0, 0), "class 0 2 times and class 1 not at all"),
        ((0, 2), "Got 2"),
    ],
)
def test_nested_that_is_no_class_tree_is_refused(nested: NestedClasses, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClassTree.from_nested(nested)


def test_numpy_integers_are_leaves() -> None:
    assert ClassTree.from_nested((np.int64(0), np.int32(1))).to_nested() == (0, 1)  # type: ignore[arg-type]


def test_newick_names_are_quoted_where_needed() -> None:
    tree = ClassTree.from_nested(((0, 1), ((2, 3), 4)))
    names = ["cat", "red fox", "it's", "snow_owl", ""]
    assert tree.to_newick(names) == "((cat,'red fox'),(('it''s','snow_owl'),''));"


def test_newick_of_other_programs_is_read() -> None:
    text = " ( cat:1e-3 , [comment (] ( snow_owl , 'red fox' : 2 )inner:0.5 )root ;\n"
    assert ClassTree.from_newick(text, ["cat", "red fox", "snow_owl"]).to_nested() == (0, (2, 1))


def test_names_may_be_a_numpy_array_of_any_labels() -> None:
    tree = ClassTree.from_nested((0, (1, 2)))
    labels = np.array([30, 10, 20])
    assert tree.to_newick(labels) == "(30,(10,20));"
    assert ClassTree.from_newick("(30,(10,20));", labels) == tree


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"Expected \( or name .* Got 'end of text' at position 0"),
        ("(0,1)", "Expected .* Got 'end of text' at position 5"),
        ("(0,1;", "parentheses must match; here 1 are open"),
        ("0,1;", "parentheses must match; here 0 are open"),
        ("(0,1));", "parentheses must match; here 0 are open"),
        ("(0);", "two children, but one has 1"),
        ("(0,1,2);", "two children, but one has 3"),
        ("(0,);", r"Expected \( or name .* Got '\)' at position 3"),
        ("(0 1,2);", "Got '1' at position 3"),
        ("(0:,1);", "Expected length"),
        ("(0,1); 2", "Expected end of text .* Got '2' at position 7"),
        ("(0,'1);", "Got a lone ' at position 3"),
        ("(0,[1);", r"Got a lone \[ at position 3"),
        ("(0,cat);", r"must be class indices 0\.\.1. Got 'cat'"),
        ("(0,2);", "Got '2'"),
        ("(0,0);", "class 0 2 times and class 1 not at all"),
    ],
)
def test_newick_that_is_no_class_tree_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClassTree.from_newick(text)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["cat"], "each of the 2 classes. Got 1 names"),
        (["cat", "cat"], "must be unique.* Got 'cat' more than once"),
        (["cat", "fox"], "members of names. Got 'dog'"),
    ],
)
def test_newick_names_that_do_not_fit_are_refused(names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClassTree.from_newick("(cat,dog);", names)


def test_ambiguous_names_are_not_written_to_newick_but_drawn() -> None:
    tree = ClassTree.from_nested((0, 1))
    with pytest.raises(ValueError, match="must be unique"):
        tree.to_newick(["cat", "cat"])
    assert tree.to_text(["cat", "cat"]) == "[0]\n├── cat\n└── cat"


def test_text_drawing_of_a_small_tree() -> None:
    tree = ClassTree.from_nested(((0, (1, 2)), (3, 4)))
    assert tree.to_text(["cat", "dog", "fox", "owl", "hen"]).splitlines() == [
        "[0]",
        "├── [1]",
        "│   ├── cat",
        "│   └── [3]",
        "│       ├── dog",
        "│       └── fox",
        "└── [6]",
        "    ├── owl",
        "    └── hen",
    ]


def test_text_drawing_cut_off_shows_the_number_of_classes_below() -> None:
    tree = ClassTree.from_nested(((0, (1, 2)), 3))
    assert tree.to_text(max_depth=0) == "[0] … 4 classes"
    assert tree.to_text(max_depth=1).splitlines() == ["[0]", "├── [1] … 3 classes", "└── class 3"]


def test_a_negative_max_depth_is_refused() -> None:
    with pytest.raises(ValueError, match=r"max_depth must be None or an int >= 0\. Got -1"):
        ClassTree.from_nested((0, 1)).to_text(max_depth=-1)


@pytest.mark.parametrize("node", [-1, 3])
def test_a_node_that_is_not_there_is_refused(node: int) -> None:
    tree = ClassTree.from_nested((0, 1))
    with pytest.raises(IndexError, match=rf"node must be in 0\.\.2 .* Got {node}"):
        tree.is_leaf(node)
    with pytest.raises(IndexError, match=rf"node must be in 0\.\.2 .* Got {node}"):
        tree.classes_below(node)


@pytest.mark.parametrize("deep_side", ["left", "right"])
def test_a_chain_of_20000_classes_is_built_and_written_quickly(deep_side: str) -> None:
    nested = chain(DEEP, deep_side)
    start = time.perf_counter()
    tree = ClassTree.from_nested(nested)
    assert tree.max_depth == DEEP - 1
    assert tree.n_nodes == 2 * DEEP - 1
    assert tree.classes_below(0).tolist() == list(range(DEEP))
    assert ClassTree.from_nested(tree.to_nested()) == tree
    assert ClassTree.from_newick(tree.to_newick()) == tree
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert len(tree.to_text(max_depth=3).splitlines()) == 7
    assert time.perf_counter() - start < DEEP_SECONDS


def test_a_flaw_deep_in_a_nested_chain_is_reported_without_recursion() -> None:
    nested: object = (0, 1, 2)
    for _ in range(DEEP):
        nested = (nested, 0)
    with pytest.raises(ValueError, match="tuple of length 3"):
        ClassTree.from_nested(nested)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Got a tuple of length 3"):
        ClassTree.from_nested((nested, 0, 0))  # type: ignore[arg-type]
