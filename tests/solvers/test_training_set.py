"""What a node sees of the training set: its classes' rows in order, its columns, and a classifier for all columns."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.kernel_source import KernelSource
from margintree.solvers.training_set import KernelTrainingSet, LinearTrainingSet

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
