"""What the solver of all classes together promises: the optimum of its problem to the gap it reports."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

from margintree import compiled
from margintree.solvers import all_together
from margintree.solvers.all_together import solve_all_together

LOSSES = ("crammer_singer", "weston_watkins")
LAYOUTS = ("dense", "many columns", "csr")

losses = pytest.mark.parametrize("loss", LOSSES)
layouts = pytest.mark.parametrize("layout", LAYOUTS)


@pytest.fixture
def descent_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave small problems to coordinate descent, as large ones are."""
    monkeypatch.setattr(all_together, "NEWTON_WORK", 0)
    monkeypatch.setattr(all_together, "REFINE_SIZE", 0)


def primal(problem: Any, loss: str, weights: Any) -> float:
    scores = problem.features @ weights[: problem.features.shape[1]]
    own = scores[np.arange(problem.n_rows), problem.classes]
    slack = np.maximum(0.0, 1.0 + scores - own[:, None])
    slack[np.arange(problem.n_rows), problem.classes] = 0.0
    cost = problem.C * problem.sample_weight
    loss_of_row = slack.max(axis=1) if loss == "crammer_singer" else (slack**2).sum(axis=1) / 4.0
    return float(0.5 * np.sum(weights**2) + cost @ loss_of_row)


def dual(problem: Any, loss: str, coefficients: Any) -> float:
    weights = problem.features.T @ coefficients
    own = coefficients[np.arange(problem.n_rows), problem.classes]
    value = own.sum() - 0.5 * np.sum(weights**2)
    if loss == "weston_watkins":
        value -= np.sum(problem.ridge * ((coefficients**2).sum(axis=1) - own**2))
    return float(value)


def others(problem: Any, coefficients: Any) -> Any:
    return coefficients[problem.classes[:, None] != np.arange(problem.n_classes)]


def tight(rows: Any, loss: Any) -> Any:
    return solve_all_together(rows, loss, tol=1e-8, max_iter=200_000)


@layouts
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.1, 3.0])
@pytest.mark.usefixtures("descent_only")
def test_crammer_singer_weights_agree_with_liblinear(class_problem: Any, layout: str, weighted: bool, C: float) -> None:
    problem = class_problem(C=C, weighted=weighted, n_classes=5, seed=1)
    weights = tight(problem.linear_rows(layout), "crammer_singer").weights[: problem.features.shape[1]]
    model = LinearSVC(
        multi_class="crammer_singer", C=C, fit_intercept=False, tol=1e-9, max_iter=1_000_000, random_state=0
    )
    model.fit(problem.features, problem.classes, sample_weight=problem.sample_weight)
    assert np.linalg.norm(weights - model.coef_.T) <= 1e-3 * np.linalg.norm(model.coef_)


