"""Growing: seeds by path, preorder numbering, and errors that come through."""

import numpy as np
import pytest

from margintree.solvers.training_set import LinearTrainingSet
from margintree.splits.bounds import conclude
from margintree.splits.random import RandomSplit
from margintree.structures.grow import NodeSettings, child_seed, grow
from margintree.worker_threads import elsewhere, in_threads


def training_set(n_classes, per_class=3):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_classes * per_class, 5))
    start = np.arange(0, len(X) + 1, per_class)
    weight = np.ones(len(X))
    return LinearTrainingSet(X, start, weight, weight, fit_intercept=True)


class PeelOff:
    """Sends the first class left and all others right: the deepest tree there is."""

    def divide(self, node):
        labelling = -np.ones(node.n_classes)
        labelling[0] = 1.0
        return conclude(node, labelling)


class FailsAtThree:
    def divide(self, node):
        if node.n_classes == 3:
            raise RuntimeError("three classes are too few")
        return PeelOff().divide(node)


def grow_with(split, n_classes, n_threads=1, seed=0, on_node=None):
    return grow(
        training_set(n_classes),
        split,
        NodeSettings(balance=0.3, tol=1e-3, max_iter=100),
        seed=seed,
        n_threads=n_threads,
        on_node=on_node,
    )


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_chain_of_many_classes_needs_no_recursion(n_threads):
    grown = grow_with(PeelOff(), 300, n_threads)
    assert grown.tree.max_depth == 299
    assert [len(r.classes_right) for r in grown.records] == list(range(299, 0, -1))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_in_a_node_ends_the_growing(n_threads):
    with pytest.raises(RuntimeError, match="three classes are too few"):
        grow_with(FailsAtThree(), 8, n_threads)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_every_node_is_reported_once(n_threads):
    seen = []
    grow_with(RandomSplit(), 17, n_threads, on_node=lambda record, n_done: seen.append((n_done, record)))
    assert [n for n, _ in seen] == list(range(1, 17))
    assert sorted(r.n_rows for _, r in seen)[-1] == 51


def test_seeds_follow_the_path_and_differ():
    seeds = {0: 12345}
    for node in range(1, 2**10):
        seeds[node] = child_seed(seeds[(node - 1) // 2], node % 2)
    assert len(set(seeds.values())) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds.values())


def test_random_trees_are_the_same_for_one_thread_and_several():
    trees = [grow_with(RandomSplit(), 40, n_threads, seed=9).tree for n_threads in (1, 2, 4)]
    assert trees[0] == trees[1] == trees[2]


class FirstInFirstOut:
    """Begins with the node that came in first, in the calling thread."""

    n_done, is_closed = 0, False

    def nodes_done(self, work, tasks):
        try:
            while tasks:
                task = tasks.pop(0)
                self.n_done += 1
                yield task, work(task)
        finally:
            self.is_closed = True


def test_nodes_may_be_divided_elsewhere_and_give_the_same_tree():
    here, other = grow_with(RandomSplit(), 9), FirstInFirstOut()
    token = elsewhere.set(other)
    try:
        there = grow_with(RandomSplit(), 9)
        assert in_threads(abs, [-1, 2], 2) == [1, 2], "work with side effects stays"
    finally:
        elsewhere.reset(token)
    assert there.tree == here.tree
    assert other.n_done == 8
    assert other.is_closed
