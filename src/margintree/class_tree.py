"""The tree over the classes: its structure alone, independent of how it was learned.

A node is a group of classes, the root is the group of all classes, every internal node has two children
that divide its group between them, and a leaf is a single class (Definition 1.1 of Yang & Tsang,
"Hierarchical Maximum Margin Learning for Multi-Class Classification"). Nodes are numbered in preorder, so the
subtree of node i is a contiguous range that starts at i, and the sequence of leaf classes alone fixes the tree.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margintree import newick

IntArray: TypeAlias = NDArray[np.int32]
NestedClasses: TypeAlias = "int | tuple[NestedClasses, NestedClasses]"
_Integers: TypeAlias = NDArray[np.int64]
ClassNames: TypeAlias = Sequence[object] | NDArray[Any]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class ClassTree:
    """Immutable binary tree whose leaves are the classes 0 .. n_classes - 1.

    Parameters
    ----------
    children_left, children_right : array-like of int, shape (n_nodes,)
        Children of each node, -1 at a leaf. Nodes are numbered in preorder: the root is 0, the left child of
        node i is i + 1, its right child is the first number after the left child's subtree.
    leaf_class : array-like of int, shape (n_nodes,)
        Class at each leaf, -1 at an internal node.

    Attributes
    ----------
    children_left, children_right, leaf_class : ndarray of int32, shape (n_nodes,)
        As given, read-only.
    depth : ndarray of int32, shape (n_nodes,)
        Edges between the root and each node.
    parent : ndarray of int32, shape (n_nodes,)
        Parent of each node, -1 at the root.
    leaf_of_class : ndarray of int32, shape (n_classes,)
        Leaf of each class.
    internal_nodes : ndarray of int32, shape (n_classes - 1,)
        Nodes with children, in preorder.
    n_nodes, n_classes : int
        Numbers of nodes, 2 n_classes - 1, and of classes.

    Examples
    --------
    >>> from margintree.class_tree import ClassTree
    >>> tree = ClassTree([1, -1, 3, -1, -1], [2, -1, 4, -1, -1], [-1, 1, -1, 0, 2])
    >>> tree
    ClassTree(n_classes=3, max_depth=2)
    >>> tree.depth.tolist(), tree.parent.tolist()
    ([0, 1, 1, 2, 2], [-1, 0, 0, 2, 2])
    >>> tree.leaf_of_class.tolist(), tree.internal_nodes.tolist()
    ([3, 1, 4], [0, 2])
    >>> tree.n_nodes, tree.n_classes
    (5, 3)
    """

    n_nodes: int = field(init=False)
    n_classes: int = field(init=False)
    children_left: IntArray
    children_right: IntArray
    leaf_class: IntArray
    depth: IntArray = field(init=False)
    parent: IntArray = field(init=False)
    leaf_of_class: IntArray = field(init=False)
    internal_nodes: IntArray = field(init=False)
    _subtree_end: IntArray = field(init=False)

    def __init__(self, children_left: ArrayLike, children_right: ArrayLike, leaf_class: ArrayLike) -> None:
        left = _integers("children_left", children_left)
        right = _integers("children_right", children_right)
        classes = _integers("leaf_class", leaf_class)
        _check_nodes(left, right, classes)
        depth = _preorder_depth(left.tolist(), right.tolist())
        _check_classes(classes)
        internal, leaves = np.flatnonzero(left >= 0), np.flatnonzero(left < 0)
        parent = np.full_like(left, -1)
        parent[left[internal]] = parent[right[internal]] = internal
        leaf_of_class = np.empty_like(leaves)
        leaf_of_class[classes[leaves]] = leaves
        end = _subtree_end(right.tolist())
        arrays: tuple[ArrayLike, ...] = (left, right, classes, depth, parent, leaf_of_class, internal, end)
        values = (len(left), len(leaves), *map(_read_only, arrays))
        for attribute, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, attribute.name, value)

    @classmethod
    def from_nested(cls, nested: NestedClasses) -> Self:
        """Return the tree of nested pairs: a leaf is a class index, an internal node a 2-tuple.

        Examples
        --------
        >>> ClassTree.from_nested(((0, 3), (1, 2))).leaf_class.tolist()
        [-1, -1, 0, 3, -1, 1, 2]
        """
        leaf_class: list[int] = []
        stack: list[NestedClasses] = [nested]
        while stack:
            item: object = stack.pop()
            if isinstance(item, tuple) and len(item) == 2:
                leaf_class.append(-1)
                stack += (item[1], item[0])
            elif isinstance(item, int | np.integer) and not isinstance(item, bool) and item >= 0:
                leaf_class.append(int(item))
            else:
                # Containers are named by their type only: the repr of a deep one recurses.
                given = f"{item}" if isinstance(item, int | float | str) else f"a {type(item).__name__}"
                given += f" of length {len(item)}" if isinstance(item, tuple) else ""
                raise ValueError(f"A nested class tree is a class index (int >= 0) or a 2-tuple of such. Got {given}.")
        return cls.from_preorder(leaf_class)

    @classmethod
    def from_newick(cls, text: str, names: ClassNames | None = None) -> Self:
        """Return the tree of a Newick string.

        Names of internal nodes, branch lengths and comments in brackets are skipped. Underscores stay underscores.

        Parameters
        ----------
        text : str
            One binary tree, ended by a semicolon.
        names : sequence of length n_classes, default=None
            ``names[k]`` is the leaf name of class k. Without it the leaf names are the class indices.

        Examples
        --------
        >>> ClassTree.from_newick("((0:1.5,2:1.5),1);").to_nested()
        ((0, 2), 1)
        >>> ClassTree.from_newick("(cat,('red fox',dog));", names=["cat", "dog", "red fox"]).to_nested()
        (0, (2, 1))
        """
        labels = newick.labels_in_preorder(text)
        n_classes = len(labels) - labels.count(None)
        indices = {label: k for k, label in enumerate(newick.distinct(_names(names, n_classes)))}
        unknown = [label for label in labels if label is not None and label not in indices]
        if unknown:
            expected = f"class indices 0..{n_classes - 1}" if names is None else "members of names"
            raise ValueError(f"The leaf names of a Newick string must be {expected}. Got {unknown[0]!r}.")
        return cls.from_preorder([-1 if label is None else indices[label] for label in labels])

    @classmethod
    def from_preorder(cls, leaf_class: list[int]) -> Self:
        """Return the tree of its leaf classes in preorder, with -1 for internal nodes.

        Examples
        --------
        >>> ClassTree.from_preorder([-1, 2, -1, 0, 1]).to_nested()
        (2, (0, 1))
        """
        children_left, children_right = [-1] * len(leaf_class), [-1] * len(leaf_class)
        roots: list[int] = []
        for node in reversed(range(len(leaf_class))):
            if leaf_class[node] < 0:
                if len(roots) < 2:
                    raise ValueError(f"Two subtrees must follow an internal node. Got {len(roots)} after node {node}.")
                children_left[node], children_right[node] = roots.pop(), roots.pop()
            roots.append(node)
        return cls(children_left, children_right, leaf_class)

    @property
    def max_depth(self) -> int:
        """Depth of the deepest leaf; 0 for a single class.

        Examples
        --------
        >>> ClassTree.from_nested((0, (1, 2))).max_depth
        2
        """
        return int(self.depth.max())

    def is_leaf(self, node: int) -> bool:
        """Return whether the node has no children.

        Examples
        --------
        >>> tree = ClassTree.from_nested((0, (1, 2)))
        >>> tree.is_leaf(0), tree.is_leaf(1)
        (False, True)
        """
        return bool(self.children_left[self._checked(node)] < 0)

    def classes_below(self, node: int) -> IntArray:
        """Return the node's group of classes, sorted; the time depends only on the size of its subtree.

        Examples
        --------
        >>> ClassTree.from_nested((1, (2, 0))).classes_below(2).tolist()
        [0, 2]
        """
        node = self._checked(node)
        below = self.leaf_class[node : self._subtree_end[node]]
        return np.sort(below[below >= 0])

    def last_below(self, node: int) -> int:
        """Return the last node of the subtree that starts at a node; in preorder it is a leaf.

        Examples
        --------
        >>> ClassTree.from_nested(((0, 1), 2)).last_below(1)
        3
        """
        return int(self._subtree_end[self._checked(node)]) - 1

    def paths(self, nodes: NDArray[Any]) -> tuple[_Integers, IntArray]:
        """Return the nodes above some nodes, up to the root: ``above[start[i]:start[i + 1]]`` is the path of the i-th.

        Examples
        --------
        >>> [part.tolist() for part in ClassTree.from_nested((0, (1, 2))).paths(np.array([1, 4]))]
        [[0, 1, 3], [0, 2, 0]]
        """
        start = np.concatenate([[0], np.cumsum(self.depth[nodes], dtype=np.int64)])
        above, at, place = np.empty(start[-1], dtype=np.int32), self.parent[nodes], start[:-1]
        while len(going := np.flatnonzero(at >= 0)):
            above[place[going]] = at[going]
            at, place = self.parent[at[going]], place[going] + 1
        return start, above

    def to_nested(self) -> NestedClasses:
        """Return the tree as nested pairs.

        Examples
        --------
        >>> ClassTree([1, -1, -1], [2, -1, -1], [-1, 0, 1]).to_nested()
        (0, 1)
        """
        roots: list[NestedClasses] = []
        for label in reversed(self.leaf_class.tolist()):
            roots.append(label if label >= 0 else (roots.pop(), roots.pop()))
        return roots[0]

    def to_newick(self, names: ClassNames | None = None) -> str:
        """Return the tree as a Newick string, with names in quotes where needed.

        Parameters
        ----------
        names : sequence of length n_classes, default=None
            ``names[k]`` is the name of class k; names must differ. Without it the class indices are written.

        Examples
        --------
        >>> ClassTree.from_nested((0, (2, 1))).to_newick()
        '(0,(2,1));'
        >>> print(ClassTree.from_nested((0, (2, 1))).to_newick(["cat", "dog", "red fox"]))
        (cat,('red fox',dog));
        """
        labels = newick.distinct(_names(names, self.n_classes))
        leaves = [None if k < 0 else labels[k] for k in self.leaf_class.tolist()]
        return newick.text_of(leaves, self.children_right.tolist())

    def to_text(self, names: ClassNames | None = None, max_depth: int | None = None) -> str:
        """Return a drawing for the terminal: internal nodes as their number in brackets, leaves as their names.

        A drawing is as wide as the tree is deep; use ``max_depth`` for deep trees.

        Parameters
        ----------
        names : sequence of length n_classes, default=None
            ``names[k]`` is the name of class k.
        max_depth : int, default=None
            Internal nodes at this depth are cut off and show the number of classes below them.

        Examples
        --------
        >>> tree = ClassTree.from_nested((0, (2, 1)))
        >>> print(tree.to_text(["cat", "dog", "fox"]))
        [0]
        ├── cat
        └── [2]
            ├── fox
            └── dog
        >>> print(tree.to_text(max_depth=1))
        [0]
        ├── class 0
        └── [2] … 2 classes
        """
        if max_depth is not None and operator.index(max_depth) < 0:
            raise ValueError(f"max_depth must be None or an int >= 0. Got {max_depth}.")
        labels = _names(names, self.n_classes, "class ")
        lines: list[str] = []
        stack = [(0, "", "")]
        while stack:
            node, lead, indent = stack.pop()
            if self.leaf_class[node] >= 0:
                lines.append(lead + labels[self.leaf_class[node]])
            elif max_depth is not None and self.depth[node] >= max_depth:
                lines.append(f"{lead}[{node}] … {(self._subtree_end[node] - node + 1) // 2} classes")
            else:
                lines.append(f"{lead}[{node}]")
                stack.append((int(self.children_right[node]), indent + "└── ", indent + "    "))
                stack.append((node + 1, indent + "├── ", indent + "│   "))
        return "\n".join(lines)

    def __eq__(self, other: object) -> bool:
        """Return whether both trees are equal; comparing the leaf classes in preorder is enough."""
        if not isinstance(other, ClassTree):
            return NotImplemented
        return np.array_equal(self.leaf_class, other.leaf_class)

    def __hash__(self) -> int:
        """Return a hash of the content."""
        return hash(self.leaf_class.tobytes())

    def __repr__(self) -> str:
        """Return the size of the tree."""
        return f"{type(self).__name__}(n_classes={self.n_classes}, max_depth={self.max_depth})"

    def __reduce__(self) -> tuple[type[Self], tuple[IntArray, IntArray, IntArray]]:
        """Pickle through the constructor: numpy's own pickling forgets that an array is read-only."""
        return type(self), (self.children_left, self.children_right, self.leaf_class)

    def _checked(self, node: int) -> int:
        # Python's negative indices would silently answer for another node.
        if not 0 <= operator.index(node) < self.n_nodes:
            raise IndexError(f"node must be in 0..{self.n_nodes - 1} for a tree of {self.n_nodes} nodes. Got {node}.")
        return operator.index(node)


