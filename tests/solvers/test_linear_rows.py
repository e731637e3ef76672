"""What the linear solver promises: the optimum of eq. 3 to the gap it reports, whatever the layout of the rows."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

from margintree.solvers import linear_rows
from margintree.solvers.newton import Start, newton
from margintree.solvers.solution import SVMSolution

LAYOUTS = ("dense", "many columns", "indexed", "csr")
# Layouts that Newton's method never finishes.
DESCENT_ONLY = ("many columns", "indexed", "csr")
TIGHT = 1e-8

layouts = pytest.mark.parametrize("layout", LAYOUTS)


def alternating_signs(n_classes: int) -> Any:
    return np.where(np.arange(n_classes) % 2 == 0, 1.0, -1.0)


def tight(rows: Any, labelling: Any, **options: Any) -> SVMSolution:
    return rows.solve(labelling, tol=TIGHT, max_iter=100_000, **options)


def liblinear_weights(problem: Any, labelling: Any, **options: Any) -> Any:
    # liblinear has no 1/2 before the sum of losses: its C is half of ours.
    model = LinearSVC(
        C=problem.C / 2.0, loss="squared_hinge", dual=True, tol=1e-10, max_iter=1_000_000, random_state=0, **options
    )
    model.fit(problem.features, labelling[problem.classes], sample_weight=problem.sample_weight)
    return np.append(model.coef_[0], model.intercept_) if model.fit_intercept else model.coef_[0]


def dual_problem(problem: Any, labelling: Any) -> Any:
    return problem.signed_gram(problem.linear_gram(), labelling[None, :], np.ones(1))


@layouts
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.3, 10.0])
def test_weights_agree_with_liblinear(class_problem: Any, layout: str, weighted: bool, C: float) -> None:
    problem = class_problem(C=C, weighted=weighted, seed=1)
    labelling = alternating_signs(problem.n_classes)
    weights = tight(problem.linear_rows(layout), labelling).weights[: problem.features.shape[1]]
    expected = liblinear_weights(problem, labelling, fit_intercept=False)
    assert np.linalg.norm(weights - expected) <= 1e-4 * np.linalg.norm(expected)


@layouts
def test_constant_column_is_the_intercept_of_liblinear(class_problem: Any, layout: str) -> None:
    # The shift makes an intercept worth having.
    problem = class_problem(C=3.0, weighted=True, spread=2.0, seed=2)
    labelling = np.array([1.0, 1.0, 1.0, -1.0])
    expected = liblinear_weights(problem, labelling, fit_intercept=True, intercept_scaling=1)
    assert abs(expected[-1]) > 0.1
    augmented = problem.with_constant_column()
    weights = tight(augmented.linear_rows(layout), labelling).weights[: augmented.features.shape[1]]
    assert np.linalg.norm(weights - expected) <= 1e-4 * np.linalg.norm(expected)


@given(seed=st.integers(0, 10_000), C=st.floats(0.01, 30.0), weighted=st.booleans())
@settings(max_examples=15)
def test_layouts_agree(class_problem: Any, seed: int, C: float, weighted: bool) -> None:
    problem = class_problem(C=C, weighted=weighted, seed=seed)
    labelling = alternating_signs(problem.n_classes)
    dense, *others = [tight(problem.linear_rows(layout), labelling) for layout in LAYOUTS]
    for other in others:
        assert other.objective == pytest.approx(dense.objective, rel=2 * TIGHT)
        far = problem.decision_distance(dense.objective, TIGHT)
        np.testing.assert_allclose(other.decision, dense.decision, rtol=0, atol=far)


@layouts
@given(
    seed=st.integers(0, 10_000),
    C=st.floats(0.01, 1000.0),
    weighted=st.booleans(),
    max_iter=st.integers(1, 12),
    tol=st.floats(1e-9, 0.5),
)
@settings(max_examples=20)
def test_optimum_lies_between_dual_and_primal_wherever_the_run_stops(
    class_problem: Any, layout: str, seed: int, C: float, weighted: bool, max_iter: int, tol: float
) -> None:
    problem = class_problem(C=C, weighted=weighted, seed=seed)
    labelling = alternating_signs(problem.n_classes)
    _, optimum = problem.exact_dual(dual_problem(problem, labelling))
    solution = problem.linear_rows(layout).solve(labelling, tol=tol, max_iter=max_iter)
    assert solution.dual_objective <= optimum * (1 + 1e-9)
    assert solution.objective >= optimum * (1 - 1e-9)


@layouts
@given(
    seed=st.integers(0, 10_000), C=st.floats(0.01, 100.0), weighted=st.booleans(), max_iter=st.sampled_from([1, 5, 500])
)
@settings(max_examples=15)
def test_reported_values_are_those_of_the_weights_and_the_dual_variables(
    class_problem: Any, layout: str, seed: int, C: float, weighted: bool, max_iter: int
) -> None:
    problem = class_problem(C=C, weighted=weighted, seed=seed)
    labelling = alternating_signs(problem.n_classes)
    solution = problem.linear_rows(layout).solve(labelling, tol=1e-6, max_iter=max_iter)
    weights = solution.weights[: problem.features.shape[1]]
    assert not solution.weights[problem.features.shape[1] :].any()
    assert solution.alpha.min() >= 0.0
    decision = problem.features @ weights
    np.testing.assert_allclose(solution.decision, decision, rtol=1e-9, atol=1e-9)
    assert solution.squared_norm == pytest.approx(weights @ weights, rel=1e-9)
    signed = labelling[problem.classes] * decision
    assert solution.objective == pytest.approx(problem.primal(weights @ weights, signed), rel=1e-9)
    dual = problem.dual(solution.alpha, dual_problem(problem, labelling))
    assert solution.dual_objective == pytest.approx(dual, rel=1e-8, abs=1e-9)
    gap = (solution.objective - solution.dual_objective) / solution.objective
    assert solution.duality_gap == pytest.approx(gap, abs=1e-12)


@layouts
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6, 1e-9])
def test_gap_is_below_tol_at_return(class_problem: Any, layout: str, tol: float) -> None:
    for seed in range(5):
        problem = class_problem(C=10.0, weighted=True, seed=seed)
        labelling = alternating_signs(problem.n_classes)
        solution = problem.linear_rows(layout).solve(labelling, tol=tol, max_iter=100_000)
        assert solution.duality_gap <= tol
        dual = problem.dual(solution.alpha, dual_problem(problem, labelling))
        assert solution.objective - dual <= (tol + 1e-12) * solution.objective


@layouts
@pytest.mark.parametrize("mirrored", [False, True])
def test_warm_start_from_the_solution_ends_at_once(class_problem: Any, layout: str, mirrored: bool) -> None:
    problem = class_problem(C=10.0, seed=4)
    labelling = alternating_signs(problem.n_classes)
    rows = problem.linear_rows(layout)
    first = tight(rows, labelling)
    assert first.n_iter > 2
    # Coordinate descent raises the dual value with every step, while the primal value may rise for an
    # epoch: the start must be better than what is asked for. z and -z are one split, so the dual variables serve both.
    again = rows.solve(-labelling if mirrored else labelling, tol=1e-6, max_iter=10_000, start=first)
    assert again.n_iter <= 2
    assert again.duality_gap <= 1e-6


@layouts
def test_warm_start_from_another_labelling_finds_the_same_optimum(class_problem: Any, layout: str) -> None:
    problem = class_problem(n_classes=6, C=5.0, weighted=True, seed=5)
    rows = problem.linear_rows(layout)
    start = tight(rows, np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0]))
    labelling = np.array([1.0, -1.0, 1.0, -1.0, -1.0, -1.0])
    _, optimum = problem.exact_dual(dual_problem(problem, labelling))
    warm = tight(rows, labelling, start=start)
    assert warm.objective == pytest.approx(optimum, rel=2 * TIGHT)


@pytest.mark.parametrize("layout", DESCENT_ONLY)
@pytest.mark.parametrize("seed", range(4))
def test_shrinking_keeps_the_optimum_on_many_easy_rows(class_problem: Any, layout: str, seed: int) -> None:
    problem = class_problem(n_classes=2, rows_per_class=200, n_features=40, spread=4.0, C=5.0, seed=seed)
    labelling = np.array([1.0, -1.0])
    solution = tight(problem.linear_rows(layout), labelling)
    signs = labelling[problem.classes]
    # Newton's method looks at every row in every step.
    _, weights, *_ = newton(problem.features, signs, problem.ridge, Start(np.zeros(40)), 1e-12, np.inf, 100)
    decision = problem.features @ weights
    assert np.mean(signs * decision > 1.0) > 0.5, "the problem has too few easy rows"
    assert solution.objective == pytest.approx(problem.primal(weights @ weights, signs * decision), rel=2 * TIGHT)
    np.testing.assert_allclose(solution.weights[:40], weights, atol=1e-4 * np.abs(weights).max())


@layouts
@given(seed=st.integers(0, 10_000), share=st.floats(0.05, 2.0))
@settings(max_examples=20)
def test_cutoff_stops_a_run_only_after_the_dual_has_passed_it(
    class_problem: Any, layout: str, seed: int, share: float
) -> None:
    problem = class_problem(C=10.0, seed=seed)
    labelling = alternating_signs(problem.n_classes)
    matrix = dual_problem(problem, labelling)
    _, optimum = problem.exact_dual(matrix)
    cutoff = share * optimum
    solution = tight(problem.linear_rows(layout), labelling, cutoff=cutoff)
    if solution.duality_gap > TIGHT:
        assert problem.dual(solution.alpha, matrix) > cutoff
    if share > 1.0:
        assert solution.objective == pytest.approx(optimum, rel=2 * TIGHT)


@layouts
def test_cutoff_saves_iterations_where_the_optimum_lies_above_it(class_problem: Any, layout: str) -> None:
    problem = class_problem(C=10.0, seed=6)
    labelling = alternating_signs(problem.n_classes)
    rows = problem.linear_rows(layout)
    whole = tight(rows, labelling)
    stopped = tight(rows, labelling, cutoff=0.5 * whole.objective)
    assert stopped.n_iter < whole.n_iter
    assert 0.5 * whole.objective < stopped.dual_objective <= whole.objective


@layouts
@given(seed=st.integers(0, 10_000), C=st.floats(0.05, 30.0))
@settings(max_examples=10)
def test_weight_two_equals_a_duplicated_row(class_problem: Any, layout: str, seed: int, C: float) -> None:
    problem = class_problem(C=C, seed=seed)
    copies = np.random.default_rng(seed).integers(1, 3, size=problem.n_rows)
    lengths = np.add.reduceat(copies, problem.class_start[:-1])
    duplicated = type(problem)(
        np.repeat(problem.features, copies, axis=0),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.ones(copies.sum()),
        C,
    )
    weighted = type(problem)(problem.features, problem.class_start, copies.astype(float), C)
    labelling = alternating_signs(problem.n_classes)
    first = tight(duplicated.linear_rows(layout), labelling)
    second = tight(weighted.linear_rows(layout), labelling)
    assert first.objective == pytest.approx(second.objective, rel=2 * TIGHT)
    far = problem.weight_distance(second.objective, TIGHT)
    np.testing.assert_allclose(first.weights, second.weights, rtol=0, atol=far)


@given(seed=st.integers(0, 10_000), C=st.floats(0.05, 1000.0))
@settings(max_examples=15)
def test_polish_carries_a_small_dense_node_to_the_optimum(compact_problem: Any, seed: int, C: float) -> None:
    problem = compact_problem(C=C, weighted=True, seed=seed)
    labelling = alternating_signs(problem.n_classes)
    _, optimum = problem.exact_dual(dual_problem(problem, labelling))
    rows = problem.linear_rows()
    rough = rows.solve(labelling, tol=0.1, max_iter=100)
    polished = rows.polish(rough)
    assert polished.objective == pytest.approx(optimum, rel=1e-9)
    assert polished.duality_gap <= 1e-9
    np.testing.assert_array_equal(polished.labelling, labelling)
    np.testing.assert_allclose(polished.decision, problem.features @ polished.weights, atol=1e-9)
    assert polished.n_iter >= rough.n_iter


@pytest.mark.parametrize("layout", DESCENT_ONLY)
def test_polish_leaves_large_nodes_as_they_are(class_problem: Any, layout: str) -> None:
    rows = class_problem().linear_rows(layout)
    rough = rows.solve(alternating_signs(4), tol=0.1, max_iter=100)
    assert rows.polish(rough) is rough


@pytest.mark.parametrize("layout", DESCENT_ONLY)
def test_one_iteration_leaves_a_gap(class_problem: Any, layout: str) -> None:
    problem = class_problem(C=10.0, seed=7)
    solution = problem.linear_rows(layout).solve(alternating_signs(problem.n_classes), tol=1e-4, max_iter=1)
    assert solution.n_iter == 1
    assert solution.duality_gap > 1e-4


def test_same_seed_gives_the_same_solution_bit_for_bit(class_problem: Any) -> None:
    problem = class_problem(C=10.0)
    labelling = alternating_signs(problem.n_classes)
    first, second = (problem.linear_rows("csr", seed=3).solve(labelling, tol=1e-3, max_iter=100) for _ in range(2))
    np.testing.assert_array_equal(first.alpha, second.alpha)
    np.testing.assert_array_equal(first.weights, second.weights)


@pytest.mark.parametrize("layout", DESCENT_ONLY)
def test_another_seed_gives_another_path_to_the_same_optimum(class_problem: Any, layout: str) -> None:
    problem = class_problem(C=10.0)
    labelling = alternating_signs(problem.n_classes)
    early = [problem.linear_rows(layout, seed=s).solve(labelling, tol=1e-8, max_iter=2).objective for s in (2, 8)]
    late = [tight(problem.linear_rows(layout, seed=s), labelling).objective for s in (2, 8)]
    assert early[0] != early[1]
    assert late[0] == pytest.approx(late[1], rel=2 * TIGHT)


@layouts
def test_rows_of_zeros_cost_their_full_loss_and_no_more(class_problem: Any, layout: str) -> None:
    problem = class_problem(C=2.0, seed=8)
    problem.features[:3] = 0.0
    labelling = alternating_signs(problem.n_classes)
    _, optimum = problem.exact_dual(dual_problem(problem, labelling))
    solution = tight(problem.linear_rows(layout), labelling)
    assert solution.objective == pytest.approx(optimum, rel=2 * TIGHT)
    np.testing.assert_allclose(solution.alpha[:3], 1.0 / problem.ridge[:3], rtol=1e-6)


@layouts
@given(seed=st.integers(0, 10_000), weighted=st.booleans(), single_row=st.booleans())
@settings(max_examples=15)
def test_class_sums_agree_with_brute_force(
    class_problem: Any, layout: str, seed: int, weighted: bool, single_row: bool
) -> None:
    problem = class_problem(rows_per_class=1 if single_row else 12, weighted=weighted, seed=seed)
    coefficients = np.random.default_rng(seed).uniform(0.0, 2.0, size=problem.n_rows)
    coefficients[::3] = 0.0
    rows = problem.linear_rows(layout)
    n_features = problem.features.shape[1]
    members = [np.flatnonzero(problem.classes == k) for k in range(problem.n_classes)]
    expected = np.array([sum(coefficients[j] * problem.features[j] for j in rows_k) for rows_k in members])
    vectors = as_dense(rows.class_vectors(coefficients))
    np.testing.assert_allclose(vectors[:, :n_features], expected, atol=1e-12)
    assert not vectors[:, n_features:].any()
    np.testing.assert_allclose(rows.class_gram(coefficients), expected @ expected.T, atol=1e-10)
    np.testing.assert_allclose(rows.class_norms(coefficients), np.linalg.norm(expected, axis=1), atol=1e-10)
    means = np.array(
        [np.average(problem.features[rows_k], axis=0, weights=problem.sample_weight[rows_k]) for rows_k in members]
    )
    np.testing.assert_allclose(as_dense(rows.class_means())[:, :n_features], means, atol=1e-12)


def test_class_sums_of_wide_sparse_rows_stay_sparse(class_problem: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = class_problem(n_classes=5, weighted=True)
    coefficients = np.random.default_rng(0).uniform(size=problem.n_rows)
    rows = problem.linear_rows("csr")
    names = ("class_vectors", "class_gram", "class_norms")
    expected = [getattr(rows, name)(coefficients) for name in names]
    means = rows.class_means()
    monkeypatch.setattr(linear_rows, "DENSE_CLASS_VECTORS", 0)
    assert sp.issparse(rows.class_vectors(coefficients))
    assert sp.issparse(rows.class_means())
    for name, value in zip(names, expected, strict=True):
        np.testing.assert_allclose(as_dense(getattr(rows, name)(coefficients)), value, atol=1e-12)
    np.testing.assert_allclose(as_dense(rows.class_means()), means, atol=1e-12)


@layouts
def test_squared_norm_of_the_weights_is_the_quadratic_form_of_the_class_gram(class_problem: Any, layout: str) -> None:
    problem = class_problem(n_classes=5, C=3.0, seed=9)
    labelling = alternating_signs(5)
    solution = tight(problem.linear_rows(layout), labelling)
    gram = problem.linear_rows(layout).class_gram(solution.alpha)
    # Newton's weights and its dual variables meet only at the optimum.
    assert labelling @ gram @ labelling == pytest.approx(solution.squared_norm, rel=1e-4)


def test_sparse_rows_that_are_not_sparse_give_the_dense_answer(compact_problem: Any) -> None:
    problem = compact_problem(C=10.0)
    labelling = alternating_signs(problem.n_classes)
    dense = problem.linear_rows()
    stored_sparse = type(dense)(
        sp.csr_array(problem.features), np.arange(5), problem.class_start, problem.ridge, dense.seed
    )
    first = tight(dense, labelling)
    second = tight(stored_sparse, labelling)
    np.testing.assert_array_equal(first.weights, second.weights)


def test_read_only_and_strided_features_are_accepted(compact_problem: Any) -> None:
    problem = compact_problem(C=10.0)
    labelling = alternating_signs(problem.n_classes)
    expected = tight(problem.linear_rows(), labelling)
    columns = np.arange(5)
    strided = np.repeat(problem.features, 2, axis=1)[:, ::2]
    column_major = np.asfortranarray(problem.features)
    locked = problem.features.copy()
    locked.flags.writeable = False
    for features in (strided, column_major, locked):
        rows = type(problem.linear_rows())(features, columns, problem.class_start, problem.ridge, 0)
        assert tight(rows, labelling).objective == pytest.approx(expected.objective, rel=1e-12)


def as_dense(matrix: Any) -> Any:
    return matrix.toarray() if sp.issparse(matrix) else matrix
