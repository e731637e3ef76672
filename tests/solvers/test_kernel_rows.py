"""What the kernel solver promises: the optimum of the dual (eq. 6), with all kernel rows in memory or a few of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import load_svmlight_file

from margintree.solvers import kernel_rows
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.kernel_rows import FETCH, KernelRows
from margintree.solvers.kernel_source import MEGABYTE, KernelSource

TIGHT = 1e-8
# Megabytes so few that the cache falls back to its smallest number of rows.
TINY_CACHE = 0.01
DATA_SETS = ("svmguide4", "vowel", "usps.t", "segment", "sector_part", "satimage", "pendigits", "letter.t")
MAX_ROWS = 5000


def halves(n_classes: int) -> Any:
    return np.where(np.arange(n_classes) < (n_classes + 1) // 2, 1.0, -1.0)


def one_plane(problem: Any, gram: Any, labelling: Any) -> Any:
    return problem.signed_gram(gram, labelling[None, :], np.ones(1))


@given(seed=st.integers(0, 10_000), C=st.floats(0.05, 20.0), weighted=st.booleans())
@settings(max_examples=15)
def test_linear_kernel_equals_linear_rows(class_problem: Any, seed: int, C: float, weighted: bool) -> None:
    problem = class_problem(C=C, weighted=weighted, seed=seed)
    labelling = halves(problem.n_classes)
    options = {"tol": TIGHT, "max_iter": 100_000}
    by_kernel = problem.kernel_rows("linear").solve(labelling, **options)
    by_features = problem.linear_rows("csr").solve(labelling, **options)
    assert by_kernel.objective == pytest.approx(by_features.objective, rel=2 * TIGHT)
    far = problem.weight_distance(by_kernel.objective, TIGHT)
    assert np.sqrt(by_kernel.squared_norm) == pytest.approx(np.sqrt(by_features.squared_norm), abs=far)
    far = problem.decision_distance(by_kernel.objective, TIGHT)
    np.testing.assert_allclose(by_kernel.decision, by_features.decision, rtol=0, atol=far)


@given(seed=st.integers(0, 10_000), C=st.floats(0.05, 50.0), weighted=st.booleans())
@settings(max_examples=15)
def test_rbf_optimum_agrees_with_an_active_set_method(
    compact_problem: Any, seed: int, C: float, weighted: bool
) -> None:
    problem = compact_problem(C=C, weighted=weighted, seed=seed)
    labelling = halves(problem.n_classes)
    matrix = one_plane(problem, problem.rbf_gram(), labelling)
    alpha, optimum = problem.exact_dual(matrix)
    solution = problem.kernel_rows().solve(labelling, tol=TIGHT, max_iter=100_000)
    assert solution.objective == pytest.approx(optimum, rel=2 * TIGHT)
    np.testing.assert_allclose(solution.alpha, alpha, rtol=0, atol=problem.alpha_distance(optimum, TIGHT))
    expected = labelling[problem.classes] * (matrix @ alpha)
    np.testing.assert_allclose(solution.decision, expected, rtol=0, atol=problem.decision_distance(optimum, TIGHT))


def test_rbf_optimum_agrees_with_a_quasi_newton_method(compact_problem: Any) -> None:
    problem = compact_problem(C=2.0, weighted=True)
    labelling = halves(problem.n_classes)
    matrix = one_plane(problem, problem.rbf_gram(), labelling) + np.diag(problem.ridge)
    result = minimize(
        lambda a: (0.5 * a @ matrix @ a - a.sum(), matrix @ a - 1.0),
        np.zeros(problem.n_rows),
        jac=True,
        bounds=[(0.0, None)] * problem.n_rows,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000},
    )
    solution = problem.kernel_rows().solve(labelling, tol=TIGHT, max_iter=100_000)
    assert solution.objective == pytest.approx(-result.fun, rel=1e-6)


@given(
    seed=st.integers(0, 10_000),
    C=st.floats(0.05, 1000.0),
    max_iter=st.integers(1, 5),
    cache_size=st.sampled_from([TINY_CACHE, 100.0]),
)
@settings(max_examples=25)
def test_reported_values_are_those_of_the_dual_variables_and_enclose_the_optimum(
    compact_problem: Any, seed: int, C: float, max_iter: int, cache_size: float
) -> None:
    problem = compact_problem(rows_per_class=20, C=C, weighted=True, seed=seed)
    labelling = halves(problem.n_classes)
    matrix = one_plane(problem, problem.rbf_gram(), labelling)
    _, optimum = problem.exact_dual(matrix)
    solution = problem.kernel_rows(cache_size=cache_size).solve(labelling, tol=1e-6, max_iter=max_iter)
    signed = matrix @ solution.alpha
    squared_norm = solution.alpha @ signed
    assert solution.alpha.min() >= 0.0
    np.testing.assert_allclose(solution.decision * labelling[problem.classes], signed, rtol=1e-7, atol=1e-7)
    assert solution.squared_norm == pytest.approx(squared_norm, rel=1e-7)
    assert solution.objective == pytest.approx(problem.primal(squared_norm, signed), rel=1e-7)
    assert solution.dual_objective == pytest.approx(problem.dual(solution.alpha, matrix), rel=1e-7, abs=1e-7)
    assert solution.dual_objective <= optimum * (1 + 1e-7)
    assert solution.objective >= optimum * (1 - 1e-7)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_gap_is_below_tol_at_return(compact_problem: Any, tol: float) -> None:
    for seed in range(5):
        problem = compact_problem(C=10.0, seed=seed)
        labelling = halves(problem.n_classes)
        solution = problem.kernel_rows().solve(labelling, tol=tol, max_iter=100_000)
        assert solution.duality_gap <= tol
        dual = problem.dual(solution.alpha, one_plane(problem, problem.rbf_gram(), labelling))
        assert solution.objective - dual <= (tol + 1e-12) * solution.objective


@given(seed=st.integers(0, 10_000), share=st.floats(0.05, 2.0))
@settings(max_examples=15)
def test_cutoff_stops_a_run_only_after_the_dual_has_passed_it(compact_problem: Any, seed: int, share: float) -> None:
    problem = compact_problem(C=10.0, seed=seed)
    labelling = halves(problem.n_classes)
    matrix = one_plane(problem, problem.rbf_gram(), labelling)
    _, optimum = problem.exact_dual(matrix)
    solution = problem.kernel_rows().solve(labelling, tol=TIGHT, max_iter=100_000, cutoff=share * optimum)
    if solution.duality_gap > TIGHT:
        assert problem.dual(solution.alpha, matrix) > share * optimum
    if share < 0.5:
        assert solution.duality_gap > TIGHT


def test_warm_start_from_the_solution_ends_at_once(compact_problem: Any) -> None:
    problem = compact_problem(C=10.0)
    labelling = halves(problem.n_classes)
    rows = problem.kernel_rows()
    first = rows.solve(labelling, tol=TIGHT, max_iter=100_000)
    assert first.n_iter > 2
    for signs in (labelling, -labelling):
        assert rows.solve(signs, tol=1e-6, max_iter=100_000, start=first).n_iter <= 1


@pytest.mark.parametrize("cache_size", [TINY_CACHE, 100.0])
def test_warm_start_from_another_labelling_finds_the_same_optimum(compact_problem: Any, cache_size: float) -> None:
    problem = compact_problem(n_classes=6, C=5.0, weighted=True)
    rows = problem.kernel_rows(cache_size=cache_size)
    start = rows.solve(halves(6), tol=TIGHT, max_iter=100_000)
    labelling = np.array([1.0, -1.0, 1.0, -1.0, -1.0, -1.0])
    _, optimum = problem.exact_dual(one_plane(problem, problem.rbf_gram(), labelling))
    warm = rows.solve(labelling, tol=TIGHT, max_iter=100_000, start=start)
    assert warm.objective == pytest.approx(optimum, rel=2 * TIGHT)


@pytest.mark.parametrize("cache_size", [TINY_CACHE, 0.15])
def test_bounded_cache_gives_the_solution_of_the_full_matrix(compact_problem: Any, cache_size: float) -> None:
    problem = compact_problem(rows_per_class=40, C=10.0, weighted=True)
    labelling = halves(problem.n_classes)
    full, bounded = problem.kernel_rows(), problem.kernel_rows(cache_size=cache_size)
    assert full.holds_all
    assert not bounded.holds_all
    first, second = (rows.solve(labelling, tol=TIGHT, max_iter=100_000) for rows in (full, bounded))
    assert second.duality_gap <= TIGHT
    assert second.objective == pytest.approx(first.objective, rel=2 * TIGHT)
    far = problem.alpha_distance(first.objective, TIGHT)
    np.testing.assert_allclose(second.alpha, first.alpha, rtol=0, atol=far)
    far = problem.decision_distance(first.objective, TIGHT)
    np.testing.assert_allclose(second.decision, first.decision, rtol=0, atol=far)


@pytest.mark.parametrize("cache_size", [TINY_CACHE, 0.15])
def test_bounded_cache_never_holds_more_rows_than_allowed(compact_problem: Any, cache_size: float) -> None:
    problem = compact_problem(rows_per_class=40, C=10.0)
    allowed = max(2 * FETCH, int(cache_size * MEGABYTE / 8) // problem.n_rows)
    assert allowed < problem.n_rows
    fetched: list[int] = []
    held: list[int] = []

    class Watched(KernelRows):
        def _fetch(self, wanted: Any) -> None:
            super()._fetch(wanted)
            held.append(np.count_nonzero(self._slot >= 0))

    def counted(A: Any, B: Any) -> Any:
        fetched.append(len(A))
        return np.exp(-0.2 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    source = problem.kernel_source(counted, cache_size=cache_size)
    rows = Watched(source, np.arange(problem.n_rows), problem.class_start, problem.ridge, 0)
    rows.solve(halves(problem.n_classes), tol=1e-4, max_iter=10_000)
    rows.class_gram(np.ones(problem.n_rows))
    assert max(held) == allowed
    assert len(rows._gram) == allowed
    assert sum(fetched) > problem.n_rows, "no row was ever computed twice: nothing was evicted"
    assert max(fetched) < problem.n_rows
    in_memory = np.flatnonzero(rows._slot >= 0)
    np.testing.assert_allclose(rows._gram[rows._slot[in_memory]], problem.rbf_gram()[in_memory], atol=1e-12)


def test_missing_row_is_fetched_even_where_gains_are_rounding_errors(compact_problem: Any) -> None:
    # No gap is below -1, so the run goes on at the optimum, where compiled and interpreted sums differ.
    problem = compact_problem(rows_per_class=20, C=0.1, weighted=True)
    labelling = halves(problem.n_classes)
    _, optimum = problem.exact_dual(one_plane(problem, problem.rbf_gram(), labelling))
    solution = problem.kernel_rows(cache_size=TINY_CACHE).solve(labelling, tol=-1.0, max_iter=30)
    assert solution.objective == pytest.approx(optimum, rel=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("cache_size", [TINY_CACHE, 100.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_class_sums_agree_with_brute_force(
    compact_problem: Any, kernel: str, cache_size: float, weighted: bool
) -> None:
    for seed in range(5):
        problem = compact_problem(rows_per_class=20, weighted=weighted, seed=seed)
        gram = problem.linear_gram() if kernel == "linear" else problem.rbf_gram()
        coefficients = np.random.default_rng(seed).uniform(0.0, 2.0, size=problem.n_rows)
        coefficients[::3] = 0.0
        members = problem.classes == np.arange(problem.n_classes)[:, None]
        expected = (members * coefficients) @ gram @ (members * coefficients).T
        rows = problem.kernel_rows(kernel, cache_size=cache_size)
        assert rows.holds_all == (cache_size == 100.0)
        np.testing.assert_allclose(rows.class_gram(coefficients), expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(rows.class_norms(coefficients), np.sqrt(expected.diagonal()), rtol=1e-9)
        shares = members * problem.sample_weight
        shares /= shares.sum(axis=1, keepdims=True)
        means = rows.class_means()
        np.testing.assert_allclose(means @ means.T, shares @ gram @ shares.T, rtol=1e-7, atol=1e-7)
        if rows.holds_all:
            vectors = rows.class_vectors(coefficients)
            np.testing.assert_allclose(vectors @ vectors.T, expected, rtol=1e-7, atol=1e-7)


def test_class_vectors_without_the_full_matrix_are_refused(compact_problem: Any) -> None:
    problem = compact_problem(rows_per_class=30)
    with pytest.raises(ValueError, match=r"cache_size.*oracle='gram'"):
        problem.kernel_rows(cache_size=TINY_CACHE).class_vectors(np.ones(problem.n_rows))


@pytest.mark.parametrize("cache_size", [TINY_CACHE, 100.0])
def test_kernel_of_a_wrong_shape_is_refused_with_both_shapes(compact_problem: Any, cache_size: float) -> None:
    problem = compact_problem(rows_per_class=30)
    with pytest.raises(ValueError, match=r"returned an array of shape \(\d+,\) for \d+ and \d+ rows; expected \(\d+, "):
        problem.kernel_rows(lambda A, B: np.ones(len(A)), cache_size=cache_size)


@pytest.mark.parametrize("cache_size", [TINY_CACHE, 100.0])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_kernel_values_that_are_not_finite_are_refused(compact_problem: Any, cache_size: float, bad: float) -> None:
    problem = compact_problem(rows_per_class=30)
    with pytest.raises(ValueError, match="not finite"):
        problem.kernel_rows(lambda A, B: np.full((len(A), len(B)), bad), cache_size=cache_size)


def test_value_that_is_not_finite_is_refused_when_its_row_is_first_read(compact_problem: Any) -> None:
    problem = compact_problem(rows_per_class=30)
    first = problem.features[0]

    def broken(A: Any, B: Any) -> Any:
        # The diagonal is fine; only the first row against the others is not.
        values = np.exp(-0.2 * ((A[:, None] - B[None]) ** 2).sum(axis=2))
        is_first = [(part == first).all(axis=1) for part in (A, B)]
        values[np.ix_(is_first[0], ~is_first[1])] = np.nan
        return values

    with pytest.raises(ValueError, match="not finite"):
        problem.kernel_rows(broken, cache_size=TINY_CACHE).solve(halves(4), tol=1e-3, max_iter=10)


@pytest.mark.parametrize("cache_size", [TINY_CACHE, 100.0])
@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_function_that_is_no_kernel_ends_with_a_gap_that_is_reported(
    compact_problem: Any, cache_size: float, C: float
) -> None:
    problem = compact_problem(rows_per_class=30, C=C)
    rows = problem.kernel_rows(lambda A, B: -np.asarray(A @ B.T), cache_size=cache_size)
    solution = rows.solve(halves(problem.n_classes), tol=1e-3, max_iter=1000)
    assert np.isfinite([solution.objective, solution.dual_objective]).all()
    assert np.isfinite(solution.decision).all()
    assert solution.duality_gap > 1e-3


@given(seed=st.integers(0, 10_000), C=st.floats(0.05, 1000.0))
@settings(max_examples=15)
def test_polish_carries_a_small_node_to_the_optimum(compact_problem: Any, seed: int, C: float) -> None:
    problem = compact_problem(C=C, weighted=True, seed=seed)
    labelling = halves(problem.n_classes)
    matrix = one_plane(problem, problem.rbf_gram(), labelling)
    _, optimum = problem.exact_dual(matrix)
    rows = problem.kernel_rows()
    rough = rows.solve(labelling, tol=1e-3, max_iter=10_000)
    polished = rows.polish(rough)
    assert polished.alpha.min() >= 0.0
    assert polished.objective == pytest.approx(optimum, rel=1e-9)
    assert polished.duality_gap <= 1e-9
    np.testing.assert_array_equal(polished.labelling, labelling)
    signed = labelling[problem.classes] * polished.decision
    np.testing.assert_allclose(signed, matrix @ polished.alpha, rtol=1e-7, atol=1e-7)


def test_polish_leaves_a_node_with_a_bounded_cache_as_it_is(compact_problem: Any) -> None:
    rows = compact_problem(rows_per_class=20).kernel_rows(cache_size=TINY_CACHE)
    rough = rows.solve(halves(4), tol=0.1, max_iter=100)
    assert rows.polish(rough) is rough


@given(seed=st.integers(0, 10_000), C=st.floats(0.05, 30.0))
@settings(max_examples=10)
def test_weight_two_equals_a_duplicated_row(compact_problem: Any, seed: int, C: float) -> None:
    problem = compact_problem(C=C, seed=seed)
    copies = np.random.default_rng(seed).integers(1, 3, size=problem.n_rows)
    lengths = np.add.reduceat(copies, problem.class_start[:-1])
    duplicated = type(problem)(
        np.repeat(problem.features, copies, axis=0),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.ones(copies.sum()),
        C,
    )
    weighted = type(problem)(problem.features, problem.class_start, copies.astype(float), C)
    labelling = halves(problem.n_classes)
    options = {"tol": TIGHT, "max_iter": 100_000}
    first = duplicated.kernel_rows().solve(labelling, **options)
    second = weighted.kernel_rows().solve(labelling, **options)
    assert first.objective == pytest.approx(second.objective, rel=2 * TIGHT)
    far = problem.decision_distance(second.objective, TIGHT)
    np.testing.assert_allclose(first.decision, np.repeat(second.decision, copies), rtol=0, atol=far)


def test_intercept_adds_one_to_every_kernel_value(compact_problem: Any) -> None:
    problem = compact_problem()
    A, B = problem.features[:7], problem.features[7:]
    for kernel in ("rbf", "poly", lambda A, B: A @ B.T):
        plain = KernelFunction(kernel, gamma=0.3, coef0=0.5)(A, B)
        shifted = KernelFunction(kernel, gamma=0.3, coef0=0.5, fit_intercept=True)(A, B)
        np.testing.assert_allclose(shifted, plain + 1.0, rtol=1e-12)


def test_precomputed_values_equal_the_kernel_they_came_from(compact_problem: Any) -> None:
    problem = compact_problem(C=5.0)
    labelling = halves(problem.n_classes)
    expected = problem.kernel_rows().solve(labelling, tol=TIGHT, max_iter=10_000)
    for cache_size in (TINY_CACHE, 100.0):
        source = KernelSource(KernelFunction("precomputed"), problem.rbf_gram(), cache_size)
        rows = KernelRows(source, np.arange(problem.n_rows), problem.class_start, problem.ridge, 0)
        solution = rows.solve(labelling, tol=TIGHT, max_iter=10_000)
        assert solution.objective == pytest.approx(expected.objective, rel=2 * TIGHT)


def test_sparse_features_give_the_kernel_of_dense_ones(class_problem: Any) -> None:
    problem = class_problem()
    function = KernelFunction("rbf", gamma=0.2)
    index = np.arange(problem.n_rows)
    sparse = KernelSource(function, sp.csr_array(problem.features), 100.0).block(index, index)
    np.testing.assert_allclose(sparse, problem.rbf_gram(), atol=1e-12)


def test_missing_rows_are_computed_in_blocks(compact_problem: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_rows, "FETCH", 16)
    problem = compact_problem(rows_per_class=30)
    sizes: list[int] = []

    def counted(A: Any, B: Any) -> Any:
        sizes.append(len(A))
        return np.exp(-0.2 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    rows = problem.kernel_rows(counted, cache_size=TINY_CACHE)
    sizes.clear()
    rows.class_gram(np.ones(problem.n_rows))
    assert max(sizes) == 16
    assert sum(sizes) == problem.n_rows


def load(directory: Path, name: str) -> tuple[Any, Any]:
    """Return at most ``MAX_ROWS`` rows of a data set, sorted by class, and where the classes start."""
    path = directory / f"{name}.bz2"
    if not path.exists():
        pytest.skip(f"MARGINTREE_DATA has no {path.name}")
    X, y = load_svmlight_file(str(path))
    X, y = X[:MAX_ROWS], y[:MAX_ROWS]
    if X.shape[1] <= 1000:
        X = X.toarray()
    if name == "svmguide4":
        X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    order = np.argsort(y, kind="stable")
    _, counts = np.unique(y, return_counts=True)
    return X[order], np.concatenate([[0], np.cumsum(counts)])


@pytest.mark.parametrize("name", DATA_SETS)
def test_gap_is_below_tol_on_real_data(data_directory: Path, name: str) -> None:
    X, class_start = load(data_directory, name)
    squares = X.multiply(X) if sp.issparse(X) else X * X
    gamma = 1.0 / (X.shape[1] * (squares.mean() - X.mean() ** 2))
    source = KernelSource(KernelFunction("rbf", gamma=gamma), X, cache_size=200.0)
    rows = KernelRows(source, np.arange(X.shape[0]), class_start, np.full(X.shape[0], 0.1), 0)
    solution = rows.solve(halves(rows.n_classes), tol=1e-3, max_iter=1000)
    assert solution.duality_gap <= 1e-3
    # What the solver kept up to date must still be the decision values of its dual variables.
    labelling = halves(rows.n_classes)[rows.classes]
    gram = source.block(rows.row_index, rows.row_index)
    np.testing.assert_allclose(solution.decision, gram @ (labelling * solution.alpha), atol=1e-6)
