"""The cuts of the spanning tree against a search over all edges, and what each rounding promises."""

import itertools

import numpy as np
import pytest

from margintree import MarginTreeClassifier
from margintree.splits import RelaxationSplit
from margintree.splits.node import NodeProblem
from margintree.splits.rounding import balanced_kruskal_cut, heaviest_plane, kruskal_cut


class Rows:
    """Stands for a node's rows, which roundings do not look at."""


def node_of(sizes, balance):
    return NodeProblem(Rows(), np.asarray(sizes, dtype=float), balance=balance, tol=1e-3, max_iter=10, seed=0)


def reached(edges, start):
    """Return the classes that edges connect to a class."""
    found = {start}
    for _ in edges:
        found |= {b for edge in edges for a, b in (edge, edge[::-1]) if a in found}
    return frozenset(found)


def best_tree(affinity):
    """Return the heaviest of all spanning trees, by trying all sets of edges."""
    n = len(affinity)
    trees = itertools.combinations(itertools.combinations(range(n), 2), n - 1)
    spanning = (tree for tree in trees if len(reached(tree, 0)) == n)
    return max(spanning, key=lambda tree: sum(affinity[edge] for edge in tree))


def weakest_feasible_cut(tree, affinity, sizes, beta):
    """Return the classes on class 0's side of the weakest edge whose cut is balanced; None if there is none."""
    for edge in sorted(tree, key=lambda edge: affinity[edge]):
        side = reached([other for other in tree if other != edge], 0)
        if abs(2 * sum(sizes[k] for k in side) - sum(sizes)) <= beta:
            return side
    return None


@pytest.mark.parametrize("balance", [0.0, 0.2, 0.5])
def test_the_balanced_cut_is_at_the_weakest_feasible_edge_of_all(balance):
    rng = np.random.default_rng(0)
    kinds = set()
    for _ in range(30):
        planes = np.where(rng.random((12, 6)) < 0.5, 1.0, -1.0)
        mu = rng.dirichlet(np.ones(12))
        sizes = rng.integers(1, 9, 6).astype(float)
        node = node_of(sizes, balance)
        affinity = (planes.T * mu) @ planes
        expected = weakest_feasible_cut(best_tree(affinity), affinity, sizes, node.beta)
        cut = balanced_kruskal_cut(node, planes, mu)
        if expected is None:
            np.testing.assert_array_equal(cut, heaviest_plane(planes, mu))
        else:
            assert set(np.flatnonzero(cut > 0)) == expected
        kinds.add("none" if expected is None else bool((cut == kruskal_cut(planes, mu)).all()))
    # Some cuts are Kruskal's own, others are not.
    assert {True, False} <= kinds


def test_a_star_without_a_feasible_edge_falls_back_to_the_heaviest_plane():
    planes = np.array([[1.0, -1.0, -1.0, -1.0, -1.0, 1.0], [1.0, 1.0, 1.0, -1.0, -1.0, -1.0]])
    # With one weight alone, equal edges in class order make stars; six equal classes at balance 0 need three each.
    node = node_of([1.0] * 6, 0.0)
    node.beta = 0.0
    cut = balanced_kruskal_cut(node, planes, np.array([1.0, 0.0]))
    np.testing.assert_array_equal(cut, planes[0])
    np.testing.assert_array_equal(balanced_kruskal_cut(node, planes, np.array([0.0, 1.0])), planes[1])


def test_balanced_trees_are_shallower_than_kruskals_and_their_nodes_balanced():
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(16), 12)
    X = rng.standard_normal((16, 5))[y] + 0.8 * rng.standard_normal((len(y), 5))
    depths = {}
    for rounding in ("kruskal", "balanced_kruskal"):
        split = RelaxationSplit(oracle="linf", mkl="simplemkl", rounding=rounding)
        model = MarginTreeClassifier("linear", split=split, balance=0.1, walk="greedy", calibration_folds=0)
        model.fit(X, y)
        depths[rounding] = float(model.n_evaluations(X).mean())
        imbalances = [record.imbalance for record in model.node_records_ if not record.balance_was_widened]
        assert (max(imbalances) <= 0.1 + 1e-9) == (rounding == "balanced_kruskal")
    assert depths["balanced_kruskal"] < depths["kruskal"]


def test_an_unknown_rounding_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'rounding' parameter.*balanced_kruskal.*Got 'kruskals'"):
        RelaxationSplit(rounding="kruskals")
