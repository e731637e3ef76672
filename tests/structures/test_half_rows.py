"""Half of the rows of each class, drawn by seed and number."""

import itertools

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


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_are_repeated_in_another_order_give_the_halves_of_rows_that_weigh_so_much_more(training_set, seed):
    random, class_start = np.random.default_rng(seed), training_set.class_start
    times = random.integers(1, 4, training_set.n_rows)
    weight = times * training_set.sample_weight
    heavier = LinearTrainingSet(training_set.X, class_start, weight, weight, fit_intercept=False)
    parts = [
        random.permutation(np.repeat(np.arange(first, last), times[first:last]))
        for first, last in itertools.pairwise(class_start)
    ]
    rows = np.concatenate(parts)
    repeated = training_set.part(rows, np.concatenate([[0], np.cumsum([len(part) for part in parts])]))
    half = half_of_the_rows(repeated, rows, seed, 1)
    kept = half_of_the_rows(heavier, ALL_DIFFERENT, seed, 1)
    assert sorted(half.X.ravel()) == sorted(repeated.X[np.isin(repeated.X, kept.X)])


@pytest.mark.parametrize("seed", range(5))
def test_a_half_of_light_rows_takes_more_until_it_weighs_a_quarter(seed):
    class_start, weight = np.array([0, 8, 16]), np.where(np.arange(16) % 8 == 0, 1.0, 1e-18)
    rows = np.arange(1.0, 17.0)[:, None]
    training_set = LinearTrainingSet(rows, class_start, weight, weight, fit_intercept=False)
    half = half_of_the_rows(training_set, np.arange(16), seed, 1)
    assert {1.0, 9.0} <= set(half.X.ravel()), "the rows that have all the weight"
    assert (np.diff(half.class_start) >= 4).all()
