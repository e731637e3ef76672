"""One machine per class: whom it is trained against, and what it knows of rows that do not count."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.kernel_source import KernelSource
from margintree.solvers.training_set import KernelTrainingSet, LinearTrainingSet
from margintree.training.machines import Trainer
from margintree.training.rest_machines import BLEND_PENALTY, Lists, ListTrainer, train_against_all

N_CLASSES, PER_CLASS, N_LISTED = 6, 12, 3


def finalists(random, class_of_row, signal, noise):
    """Return classes listed for each row, -1 for none, and path scores that know the own class by ``signal``."""
    scores = noise * random.normal(size=(len(class_of_row), N_CLASSES)) - 2.0
    scores[np.arange(len(class_of_row)), class_of_row] += signal
    listed = np.argsort(-scores, axis=1)[:, :N_LISTED]
    listed_scores = np.take_along_axis(scores, listed, axis=1)
    # Some lists are shorter.
    short = random.random(len(listed)) < 0.3
    listed[short, -1], listed_scores[short, -1] = -1, -np.inf
    return listed, listed_scores, scores[np.arange(len(class_of_row)), class_of_row]


def list_trainer(seed, *, n_columns=5, spread=1.0, signal=1.0, noise=1.0, make=np.asarray, change=None, kernel=False):
    """Return a trainer on overlapping classes; ``change`` may replace the rows before training."""
    random = np.random.default_rng(seed)
    class_of_row = np.repeat(np.arange(N_CLASSES), PER_CLASS)
    X = random.normal(size=(N_CLASSES, 5))[class_of_row] + spread * random.normal(size=(len(class_of_row), 5))
    listed, scores, own = finalists(random, class_of_row, signal, noise)
    X = np.pad(X, [(0, 0), (0, n_columns - 5)])
    X = X if change is None else change(X)
    weight = np.ones(len(X))
    class_start = np.arange(0, len(X) + 1, PER_CLASS)
    if kernel:
        source = KernelSource(KernelFunction("rbf", gamma=0.2), X, 100.0)
        training_set = KernelTrainingSet(source, class_start, weight, weight)
    else:
        training_set = LinearTrainingSet(make(X), class_start, weight, weight, fit_intercept=True)
    lists = Lists.of(class_start, listed, scores, own)
    trainer = ListTrainer(Trainer(training_set, 1e-8, 100_000, 0), lists, weight, prune=0.0, n_threads=1)
    return trainer, X, class_of_row, listed, scores, own


def dense(machine, n_columns):
    weights = np.zeros(n_columns)
    weights[machine.columns] = machine.weights
    return weights


def classes_of(lists):
    return np.repeat(np.arange(N_CLASSES), np.diff(lists.start))


def signs_of(lists):
    return np.concatenate([lists.sign(k) for k in range(N_CLASSES)])


def test_a_row_is_paired_with_its_list_and_with_its_own_class():
    trainer, _, class_of_row, listed, scores, own = list_trainer(0)
    lists, expected = trainer.lists, {}
    for row, (classes, values) in enumerate(zip(listed.tolist(), scores.tolist(), strict=True)):
        expected |= {(row, k): value for k, value in zip(classes, values, strict=True) if k >= 0}
        expected.setdefault((row, int(class_of_row[row])), own[row])
    keys = list(zip(lists.row.tolist(), classes_of(lists).tolist(), strict=True))
    assert len(keys) == len(set(keys)) == len(expected)
    # Some rows are not on the list of their own class.
    assert len(keys) > (listed >= 0).sum()
    for key, score, sign in zip(keys, lists.path_score, signs_of(lists), strict=True):
        assert score == np.float32(expected[key])
        assert sign == (1.0 if class_of_row[key[0]] == key[1] else -1.0)


def slow_projections(X, lists, class_of_row):
    """Return m'x / |m| for each pair, m being the mean of the class without the row."""
    result = []
    for row, k in zip(lists.row, classes_of(lists), strict=True):
        members = np.flatnonzero((class_of_row == k) & (np.arange(len(X)) != row))
        mean = X[members].mean(axis=0)
        result.append(mean @ X[row] / np.linalg.norm(mean))
    return np.array(result)


