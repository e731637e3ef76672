"""Folds follow from what rows hold, and the machines of a fold know nothing of its rows."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from margintree import ClassTree
from margintree.solvers.training_set import LinearTrainingSet
from margintree.training.held_out import N_JURIES, deal_rows, machines_without
from margintree.training.machines import Trainer


def sorted_rows(seed, n_classes=4, n_values=3):
    """Return rows with few different values, so that many are equal, sorted by class."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 12, size=n_classes)
    X = random.integers(0, n_values, size=(sizes.sum(), 2)).astype(float)
    return X, np.concatenate([[0], np.cumsum(sizes)])


@given(seed=st.integers(0, 10**6), n_folds=st.integers(2, 5))
@settings(max_examples=60)
def test_equal_rows_of_a_class_share_a_fold_and_different_ones_are_spread_evenly(seed, n_folds):
    X, class_start = sorted_rows(seed)
    fold = deal_rows(X, class_start, n_folds).fold
    for first, last in itertools.pairwise(class_start):
        fold_of = {}
        for row, q in zip(X[first:last].tolist(), fold[first:last].tolist(), strict=True):
            assert fold_of.setdefault(tuple(row), q) == q
        counts = np.bincount(list(fold_of.values()), minlength=n_folds)
        assert counts.max() - counts.min() <= 1


def assert_same(one, other, order):
    np.testing.assert_array_equal(one.fold, other.fold[order])
    np.testing.assert_array_equal(one.jury, other.jury[order])
    np.testing.assert_array_equal(one.copy, other.copy[order])


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40)
def test_the_order_of_the_rows_and_repeated_rows_do_not_matter(seed):
    X, class_start = sorted_rows(seed)
    dealt = deal_rows(X, class_start, 3)
    random = np.random.default_rng(seed)
    parts = [first + random.permutation(last - first) for first, last in itertools.pairwise(class_start)]
    order = np.concatenate(parts)
    assert_same(deal_rows(X[order], class_start, 3), dealt, order)
    twice = np.repeat(np.arange(len(X)), 2)
    assert_same(deal_rows(X[twice], 2 * class_start, 3), dealt, twice)
    assert dealt.n_different == sum(len(np.unique(X[a:b], axis=0)) for a, b in itertools.pairwise(class_start))


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40)
def test_dense_and_sparse_rows_fall_into_the_same_folds(seed):
    X, class_start = sorted_rows(seed)
    fold = deal_rows(X, class_start, 3).fold
    stored_zeros = sp.csr_array(X + 1.0)
    stored_zeros.data -= 1.0
    for given_rows in (sp.csr_array(X), stored_zeros, np.asfortranarray(X), -(0.0 - X)):
        np.testing.assert_array_equal(deal_rows(given_rows, class_start, 3).fold, fold)


def test_classes_of_one_row_do_not_all_fall_into_one_fold():
    fold = deal_rows(np.random.default_rng(0).normal(size=(9, 2)), np.arange(10), 3).fold
    np.testing.assert_array_equal(np.bincount(fold), [3, 3, 3])


@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_every_jury_is_a_part_of_every_fold_of_every_class_and_takes_the_only_row_of_few(n_folds):
    per_class = 10 * N_JURIES * n_folds
    X = np.random.default_rng(0).normal(size=(4 * per_class, 2))
    dealt = deal_rows(X, per_class * np.arange(5), n_folds)
    for k in range(4):
        of_class = slice(k * per_class, (k + 1) * per_class)
        seats = np.bincount(dealt.fold[of_class] * N_JURIES + dealt.jury[of_class])
        np.testing.assert_array_equal(seats, n_folds * N_JURIES * [10])
    of_small_classes = deal_rows(X[:70], np.arange(71), n_folds).jury
    np.testing.assert_array_equal(np.bincount(of_small_classes), N_JURIES * [70 / N_JURIES])


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_repeated_rows_do_not_move_the_folds_of_a_kernel_matrix(seed):
    X, class_start = sorted_rows(seed, n_values=50)
    gram = np.exp(-np.square(X[:, None, :] - X[None, :, :]).sum(axis=2) / 100.0)
    fold = deal_rows(gram, class_start, 3, pairwise=True).fold
    twice = np.repeat(np.arange(len(X)), 2)
    doubled = deal_rows(gram[np.ix_(twice, twice)], 2 * class_start, 3, pairwise=True).fold
    np.testing.assert_array_equal(doubled, fold[twice])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("n_features", [6, 200], ids=["small", "large"])
def test_machines_do_not_change_with_the_rows_that_are_left_out(make, n_features):
    random = np.random.default_rng(0)
    class_start, tree = np.arange(0, 41, 10), ClassTree.from_nested(((0, 1), (2, 3)))
    left_out = np.arange(40) % 3 == 0
    X = random.normal(size=(40, n_features))
    poisoned = np.where(left_out[:, None], 100.0 * random.normal(size=X.shape), X)
    machines = []
    for rows in (X, poisoned):
        training_set = LinearTrainingSet(make(rows), class_start, np.ones(40), np.ones(40), fit_intercept=True)
        machines.append(machines_without(Trainer(training_set, 1e-3, 1000, 0), tree, left_out, prune=0.0, n_threads=1))
    assert len(machines[0]) == 3
    for one, other in zip(*machines, strict=True):
        np.testing.assert_array_equal(one.columns, other.columns)
        np.testing.assert_array_equal(one.weights, other.weights)
        assert one.intercept == other.intercept
    # With them they do change: the poison is strong enough to show.
    everything = machines_without(
        Trainer(training_set, 1e-3, 1000, 0), tree, np.zeros(40, dtype=bool), prune=0.0, n_threads=1
    )
    assert np.abs(everything[0].weights - machines[0][0].weights).max() > 1e-3


def test_a_class_that_is_left_out_whole_gives_a_machine_of_one_answer():
    class_start, tree = np.arange(0, 7, 2), ClassTree.from_nested(((0, 1), 2))
    training_set = LinearTrainingSet(np.eye(6), class_start, np.ones(6), np.ones(6), fit_intercept=False)
    _, below = machines_without(Trainer(training_set, 1e-3, 1000, 0), tree, np.arange(6) < 2, prune=0.0, n_threads=1)
    assert len(below.weights) == 0
    assert below.intercept < 0.0
