"""Half of the rows of each class, drawn by seed and number."""

import numpy as np
import pytest

from margintree.solvers.training_set import LinearTrainingSet
from margintree.structures.half_rows import half_of_the_rows

SIZES = np.array([1, 2, 3, 10, 41])
ALL_DIFFERENT = np.arange(SIZES.sum())


@pytest.fixture
def training_set():
    class_start = np.concatenate([[0], np.cumsum(SIZES)])
    # Every row names itself, and has weights of its own.
    number = np.arange(SIZES.sum(), dtype=float)
    return LinearTrainingSet(number[:, None] + 1.0, class_start, number + 1.0, 2.0 * number + 2.0, fit_intercept=False)


def test_every_class_keeps_half_of_its_rows_and_at_least_one(training_set):
    half = half_of_the_rows(training_set, ALL_DIFFERENT, 0, 1)
    np.testing.assert_array_equal(np.diff(half.class_start), [1, 1, 1, 5, 20])
    classes = np.searchsorted(training_set.class_start, half.X[:, 0] - 1.0, side="right") - 1
    np.testing.assert_array_equal(classes, np.repeat(np.arange(5), np.diff(half.class_start)))
    assert len(np.unique(half.X)) == half.n_rows


def test_rows_keep_their_weights_and_costs(training_set):
    half = half_of_the_rows(training_set, ALL_DIFFERENT, 0, 1)
    np.testing.assert_array_equal(half.sample_weight, half.X[:, 0])
    np.testing.assert_allclose(1.0 / half.ridge, 2.0 * half.X[:, 0])


def test_the_draw_follows_from_seed_and_number(training_set):
    draws = [
        half_of_the_rows(training_set, ALL_DIFFERENT, *key).X.ravel().tolist()
        for key in ((0, 1), (0, 1), (0, 2), (1, 1))
    ]
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]
    assert draws[0] != draws[3]


@pytest.mark.parametrize("seed", range(5))
def test_rows_that_are_repeated_or_in_another_order_give_the_same_halves(training_set, seed):
    random = np.random.default_rng(seed)
    kept = half_of_the_rows(training_set, ALL_DIFFERENT, seed, 1)
    parts = [
        np.repeat(first + random.permutation(last - first), random.integers(1, 4, last - first))
        for first, last in zip(training_set.class_start[:-1], training_set.class_start[1:], strict=True)
    ]
    rows = np.concatenate(parts)
    repeated = training_set.part(rows, np.concatenate([[0], np.cumsum([len(part) for part in parts])]))
    half = half_of_the_rows(repeated, rows, seed, 1)
    assert sorted(half.X.ravel()) == sorted(repeated.X[np.isin(repeated.X, kept.X)])
