"""Machines between pairs of classes: which pairs meet, and what each machine learns from."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

from margintree.prediction.decider import Decider, pairs_by_class
from margintree.solvers import kernel_source
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.kernel_pairs import MOST_ROWS, solve_pairs
from margintree.solvers.kernel_source import KernelSource
from margintree.solvers.training_set import KernelTrainingSet, LinearTrainingSet
from margintree.training.machines import LEFT_AGAINST_RIGHT, Trainer
from margintree.training.pair_machines import PAIRS_PER_TASK, pairs_that_meet, train_pairs

N_CLASSES, PER_CLASS = 5, 12


def drawn_lists(seed, n_rows=15, n_classes=9):
    random = np.random.default_rng(seed)
    lists = np.array([random.permutation(n_classes)[:4] for _ in range(n_rows)])
    for row, length in zip(lists, random.integers(1, 5, size=n_rows), strict=True):
        row[length:] = -1
    return lists, random.integers(0, n_classes, size=n_rows)


@given(seed=st.integers(0, 10**6), with_own=st.booleans())
def test_pairs_that_meet_are_those_on_one_list(seed, with_own):
    lists, own = drawn_lists(seed)
    expected = set()
    for row, k in zip(lists.tolist(), own.tolist(), strict=True):
        classes = {c for c in row if c >= 0} | ({k} if with_own else set())
        expected |= set(combinations(sorted(classes), 2))
    found = pairs_that_meet(lists.astype(np.int32), own if with_own else None, 9)
    assert [tuple(pair) for pair in found.tolist()] == sorted(expected)


@given(seed=st.integers(0, 10**6))
def test_every_pair_has_its_machine_and_a_sign_and_others_have_none(seed):
    lists, _ = drawn_lists(seed)
    pairs = pairs_that_meet(lists, None, 9)
    start, other = pairs_by_class(pairs, 9)
    decider = Decider("pairs", pair_start=start, pair_other=other)
    one, two = (side.ravel() for side in np.meshgrid(np.arange(9), np.arange(9)))
    machine, sign = decider.machines_between(one, two)
    number = {tuple(pair): m for m, pair in enumerate(pairs.tolist())}
    for a, b, m, s in zip(one.tolist(), two.tolist(), machine, sign, strict=True):
        assert m == number.get((min(a, b), max(a, b)), -1)
        assert a == b or s == (1 if a < b else -1)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("n_columns", [4, 150], ids=["small", "large"])
def test_machines_are_those_of_liblinear_on_the_rows_of_two_classes_that_count(make, n_columns):
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(N_CLASSES), PER_CLASS)
    X = np.pad(random.normal(size=(N_CLASSES, 4))[y] + random.normal(size=(len(y), 4)), [(0, 0), (0, n_columns - 4)])
    counted = np.arange(len(y)) % 4 != 0
    weight = np.ones(len(y))
    class_start = np.arange(0, len(y) + 1, PER_CLASS)
    training_set = LinearTrainingSet(make(X), class_start, weight, 2.0 * weight, fit_intercept=True)
    pairs = np.array([[0, 1], [0, 4], [2, 3]])
    table = train_pairs(Trainer(training_set, 1e-8, 10_000, 0), pairs, counted, 0.0, 2)
    machines = table.relative_weights(np.arange(3)).T * table.scale[:, None]
    for (one, other), weights, intercept in zip(pairs, machines, table.intercept, strict=True):
        rows = counted & ((y == one) | (y == other))
        # liblinear's squared hinge has no 1/2: its C is half of ours.
        theirs = LinearSVC(C=1.0, tol=1e-9, max_iter=10**6, random_state=0).fit(X[rows], y[rows] == one)
        np.testing.assert_allclose(weights, theirs.coef_[0], atol=1e-3)
        assert intercept == pytest.approx(theirs.intercept_[0], abs=1e-3)


def test_a_class_without_a_row_that_counts_loses_every_time():
    training_set = LinearTrainingSet(np.eye(4), np.array([0, 2, 4]), np.ones(4), np.ones(4), fit_intercept=True)
    counted = np.array([False, False, True, True])
    table = train_pairs(Trainer(training_set, 1e-3, 1000, 0), np.array([[0, 1]]), counted, 0.0, 1)
    assert (table.n_weights.tolist(), table.intercept.tolist()) == ([0], [-1.0])


def test_machines_come_in_the_order_of_their_pairs_however_many_tasks_there_are():
    n_classes = 15
    # Class k is the point k: the boundary between two classes lies in the middle.
    X = np.arange(float(n_classes))[:, None]
    training_set = LinearTrainingSet(
        X, np.arange(n_classes + 1), np.ones(n_classes), np.full(n_classes, 1e4), fit_intercept=True
    )
    pairs = np.array(list(combinations(range(n_classes), 2)))
    assert len(pairs) > PAIRS_PER_TASK
    table = train_pairs(Trainer(training_set, 1e-8, 10_000, 0), pairs, np.ones(n_classes, dtype=bool), 0.0, 2)
    boundaries = -table.intercept / (table.scale * table.relative_weights(np.arange(len(pairs)))[0])
    np.testing.assert_allclose(boundaries, pairs.mean(axis=1), atol=0.05)


def kernel_training_set(sizes=(1, 3, 9, MOST_ROWS), function=None, spread=1.0, hold_all=True):
    random = np.random.default_rng(0)
    class_start, n_rows = np.concatenate([[0], np.cumsum(sizes)]), sum(sizes)
    X = random.normal(size=(len(sizes), 3)).repeat(sizes, axis=0) + spread * random.normal(size=(n_rows, 3))
    weight = random.integers(1, 4, size=n_rows).astype(np.float64)
    source = KernelSource(function or KernelFunction("rbf", gamma=0.5), X, 10.0, hold_all=hold_all)
    training_set = KernelTrainingSet(source, class_start, weight, 5.0 * weight)
    training_set.leaves_one_out = True
    return training_set


@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_kernel_machines_of_few_rows_are_those_that_are_trained_one_by_one(spread, n_threads):
    training_set = kernel_training_set(spread=spread)
    pairs = np.array(list(combinations(range(4), 2)))
    trainer = Trainer(training_set, 1e-10, 10_000, 0)
    is_small = pairs[:, 1] < 3
    assert [known is not None for known in solve_pairs(training_set, pairs, 1e-10)] == is_small.tolist()
    machines = train_pairs(trainer, pairs, np.ones(training_set.n_rows, dtype=bool), 0.0, n_threads)
    for pair, machine in zip(pairs, machines, strict=True):
        alone = trainer.on_rows(training_set.node_rows(pair, 0), LEFT_AGAINST_RIGHT).classifier
        np.testing.assert_array_equal(machine.row_index, alone.row_index)
        np.testing.assert_allclose(machine.coefficients, alone.coefficients, rtol=1e-8)
        np.testing.assert_array_equal(machine.trained_on, alone.trained_on)
        np.testing.assert_allclose(machine.left_out, alone.left_out, rtol=1e-8, atol=1e-10)


def test_pairs_that_newton_does_not_solve_are_trained_one_by_one():
    no_kernel = kernel_training_set((4, 4), KernelFunction(lambda A, B: -10.0 * A @ B.T))
    assert solve_pairs(no_kernel, np.array([[0, 1]]), 1e-3) == [None]
    # Rounding leaves a gap where kernel values are far larger than what rows cost.
    badly_scaled = kernel_training_set((8,) * 12, KernelFunction("poly", degree=5, gamma=1e4), spread=3.0)
    pairs = np.array(list(combinations(range(12), 2)))
    found = solve_pairs(badly_scaled, pairs, 1e-12)
    assert None in found
    for pair, machine in zip(pairs, found, strict=True):
        if machine is not None:
            rows = badly_scaled.node_rows(pair, 0)
            signs = np.repeat([1.0, -1.0], 8)
            assert (signs[np.isin(rows.row_index, machine.row_index)] * machine.coefficients >= 0.0).all()


@pytest.mark.parametrize(("n_small", "is_held"), [(1, False), (12, True)])
def test_all_kernel_values_are_computed_once_before_the_tasks_if_small_pairs_are_many(monkeypatch, n_small, is_held):
    monkeypatch.setattr(kernel_source, "MANY_ROWS", 10)
    calls, compute = [], KernelSource._all_values
    monkeypatch.setattr(KernelSource, "_all_values", lambda self: calls.append(1) or compute(self))
    sizes = (4, 4, 200) if n_small == 1 else (8,) * n_small
    results = []
    for n_threads in (1, 3):
        calls.clear()
        training_set = kernel_training_set(sizes, hold_all=False)
        pairs = np.array(list(combinations(range(len(sizes)), 2)))
        counted = np.ones(training_set.n_rows, dtype=bool)
        results.append(train_pairs(Trainer(training_set, 1e-3, 1000, 0), pairs, counted, 0.0, n_threads))
        assert len(calls) == is_held
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one.row_index, other.row_index)
        np.testing.assert_array_equal(one.coefficients, other.coefficients)