def slow_blend(lists, projection):
    """Return constant, mean weight and path weight with the least loss."""
    features = np.column_stack([np.ones(len(projection)), projection, lists.path_score])
    signs = signs_of(lists)

    def loss(blend):
        return (
            BLEND_PENALTY / 2 * blend @ blend + 0.5 * np.square(np.maximum(0.0, 1.0 - signs * (features @ blend))).sum()
        )

    return minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-9}).x


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("n_columns", [5, 150], ids=["small", "large"])
@pytest.mark.parametrize("offset_scale", [1.25, 0.0], ids=["offset", "nothing"])
def test_a_machine_minimises_its_loss_from_the_offset(make, n_columns, offset_scale):
    trainer, X, class_of_row, *_ = list_trainer(1, n_columns=n_columns, make=make)
    lists = trainer.lists
    projection = slow_projections(X, lists, class_of_row)
    constant, mean_weight, path_weight = offset_scale * slow_blend(lists, projection)
    # All three facts are in use, or none.
    assert (min(mean_weight, path_weight, abs(constant)) > 0.05) == (offset_scale > 0.0)
    offsets = constant + mean_weight * projection + path_weight * lists.path_score
    cost_factor = 2.0
    machines, beside = trainer.train(offset_scale, cost_factor)
    assert beside == pytest.approx(path_weight, abs=1e-4)
    assert len(machines) == N_CLASSES
    for k, machine in enumerate(machines):
        part = lists.of_class(k)
        rows, signs = X[lists.row[part], :5], lists.sign(k)
        mean = np.append(X[class_of_row == k, :5].mean(axis=0), 0.0)
        # The constant of the offset is an intercept already.
        rows = np.column_stack([rows, np.full(len(rows), float(offset_scale == 0.0))])

        def loss(weights, rows=rows, signs=signs, offset=offsets[part]):
            slack = np.maximum(0.0, 1.0 - signs * (rows @ weights + offset))
            return 0.5 * weights @ weights + 0.5 * cost_factor * slack @ slack

        best = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-9}).x
        expected = best + mean_weight * mean / np.linalg.norm(mean)
        np.testing.assert_allclose(dense(machine, n_columns)[:5], expected[:5], atol=1e-3)
        assert machine.intercept == pytest.approx(constant + expected[5], abs=1e-3)
        assert (abs(expected[5]) > 1e-3) == (offset_scale == 0.0)


@pytest.mark.parametrize("n_columns", [5, 150], ids=["small", "large"])
@pytest.mark.parametrize("offset_scale", [1.25, 0.0], ids=["offset", "nothing"])
def test_machines_do_not_change_with_rows_that_do_not_count(n_columns, offset_scale):
    counted = np.arange(N_CLASSES * PER_CLASS) % 3 != 0

    def poisoned(X):
        return np.where(counted[:, None], X, -10.0 * X)

    found = []
    for change in (None, poisoned):
        trainer, *_ = list_trainer(2, n_columns=n_columns, change=change)
        machines, path_weight = replace(trainer, importance=counted.astype(float)).train(offset_scale, 1.0)
        found.append(np.array([[*dense(machine, n_columns), machine.intercept, path_weight] for machine in machines]))
        everything = [dense(machine, n_columns) for machine in trainer.train(offset_scale, 1.0)[0]]
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)
    assert np.abs(np.array(everything) - found[1][:, :n_columns]).max() > 0.01


def test_a_kernel_machine_learns_from_the_rows_on_its_list_that_count():
    trainer, _, class_of_row, listed, *_ = list_trainer(3, kernel=True)
    counted = np.arange(N_CLASSES * PER_CLASS) % 4 != 0
    machines, path_weight = replace(trainer, importance=counted.astype(float)).train(1.25, 3.0)
    assert path_weight == 0.0
    alone = trainer.trainer.with_cost(3.0)
    for k, machine in enumerate(machines):
        positive = np.flatnonzero(counted & (class_of_row == k))
        negative = np.flatnonzero(counted & (class_of_row != k) & (listed == k).any(axis=1))
        assert 0 < len(negative) < (counted & (class_of_row != k)).sum()
        expected = alone.between(positive, negative).classifier
        np.testing.assert_array_equal(machine.row_index, expected.row_index)
        np.testing.assert_array_equal(machine.coefficients, expected.coefficients)


@pytest.mark.parametrize("signal", [2.0, -6.0])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_no_fact_counts_against_a_class(signal, side):
    """Paths or means that point the wrong way are left out, and the rest is fitted as if they were not there."""
    trainer, X, class_of_row, *_ = list_trainer(4, signal=signal, spread=0.3)
    lists = trainer.lists
    projection = side * slow_projections(X, lists, class_of_row)
    blend = trainer._fit_blend(projection)
    assert (blend.path_weight > 0.0, blend.mean_weight > 0.0) == (signal > 0.0, side > 0.0)
    kept = replace(lists, path_score=lists.path_score * np.float32(signal > 0.0))
    expected = slow_blend(kept, projection * (side > 0.0))
    np.testing.assert_allclose([blend.constant, blend.mean_weight, blend.path_weight], expected, atol=1e-4)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_machines_against_all_are_those_of_liblinear_on_the_rows_that_count(make):
    trainer, X, class_of_row, *_ = list_trainer(5, make=make)
    counted = np.arange(len(X)) % 5 != 0
    machines = train_against_all(trainer.trainer.with_cost(2.0), counted, 0.0, 1)
    # liblinear's squared hinge has no 1/2: its C is half of ours.
    theirs = LinearSVC(C=1.0, tol=1e-9, max_iter=10**6, random_state=0).fit(X[counted], class_of_row[counted])
    np.testing.assert_allclose([dense(machine, 5) for machine in machines], theirs.coef_, atol=1e-4)
    np.testing.assert_allclose([machine.intercept for machine in machines], theirs.intercept_, atol=1e-4)
