"""Half of the rows of each class, drawn by seed and number."""

import numpy as np
import pytest

from margintree.solvers.training_set import LinearTrainingSet
from margintree.structures.half_rows import half_of_the_rows

SIZES = np.array([1, 2, 3, 10, 41])


@pytest.fixture
def training_set():
    class_start = np.concatenate([[0], np.cumsum(SIZES)])
    # Every row names itself, and has weights of its own.
    number = np.arange(SIZES.sum(), dtype=float)
    return LinearTrainingSet(number[:, None] + 1.0, class_start, number + 1.0, 2.0 * number + 2.0, fit_intercept=False)


def test_every_class_keeps_half_of_its_rows_and_at_least_one(training_set):
    half = half_of_the_rows(training_set, 0, 1)
    np.testing.assert_array_equal(np.diff(half.class_start), [1, 1, 1, 5, 20])
    classes = np.searchsorted(training_set.class_start, half.X[:, 0] - 1.0, side="right") - 1
    np.testing.assert_array_equal(classes, np.repeat(np.arange(5), np.diff(half.class_start)))
    assert len(np.unique(half.X)) == half.n_rows


def test_rows_keep_their_weights_and_costs(training_set):
    half = half_of_the_rows(training_set, 0, 1)
    np.testing.assert_array_equal(half.sample_weight, half.X[:, 0])
    np.testing.assert_allclose(1.0 / half.ridge, 2.0 * half.X[:, 0])


def test_the_draw_follows_from_seed_and_number(training_set):
    draws = [half_of_the_rows(training_set, *key).X.ravel().tolist() for key in ((0, 1), (0, 1), (0, 2), (1, 1))]
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]
    assert draws[0] != draws[3]


@pytest.mark.parametrize("seed", range(5))
def test_rows_that_repeat_are_drawn_one_by_one(seed):
    class_start, weight = np.array([0, 6, 12]), np.ones(12)
    rows = np.repeat([[1.0], [2.0]], 6, axis=0)
    training_set = LinearTrainingSet(rows, class_start, weight, weight, fit_intercept=False)
    half = half_of_the_rows(training_set, seed, 1)
    np.testing.assert_array_equal(half.X.ravel(), [1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
    np.testing.assert_array_equal(half.class_start, [0, 3, 6])


@pytest.mark.parametrize("seed", range(5))
def test_a_half_of_light_rows_takes_more_until_it_weighs_a_quarter(seed):
    class_start, weight = np.array([0, 8, 16]), np.where(np.arange(16) % 8 == 0, 1.0, 1e-18)
    rows = np.arange(1.0, 17.0)[:, None]
    training_set = LinearTrainingSet(rows, class_start, weight, weight, fit_intercept=False)
    half = half_of_the_rows(training_set, seed, 1)
    assert {1.0, 9.0} <= set(half.X.ravel()), "the rows that have all the weight"
    assert (np.diff(half.class_start) >= 4).all()
