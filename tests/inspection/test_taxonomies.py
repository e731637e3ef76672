"""Trees compared with a reference hierarchy."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import cophenet

from margintree import ClassTree, MarginTreeClassifier
from margintree.inspection import compare_taxonomies, nested_from_paths, to_linkage
from margintree.structures.random_tree import random_tree


def brute_force_agreement(tree, reference):
    """Compare triplets by the sizes of the smallest common groups."""

    def outsider(of, triplet):
        size = {}
        for one in triplet:
            pair = set(triplet) - {one}
            groups = (set(of.classes_below(n).tolist()) for n in range(of.n_nodes))
            size[one] = min(len(group) for group in groups if pair <= group)
        return min(size, key=size.get)

    triplets = list(itertools.combinations(range(tree.n_classes), 3))
    return np.mean([outsider(tree, t) == outsider(reference, t) for t in triplets])


@given(st.integers(3, 9), st.integers(0, 1000), st.integers(0, 1000))
def test_few_classes_are_compared_exactly(n_classes, one, other):
    tree, reference = random_tree(n_classes, one), random_tree(n_classes, other)
    result = compare_taxonomies(tree, reference)
    assert result.is_exact
    assert result.n_triplets == n_classes * (n_classes - 1) * (n_classes - 2) // 6
    assert result.triplet_agreement == pytest.approx(brute_force_agreement(tree, reference))
    expected = np.corrcoef(cophenet(to_linkage(tree)), cophenet(to_linkage(reference)))[0, 1]
    assert result.cophenetic_correlation == pytest.approx(expected)


def test_the_same_tree_agrees_wholly_and_random_ones_by_a_third():
    tree = random_tree(300, 0)
    same = compare_taxonomies(tree, tree)
    assert (same.triplet_agreement, same.cophenetic_correlation) == (1.0, pytest.approx(1.0))
    other = compare_taxonomies(tree, random_tree(300, 1))
    assert other.triplet_agreement == pytest.approx(1 / 3, abs=0.02)
    assert abs(other.cophenetic_correlation) < 0.05


def test_a_sample_is_near_the_exact_figures_and_repeats_with_its_seed():
    tree, reference = random_tree(60, 0), random_tree(60, 3)
    exact, sample = compare_taxonomies(tree, reference), compare_taxonomies(tree, reference, n_samples=1500)
    assert (exact.is_exact, sample.is_exact) == (True, False)
    assert sample.triplet_agreement == pytest.approx(exact.triplet_agreement, abs=0.05)
    assert sample.cophenetic_correlation == pytest.approx(exact.cophenetic_correlation, abs=0.1)
    assert sample == compare_taxonomies(tree, reference, n_samples=1500)


def test_only_what_the_reference_resolves_counts():
    reference = [["cat", "dog", "fox"], "owl"]
    result = compare_taxonomies([[["cat", "dog"], "fox"], "owl"], reference)
    # Of the four triplets the reference says nothing of cat, dog and fox.
    assert (result.n_triplets, result.triplet_agreement) == (3, 1.0)
    flat = compare_taxonomies("((a,b),(c,d));", ["a", "b", "c", "d"])
    assert np.isnan([flat.triplet_agreement, flat.cophenetic_correlation]).all()


def test_labels_of_a_model_meet_those_of_the_reference():
    X = np.array([[0.0], [0.2], [1.0], [1.2], [8.0], [8.2]])
    model = MarginTreeClassifier(walk="greedy", calibration_folds=0, balance=0.9, random_state=0)
    model.fit(X, ["ant", "ant", "bee", "bee", "yak", "yak"])
    assert compare_taxonomies(model, "((ant,bee),yak);").triplet_agreement == 1.0
    assert compare_taxonomies(model, [["ant", "yak"], "bee"]).triplet_agreement == 0.0
    assert compare_taxonomies(model, [[1, 2], 3], class_names=[1, 2, 3]).triplet_agreement == 1.0


@pytest.mark.parametrize(
    ("tree", "reference", "message"),
    [
        ("((a,b),c);", "((a,b),d);", "'c' is missing in it; 'd' is not among the classes"),
        (ClassTree.from_nested((0, 1)), ClassTree.from_nested((0, (1, 2))), None),
        (ClassTree.from_nested((0, 1)), [0, [1, 2]], "2 is not among the classes"),
    ],
)
def test_hierarchies_over_other_classes_are_refused(tree, reference, message):
    with pytest.raises(ValueError, match=message or "same classes"):
        compare_taxonomies(tree, reference)


def test_paths_become_groups_with_the_classes_at_inner_nodes():
    nested = nested_from_paths(["a", "a/b", "a/b/c", "d/e"], labels=[0, 1, 2, 3])
    assert nested == [[0, [1, [2]]], [[3]]]
    with pytest.raises(ValueError, match=r"one label for each of the 1 paths\. Got 2"):
        nested_from_paths(["a"], labels=[1, 2])


def test_a_taxonomy_of_paths_can_be_the_tree_of_a_model():
    X, y = np.arange(12.0).reshape(-1, 1), np.repeat(["x", "y", "z"], 4)
    nested = nested_from_paths(["r", "r/s", "r/s/t"], labels=["x", "y", "z"])
    model = MarginTreeClassifier(tree=nested, walk="greedy", calibration_folds=0).fit(X, y)
    assert model.tree_.to_nested() == (0, (1, 2))
    assert compare_taxonomies(model, nested).triplet_agreement == 1.0
