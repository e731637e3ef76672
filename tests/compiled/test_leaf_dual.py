"""One class against the rows on whose lists it stands: the solver with offsets against Newton's method."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from margintree.compiled import leaf_dual
from margintree.compiled.rows import squared_norms
from margintree.solvers.newton import Start, newton
from margintree.solvers.row_layout import layout
from margintree.worker_threads import stop_flag

LAYOUTS = pytest.mark.parametrize("make", [np.ascontiguousarray, sp.csr_array], ids=["dense", "csr"])


def list_problem(seed, n_rows=40, n_features=12):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, n_features)) * (random.random((n_rows, n_features)) < 0.4)
    row_index = np.sort(random.permutation(n_rows)[: n_rows * 3 // 4])
    signs = np.where(random.random(len(row_index)) < 0.3, 1.0, -1.0)
    offsets = 0.5 * signs + random.normal(size=len(row_index))
    return X, row_index, signs, offsets, random.uniform(0.2, 2.0, size=n_rows)


def exact(X, row_index, signs, offsets, ridge, fit_intercept=False):
    X = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    start = np.zeros(X.shape[1])
    return newton(X[row_index], signs, ridge[row_index], Start(start), 1e-13, np.inf, 100, offset=offsets)[1]


@LAYOUTS
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_solution_is_that_of_newtons_method(make, fit_intercept, seed):
    X, row_index, signs, offsets, ridge = list_problem(seed)
    rows = layout(make(X))
    weights = np.zeros(X.shape[1])
    intercept, n_iter, gap = leaf_dual.solve_with_margins(
        *(rows, row_index, signs, 1.0 - signs * offsets, ridge, squared_norms(rows, len(X)), fit_intercept, weights),
        *(1e-10, 100_000, 1, stop_flag()),
    )
    assert gap <= 1e-10
    assert n_iter < 100_000
    expected = exact(X, row_index, signs, offsets, ridge, fit_intercept)
    np.testing.assert_allclose(weights, expected[: X.shape[1]], atol=1e-4)
    if fit_intercept:
        assert abs(expected[-1]) > 0.01
        assert intercept == pytest.approx(expected[-1], abs=1e-4)
    else:
        assert intercept == 0.0


def test_newtons_method_with_offsets_finds_the_minimum():
    X, row_index, signs, offsets, ridge = list_problem(0)

    def loss(weights):
        slack = np.maximum(0.0, 1.0 - signs * (X[row_index] @ weights + offsets))
        return 0.5 * weights @ weights + 0.5 * np.sum(slack**2 / ridge[row_index])

    best = minimize(loss, np.zeros(X.shape[1]), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(exact(X, row_index, signs, offsets, ridge), best.x, atol=1e-5)


def test_offsets_that_satisfy_every_row_leave_nothing_to_learn():
    X, row_index, signs, _, ridge = list_problem(1)
    rows = layout(X)
    weights = np.zeros(X.shape[1])
    margins = np.full(len(row_index), -0.5)
    found = leaf_dual.solve_with_margins(
        rows, row_index, signs, margins, ridge, squared_norms(rows, len(X)), True, weights, 1e-6, 50, 0, stop_flag()
    )
    assert found == (0.0, 1, 0.0)
    np.testing.assert_array_equal(weights, 0.0)


@LAYOUTS
@pytest.mark.parametrize("mean_weight", [0.0, 1.7])
def test_a_machine_is_its_solution_plus_the_direction_of_the_mean(make, mean_weight):
    X, row_index, signs, offsets, ridge = list_problem(2)
    rows, weight = layout(make(X)), np.random.default_rng(0).uniform(0.5, 2.0, size=len(X))
    members = row_index[signs > 0.0]
    work = np.zeros((2, X.shape[1]))
    columns, values, intercept = leaf_dual.solve_leaf(
        *(rows, (row_index, signs, offsets), (members, weight, mean_weight), ridge, squared_norms(rows, len(X))),
        *(True, work, 1e-10, 100_000, 1, stop_flag()),
    )
    mean = weight[members] @ X[members]
    *expected, expected_intercept = exact(X, row_index, signs, offsets, ridge, fit_intercept=True)
    expected += mean_weight * mean / np.linalg.norm(mean)
    found = np.zeros(X.shape[1])
    found[columns] = values
    assert intercept == pytest.approx(expected_intercept, abs=1e-4)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert (np.diff(columns) > 0).all()
    # The next class finds the workspace as this one did.
    np.testing.assert_array_equal(work, 0.0)
