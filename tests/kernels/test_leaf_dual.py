"""Scorers of leaves: the solver with offsets, projections on class means, and the blend, against plain numpy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from margintree.kernels import leaf_dual
from margintree.kernels.rows import squared_norms
from margintree.solvers.linear_rows import layout
from margintree.solvers.newton import newton

LAYOUTS = pytest.mark.parametrize("make", [np.ascontiguousarray, sp.csr_array], ids=["dense", "csr"])


def scorer_problem(seed, n_rows=40, n_features=12):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, n_features)) * (random.random((n_rows, n_features)) < 0.4)
    row_index = np.sort(random.permutation(n_rows)[: n_rows * 3 // 4])
    signs = np.where(random.random(len(row_index)) < 0.3, 1.0, -1.0)
    offsets = 0.5 * signs + random.normal(size=len(row_index))
    return X, row_index, signs, offsets, random.uniform(0.2, 2.0, size=n_rows)


def exact(X, row_index, signs, offsets, ridge):
    start = np.zeros(X.shape[1])
    return newton(X[row_index], signs, ridge[row_index], start, 1e-13, np.inf, 100, offset=offsets)[1]


@LAYOUTS
@pytest.mark.parametrize("seed", range(6))
def test_the_solution_is_that_of_newtons_method(make, seed):
    X, row_index, signs, offsets, ridge = scorer_problem(seed)
    rows = layout(make(X))
    weights = np.zeros(X.shape[1])
    n_iter, gap = leaf_dual.solve_with_margins(
        *(rows, row_index, signs, 1.0 - signs * offsets, ridge, squared_norms(rows, len(X)), weights),
        *(1e-10, 100_000, 1),
    )
    assert gap <= 1e-10
    assert n_iter < 100_000
    np.testing.assert_allclose(weights, exact(X, row_index, signs, offsets, ridge), atol=1e-4)


def test_newtons_method_with_offsets_finds_the_minimum():
    X, row_index, signs, offsets, ridge = scorer_problem(0)

    def loss(weights):
        slack = np.maximum(0.0, 1.0 - signs * (X[row_index] @ weights + offsets))
        return 0.5 * weights @ weights + 0.5 * np.sum(slack**2 / ridge[row_index])

    best = minimize(loss, np.zeros(X.shape[1]), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(exact(X, row_index, signs, offsets, ridge), best.x, atol=1e-5)


def test_offsets_that_satisfy_every_row_leave_nothing_to_learn():
    X, row_index, signs, _, ridge = scorer_problem(1)
    rows = layout(X)
    weights = np.zeros(X.shape[1])
    margins = np.full(len(row_index), -0.5)
    found = leaf_dual.solve_with_margins(
        rows, row_index, signs, margins, ridge, squared_norms(rows, len(X)), weights, 1e-6, 50, 0
    )
    assert found == (1, 0.0)
    np.testing.assert_array_equal(weights, 0.0)


@LAYOUTS
@pytest.mark.parametrize("mean_weight", [0.0, 1.7])
def test_a_scorer_is_its_solution_plus_the_direction_of_the_mean(make, mean_weight):
    X, row_index, signs, offsets, ridge = scorer_problem(2)
    rows, weight = layout(make(X)), np.random.default_rng(0).uniform(0.5, 2.0, size=len(X))
    members = row_index[signs > 0.0]
    work = np.zeros((2, X.shape[1]))
    columns, values, _, _ = leaf_dual.solve_leaf(
        *(rows, members, weight, mean_weight, row_index, signs, offsets, ridge, squared_norms(rows, len(X)), work),
        *(1e-10, 100_000, 1),
    )
    mean = weight[members] @ X[members]
    expected = exact(X, row_index, signs, offsets, ridge) + mean_weight * mean / np.linalg.norm(mean)
    found = np.zeros(X.shape[1])
    found[columns] = values
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert (np.diff(columns) > 0).all()
    # The next class finds the workspace as this one did.
    np.testing.assert_array_equal(work, 0.0)


def slow_projection(X, class_start, weight, row, class_):
    """Return m'x / |m| with the weighted sum m of the class, less one of the row where it is a member."""
    weight = weight.copy()
    if class_start[class_] <= row < class_start[class_ + 1]:
        weight[row] = max(0.0, weight[row] - 1.0)
    members = slice(class_start[class_], class_start[class_ + 1])
    mean = weight[members] @ X[members]
    length = np.linalg.norm(mean)
    return mean @ X[row] / length if length > 0.0 else 0.0


def projections(make, X, class_start, weight, pair_start, pair_row):
    rows = layout(make(X))
    result = np.full(len(pair_row), np.nan)
    leaf_dual.class_projections(
        rows, X.shape[1], class_start, weight, squared_norms(rows, len(X)), pair_start, pair_row, result
    )
    return result


@LAYOUTS
@given(seed=st.integers(0, 10**6))
@settings(max_examples=40)
def test_projections_leave_the_row_itself_out(make, seed):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 5, size=4)
    class_start = np.concatenate([[0], np.cumsum(sizes)])
    X = random.normal(size=(class_start[-1], 6)) * (random.random((class_start[-1], 6)) < 0.7)
    weight = random.choice([0.3, 1.0, 2.0], size=len(X))
    # Every row with every class.
    pair_start, pair_row = np.arange(5) * len(X), np.tile(np.arange(len(X)), 4)
    expected = [
        slow_projection(X, class_start, weight, row, class_)
        for class_, row in zip(np.repeat(np.arange(4), len(X)), pair_row, strict=True)
    ]
    np.testing.assert_allclose(projections(make, X, class_start, weight, pair_start, pair_row), expected, atol=1e-7)


def test_projections_of_a_row_of_weight_two_are_those_of_a_row_that_stands_there_twice():
    X = np.random.default_rng(0).normal(size=(6, 4))
    every = (np.array([0, 6, 12]), np.tile(np.arange(6), 2))
    weighted = projections(np.asarray, X, np.array([0, 3, 6]), np.array([2.0, 1, 1, 1, 1, 1]), *every)
    doubled = np.vstack([X[:1], X])
    twice = projections(
        *(np.asarray, doubled, np.array([0, 4, 7]), np.ones(7), np.array([0, 7, 14]), np.tile(np.arange(7), 2))
    )
    np.testing.assert_allclose(weighted, np.delete(twice, [0, 7]), rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_no_other_blend_has_a_smaller_loss(seed):
    random = np.random.default_rng(seed)
    features = np.column_stack([np.ones(200), random.normal(size=(200, 2))])
    signs = np.where(features @ [0.3, 1.0, -0.5] + random.normal(size=200) > 0.0, 1.0, -1.0)
    weights = random.uniform(0.1, 2.0, size=200)

    def loss(blend):
        slack = np.maximum(0.0, 1.0 - signs * (features @ blend))
        return 0.5e-3 * blend @ blend + 0.5 * weights @ slack**2

    found = leaf_dual.fit_blend(features, signs, weights, 1e-3, 100)
    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(found, best.x, atol=1e-5)
    assert loss(found) <= best.fun * (1 + 1e-9)
