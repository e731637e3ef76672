"""The sigmoids of a fitted tree, computed a second time with scikit-learn's machines and scipy's minimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_expit
from sklearn.svm import LinearSVC

from margintree import MarginTreeClassifier
from margintree.solvers.row_keys import row_keys
from margintree.training.calibration import SLOPE, STRENGTH
from margintree.training.folds import deal

N_CLASSES, PER_CLASS, C = 6, 12, 2.0


@pytest.fixture(scope="module")
def problem():
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(N_CLASSES), PER_CLASS)
    return random.normal(size=(N_CLASSES, 4))[y] + 0.8 * random.normal(size=(len(y), 4)), y


def fitted_sigmoid(values, signs, prior, strength):
    n_left, n_right = (signs > 0).sum(), (signs < 0).sum()
    target = np.where(signs > 0, (n_left + 1) / (n_left + 2), 1 / (n_right + 2))

    def loss(parameters):
        log_odds = parameters[0] * values + parameters[1]
        likelihood = target * log_expit(log_odds) + (1 - target) * log_expit(-log_odds)
        return strength / 2 * ((parameters[0] - prior) ** 2 + parameters[1] ** 2) - likelihood.sum()

    return minimize(loss, [prior, 0.0], method="BFGS", options={"gtol": 1e-8}).x


def decision_values(tree, X, y, fold, *, held_out):
    """Return the values and signs of each node for the rows below it, by machines with or without their fold."""
    found = {}
    for node in tree.internal_nodes.tolist():
        left, right = (tree.classes_below(int(side[node])) for side in (tree.children_left, tree.children_right))
        rows = np.flatnonzero(np.isin(y, np.concatenate([left, right])))
        signs, values = np.where(np.isin(y[rows], left), 1.0, -1.0), np.empty(len(rows))
        for q in np.unique(fold):
            asked = fold[rows] == q
            train = ~asked if held_out else np.ones(len(rows), dtype=bool)
            # liblinear's squared hinge has no 1/2: its C is half of ours. The intercept is part of the norm in both.
            machine = LinearSVC(C=C / 2, tol=1e-9, max_iter=10**6, random_state=0).fit(X[rows[train]], signs[train])
            values[asked] = machine.decision_function(X[rows[asked]])
        found[node] = values, signs
    return found


def sigmoids_of(found):
    values, signs = (np.concatenate(part) for part in zip(*found.values(), strict=True))
    common, _ = fitted_sigmoid(values, signs, SLOPE, 1.0)
    return np.array([fitted_sigmoid(*pair, common, STRENGTH) for pair in found.values()])


def test_sigmoids_are_fitted_to_values_of_machines_that_have_not_seen_the_rows(problem):
    X, y = problem
    parameters = {"walk": "all", "decide": "paths", "calibration_folds": 3, "tol": 1e-6, "random_state": 0}
    model = MarginTreeClassifier(C=C, **parameters).fit(X, y)
    nodes, sigmoids = model.tree_.internal_nodes, model._model.sigmoids
    fold = deal(row_keys(X), np.arange(0, len(y) + 1, PER_CLASS), np.ones(len(y)), 3).fold
    found = np.column_stack([sigmoids.slope[nodes], sigmoids.shift[nodes]])
    honest = sigmoids_of(decision_values(model.tree_, X, y, fold, held_out=True))
    np.testing.assert_allclose(found, honest, atol=0.01)
    # Values of machines that have seen the rows promise too much: the test would notice them.
    assert np.abs(found - sigmoids_of(decision_values(model.tree_, X, y, fold, held_out=False))).max() > 0.1


def test_rows_of_a_class_that_was_left_out_with_them_are_not_counted(problem):
    X, y = problem
    X, y = np.vstack([X, 50.0 * np.ones((1, 4))]), np.concatenate([y, [N_CLASSES]])
    parameters = {"C": C, "walk": "all", "decide": "paths", "random_state": 0, "split": "centroid"}
    model = MarginTreeClassifier(**parameters).fit(X, y)
    # The class of one row is far away, so no machine without it could send it to its leaf: a slope that had to
    # explain that would be near zero.
    assert (model._model.sigmoids.slope[model.tree_.internal_nodes] > 0.3).all()


def test_where_no_row_says_anything_all_nodes_have_the_common_slope():
    X = np.random.default_rng(0).normal(size=(6, 4))
    model = MarginTreeClassifier(random_state=0).fit(X, np.arange(6))
    np.testing.assert_allclose(model._model.sigmoids.slope[model.tree_.internal_nodes], SLOPE)
    np.testing.assert_allclose(model._model.sigmoids.shift, 0.0, atol=1e-12)


def test_the_order_of_the_rows_does_not_matter(problem):
    X, y = problem
    order = np.random.default_rng(1).permutation(len(y))
    one, other = (
        MarginTreeClassifier(C=C, walk="all", random_state=0).fit(*rows) for rows in ((X, y), (X[order], y[order]))
    )
    assert one.tree_ == other.tree_
    np.testing.assert_allclose(one._model.sigmoids.slope, other._model.sigmoids.slope, rtol=1e-6)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_probabilities_of_weight_two_are_those_of_a_row_that_stands_there_twice(problem, kernel):
    X, y = problem
    weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(len(y)), weight.astype(int))
    parameters = {"tol": 1e-8, "max_iter": 10_000, "random_state": 0}
    weighted = MarginTreeClassifier(kernel, **parameters).fit(X, y, weight)
    repeated = MarginTreeClassifier(kernel, **parameters).fit(X[twice], y[twice])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-4)
