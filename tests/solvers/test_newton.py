"""What Newton's method promises: the exact minimum of the primal, also where coordinate descent crawls."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margintree import compiled
from margintree.solvers.linear_rows import NEWTON_FEATURES
from margintree.solvers.newton import Start, newton
from margintree.worker_threads import stop_flag


def signs_of(problem: Any) -> Any:
    return np.where(problem.classes % 2 == 0, 1.0, -1.0)


def run(problem: Any, weights: Any, *, tol: float = 1e-10, cutoff: float = np.inf, max_iter: int = 100) -> Any:
    return newton(problem.features, signs_of(problem), problem.ridge, Start(weights), tol, cutoff, max_iter)


def badly_scaled(compact_problem: Any) -> Any:
    """Return a problem whose features differ by three orders of magnitude, at C = 1e4."""
    problem = compact_problem(rows_per_class=60, C=1e4, seed=3)
    problem.features[:] *= np.logspace(-2, 1, problem.features.shape[1])
    return problem


@given(seed=st.integers(0, 10_000), C=st.floats(0.01, 1e4), weighted=st.booleans(), far=st.floats(0.0, 10.0))
@settings(max_examples=25)
def test_minimum_is_found_from_any_start(compact_problem: Any, seed: int, C: float, weighted: bool, far: float) -> None:
    problem = compact_problem(C=C, weighted=weighted, seed=seed)
    signs = signs_of(problem)
    start = far * np.random.default_rng(seed).normal(size=problem.features.shape[1])
    _, weights, _, decision, primal, dual = run(problem, start)
    # Half the squared gradient is the gap between w and the dual variables that its slacks make.
    slack = np.maximum(0.0, 1.0 - signs * decision)
    gradient = weights - (slack / problem.ridge * signs) @ problem.features
    assert 0.5 * gradient @ gradient <= 1e-9 * primal
    assert dual <= primal * (1 + 1e-12)
    assert primal - dual <= 1e-10 * primal
    from_zero = run(problem, np.zeros_like(start))
    assert primal == pytest.approx(from_zero[4], rel=1e-9)
    np.testing.assert_allclose(weights, from_zero[1], rtol=0, atol=problem.weight_distance(primal, 1e-10))


@given(seed=st.integers(0, 10_000), C=st.floats(0.01, 1e4), max_iter=st.integers(0, 6))
@settings(max_examples=25)
def test_reported_values_are_those_of_the_weights_and_the_dual_variables(
    compact_problem: Any, seed: int, C: float, max_iter: int
) -> None:
    problem = compact_problem(C=C, weighted=True, seed=seed)
    signs = signs_of(problem)
    start = np.random.default_rng(seed).normal(size=problem.features.shape[1])
    n_iter, weights, alpha, decision, primal, dual = run(problem, start, max_iter=max_iter)
    assert n_iter <= max_iter
    assert alpha.min() >= 0.0
    np.testing.assert_allclose(decision, problem.features @ weights, atol=1e-9 * max(1.0, np.abs(decision).max()))
    assert primal == pytest.approx(problem.primal(weights @ weights, signs * decision), rel=1e-9)
    dual_weights = (alpha * signs) @ problem.features
    expected = alpha.sum() - 0.5 * dual_weights @ dual_weights - 0.5 * np.sum(problem.ridge * alpha**2)
    scale = alpha.sum() + dual_weights @ dual_weights
    assert dual == pytest.approx(expected, abs=1e-9 * scale)


@given(seed=st.integers(0, 10_000), C=st.floats(0.01, 1e4))
@settings(max_examples=15)
def test_primal_value_never_rises(compact_problem: Any, seed: int, C: float) -> None:
    problem = compact_problem(C=C, seed=seed)
    start = np.random.default_rng(seed).normal(size=problem.features.shape[1])
    values = [run(problem, start, max_iter=steps)[4] for steps in range(8)]
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in itertools.pairwise(values))


def test_first_step_is_shortened_where_the_whole_one_would_raise_the_primal_value() -> None:
    # No row has a slack at w = 2: the quadratic model knows the regulariser alone and points to w = 0.
    features, signs, ridge = np.array([[1.0], [-1.0], [1.5]]), np.array([1.0, -1.0, 1.0]), np.full(3, 1e-3)
    _, weights, _, _, primal, _ = newton(features, signs, ridge, Start(np.array([2.0])), 1e-10, np.inf, 1)
    assert 0.0 < weights[0] < 2.0
    assert primal < 0.5 * 2.0**2


def test_run_ends_once_the_dual_passes_the_cutoff(compact_problem: Any) -> None:
    problem = compact_problem(C=100.0)
    zero = np.zeros(problem.features.shape[1])
    whole = run(problem, zero)
    stopped = run(problem, zero, cutoff=0.5 * whole[5])
    assert 0.5 * whole[5] < stopped[5] <= whole[4]
    assert stopped[0] < whole[0]


def test_features_of_zeros_give_weights_of_zero(compact_problem: Any) -> None:
    problem = compact_problem(C=2.0)
    problem.features[:] = 0.0
    _, weights, alpha, _, primal, dual = run(problem, np.ones(problem.features.shape[1]))
    assert primal == pytest.approx(0.5 * np.sum(1.0 / problem.ridge))
    assert dual == pytest.approx(primal, rel=1e-9)
    np.testing.assert_allclose(weights, 0.0, atol=1e-9)
    np.testing.assert_allclose(alpha, 1.0 / problem.ridge)


def test_linear_rows_meet_tol_where_coordinate_descent_alone_does_not(compact_problem: Any) -> None:
    problem, tol = badly_scaled(compact_problem), 1e-4
    rows = problem.linear_rows()
    labelling = np.array([1.0, -1.0, 1.0, -1.0])
    alpha, decision = np.zeros(problem.n_rows), np.empty(problem.n_rows)
    weights = np.zeros(problem.features.shape[1])
    signs = labelling[problem.classes]
    squared_norms = (problem.features**2).sum(axis=1)
    epochs, primal, dual = compiled.linear_dual.solve(
        rows._rows, signs, problem.ridge, squared_norms, alpha, weights, decision, tol, np.inf, 200, 0, stop_flag()
    )
    assert epochs == 200
    assert primal - dual > 10 * tol * primal
    solution = rows.solve(labelling, tol=tol, max_iter=200)
    assert solution.duality_gap < tol
    assert dual <= solution.objective * (1 + 1e-9)
    assert solution.objective <= primal


def test_planes_of_linear_rows_meet_tol_where_coordinate_descent_alone_does_not(compact_problem: Any) -> None:
    problem, tol = badly_scaled(compact_problem), 1e-4
    planes = np.array([[1.0, -1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0]])
    mu = np.array([0.4, 0.6])
    padded = problem.linear_rows("many columns")
    assert padded.features.shape[1] > NEWTON_FEATURES
    alone = padded.solve_planes(planes, mu, tol=tol, max_iter=200)
    assert alone.duality_gap > 10 * tol
    finished = problem.linear_rows().solve_planes(planes, mu, tol=tol, max_iter=200)
    assert finished.duality_gap < tol
    assert alone.dual_objective <= finished.objective <= alone.objective
