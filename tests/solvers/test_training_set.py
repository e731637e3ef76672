"""What a node sees of the training set: its classes' rows in order, its columns, and a classifier for all columns."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from margintree.solvers import training_set as sets
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.kernel_source import KernelSource
from margintree.solvers.row_layout import IndexedRows
from margintree.solvers.training_set import KernelTrainingSet, LinearTrainingSet, Moments, pieces

TIGHT = 1e-8

node_classes = st.lists(st.integers(0, 5), min_size=2, max_size=6, unique=True).map(lambda c: np.array(c))


def linear_set(problem: Any, X: Any, *, fit_intercept: bool) -> LinearTrainingSet:
    cost = 1.0 / problem.ridge
    return LinearTrainingSet(X, problem.class_start, problem.sample_weight, cost, fit_intercept=fit_intercept)


def kernel_set(problem: Any, cache_size: float) -> KernelTrainingSet:
    source = KernelSource(KernelFunction("rbf", gamma=0.2), problem.features, cache_size)
    return KernelTrainingSet(source, problem.class_start, problem.sample_weight, 1.0 / problem.ridge)


def rows_by_loop(problem: Any, classes: Any) -> Any:
    return np.concatenate([np.flatnonzero(problem.classes == k) for k in classes])


def first_against_rest(n_classes: int) -> Any:
    return np.where(np.arange(n_classes) == 0, 1.0, -1.0)


def part_of(problem: Any, classes: Any) -> Any:
    """Return the problem of some classes, by plain indexing."""
    rows = rows_by_loop(problem, classes)
    lengths = np.diff(problem.class_start)[classes]
    return type(problem)(
        problem.features[rows], np.concatenate([[0], np.cumsum(lengths)]), problem.sample_weight[rows], problem.C
    )


@given(seed=st.integers(0, 1000), classes=node_classes)
@settings(max_examples=20)
def test_node_has_the_rows_of_its_classes_in_their_order(class_problem: Any, seed: int, classes: Any) -> None:
    problem = class_problem(n_classes=6, weighted=True, seed=seed)
    training_set = linear_set(problem, problem.features, fit_intercept=False)
    index, start = training_set.rows_of(classes)
    np.testing.assert_array_equal(index, rows_by_loop(problem, classes))
    np.testing.assert_array_equal(np.diff(start), np.diff(problem.class_start)[classes])
    rows = training_set.node_rows(classes, 0)
    np.testing.assert_array_equal(rows.class_start, start)
    np.testing.assert_allclose(rows.ridge, problem.ridge[index], rtol=1e-14)
    np.testing.assert_array_equal(rows.classes, np.repeat(np.arange(len(classes)), np.diff(start)))


def test_sizes_are_sums_of_sample_weights_and_do_not_know_the_cost(class_problem: Any) -> None:
    problem = class_problem(n_classes=6, weighted=True)
    training_set = LinearTrainingSet(
        problem.features, problem.class_start, problem.sample_weight, 7.0 * problem.sample_weight, fit_intercept=True
    )
    expected = [problem.sample_weight[problem.classes == k].sum() for k in range(6)]
    np.testing.assert_allclose(training_set.sizes, expected, rtol=1e-12)
    np.testing.assert_allclose(training_set.ridge, 1.0 / (7.0 * problem.sample_weight), rtol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@given(seed=st.integers(0, 1000), classes=node_classes)
@settings(max_examples=10)
def test_node_features_are_the_training_rows_over_the_columns_in_use(
    class_problem: Any, sparse: bool, fit_intercept: bool, seed: int, classes: Any
) -> None:
    problem = class_problem(n_classes=6, seed=seed)
    X = sp.csr_array(problem.features) if sparse else problem.features
    rows = linear_set(problem, X, fit_intercept=fit_intercept).node_rows(classes, 0)
    features = rows.features if isinstance(rows.features, np.ndarray) else rows.features.toarray()
    expected = problem.features[rows_by_loop(problem, classes)]
    spread = np.zeros_like(expected)
    spread[:, rows.columns] = features[:, : len(rows.columns)]
    np.testing.assert_array_equal(spread, expected)
    assert features.shape[1] == len(rows.columns) + fit_intercept
    if fit_intercept:
        np.testing.assert_array_equal(features[:, -1], 1.0)
    if sparse:
        np.testing.assert_array_equal(rows.columns, np.flatnonzero(expected.any(axis=0)))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_linear_classifier_gives_the_decisions_of_its_node(
    class_problem: Any, sparse: bool, fit_intercept: bool
) -> None:
    problem = class_problem(n_classes=6, C=5.0)
    classes = np.array([4, 0, 3])
    X = sp.csr_array(problem.features) if sparse else problem.features
    training_set = linear_set(problem, X, fit_intercept=fit_intercept)
    rows = training_set.node_rows(classes, 0)
    solution = rows.solve(first_against_rest(3), tol=1e-6, max_iter=10_000)
    classifier = training_set.classifier(rows, solution)
    weights = np.zeros(problem.features.shape[1])
    weights[classifier.columns] = classifier.weights
    decision = problem.features[rows_by_loop(problem, classes)] @ weights + classifier.intercept
    np.testing.assert_allclose(decision, solution.decision, atol=1e-9)
    assert np.all(classifier.weights != 0.0)
    assert (classifier.intercept != 0.0) == fit_intercept


@pytest.mark.parametrize("sparse", [False, True])
def test_linear_node_solves_the_problem_of_its_classes(class_problem: Any, sparse: bool) -> None:
    problem = class_problem(n_classes=6, C=5.0, weighted=True)
    classes = np.array([5, 1, 2])
    X = sp.csr_array(problem.features) if sparse else problem.features
    rows = linear_set(problem, X, fit_intercept=False).node_rows(classes, 0)
    solution = rows.solve(first_against_rest(3), tol=TIGHT, max_iter=100_000)
    part = part_of(problem, classes)
    _, optimum = part.exact_dual(part.signed_gram(part.linear_gram(), first_against_rest(3)[None, :], np.ones(1)))
    assert solution.objective == pytest.approx(optimum, rel=2 * TIGHT)


def test_stored_duplicates_of_a_sparse_matrix_add_up(class_problem: Any) -> None:
    problem = class_problem(n_features=700, density=0.01, C=100.0)
    labelling = np.array([1.0, -1.0, 1.0, -1.0])
    whole = sp.csr_array(problem.features)
    # Three thirds of each value: scipy counts them as one value, and so do its products.
    thirds = sp.csr_array(
        (np.repeat(whole.data / 3.0, 3), np.repeat(whole.indices, 3), 3 * whole.indptr), shape=whole.shape
    )
    expected, solution = (
        linear_set(problem, X, fit_intercept=False).node_rows(np.arange(4), 0).solve(labelling, tol=1e-6, max_iter=1000)
        for X in (whole, thirds)
    )
    assert expected.duality_gap <= 1e-6
    assert solution.objective == pytest.approx(expected.objective, rel=1e-5)


@pytest.mark.parametrize(
    "cache_size", [100.0, 0.05, 0.01], ids=["training matrix held", "node matrix held", "rows held"]
)
@pytest.mark.parametrize("classes", [(3, 0), (2, 4, 1), (0, 1, 2, 3, 4, 5), (5, 0, 3, 1, 4, 2)])
def test_kernel_node_solves_the_problem_of_its_classes(
    compact_problem: Any, cache_size: float, classes: tuple[int, ...]
) -> None:
    problem = compact_problem(n_classes=6, C=5.0, weighted=True)
    labelling = first_against_rest(len(classes))
    rows = kernel_set(problem, cache_size).node_rows(np.array(classes), 0)
    solution = rows.solve(labelling, tol=TIGHT, max_iter=100_000)
    part = part_of(problem, np.array(classes))
    _, optimum = part.exact_dual(part.signed_gram(part.rbf_gram(), labelling[None, :], np.ones(1)))
    assert solution.objective == pytest.approx(optimum, rel=2 * TIGHT)


@pytest.mark.parametrize("cache_size", [100.0, 0.01])
def test_kernel_classifier_gives_the_decisions_of_its_node(compact_problem: Any, cache_size: float) -> None:
    problem = compact_problem(n_classes=6, C=5.0)
    classes = np.array([4, 0, 3])
    training_set = kernel_set(problem, cache_size)
    rows = training_set.node_rows(classes, 0)
    solution = rows.solve(first_against_rest(3), tol=1e-6, max_iter=10_000)
    classifier = training_set.classifier(rows, solution)
    index = rows_by_loop(problem, classes)
    assert set(classifier.row_index) <= set(index)
    assert np.all(classifier.coefficients != 0.0)
    decision = problem.rbf_gram()[np.ix_(index, classifier.row_index)] @ classifier.coefficients
    np.testing.assert_allclose(decision, solution.decision, atol=1e-9)


DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def anywhere(X: Any, seed: int = 0) -> tuple[Any, Any]:
    """Return a matrix with the rows of X at other places, among rows that are no part of the set, and the places."""
    place = np.random.default_rng(seed).permutation(len(X) + 7)[: len(X)]
    spread = np.full((len(X) + 7, X.shape[1]), 77.0, dtype=X.dtype)
    spread[place] = X
    return spread, place


def dense_set(X: Any, class_start: Any, weight: Any, **options: Any) -> LinearTrainingSet:
    return LinearTrainingSet(X, class_start, weight, 2.0 * weight, **{"fit_intercept": True, **options})


def shifted_rows(n_features: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Return rows of five classes with a mean far from zero, where each class starts, and weights."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(5, n_features))[np.repeat(np.arange(5), 12)] + random.normal(size=(60, n_features)) + 3.0
    return X, np.arange(0, 61, 12), random.uniform(0.2, 3.0, size=60)


@pytest.mark.parametrize("n_features", [20, 620], ids=["few features", "many features"])
@pytest.mark.parametrize("has_order", [False, True], ids=["sorted", "anywhere"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@DTYPES
def test_rows_that_stay_in_place_give_the_machine_of_a_copy(
    monkeypatch: pytest.MonkeyPatch, dtype: Any, fit_intercept: bool, has_order: bool, n_features: int
) -> None:
    X, class_start, weight = shifted_rows(n_features)
    X = X.astype(dtype)
    spread, place = anywhere(X) if has_order else (X, None)
    copied = dense_set(X.astype(np.float64), class_start, weight, fit_intercept=fit_intercept)
    classes, labelling = np.array([3, 0, 4, 1]), np.array([1.0, -1.0, 1.0, -1.0])
    rows = copied.node_rows(classes, 0)
    assert isinstance(rows.features, np.ndarray)
    monkeypatch.setattr(sets, "COPIED_VALUES", X.size - 1)
    in_place = dense_set(spread, class_start, weight, fit_intercept=fit_intercept, order=place)
    there = in_place.node_rows(classes, 0)
    assert isinstance(there.features, IndexedRows)
    assert there.features.values is spread
    np.testing.assert_array_equal(there.features.toarray(), rows.features)
    expected, found = (one.solve(labelling, tol=1e-9, max_iter=100_000) for one in (rows, there))
    assert max(expected.duality_gap, found.duality_gap) <= 1e-9
    assert found.objective == pytest.approx(expected.objective, rel=1e-8)
    assert np.linalg.norm(found.weights - expected.weights) <= 1e-4 * np.linalg.norm(expected.weights)
    machine, other = copied.classifier(rows, expected), in_place.classifier(there, found)
    np.testing.assert_allclose(other.weights, machine.weights, atol=1e-4 * np.abs(machine.weights).max())
    assert other.intercept == pytest.approx(machine.intercept, abs=1e-4)
    assert (machine.intercept != 0.0) == fit_intercept
    coefficients = np.random.default_rng(1).uniform(size=48)
    np.testing.assert_allclose(there.class_vectors(coefficients), rows.class_vectors(coefficients), rtol=1e-9)


@DTYPES
@pytest.mark.parametrize("large", [False, True], ids=["copied", "in place"])
def test_rows_may_stand_anywhere(monkeypatch: pytest.MonkeyPatch, dtype: Any, large: bool) -> None:
    X, class_start, weight = shifted_rows(20)
    X = X.astype(dtype)
    spread, place = anywhere(X)
    if large:
        monkeypatch.setattr(sets, "COPIED_VALUES", 0)
    training_set = dense_set(spread, class_start, weight, order=place)
    some = np.array([40, 3, 17])
    np.testing.assert_array_equal(training_set.take(some), X[some])
    node = training_set.node_rows(np.array([2, 0]), 0)
    features = node.features.toarray() if large else node.features
    expected = X[np.concatenate([np.arange(24, 36), np.arange(12)])]
    np.testing.assert_array_equal(features, np.column_stack([expected, np.ones(24)]))
    part = training_set.part(some[1:], np.array([0, 1, 2]), 0.5)
    assert part.order is None
    np.testing.assert_array_equal(part.X, X[some[1:]])
    np.testing.assert_allclose(part.sample_weight, 0.5 * weight[some[1:]])


@given(n=st.integers(0, 50), values=st.integers(1, 40), width=st.integers(1, 9))
@settings(max_examples=50)
def test_pieces_are_all_rows_in_their_order_and_no_larger_than_asked(n: int, values: int, width: int) -> None:
    rows = np.random.default_rng(0).permutation(n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sets, "PIECE_VALUES", values)
        found = pieces(rows, np.empty((50, width)))
        whole = pieces(rows, sp.csr_array((50, width)))
    np.testing.assert_array_equal(np.concatenate([np.empty(0, dtype=int), *found]), rows)
    assert all(0 < len(piece) <= max(1, values // width) for piece in found)
    assert len(whole) == (n > 0)


@pytest.mark.parametrize("has_order", [False, True], ids=["sorted", "anywhere"])
@DTYPES
def test_moments_are_sums_by_weight(monkeypatch: pytest.MonkeyPatch, dtype: Any, has_order: bool) -> None:
    X, class_start, weight = shifted_rows(9)
    spread, place = anywhere(X.astype(dtype)) if has_order else (X.astype(dtype), None)
    monkeypatch.setattr(sets, "PIECE_VALUES", 7 * 9)
    training_set = dense_set(spread, class_start, weight, order=place)
    mean = np.average(X, axis=0, weights=weight)
    moments = training_set.moments
    assert moments.total == pytest.approx(weight.sum())
    np.testing.assert_allclose(moments.centre, mean, rtol=1e-5)
    np.testing.assert_allclose(moments.scatter, (X - mean).T @ (weight[:, None] * (X - mean)), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(moments.of_features, np.diagonal(moments.scatter))
    # Fewer rows than features have sums in their span.
    some = np.array([2, 59, 30])
    of_some = Moments.of(training_set, some)
    difference = X[some] - np.average(X[some], axis=0, weights=weight[some])
    expected = difference.T @ (weight[some, None] * difference)
    assert of_some.span is not None
    assert of_some.span.shape == (9, 3)
    np.testing.assert_allclose(of_some.span @ of_some.scatter @ of_some.span.T, expected, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(of_some.of_features, np.diagonal(expected), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("n_copies", "n_axes"), [(1, 60), (3, 64)], ids=["fewer rows", "more rows"])
@pytest.mark.parametrize("has_order", [False, True], ids=["sorted", "anywhere"])
@DTYPES
def test_leading_axes_keep_as_much_of_the_rows_as_axes_can(
    dtype: Any, has_order: bool, n_copies: int, n_axes: int
) -> None:
    X, class_start, weight = shifted_rows(150)
    X = np.repeat(X * np.geomspace(1.0, 1e-3, 150), n_copies, axis=0).astype(dtype)
    class_start, weight = n_copies * class_start, np.repeat(weight, n_copies)
    spread, place = anywhere(X) if has_order else (X, None)
    leading = dense_set(spread, class_start, weight, order=place).leading
    assert leading.shape == (len(X), n_axes)
    # Rows count by their weight.
    best = np.linalg.svd(np.sqrt(weight)[:, None] * X.astype(np.float64), compute_uv=False)
    assert weight @ np.sum(leading**2, axis=1) == pytest.approx(np.sum(best[:n_axes] ** 2), rel=1e-5)
    # They are a projection, in which rows keep the angles between them: 60 different rows span no more axes.
    np.testing.assert_allclose(leading @ leading.T, X.astype(np.float64) @ X.T, atol=1e-3)


def test_there_are_no_leading_axes_of_few_features_or_of_sparse_rows() -> None:
    X, class_start, weight = shifted_rows(129)
    assert dense_set(X, class_start, weight).leading is not None
    assert dense_set(np.ascontiguousarray(X[:, :128]), class_start, weight).leading is None
    assert dense_set(sp.csr_array(X), class_start, weight).leading is None


@pytest.mark.parametrize("layout", ["few features", "many features", "in place", "csr", "rbf"])
def test_a_search_has_rows_of_every_class_and_no_more_than_it_looks_at(
    monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    sizes = np.array([1, 2, 300, 40, 1, 157])
    class_start = np.concatenate([[0], np.cumsum(sizes)])
    random = np.random.default_rng(0)
    X, weight = random.normal(size=(501, 20 if layout == "few features" else 150)), random.uniform(0.5, 2.0, size=501)
    if layout == "in place":
        monkeypatch.setattr(sets, "COPIED_VALUES", 0)
    if layout == "rbf":
        source = KernelSource(KernelFunction("rbf", gamma=0.2), X, 100.0)
        training_set: Any = KernelTrainingSet(source, class_start, weight, 2.0 * weight)
    else:
        training_set = dense_set(sp.csr_array(X) if layout == "csr" else X, class_start, weight)
    rows = training_set.node_rows(np.arange(6), 0)
    monkeypatch.setattr(type(rows), "SEARCHED_ROWS", 501)
    assert rows.sampled() is rows
    monkeypatch.setattr(type(rows), "SEARCHED_ROWS", 100)
    for found in (rows.sampled(), rows.reduced()):
        counts = np.diff(found.class_start)
        # A fifth of each class, at least one row.
        np.testing.assert_array_equal(counts, [1, 1, 59, 7, 1, 31])
        assert found.n_rows == counts.sum() == len(found.ridge)
    # They are rows of their classes, no two the same.
    row_of = {value: row for row, value in enumerate(rows.ridge.tolist())}
    chosen = np.array([row_of[value] for value in rows.sampled().ridge.tolist()])
    assert len(np.unique(chosen)) == len(chosen)
    np.testing.assert_array_equal(rows.classes[chosen], rows.sampled().classes)
    if layout in ("many features", "in place"):
        reduced = rows.reduced()
        assert reduced.features.shape == (100, 65)
        np.testing.assert_allclose(reduced.features[:, :64], training_set.leading[chosen])
        np.testing.assert_array_equal(reduced.features[:, 64], 1.0)
    elif layout != "rbf":
        assert rows.reduced().features.shape[1] == rows.features.shape[1]


@pytest.mark.parametrize("layout", ["dense", "in place", "csr"])
def test_a_part_of_the_rows_of_a_node_has_their_machine(monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    X, class_start, weight = shifted_rows(150)
    if layout == "in place":
        monkeypatch.setattr(sets, "COPIED_VALUES", 0)
    training_set = dense_set(sp.csr_array(X) if layout == "csr" else X, class_start, weight)
    chosen, start = np.array([0, 5, 13, 14, 20, 30, 40, 41, 55]), np.array([0, 2, 5, 6, 8, 9])
    labelling = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    part = training_set.node_rows(np.arange(5), 0).part(chosen, start)
    alone = dense_set(X[chosen], start, weight[chosen]).node_rows(np.arange(5), 0)
    found, expected = (rows.solve(labelling, tol=1e-9, max_iter=100_000) for rows in (part, alone))
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-4)