def _read_only(values: ArrayLike) -> IntArray:
    # Over bytes, so that setflags(write=True) is refused too.
    return np.frombuffer(np.asarray(values).astype(np.int32).tobytes(), dtype=np.int32)


def _integers(name: str, values: ArrayLike) -> _Integers:
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be one-dimensional with at least one node. Got shape {array.shape}.")
    if array.dtype.kind != "i":
        raise ValueError(f"{name} must hold signed integers of at most 64 bits. Got dtype {array.dtype}.")
    return array.astype(np.int64)


def _check_range(name: str, array: _Integers, highest: int) -> None:
    for node in np.flatnonzero((array < -1) | (array > highest)):
        raise ValueError(f"{name} must lie in -1..{highest} for {array.size} nodes. Got {array[node]} at node {node}.")


def _check_nodes(left: _Integers, right: _Integers, leaf_class: _Integers) -> None:
    sizes = (len(left), len(right), len(leaf_class))
    if len(set(sizes)) > 1:
        raise ValueError(f"children_left, children_right and leaf_class must have the same length. Got {sizes}.")
    _check_range("children_left", left, len(left) - 1)
    _check_range("children_right", right, len(left) - 1)
    for node in np.flatnonzero((left < 0) != (right < 0)):
        given = f"left {left[node]} and right {right[node]} at node {node}"
        raise ValueError(f"An internal node must have two children, a leaf -1 for both. Got {given}.")
    for node in np.flatnonzero((left < 0) != (leaf_class >= 0)):
        expected = "a class (0 or more) at a leaf" if left[node] < 0 else "-1 at an internal node"
        raise ValueError(f"leaf_class must be {expected}. Got {leaf_class[node]} at node {node}.")


