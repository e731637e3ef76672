"""Values of a kernel machine on its own rows, as if each were left out, against machines trained without it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from margintree.solvers import kernel_rows
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.kernel_rows import KernelRows
from margintree.solvers.kernel_source import KernelSource, PairBlocks
from margintree.solvers.training_set import KernelTrainingSet, units_of

TIGHT = 1e-10
LEFT_AGAINST_RIGHT = np.array([1.0, -1.0])


def two_groups(problem: Any) -> Any:
    """Return the first two classes of a problem."""
    n_rows = problem.class_start[2]
    return replace(
        problem,
        features=problem.features[:n_rows],
        class_start=problem.class_start[:3],
        sample_weight=problem.sample_weight[:n_rows],
    )


def machine_of(problem: Any) -> tuple[KernelRows, Any]:
    rows = problem.kernel_rows()
    return rows, rows.machine(LEFT_AGAINST_RIGHT, tol=TIGHT, max_iter=10_000)


def values_by_training_again(problem: Any, units: Any) -> Any:
    """Train without one unit of each row in turn, and ask the machine about that row."""
    values = np.empty(problem.n_rows)
    for j in range(problem.n_rows):
        weight = problem.sample_weight * np.where(np.arange(problem.n_rows) == j, (units - 1) / units, 1.0)
        kept = np.flatnonzero(weight)
        start = np.searchsorted(kept, problem.class_start)
        other = replace(problem, features=problem.features[kept], class_start=start, sample_weight=weight[kept])
        _, solution = machine_of(other)
        signs = LEFT_AGAINST_RIGHT[other.classes]
        kernel = np.exp(-0.2 * ((other.features - problem.features[j]) ** 2).sum(axis=1))
        values[j] = kernel @ (signs * solution.alpha)
    return values


@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_machines_trained_without_the_row(compact_problem: Any, weighted: bool) -> None:
    problem = two_groups(compact_problem(rows_per_class=20, C=2.0))
    units = np.where(np.arange(problem.n_rows) % 3 == 0, 2, 1) if weighted else np.ones(problem.n_rows, dtype=np.int64)
    problem = replace(problem, sample_weight=0.7 * units)
    rows, solution = machine_of(problem)
    found, expected = rows.leave_one_out(solution, units), values_by_training_again(problem, units)
    # The others may change when one is left out, which the formula does not follow.
    assert np.mean(np.abs(found - expected) < 1e-6) > 0.6
    np.testing.assert_allclose(found, expected, atol=0.1)
    # Values of machines that have seen the rows would be noticed.
    assert np.abs(solution.decision - expected).max() > 0.2


def test_rows_that_support_nothing_keep_their_value(compact_problem: Any) -> None:
    problem = two_groups(compact_problem(rows_per_class=30, C=50.0))
    rows, solution = machine_of(problem)
    resting = solution.alpha == 0.0
    assert resting.any()
    found = rows.leave_one_out(solution, np.ones(problem.n_rows, dtype=np.int64))
    np.testing.assert_array_equal(found[resting], solution.decision[resting])
    assert (found[~resting] != solution.decision[~resting]).all()


def test_several_systems_come_near_to_one(compact_problem: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = two_groups(compact_problem(rows_per_class=60, C=1.0))
    rows, solution = machine_of(problem)
    units = np.ones(problem.n_rows, dtype=np.int64)
    whole = rows.leave_one_out(solution, units)
    monkeypatch.setattr(kernel_rows, "SYSTEM_ROWS", np.count_nonzero(solution.alpha) // 2 + 1)
    signs = LEFT_AGAINST_RIGHT[problem.classes]
    halves = rows.leave_one_out(solution, units)
    # With fewer others to lean on, a row that is left out is further off; never by more than it was worth itself.
    assert (signs * (halves - whole) <= 1e-9).all()
    assert (signs * halves >= signs * solution.decision - solution.alpha - 1e-9).all()
    assert np.corrcoef(halves, whole)[0, 1] > 0.98


def test_a_function_that_is_no_kernel_gives_finite_values() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    source = KernelSource(KernelFunction(lambda A, B: -np.asarray(A @ B.T)), X, 100.0)
    rows = KernelRows(source, np.arange(20), np.array([0, 10, 20]), np.full(20, 0.1), 0)
    solution = rows.machine(LEFT_AGAINST_RIGHT, tol=1e-3, max_iter=50)
    assert np.isfinite(rows.leave_one_out(solution, np.ones(20, dtype=np.int64))).all()


def test_a_rough_solution_and_a_polish_give_the_machine_of_a_tight_one(compact_problem: Any) -> None:
    for C in (0.1, 10.0, 1000.0):
        problem = two_groups(compact_problem(rows_per_class=40, C=C))
        rows, solution = machine_of(problem)
        tight = rows.solve(LEFT_AGAINST_RIGHT, tol=TIGHT, max_iter=100_000)
        np.testing.assert_allclose(solution.decision, tight.decision, atol=1e-3)
        assert solution.duality_gap <= 1e-9


def training_set(n_classes: int = 5, per_class: int = 30, **options: Any) -> KernelTrainingSet:
    X = np.random.default_rng(1).normal(size=(n_classes * per_class, 4))
    X += np.repeat(np.random.default_rng(2).normal(size=(n_classes, 4)), per_class, axis=0)
    source = KernelSource(KernelFunction("rbf", gamma=0.2, fit_intercept=True), X, 100.0, hold_all=False)
    weight = np.ones(len(X))
    return KernelTrainingSet(source, np.arange(0, len(X) + 1, per_class), weight, weight, **options)


def test_pairs_of_classes_have_the_kernel_values_of_their_rows() -> None:
    data = training_set()
    source = data.source
    blocks = PairBlocks(source, data.class_start)
    for one, other in [(0, 1), (0, 4), (2, 3), (0, 1)]:
        index, _ = data.rows_of(np.array([one, other]))
        np.testing.assert_allclose(blocks.values(one, other), source.block(index, index), rtol=1e-12)


def test_many_rows_are_held_in_single_precision_unless_the_tolerance_is_tight() -> None:
    X = np.random.default_rng(0).normal(size=(3000, 4)) + 1000.0
    function = KernelFunction("rbf", gamma=0.5, fit_intercept=True)
    single, double = KernelSource(function, X, 100.0, 1e-3), KernelSource(function, X, 100.0, 1e-8)
    assert single.gram is not None
    assert double.gram is not None
    assert (single.gram.dtype, double.gram.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single.gram, double.gram, atol=1e-6)
    np.testing.assert_array_equal(single.gram, single.gram.T)
    # What does not fit in double precision may fit in single.
    assert KernelSource(function, X, 50.0, 1e-8).gram is None
    assert KernelSource(function, X, 50.0, 1e-3).gram is not None


def test_nodes_read_the_matrix_of_all_rows_in_place(class_problem: Any) -> None:
    problem = class_problem(n_classes=4)
    source = problem.kernel_source()
    data = KernelTrainingSet(source, problem.class_start, problem.sample_weight, problem.C * problem.sample_weight)
    classes = np.array([1, 3])
    index, start = data.rows_of(classes)
    in_place = data.node_rows(classes, 0)
    copied = KernelRows(source, index, start, data.ridge[index], 0, gram=source.block(index, index))
    assert in_place._gram is source.gram
    one, other = (rows.solve(LEFT_AGAINST_RIGHT, tol=1e-6, max_iter=1000) for rows in (in_place, copied))
    np.testing.assert_array_equal(one.decision, other.decision)
    np.testing.assert_array_equal(in_place.class_gram(one.alpha), copied.class_gram(one.alpha))


def test_a_sample_has_the_same_share_of_each_class_and_no_class_too_small_to_leave_one_out() -> None:
    data = training_set(n_classes=6, per_class=50, most_rows=60)
    rows = data.node_rows(np.arange(6), 0)
    assert np.diff(rows.class_start).tolist() == [10] * 6
    assert np.diff(data.node_rows(np.array([0, 1]), 0).class_start).tolist() == [30, 30]
    data.most_rows = 12
    assert np.diff(data.node_rows(np.arange(6), 0).class_start).tolist() == [8] * 6
    data.most_rows = None
    assert data.node_rows(np.arange(6), 0).n_rows == 300


def test_units_are_weights_that_are_whole_multiples_of_the_smallest() -> None:
    assert units_of(np.array([0.5, 1.0, 1.5])).tolist() == [1, 2, 3]
    assert units_of(np.array([0.5, 1.1])).tolist() == [1, 1]
