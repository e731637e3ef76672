"""What several planes promise: the kernel of problem (9), weights on the simplex, and a gap that proves them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margintree.solvers import linear_rows
from margintree.solvers.linear_rows import NEWTON_FEATURES
from margintree.solvers.multiple_kernel import MKL_METHODS, MultipleKernelSolution, reduced_gradient

TIGHT = 1e-8
LAYOUTS = ("dense", "many columns", "indexed", "csr")

methods = pytest.mark.parametrize("method", sorted(MKL_METHODS))


def random_planes(n_planes: int, n_classes: int, seed: int) -> Any:
    """Return different labellings, none of them the mirror image of another, with both sides taken."""
    random = np.random.default_rng(seed)
    codes = 1 + random.choice(2 ** (n_classes - 1) - 1, size=n_planes, replace=False)
    return np.array([[-1.0 if code >> k & 1 else 1.0 for k in range(n_classes)] for code in codes])


def random_weights(n_planes: int, seed: int) -> Any:
    return np.random.default_rng(seed).dirichlet(np.ones(n_planes))


def learn(method: str, rows: Any, planes: Any, *, tol: float = 1e-3, max_iter: int = 300) -> MultipleKernelSolution:
    mu = np.full(len(planes), 1.0 / len(planes))
    return MKL_METHODS[method](rows, planes, mu, None, tol=tol, max_iter=max_iter, svm_max_iter=100_000)


def squared_norms(problem: Any, gram: Any, planes: Any, alpha: Any) -> Any:
    """Return q_m = sum_ij a_i a_j z^m_i z^m_j K_ij, from the rows."""
    signed = planes[:, problem.classes] * alpha
    return np.einsum("mi,ij,mj->m", signed, gram, signed)


@pytest.mark.parametrize("room", [0, linear_rows.INNER_PRODUCTS_BYTES], ids=["features", "inner products"])
@pytest.mark.parametrize("layout", LAYOUTS)
@given(seed=st.integers(0, 10_000), n_planes=st.integers(1, 5), C=st.floats(0.05, 10.0), weighted=st.booleans())
@settings(max_examples=10)
def test_planes_of_linear_rows_equal_planes_of_a_linear_kernel(
    class_problem: Any, layout: str, room: int, seed: int, n_planes: int, C: float, weighted: bool
) -> None:
    problem = class_problem(n_classes=5, C=C, weighted=weighted, seed=seed)
    planes, mu = random_planes(n_planes, 5, seed), random_weights(n_planes, seed)
    options = {"tol": TIGHT, "max_iter": 100_000}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear_rows, "INNER_PRODUCTS_BYTES", room)
        by_features = problem.linear_rows(layout).solve_planes(planes, mu, **options)
    by_kernel = problem.kernel_rows("linear").solve_planes(planes, mu, **options)
    assert by_features.duality_gap <= TIGHT
    assert by_features.objective == pytest.approx(by_kernel.objective, rel=1e-6)
    far = problem.weight_distance(by_kernel.objective, TIGHT)
    assert np.sqrt(by_features.squared_norm) == pytest.approx(np.sqrt(by_kernel.squared_norm), abs=far)
    far = problem.decision_distance(by_kernel.objective, TIGHT)
    np.testing.assert_allclose(by_features.decision, by_kernel.decision, rtol=0, atol=far)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_inner_products_are_taken_where_they_are_less_work_and_fit(class_problem: Any, layout: str) -> None:
    problem = class_problem(n_classes=5)
    planes, mu = random_planes(5, 5, seed=0), random_weights(5, seed=0)
    rows = problem.linear_rows(layout)
    rows.solve_planes(planes, mu, tol=TIGHT, max_iter=100)
    stored = np.prod(rows.features.shape) if layout != "csr" else rows.features.nnz
    is_small = layout != "csr" and 5 * rows.features.shape[1] <= NEWTON_FEATURES
    assert ("_by_inner_products" in vars(rows)) == (10 * stored > rows.n_rows**2 and not is_small)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear_rows, "INNER_PRODUCTS_BYTES", 8 * rows.n_rows**2 - 1)
        rows = problem.linear_rows(layout)
        rows.solve_planes(planes, mu, tol=TIGHT, max_iter=100)
    assert "_by_inner_products" not in vars(rows)


@pytest.mark.parametrize("kind", [*LAYOUTS, "kernel"])
def test_kernel_of_several_planes_is_weighted_by_mu_and_not_by_its_square(class_problem: Any, kind: str) -> None:
    problem = class_problem(n_classes=5, C=3.0, weighted=True)
    planes, mu = random_planes(3, 5, seed=1), np.array([0.6, 0.3, 0.1])
    rows = problem.kernel_rows("linear") if kind == "kernel" else problem.linear_rows(kind)
    solution = rows.solve_planes(planes, mu, tol=TIGHT, max_iter=100_000)
    matrix = problem.signed_gram(problem.linear_gram(), planes, mu)
    _, optimum = problem.exact_dual(matrix)
    _, printed = problem.exact_dual(problem.signed_gram(problem.linear_gram(), planes, mu**2))
    assert abs(printed - optimum) > 0.01 * optimum
    assert solution.objective == pytest.approx(optimum, rel=1e-6)
    assert solution.dual_objective == pytest.approx(problem.dual(solution.alpha, matrix), rel=1e-7)
    assert solution.objective == pytest.approx(problem.primal(solution.squared_norm, solution.decision), rel=1e-9)
    far = problem.decision_distance(optimum, TIGHT)
    np.testing.assert_allclose(solution.decision, matrix @ solution.alpha, rtol=0, atol=far)


@pytest.mark.parametrize("kind", [*LAYOUTS, "kernel"])
def test_one_plane_of_weight_one_equals_solve(class_problem: Any, kind: str) -> None:
    problem = class_problem(C=5.0, weighted=True)
    rows = problem.kernel_rows("linear") if kind == "kernel" else problem.linear_rows(kind)
    labelling = np.array([1.0, -1.0, -1.0, 1.0])
    options = {"tol": TIGHT, "max_iter": 100_000}
    single = rows.solve(labelling, **options)
    plane = rows.solve_planes(labelling[None, :], np.ones(1), **options)
    assert plane.objective == pytest.approx(single.objective, rel=2 * TIGHT)
    far = problem.decision_distance(single.objective, TIGHT)
    np.testing.assert_allclose(plane.decision, labelling[problem.classes] * single.decision, rtol=0, atol=far)


@pytest.mark.parametrize("kind", [*LAYOUTS, "kernel"])
def test_planes_without_weight_change_nothing(class_problem: Any, kind: str) -> None:
    problem = class_problem(n_classes=5, C=5.0)
    rows = problem.kernel_rows("linear") if kind == "kernel" else problem.linear_rows(kind)
    planes = random_planes(4, 5, seed=2)
    options = {"tol": TIGHT, "max_iter": 100_000}
    two = rows.solve_planes(planes[:2], np.array([0.3, 0.7]), **options)
    four = rows.solve_planes(planes[[2, 0, 3, 1]], np.array([0.0, 0.3, 0.0, 0.7]), **options)
    assert four.objective == pytest.approx(two.objective, rel=2 * TIGHT)


@pytest.mark.parametrize("kind", [*LAYOUTS, "kernel"])
def test_warm_start_of_planes_ends_at_once(class_problem: Any, kind: str) -> None:
    problem = class_problem(n_classes=5, C=5.0)
    rows = problem.kernel_rows("linear") if kind == "kernel" else problem.linear_rows(kind)
    planes, mu = random_planes(3, 5, seed=3), random_weights(3, seed=3)
    first = rows.solve_planes(planes, mu, tol=TIGHT, max_iter=100_000)
    kept = first.alpha.copy()
    again = rows.solve_planes(planes, mu, tol=1e-6, max_iter=100_000, alpha=first.alpha)
    assert first.n_iter > again.n_iter
    assert again.n_iter <= 2
    np.testing.assert_array_equal(first.alpha, kept)


@methods
@pytest.mark.parametrize("kind", ["dense", "csr", "kernel"])
@given(seed=st.integers(0, 10_000), n_planes=st.integers(1, 6), C=st.floats(0.1, 10.0))
@settings(max_examples=6)
def test_weights_stay_on_the_simplex(
    class_problem: Any, method: str, kind: str, seed: int, n_planes: int, C: float
) -> None:
    problem = class_problem(n_classes=5, C=C, seed=seed)
    rows = problem.kernel_rows() if kind == "kernel" else problem.linear_rows(kind)
    planes = random_planes(n_planes, 5, seed)
    for max_iter in (1, 3, 50):
        result = learn(method, rows, planes, max_iter=max_iter)
        assert result.mu.shape == (n_planes,)
        assert result.mu.min() >= 0.0
        assert result.mu.sum() == pytest.approx(1.0, abs=1e-12)


@methods
@pytest.mark.parametrize("kind", ["csr", "kernel"])
def test_gap_over_the_planes_is_met(class_problem: Any, method: str, kind: str) -> None:
    missed = {}
    for seed in range(40):
        C = 10.0 ** np.random.default_rng(seed).uniform(-1.0, 1.0)
        problem = class_problem(n_classes=6, C=C, seed=seed)
        rows = problem.kernel_rows() if kind == "kernel" else problem.linear_rows(kind)
        result = learn(method, rows, random_planes(2 + seed % 9, 6, seed), tol=1e-2, max_iter=500)
        if result.gap > 1e-2:
            missed[seed] = result.gap
    assert not missed


@methods
@pytest.mark.parametrize("kind", ["dense", "csr", "kernel"])
@given(
    seed=st.integers(0, 10_000), n_planes=st.integers(1, 6), C=st.floats(0.1, 10.0), max_iter=st.sampled_from([0, 100])
)
@settings(max_examples=8)
def test_reported_gap_value_and_gram_equal_an_independent_computation(
    class_problem: Any, method: str, kind: str, seed: int, n_planes: int, C: float, max_iter: int
) -> None:
    problem = class_problem(n_classes=5, C=C, weighted=True, seed=seed)
    rows = problem.kernel_rows() if kind == "kernel" else problem.linear_rows(kind)
    gram = problem.rbf_gram() if kind == "kernel" else problem.linear_gram()
    planes = random_planes(n_planes, 5, seed)
    result = learn(method, rows, planes, max_iter=max_iter)
    alpha = result.svm.alpha
    members = (problem.classes == np.arange(5)[:, None]) * alpha
    np.testing.assert_allclose(result.class_gram, members @ gram @ members.T, rtol=1e-8, atol=1e-8)
    # The SVM belongs to the weights: its value lies within its own gap of J(mu).
    _, exact = problem.exact_dual(problem.signed_gram(gram, planes, result.mu))
    assert exact * (1 - 1e-9) <= result.value <= exact * (1 + 1e-3)
    q = squared_norms(problem, gram, planes, alpha)
    saddle = alpha.sum() - 0.5 * q.max() - 0.5 * np.sum(problem.ridge * alpha**2)
    own_gap = max(0.0, (result.value - saddle) / result.value)
    # Dual points met on the way may prove more than the last one, never less.
    assert result.gap <= own_gap + 1e-8
    if max_iter == 0:
        assert result.gap == pytest.approx(own_gap, abs=1e-8)


@methods
@pytest.mark.parametrize("kind", ["csr", "kernel"])
@given(seed=st.integers(0, 10_000), n_planes=st.integers(2, 6), C=st.floats(0.1, 10.0), max_iter=st.integers(0, 20))
@settings(max_examples=10)
def test_value_less_its_gap_lies_below_every_other_choice_of_weights(
    class_problem: Any, method: str, kind: str, seed: int, n_planes: int, C: float, max_iter: int
) -> None:
    problem = class_problem(n_classes=5, C=C, seed=seed)
    rows = problem.kernel_rows() if kind == "kernel" else problem.linear_rows(kind)
    gram = problem.rbf_gram() if kind == "kernel" else problem.linear_gram()
    planes = random_planes(n_planes, 5, seed)
    result = learn(method, rows, planes, max_iter=max_iter)
    sharp = learn("closed_form", rows, planes, tol=1e-5, max_iter=1000)
    for mu in (sharp.mu, random_weights(n_planes, seed), *np.eye(n_planes)):
        _, other = problem.exact_dual(problem.signed_gram(gram, planes, mu))
        assert (1.0 - result.gap) * result.value <= other * (1 + 1e-9)


@methods
@pytest.mark.parametrize("kind", ["dense", "csr", "kernel"])
@given(seed=st.integers(0, 10_000), n_planes=st.integers(2, 6), C=st.floats(0.1, 10.0))
@settings(max_examples=6)
def test_planes_with_weight_are_the_ones_with_the_largest_norm(
    class_problem: Any, method: str, kind: str, seed: int, n_planes: int, C: float
) -> None:
    problem = class_problem(n_classes=5, C=C, seed=seed)
    rows = problem.kernel_rows() if kind == "kernel" else problem.linear_rows(kind)
    planes = random_planes(n_planes, 5, seed)
    result = learn(method, rows, planes)
    gram = problem.rbf_gram() if kind == "kernel" else problem.linear_gram()
    q = squared_norms(problem, gram, planes, result.svm.alpha)
    # Complementary slackness. It bounds the gap of this dual point, which may be a few times the one reported.
    slackness = 0.5 * result.mu @ (q.max() - q)
    assert slackness <= 10.0 * max(result.gap, 1e-4) * result.value


@methods
@pytest.mark.parametrize("kind", ["dense", "csr", "kernel"])
@given(seed=st.integers(0, 10_000), n_planes=st.integers(2, 6), C=st.floats(0.1, 10.0))
@settings(max_examples=6)
def test_value_is_not_above_that_of_any_single_plane(
    class_problem: Any, method: str, kind: str, seed: int, n_planes: int, C: float
) -> None:
    problem = class_problem(n_classes=5, C=C, seed=seed)
    rows = problem.kernel_rows() if kind == "kernel" else problem.linear_rows(kind)
    planes = random_planes(n_planes, 5, seed)
    result = learn(method, rows, planes)
    singles = [rows.solve(plane, tol=1e-6, max_iter=100_000).objective for plane in planes]
    assert (1.0 - result.gap) * result.value <= min(singles)


@pytest.mark.parametrize("kind", ["dense", "csr", "kernel"])
@given(seed=st.integers(0, 10_000), n_planes=st.integers(2, 6), C=st.floats(0.1, 10.0))
@settings(max_examples=8)
def test_methods_reach_the_same_value_within_their_gaps(
    class_problem: Any, kind: str, seed: int, n_planes: int, C: float
) -> None:
    problem = class_problem(n_classes=5, C=C, weighted=True, seed=seed)
    rows = problem.kernel_rows() if kind == "kernel" else problem.linear_rows(kind)
    planes = random_planes(n_planes, 5, seed)
    first, second = (learn(method, rows, planes) for method in sorted(MKL_METHODS))
    assert (1.0 - first.gap) * first.value <= second.value * (1 + 1e-9)
    assert (1.0 - second.gap) * second.value <= first.value * (1 + 1e-9)


@methods
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_of_linear_rows_and_of_a_linear_kernel_agree(class_problem: Any, method: str, layout: str) -> None:
    for seed in range(4):
        problem = class_problem(n_classes=5, C=2.0, weighted=True, seed=seed)
        planes = random_planes(4, 5, seed)
        by_features = learn(method, problem.linear_rows(layout), planes, tol=1e-4, max_iter=1000)
        by_kernel = learn(method, problem.kernel_rows("linear"), planes, tol=1e-4, max_iter=1000)
        assert by_features.value == pytest.approx(by_kernel.value, rel=2 * max(by_features.gap, by_kernel.gap))


def test_closed_form_never_revives_a_weight_of_zero(class_problem: Any) -> None:
    problem = class_problem(n_classes=5)
    planes = random_planes(3, 5, seed=4)
    start = np.array([0.5, 0.0, 0.5])
    result = MKL_METHODS["closed_form"](
        problem.linear_rows("csr"), planes, start, None, tol=1e-6, max_iter=20, svm_max_iter=1000
    )
    assert result.mu[1] == 0.0


def test_simplemkl_revives_a_weight_of_zero_that_would_help(class_problem: Any) -> None:
    problem = class_problem(n_classes=5, C=2.0)
    rows = problem.linear_rows("csr")
    planes = random_planes(4, 5, seed=5)
    from_inside = learn("simplemkl", rows, planes)
    # The corner of the plane that matters least is the worst place to start from.
    start = np.eye(4)[np.argmin(from_inside.mu)]
    result = MKL_METHODS["simplemkl"](rows, planes, start, None, tol=1e-3, max_iter=300, svm_max_iter=100_000)
    assert np.count_nonzero(result.mu) > 1
    assert result.value == pytest.approx(from_inside.value, rel=5e-3)


@given(seed=st.integers(0, 10_000), n_planes=st.integers(1, 8), n_zero=st.integers(0, 7))
def test_reduced_gradient_descends_and_leaves_the_simplex_nowhere(seed: int, n_planes: int, n_zero: int) -> None:
    random = np.random.default_rng(seed)
    mu = random.dirichlet(np.ones(n_planes))
    mu[: min(n_zero, n_planes - 1)] = 0.0
    mu /= mu.sum()
    gradient = random.normal(size=n_planes)
    direction = reduced_gradient(mu, gradient)
    assert direction.sum() == pytest.approx(0.0, abs=1e-12)
    assert np.all(direction[mu == 0.0] >= 0.0)
    assert gradient @ direction <= 1e-12