def _check_classes(leaf_class: _Integers) -> None:
    n_classes = (len(leaf_class) + 1) // 2
    _check_range("leaf_class", leaf_class, n_classes - 1)
    counts = np.bincount(leaf_class[leaf_class >= 0], minlength=n_classes)
    # There are as many leaves as classes, so a class is missing exactly where another is repeated.
    for missing in np.flatnonzero(counts == 0):
        given = f"class {counts.argmax()} {counts.max()} times and class {missing} not at all"
        raise ValueError(f"Each class 0..{n_classes - 1} must be at exactly one leaf. Got {given}.")


def _preorder_depth(left: list[int], right: list[int]) -> list[int]:
    depth = [0] * len(left)
    stack, n_visited = [0], 0
    while stack:
        node = stack.pop()
        if node < n_visited:
            given = f"node {node} twice: a cycle, or a node with two parents"
            raise ValueError(f"Each node must be reached exactly once from the root. Got {given}.")
        if node > n_visited:
            given = f"node {node} where node {n_visited} is expected"
            raise ValueError(f"Nodes must be numbered in preorder: node, left subtree, right subtree. Got {given}.")
        n_visited += 1
        if left[node] >= 0:
            stack += (right[node], left[node])
            depth[left[node]] = depth[right[node]] = depth[node] + 1
    if n_visited < len(left):
        raise ValueError(f"All {len(left)} nodes must be reachable from the root. Got only {n_visited} that are.")
    return depth


def _subtree_end(right: list[int]) -> list[int]:
    end = [0] * len(right)
    for node in reversed(range(len(right))):
        end[node] = node + 1 if right[node] < 0 else end[right[node]]
    return end


def _names(names: ClassNames | None, n_classes: int, prefix: str = "") -> list[str]:
    if names is not None and len(names) != n_classes:
        raise ValueError(f"names must hold one name for each of the {n_classes} classes. Got {len(names)} names.")
    return [f"{prefix}{k}" for k in range(n_classes)] if names is None else [str(name) for name in names]
