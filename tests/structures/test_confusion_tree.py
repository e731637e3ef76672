"""Confusion trees: which classes stay together, and proper cuts of every graph."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margintree.structures.confusion_tree import SMALLEST_SHARE, confusion_tree, cut_in_two


def groups(sizes, within, between, diagonal=20.0):
    """Return the affinity of groups of classes that are confused more within than between."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    affinity = np.where(group[:, None] == group, within, between).astype(float)
    np.fill_diagonal(affinity, diagonal)
    return affinity, group


def normalised_cut(affinity, left):
    cut = affinity[np.ix_(left, ~left)].sum()
    return cut / affinity[left].sum() + cut / affinity[~left].sum()


def random_affinity(seed, n_classes, density):
    rng = np.random.default_rng(seed)
    affinity = rng.integers(1, 30, (n_classes, n_classes)) * (rng.random((n_classes, n_classes)) < density)
    return (affinity + affinity.T) / 2.0


@pytest.mark.parametrize("diagonal", [0.0, 20.0])
@pytest.mark.parametrize("between", [0.0, 1e-9, 0.3])
def test_two_groups_of_confused_classes_are_told_apart(diagonal, between):
    affinity, group = groups([4, 5], 5.0, between, diagonal)
    np.testing.assert_array_equal(cut_in_two(affinity), group == 0)


def test_nested_groups_give_a_nested_tree():
    pairs, pair = groups([2] * 8, 9.0, 0.0)
    quads, _ = groups([4] * 4, 2.0, 0.0)
    halves, _ = groups([8] * 2, 0.5, 0.05)
    order = np.random.default_rng(0).permutation(16)
    tree = confusion_tree((pairs + quads + halves)[np.ix_(order, order)])
    assert tree.max_depth == 4
    subtrees = {frozenset(pair[order[tree.classes_below(node)]]) for node in tree.internal_nodes}
    assert subtrees >= {frozenset([p]) for p in range(8)}
    assert subtrees >= {frozenset([p, p + 1]) for p in (0, 2, 4, 6)}
    assert subtrees >= {frozenset(range(4)), frozenset(range(4, 8))}


@given(st.integers(0, 10**6), st.integers(2, 25), st.sampled_from([0.0, 0.05, 0.2, 0.6, 1.0]))
def test_every_graph_gives_a_proper_tree_of_bounded_depth(seed, n_classes, density):
    affinity = random_affinity(seed, n_classes, density)
    left = cut_in_two(affinity)
    assert left[0]
    assert 0 < left.sum() < n_classes
    tree = confusion_tree(affinity)
    assert tree.n_classes == n_classes
    # A cut between components may be uneven once; the next one is of a connected graph.
    assert tree.max_depth <= 2 * (1 + np.log(n_classes) / -np.log(1.0 - SMALLEST_SHARE))


@given(st.integers(0, 10**6), st.integers(3, 20))
def test_connected_classes_are_cut_with_a_quarter_on_each_side(seed, n_classes):
    affinity = random_affinity(seed, n_classes, 0.5) + 0.01
    left = cut_in_two(affinity)
    assert min(left.sum(), (~left).sum()) >= max(1, n_classes // 4)


@given(st.integers(0, 10**6), st.integers(2, 12))
def test_the_scale_of_the_affinity_plays_no_part(seed, n_classes):
    affinity = random_affinity(seed, n_classes, 0.5)
    assert confusion_tree(affinity * 2.0**-40) == confusion_tree(affinity)


@given(st.integers(0, 10**6))
def test_renaming_classes_renames_the_cut(seed):
    rng = np.random.default_rng(seed)
    affinity = rng.random((9, 9))
    affinity += affinity.T
    order = rng.permutation(9)
    left, renamed = cut_in_two(affinity), cut_in_two(affinity[np.ix_(order, order)])
    assert np.array_equal(left[order], renamed) or np.array_equal(left[order], ~renamed)


def test_the_cut_is_close_to_the_best_of_all():
    rng = np.random.default_rng(0)
    for _ in range(20):
        affinity, _ = groups([3, 3], 4.0, 1.0)
        noise = rng.random(affinity.shape)
        affinity += noise + noise.T
        sides = (np.arange(1, 2**5)[:, None] >> np.arange(6)) & 1 == 1
        best = min(normalised_cut(affinity, left) for left in sides)
        assert normalised_cut(affinity, cut_in_two(affinity)) <= 1.1 * best


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3, 8, 33])
def test_classes_that_cannot_be_told_apart_are_halved(n_classes, value):
    tree = confusion_tree(np.full((n_classes, n_classes), value))
    assert tree.max_depth == int(np.ceil(np.log2(n_classes)))


def test_components_stay_whole_while_there_are_several():
    affinity, group = groups([5, 3, 3], 2.0, 0.0)
    left = cut_in_two(affinity)
    assert [len(set(left[group == g])) for g in range(3)] == [1, 1, 1]
    assert left.sum() == 5


def test_a_single_class_is_a_leaf():
    assert confusion_tree(np.ones((1, 1))).to_nested() == 0
