"""Joint training: the tree loss against slow solvers, its dual, and machines that were trained one by one."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from margintree import compiled
from margintree.class_tree import ClassTree
from margintree.solvers import joint
from margintree.solvers.joint import paths_to_classes, train_jointly
from margintree.solvers.training_set import LinearTrainingSet
from margintree.structures.random_tree import random_tree
from margintree.training.machines import Trainer, train_each

TREES = {3: (0, (1, 2)), 4: ((0, 3), (1, 2)), 5: (2, ((0, 4), (1, 3)))}


def training_set(problem, *, sparse=False, fit_intercept=True):
    features = sp.csr_array(problem.features) if sparse else problem.features
    weight = problem.sample_weight
    return LinearTrainingSet(features, problem.class_start, weight, problem.C * weight, fit_intercept=fit_intercept)


def tree_of(problem):
    return ClassTree.from_nested(TREES[problem.n_classes])


def path_signs(problem, tree):
    """Return +1 or -1 for each row and internal node on its path, 0 elsewhere, by climbing from the leaf."""
    internal = tree.internal_nodes.tolist()
    signs = np.zeros((problem.n_rows, len(internal)))
    for row, label in enumerate(problem.classes):
        node = int(tree.leaf_of_class[label])
        while node:
            parent = int(tree.parent[node])
            signs[row, internal.index(parent)] = 1.0 if tree.children_left[parent] == node else -1.0
            node = parent
    return signs


def with_constant(problem):
    return np.hstack([problem.features, np.ones((problem.n_rows, 1))])


def objective(problem, tree, weights):
    """Return the joint primal value of weights, one row per internal node, the constant feature last."""
    signs = path_signs(problem, tree)
    shortfall = np.where(signs == 0.0, -np.inf, 1.0 - signs * (with_constant(problem) @ weights.T))
    slack = np.maximum(0.0, shortfall.max(axis=1))
    return float(0.5 * np.sum(weights**2) + 0.5 * problem.C * problem.sample_weight @ slack**2)


def dual(problem, tree, alpha):
    """Return the dual value of variables in rows x nodes."""
    weights = (alpha * path_signs(problem, tree)).T @ with_constant(problem)
    blocks = alpha.sum(axis=1)
    return float(blocks.sum() - 0.5 * np.sum(weights**2) - 0.5 * np.sum(problem.ridge * blocks**2))


def weights_of(classifiers, n_features):
    weights = np.zeros((len(classifiers), n_features + 1))
    for row, classifier in zip(weights, classifiers, strict=True):
        row[classifier.columns] = classifier.weights
        row[-1] = classifier.intercept
    return weights


def slow_solve(problem, tree):
    """Solve the primal with one variable per slack by a general method."""
    signs, features = path_signs(problem, tree), with_constant(problem)
    rows, nodes = np.nonzero(signs)
    n_weights = signs.shape[1] * features.shape[1]
    margins = np.zeros((len(rows), signs.shape[1], features.shape[1]))
    margins[np.arange(len(rows)), nodes] = signs[rows, nodes][:, None] * features[rows]
    slacks = np.eye(problem.n_rows)[rows]
    matrix = np.hstack([margins.reshape(len(rows), -1), slacks])
    # The general method loses its way among large values.
    scale = 1.0 / max(1.0, problem.C)
    cost = scale * problem.C * problem.sample_weight
    result = minimize(
        lambda v: 0.5 * scale * v[:n_weights] @ v[:n_weights] + 0.5 * cost @ v[n_weights:] ** 2,
        np.concatenate([np.zeros(n_weights), np.ones(problem.n_rows)]),
        jac=lambda v: np.concatenate([scale * v[:n_weights], cost * v[n_weights:]]),
        constraints={"type": "ineq", "fun": lambda v: matrix @ v - 1.0, "jac": lambda v: matrix},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return result.x[:n_weights].reshape(signs.shape[1], -1), result.fun / scale


def test_paths_lead_from_the_root_to_every_leaf(compact_problem):
    problem = compact_problem(n_classes=5)
    tree = tree_of(problem)
    paths, signs = paths_to_classes(tree), path_signs(problem, tree)
    for k in range(5):
        part = slice(paths.start[k], paths.start[k + 1])
        expected = signs[problem.class_start[k]]
        np.testing.assert_array_equal(paths.node[part], np.flatnonzero(expected))
        np.testing.assert_array_equal(paths.sign[part], expected[expected != 0.0])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("n_classes", [3, 4, 5])
def test_machines_are_those_of_a_slow_solver(compact_problem, n_classes, C, weighted):
    problem = compact_problem(n_classes=n_classes, rows_per_class=6, n_features=3, C=C, weighted=weighted)
    tree = tree_of(problem)
    solution = train_jointly(training_set(problem), tree, tol=1e-6, max_iter=1000, seed=0)
    expected, value = slow_solve(problem, tree)
    assert solution.objective == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(weights_of(solution.classifiers, 3), expected, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("C", [0.1, 1.0, 20.0])
def test_values_are_those_of_the_machines_and_close_the_gap(class_problem, C, layout):
    problem = class_problem(n_classes=5, C=C, weighted=True)
    tree = tree_of(problem)
    solution = train_jointly(training_set(problem, sparse=layout == "sparse"), tree, tol=1e-4, max_iter=5000, seed=0)
    weights = weights_of(solution.classifiers, problem.features.shape[1])
    assert 0.0 <= solution.duality_gap <= 1e-4
    assert solution.objective == pytest.approx(objective(problem, tree, weights), rel=1e-9)
    assert solution.squared_norm == pytest.approx(np.sum(weights**2))
    signs = path_signs(problem, tree)
    alpha = np.zeros(signs.shape)
    alpha[signs != 0.0] = solution.alpha
    assert solution.alpha.min() >= 0.0
    assert solution.dual_objective == pytest.approx(dual(problem, tree, alpha), rel=1e-9)
    worst = np.where(signs == 0.0, np.inf, signs * (with_constant(problem) @ weights.T)).min(axis=1)
    np.testing.assert_allclose(solution.decision, worst, atol=1e-9)


@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.01, 1.0, 50.0]))
@settings(max_examples=25)
def test_no_dual_value_lies_above_a_primal_one(compact_problem, seed, C):
    rng = np.random.default_rng(seed)
    problem = compact_problem(n_classes=4, rows_per_class=5, C=C, weighted=True, seed=seed % 7)
    tree = tree_of(problem)
    weights = rng.normal(size=(3, problem.features.shape[1] + 1)) * rng.choice([0.01, 0.3, 3.0])
    alpha = rng.exponential(size=(problem.n_rows, 3)) * (path_signs(problem, tree) != 0.0) * rng.choice([0.01, 1.0])
    assert dual(problem, tree, alpha) <= objective(problem, tree, weights)
    solution = train_jointly(training_set(problem), tree, tol=1e-3, max_iter=1000, seed=seed)
    assert dual(problem, tree, alpha) <= solution.objective * (1 + 1e-9)
    assert objective(problem, tree, weights) >= solution.dual_objective * (1 - 1e-9)


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_joint_training_ends_below_machines_trained_one_by_one(class_problem, C, seed):
    problem = class_problem(n_classes=5, C=C, seed=seed, spread=0.5)
    tree, rows = tree_of(problem), training_set(problem)
    each = train_each(Trainer(rows, 1e-6, 5000, 0), tree)
    jointly = train_jointly(rows, tree, tol=1e-6, max_iter=5000, seed=0)
    by_each, by_joint = (
        objective(problem, tree, weights_of(classifiers, problem.features.shape[1]))
        for classifiers in ([machine.classifier for machine in each], jointly.classifiers)
    )
    assert by_joint < by_each
    # The worst node counts at most as much as all nodes of the path together.
    assert jointly.objective <= sum(machine.objective for machine in each) * (1 + 1e-5)


def test_two_classes_have_one_machine_and_the_usual_problem(compact_problem):
    problem = compact_problem(n_classes=2, C=3.0)
    tree, rows = ClassTree.from_nested((0, 1)), training_set(problem)
    solution = train_jointly(rows, tree, tol=1e-3, max_iter=1000, seed=0)
    (machine,) = train_each(Trainer(rows, 1e-3, 1000, 0), tree)
    assert solution.objective == pytest.approx(machine.objective, rel=1e-9)
    np.testing.assert_allclose(solution.classifiers[0].weights, machine.classifier.weights, atol=1e-5)


@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
def test_weight_two_is_a_duplicated_row_and_the_order_of_rows_plays_no_part(compact_problem, C):
    problem = compact_problem(n_classes=4, rows_per_class=8, C=C)
    tree = tree_of(problem)
    twice = np.arange(problem.n_rows) % 3 == 0
    weight = np.where(twice, 2.0, 1.0)
    weighted = LinearTrainingSet(problem.features, problem.class_start, weight, C * weight, fit_intercept=True)
    copies = np.repeat(np.arange(problem.n_rows), np.where(twice, 2, 1))
    order = np.concatenate([np.flatnonzero(problem.classes[copies] == k)[::-1] for k in range(4)])
    start = np.searchsorted(problem.classes[copies], np.arange(5))
    ones = np.ones(len(copies))
    duplicated = LinearTrainingSet(problem.features[copies][order], start, ones, C * ones, fit_intercept=True)
    first, second = (train_jointly(rows, tree, tol=1e-3, max_iter=1000, seed=0) for rows in (weighted, duplicated))
    assert first.objective == pytest.approx(second.objective, rel=1e-10)
    weights = [weights_of(solution.classifiers, problem.features.shape[1]) for solution in (first, second)]
    np.testing.assert_allclose(weights[0], weights[1], atol=1e-5 * np.abs(weights[0]).max())


def test_dense_and_sparse_rows_give_the_same_machines(class_problem):
    problem = class_problem(n_classes=5, C=2.0, n_features=80)
    tree = tree_of(problem)
    solutions = [
        train_jointly(training_set(problem, sparse=sparse), tree, tol=1e-9, max_iter=20000, seed=0)
        for sparse in (False, True)
    ]
    weights = [weights_of(solution.classifiers, 80) for solution in solutions]
    np.testing.assert_allclose(weights[0], weights[1], atol=1e-3)


@pytest.mark.parametrize("C", [0.001, 1.0, 1000.0])
def test_newton_and_block_descent_agree(compact_problem, monkeypatch, C):
    problem = compact_problem(n_classes=5, C=C, spread=0.3, weighted=True)
    tree = tree_of(problem)
    by_newton = train_jointly(training_set(problem), tree, tol=1e-5, max_iter=50, seed=0)
    monkeypatch.setattr(joint, "NEWTON_WEIGHTS", 0)
    by_descent = train_jointly(training_set(problem), tree, tol=1e-5, max_iter=10**6, seed=0)
    assert by_newton.objective == pytest.approx(by_descent.objective, rel=2e-5)
    assert max(by_newton.duality_gap, by_descent.duality_gap) <= 1e-5


def test_rows_of_zeros_cost_what_they_must(compact_problem):
    problem = compact_problem(n_classes=3, C=2.0)
    problem.features[::4] = 0.0
    tree = tree_of(problem)
    solution = train_jointly(training_set(problem, fit_intercept=False), tree, tol=1e-6, max_iter=5000, seed=0)
    assert solution.duality_gap <= 1e-6
    np.testing.assert_array_equal(solution.decision[::4], 0.0)
    assert [classifier.intercept for classifier in solution.classifiers] == [0.0, 0.0]


def test_a_run_that_stops_early_reports_its_gap(class_problem):
    problem = class_problem(n_classes=5, n_features=300, C=100.0, spread=0.1)
    solution = train_jointly(training_set(problem, sparse=True), tree_of(problem), tol=1e-6, max_iter=2, seed=0)
    assert solution.n_iter == 2
    assert solution.duality_gap > 1e-6


def test_a_chain_of_many_classes_is_trained(compact_problem):
    nested = 0
    for k in range(1, 60):
        nested = (k, nested)
    problem = compact_problem(n_classes=60, rows_per_class=3)
    solution = train_jointly(training_set(problem), ClassTree.from_nested(nested), tol=1e-3, max_iter=2000, seed=0)
    assert solution.duality_gap <= 1e-3


def test_more_classes_than_newton_takes_are_trained_by_descent(compact_problem):
    problem = compact_problem(n_classes=200, rows_per_class=3, C=0.1)
    tree = random_tree(200, seed=0)
    solution = train_jointly(training_set(problem), tree, tol=1e-3, max_iter=2000, seed=0)
    assert solution.duality_gap <= 1e-3
    assert solution.objective == pytest.approx(
        objective(problem, tree, weights_of(solution.classifiers, problem.features.shape[1])), rel=1e-9
    )


@given(
    pulls=st.lists(st.floats(-10.0, 10.0), min_size=1, max_size=8),
    squared_norm=st.floats(1e-9, 1e3),
    ridge=st.floats(1e-6, 1e6),
)
def test_the_level_of_a_block_meets_its_equation(pulls, squared_norm, ridge):
    pulls = np.array(pulls)
    level = compiled.joint.level_of(pulls, len(pulls), squared_norm, ridge)
    total = np.maximum(0.0, pulls - level).sum() / squared_norm
    # A rounding error of the level counts ridge / squared_norm times as much in the sum.
    slope = 1.0 + len(pulls) * ridge / squared_norm
    assert abs(level - ridge * total) <= 1e-14 * slope * (1.0 + np.abs(pulls).max())
