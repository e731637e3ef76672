"""Folds follow from what rows hold and weigh, not from where they stand."""

import itertools
from collections import defaultdict

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from margintree.solvers.row_keys import row_keys
from margintree.training.folds import deal


def sorted_rows(seed, n_classes=4, n_values=3):
    """Return rows with few different values, so that many are equal, sorted by class."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 12, size=n_classes)
    X = random.integers(0, n_values, size=(sizes.sum(), 2)).astype(float)
    return X, np.concatenate([[0], np.cumsum(sizes)])


def dealt(X, class_start, n_folds, weight=None, **options):
    weight = np.ones(X.shape[0]) if weight is None else weight
    return deal(row_keys(X, **options), class_start, weight, n_folds)


def weight_by_content(X, class_start, weight, folds):
    """Return how much of each different row of a class is held out by each fold."""
    classes = np.repeat(np.arange(len(class_start) - 1), np.diff(class_start))
    total = defaultdict(float)
    for row, share, fold in zip(folds.row.tolist(), folds.share.tolist(), folds.fold.tolist(), strict=True):
        total[int(classes[row]), tuple(X[row].tolist()), fold] += share * weight[row]
    return pytest.approx(total)


@given(seed=st.integers(0, 10**6), n_folds=st.integers(2, 5))
@settings(max_examples=60)
def test_units_of_weight_are_dealt_one_by_one_in_the_order_of_the_keys(seed, n_folds):
    X, class_start = sorted_rows(seed)
    units = np.random.default_rng(seed).integers(1, 9, size=len(X))
    units[0] = 1
    folds, keys = dealt(X, class_start, n_folds, 0.3 * units), row_keys(X)
    expected = np.zeros((len(X), n_folds))
    for k, (first, last) in enumerate(itertools.pairwise(class_start)):
        pack = np.repeat(
            first + np.argsort(keys[first:last], kind="stable"),
            units[first + np.argsort(keys[first:last], kind="stable")],
        )
        for number, row in enumerate(pack):
            # Small classes do not all begin with the same fold.
            expected[row, (number + k) % n_folds] += 1.0 / units[row]
    found = np.zeros_like(expected)
    found[folds.row, folds.fold] = folds.share
    np.testing.assert_allclose(found, expected)
    assert len(folds.row) == (expected > 0.0).sum()
    assert folds.n_units == units.sum()
    assert (np.diff(folds.row) >= 0).all()


@given(seed=st.integers(0, 10**6), n_folds=st.integers(2, 5))
@settings(max_examples=40)
def test_the_rows_of_a_class_are_spread_evenly_also_where_they_repeat(seed, n_folds):
    X, class_start = sorted_rows(seed)
    fold = dealt(X, class_start, n_folds).fold
    for first, last in itertools.pairwise(class_start):
        counts = np.bincount(fold[first:last], minlength=n_folds)
        assert counts.max() - counts.min() <= 1
        for row in X[first:last]:
            same = np.bincount(fold[first:last][(X[first:last] == row).all(axis=1)], minlength=n_folds)
            assert same.max() - same.min() <= 1


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40)
def test_the_order_of_the_rows_does_not_matter(seed):
    X, class_start = sorted_rows(seed)
    random = np.random.default_rng(seed)
    weight = random.integers(1, 4, size=len(X)).astype(float)
    order = np.concatenate([a + random.permutation(b - a) for a, b in itertools.pairwise(class_start)])
    one = weight_by_content(X, class_start, weight, dealt(X, class_start, 3, weight))
    shuffled = dealt(X[order], class_start, 3, weight[order])
    assert weight_by_content(X[order], class_start, weight[order], shuffled) == one.expected


@given(seed=st.integers(0, 10**6), unit=st.sampled_from([1.0, 1000.0, 0.37, 1e-9]))
@settings(max_examples=40)
def test_a_row_of_weight_three_is_dealt_as_one_that_stands_there_three_times(seed, unit):
    X, class_start = sorted_rows(seed)
    times = np.random.default_rng(seed).integers(1, 8, size=len(X))
    times[-1] = 1
    weighted = weight_by_content(X, class_start, times, dealt(X, class_start, 3, unit * times))
    repeated = np.repeat(np.arange(len(X)), times)
    start = np.searchsorted(repeated, class_start)
    alone = dealt(X[repeated], start, 3)
    assert weight_by_content(X[repeated], start, np.ones(len(repeated)), alone) == weighted.expected
    assert len(alone.row) == times.sum()


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_weights_that_are_no_whole_multiples_do_not_take_rows_apart(seed):
    X, class_start = sorted_rows(seed)
    weight = np.random.default_rng(seed).choice([1.0, 1.5, 2.0], size=len(X))
    weight[:2] = 1.0, 1.5
    folds, plain = dealt(X, class_start, 3, weight), dealt(X, class_start, 3)
    np.testing.assert_array_equal(folds.row, np.arange(len(X)))
    np.testing.assert_array_equal(folds.share, 1.0)
    np.testing.assert_array_equal(folds.fold, plain.fold)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40)
def test_dense_and_sparse_rows_have_the_same_keys_and_different_rows_different_ones(seed):
    X, _ = sorted_rows(seed)
    keys = row_keys(X)
    assert len(np.unique(keys)) == len(np.unique(X, axis=0))
    stored_zeros = sp.csr_array(X + 1.0)
    stored_zeros.data -= 1.0
    for given_rows in (sp.csr_array(X), stored_zeros, np.asfortranarray(X), -(0.0 - X)):
        np.testing.assert_array_equal(row_keys(given_rows), keys)


def test_classes_of_one_row_do_not_all_fall_into_one_fold():
    fold = dealt(np.random.default_rng(0).normal(size=(9, 2)), np.arange(10), 3).fold
    np.testing.assert_array_equal(np.bincount(fold), [3, 3, 3])


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_neither_repeated_rows_nor_their_order_change_the_keys_of_a_kernel_matrix(seed):
    X, _ = sorted_rows(seed, n_values=50)
    gram = np.exp(-np.square(X[:, None, :] - X[None, :, :]).sum(axis=2) / 100.0)
    keys = row_keys(gram, pairwise=True)
    twice = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(X)), 2))
    np.testing.assert_array_equal(row_keys(gram[np.ix_(twice, twice)], pairwise=True), keys[twice])
