"""The machines of a fold know nothing of its rows, nor of those that are left out of all."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_expit

from margintree import ClassTree
from margintree.solvers import training_set as sets
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.kernel_source import KernelSource
from margintree.solvers.training_set import KernelTrainingSet, LinearTrainingSet
from margintree.training.folds import Folds, deal
from margintree.training.held_out import Rows, hold_out, machines_without
from margintree.training.machines import Trainer

TREE = ClassTree.from_nested(((0, 1), (2, 3)))
CLASS_START = np.arange(0, 41, 10)


def training_set_of(X, kernel="linear", make=np.asarray):
    weight = np.ones(len(X))
    if kernel == "linear":
        return LinearTrainingSet(make(X), CLASS_START, weight, weight, fit_intercept=True)
    source = KernelSource(KernelFunction("rbf", gamma=0.1), X, 100.0)
    return KernelTrainingSet(source, CLASS_START, weight, weight)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("n_features", [6, 200], ids=["small", "large"])
def test_machines_do_not_change_with_the_rows_that_are_left_out(make, n_features):
    random = np.random.default_rng(0)
    left_out = np.arange(40) % 3 == 0
    X = random.normal(size=(40, n_features))
    poisoned = np.where(left_out[:, None], 100.0 * random.normal(size=X.shape), X)
    machines = []
    for rows in (X, poisoned):
        trainer = Trainer(training_set_of(rows, make=make), 1e-3, 1000, 0)
        machines.append(machines_without(trainer, TREE, left_out, prune=0.0, n_threads=1))
    assert len(machines[0]) == 3
    for one, other in zip(*machines, strict=True):
        np.testing.assert_array_equal(one.columns, other.columns)
        np.testing.assert_array_equal(one.weights, other.weights)
        assert one.intercept == other.intercept
    # With them they do change: the poison is strong enough to show.
    everything = machines_without(trainer, TREE, np.zeros(40, dtype=bool), prune=0.0, n_threads=1)
    assert np.abs(everything[0].weights - machines[0][0].weights).max() > 1e-3


def test_a_class_that_is_left_out_whole_gives_a_machine_of_one_answer():
    class_start, tree = np.arange(0, 7, 2), ClassTree.from_nested(((0, 1), 2))
    training_set = LinearTrainingSet(np.eye(6), class_start, np.ones(6), np.ones(6), fit_intercept=False)
    _, below = machines_without(Trainer(training_set, 1e-3, 1000, 0), tree, np.arange(6) < 2, prune=0.0, n_threads=1)
    assert len(below.weights) == 0
    assert below.intercept < 0.0


def held_out_of(X, kernel, left_out):
    """Deal row i to fold i % 3, whatever it holds."""
    training_set = training_set_of(X, kernel)
    folds, keys = Folds(np.arange(40), np.ones(40), np.arange(40) % 3, 40), np.arange(40, dtype=np.uint64)
    rows = Rows.of(training_set, folds, 3, keys)
    return hold_out(Trainer(training_set, 1e-6, 1000, 0), rows, [TREE, TREE], left_out, 0.0, 1)


def table_of(model):
    if hasattr(model, "table"):
        return [model.table.cells, model.table.scale, model.table.intercept]
    return [model.start, model.coefficients, model.constants]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_tree_of_a_fold_does_not_change_with_its_rows_nor_with_those_left_out(kernel):
    random = np.random.default_rng(1)
    X = random.normal(size=(40, 5)) + np.repeat(random.normal(size=(4, 5)), 10, axis=0)
    left_out = np.arange(40) % 7 == 0
    held_out = held_out_of(X, kernel, left_out)
    for fold in range(3):
        poison = left_out | (np.arange(40) % 3 == fold)
        changed = held_out_of(np.where(poison[:, None], X + 3.0, X), kernel, left_out)
        for q in range(3):
            pairs = zip(table_of(held_out.models[q]), table_of(changed.models[q]), strict=True)
            is_same = all(np.array_equal(one, other) for one, other in pairs)
            assert is_same == (q == fold)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_every_row_is_asked_about_by_the_tree_that_has_not_seen_it(kernel):
    random = np.random.default_rng(2)
    X = random.normal(size=(40, 5)) + np.repeat(random.normal(size=(4, 5)), 10, axis=0)
    held_out = held_out_of(X, kernel, np.zeros(40, dtype=bool))
    asked = random.random(40) < 0.6
    finalists, scores = held_out.finalists(asked, 0, np.inf, 4, 1)
    assert finalists.shape == (asked.sum(), 4)
    for row, classes, found in zip(np.flatnonzero(asked), finalists, scores, strict=True):
        model = held_out.models[row % 3]
        if kernel == "linear":
            weights = model.table.relative_weights(np.arange(7))
            values = model.table.scale[:7] * (X[row] @ weights) + model.table.intercept[:7]
        else:
            gram = np.exp(-0.1 * np.square(X[row] - model.vectors).sum(axis=1)) + model.function.fit_intercept
            parts = [slice(model.start[node], model.start[node + 1]) for node in range(7)]
            values = np.array([gram[model.support[part]] @ model.coefficients[part] for part in parts])
        log_odds = held_out.sigmoids.slope[:7] * values + held_out.sigmoids.shift[:7]
        expected = np.zeros(4)
        for node in TREE.internal_nodes:
            expected[TREE.classes_below(int(TREE.children_left[node]))] += log_expit(log_odds[node])
            expected[TREE.classes_below(int(TREE.children_right[node]))] += log_expit(-log_odds[node])
        np.testing.assert_array_equal(classes, np.argsort(-expected))
        np.testing.assert_allclose(found, np.sort(expected)[::-1], rtol=1e-4)
        assert held_out.own_score[row] == pytest.approx(expected[row // 10], rel=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_neither_pieces_nor_threads_change_the_finalists(monkeypatch, kernel):
    random = np.random.default_rng(3)
    X = random.normal(size=(40, 5)) + np.repeat(random.normal(size=(4, 5)), 10, axis=0)
    asked = random.random(40) < 0.6
    expected = held_out_of(X, kernel, np.zeros(40, dtype=bool)).finalists(asked, 0, np.inf, 4, 1)
    monkeypatch.setattr(sets, "PIECE_VALUES", 3 * X.shape[1])
    held_out = held_out_of(X, kernel, np.zeros(40, dtype=bool))
    assert max(len(rows) for rows, _ in held_out.parts(asked)) == 3
    for n_threads in (1, 2):
        for found, one in zip(held_out.finalists(asked, 0, np.inf, 4, n_threads), expected, strict=True):
            np.testing.assert_array_equal(found, one)


def test_lists_are_the_finalists_of_all_rows_and_are_made_once():
    X = np.random.default_rng(4).normal(size=(40, 5))
    held_out = held_out_of(X, "linear", np.zeros(40, dtype=bool))
    expected = held_out.finalists(np.ones(40, dtype=bool), 2, 3.0, 3, 1)
    lists = held_out.lists(2, 3.0, 3, 1, lambda *parts: parts)
    for found, one in zip(lists, (*expected, held_out.own_score), strict=True):
        np.testing.assert_array_equal(found, one)
    assert held_out.lists(2, 3.0, 3, 1, lambda *parts: parts) is lists
    assert held_out.lists(2, 3.0, 2, 1, lambda *parts: parts)[0].shape == (40, 2)


def test_rows_that_weigh_as_much_as_several_are_taken_apart():
    X, weight = np.arange(6.0)[:, None], np.array([3.0, 1.0, 2.0, 1.0, 1.0, 5.0])
    class_start = np.array([0, 3, 6])
    training_set = LinearTrainingSet(X, class_start, weight, 10.0 * weight, fit_intercept=False)
    keys = np.array([4, 2, 9, 1, 7, 3], dtype=np.uint64)
    folds = deal(keys, class_start, weight, 2)
    rows = Rows.of(training_set, folds, 2, keys)
    np.testing.assert_array_equal(rows.original, [0, 0, 1, 2, 2, 3, 4, 5, 5])
    # The order is that of the keys.
    np.testing.assert_array_equal(rows.original[rows.order], [3, 1, 5, 5, 0, 0, 4, 2, 2])
    np.testing.assert_array_equal(np.sort(rows.order), np.arange(9))
    np.testing.assert_array_equal(rows.training_set.X.ravel(), rows.original)
    np.testing.assert_array_equal(rows.classes, [0, 0, 0, 0, 0, 1, 1, 1, 1])
    np.testing.assert_allclose(rows.training_set.sample_weight, [2, 1, 1, 1, 1, 1, 1, 3, 2])
    # A row of weight one counts one.
    np.testing.assert_allclose(rows.importance, rows.training_set.sample_weight)
    np.testing.assert_allclose(1.0 / rows.training_set.ridge, 10.0 * rows.training_set.sample_weight)