@losses
@layouts
@given(
    seed=st.integers(0, 10_000), C=st.floats(0.01, 30.0), weighted=st.booleans(), max_iter=st.sampled_from([1, 3, 300])
)
@settings(max_examples=10)
def test_reported_values_are_those_of_the_weights_and_the_coefficients(
    class_problem: Any, loss: Any, layout: str, seed: int, C: float, weighted: bool, max_iter: int
) -> None:
    problem = class_problem(C=C, weighted=weighted, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(all_together, "NEWTON_WORK", 0)
        patch.setattr(all_together, "REFINE_SIZE", 0)
        solution = solve_all_together(problem.linear_rows(layout), loss, tol=1e-5, max_iter=max_iter)
    assert solution.n_iter <= max_iter
    assert solution.objective == pytest.approx(primal(problem, loss, solution.weights), rel=1e-9)
    assert solution.dual_objective == pytest.approx(dual(problem, loss, solution.alpha), rel=1e-9, abs=1e-12)
    assert solution.dual_objective <= solution.objective
    assert solution.duality_gap <= 1e-5 or solution.n_iter == max_iter
    np.testing.assert_allclose(solution.alpha.sum(axis=1), 0.0, atol=1e-12)
    assert others(problem, solution.alpha).max() <= 0.0
    if loss == "crammer_singer":
        assert np.all(solution.alpha.max(axis=1) <= (1 + 1e-12) * C * problem.sample_weight)
    features = problem.features.shape[1]
    np.testing.assert_allclose(solution.weights[:features], problem.features.T @ solution.alpha, atol=1e-10)
    np.testing.assert_allclose(solution.decision, problem.features @ solution.weights[:features], atol=1e-10)


@losses
@given(seed=st.integers(0, 10_000), C=st.floats(0.01, 10.0), weighted=st.booleans())
@settings(max_examples=8)
def test_no_other_weights_have_a_lower_value(
    compact_problem: Any, loss: Any, seed: int, C: float, weighted: bool
) -> None:
    problem = compact_problem(C=C, weighted=weighted, seed=seed)
    solution = solve_all_together(problem.linear_rows(), loss, tol=1e-4, max_iter=1000)
    random = np.random.default_rng(seed)
    for size in (1e-3, 1e-1, 1.0):
        other = solution.weights + size * random.normal(size=solution.weights.shape)
        assert primal(problem, loss, other) >= solution.dual_objective * (1 - 1e-9)


@losses
@layouts
def test_layouts_and_finishes_agree(compact_problem: Any, class_problem: Any, loss: Any, layout: str) -> None:
    problem = class_problem(C=2.0, weighted=True, rows_per_class=8)
    finished = tight(problem.linear_rows("dense"), loss)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(all_together, "NEWTON_WORK", 0)
        patch.setattr(all_together, "REFINE_SIZE", 0)
        descended = tight(problem.linear_rows(layout), loss)
    assert descended.objective == pytest.approx(finished.objective, rel=2e-8)
    features = problem.features.shape[1]
    np.testing.assert_allclose(descended.weights[:features], finished.weights, atol=1e-3)


def test_newton_leaves_coefficients_that_prove_its_gap(compact_problem: Any) -> None:
    problem = compact_problem(C=5.0, weighted=True)
    solution = solve_all_together(problem.linear_rows(), "weston_watkins", tol=1e-3, max_iter=1000)
    assert solution.duality_gap <= 1e-11
    assert solution.dual_objective == pytest.approx(dual(problem, "weston_watkins", solution.alpha), rel=1e-9)
    assert others(problem, solution.alpha).max() <= 0.0


@losses
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_small_problems_are_solved_to_machine_precision_whatever_the_seed(
    class_problem: Any, loss: Any, layout: str
) -> None:
    problem = class_problem(n_features=40, rows_per_class=8, C=1.0)
    first, second = (
        solve_all_together(problem.linear_rows(layout, seed=seed), loss, tol=1e-2, max_iter=100) for seed in (1, 2)
    )
    np.testing.assert_allclose(first.weights, second.weights, rtol=0, atol=1e-10)


@losses
@pytest.mark.usefixtures("descent_only")
def test_a_row_without_features_costs_what_it_must(class_problem: Any, loss: Any) -> None:
    problem = class_problem(weighted=True)
    problem.features[[0, 20, -1]] = 0.0
    solution = tight(problem.linear_rows("csr"), loss)
    assert solution.duality_gap <= 1e-8
    assert solution.objective == pytest.approx(primal(problem, loss, solution.weights))


@losses
def test_weights_of_all_classes_sum_to_zero(class_problem: Any, loss: Any) -> None:
    weights = tight(class_problem().linear_rows("csr"), loss).weights
    np.testing.assert_allclose(weights.sum(axis=1), 0.0, atol=1e-10)


@given(seed=st.integers(0, 10_000), ridge=st.sampled_from([0.0, 0.5, 20.0]), bound=st.sampled_from([0.1, 2.0, np.inf]))
def test_the_problem_of_one_row_is_solved_exactly(seed: int, ridge: float, bound: float) -> None:
    random = np.random.default_rng(seed)
    values, own = 2.0 * random.normal(size=8), float(random.normal())
    squared_norm = float(random.uniform(0.1, 3.0))
    curvature = squared_norm + 2.0 * ridge
    theta = compiled.all_together.threshold(values.copy(), own, squared_norm, ridge, bound)
    total = np.maximum(0.0, values - theta).sum() / curvature
    assert total <= bound * (1 + 1e-9)
    wanted = squared_norm * total + own - 1.0
    assert theta == pytest.approx(wanted, abs=1e-9) or (theta > wanted and total == pytest.approx(bound))
