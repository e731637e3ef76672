"""1vsR, 1vs1, the decision graph and the filter tree: agreement with scikit-learn and with their own rules."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.svm import SVC, LinearSVC

from margintree import (
    ClassTree,
    DecisionDAGClassifier,
    FilterTreeClassifier,
    OneVsOneSVC,
    OneVsRestSVC,
)
from margintree.structures.random_tree import random_tree

FLAT = [OneVsRestSVC, OneVsOneSVC, DecisionDAGClassifier]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_linear_1vsr_agrees_with_liblinear(digits, make):
    X, y = make(digits[0]), digits[1]
    ours = OneVsRestSVC(C=2.0, tol=1e-7, max_iter=20000, random_state=0).fit(X[::2], y[::2])
    # liblinear's squared hinge has no 1/2: its C is half of ours.
    theirs = LinearSVC(C=1.0, tol=1e-8, max_iter=100_000, random_state=0).fit(X[::2], y[::2])
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    assert np.mean(ours.predict(X) == theirs.predict(X)) >= 0.999


def test_linear_1vs1_agrees_with_liblinear_on_every_pair(digits):
    X, y = digits
    ours = OneVsOneSVC(C=2.0, tol=1e-7, max_iter=20000, random_state=0).fit(X[::2], y[::2])
    values = ours._machines.decisions(X)
    votes = np.zeros((len(y), 10))
    for (k, other), column in zip(ours.pairs_, values.T, strict=True):
        rows = np.isin(y[::2], (k, other))
        theirs = LinearSVC(C=1.0, tol=1e-8, max_iter=100_000, random_state=0).fit(X[::2][rows], y[::2][rows] == k)
        np.testing.assert_allclose(column, theirs.decision_function(X), atol=1e-3)
        votes[:, k] += theirs.decision_function(X) > 0
        votes[:, other] += theirs.decision_function(X) <= 0
    is_clear = np.sort(votes, axis=1)[:, -1] > np.sort(votes, axis=1)[:, -2]
    assert np.mean(ours.predict(X)[is_clear] == np.argmax(votes, axis=1)[is_clear]) >= 0.999


def test_equally_many_votes_are_told_apart_by_the_summed_values(digits):
    X, y = digits
    model = OneVsOneSVC("rbf", C=10, random_state=0).fit(X[::4], y[::4])
    values = model._machines.decisions(X)
    scores = model.decision_function(X)
    votes, sums = np.zeros((len(y), 10)), np.zeros((len(y), 10))
    for (k, other), column in zip(model.pairs_, values.T, strict=True):
        votes[:, k] += column > 0
        votes[:, other] += column <= 0
        sums[:, k] += column
        sums[:, other] -= column
    expected = [max(range(10), key=lambda k: (v[k], s[k])) for v, s in zip(votes, sums, strict=True)]
    np.testing.assert_array_equal(model.predict(X), expected)
    np.testing.assert_array_equal(np.round(scores), votes)


@pytest.mark.parametrize("estimator", FLAT)
def test_rbf_accuracy_is_near_that_of_svc(digits, estimator):
    X, y = digits
    ours = estimator("rbf", C=10, random_state=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    theirs = SVC(C=10).fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    assert ours > theirs - 0.01


@pytest.mark.parametrize(("estimator", "expected"), [(OneVsRestSVC, 10), (OneVsOneSVC, 45), (DecisionDAGClassifier, 9)])
def test_evaluations_per_prediction(digits, estimator, expected):
    X, y = digits
    np.testing.assert_array_equal(estimator(random_state=0).fit(X[:300], y[:300]).n_evaluations(X[:7]), [expected] * 7)


@pytest.mark.parametrize("estimator", [OneVsRestSVC, OneVsOneSVC])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_machines_are_the_same_for_any_number_of_threads(digits, estimator, kernel):
    X, y = digits[0][:300], digits[1][:300]
    one, four = (estimator(kernel, n_jobs=n, random_state=0).fit(X, y) for n in (1, 4))
    np.testing.assert_array_equal(one.decision_function(X), four.decision_function(X))


@pytest.mark.parametrize("estimator", [OneVsRestSVC, OneVsOneSVC])
def test_a_small_cache_gives_the_same_machines(digits, estimator):
    X, y = digits[0][:300], digits[1][:300]
    held = estimator("rbf", C=10, tol=1e-6, random_state=0).fit(X, y)
    cached = estimator("rbf", C=10, tol=1e-6, cache_size=0.2, n_jobs=2, random_state=0).fit(X, y)
    np.testing.assert_allclose(cached.decision_function(X), held.decision_function(X), atol=1e-3)


def reference_walk(model, values, order):
    """Strike classes off a list, one machine at a time; return what is left and the machines asked."""
    machine = {tuple(pair): i for i, pair in enumerate(model.pairs_.tolist())}
    left, asked = list(order), []
    while len(left) > 1:
        one, other = left[0], left[-1]
        pair = (min(one, other), max(one, other))
        asked.append(pair)
        winner = pair[0] if values[machine[pair]] > 0 else pair[1]
        left.remove(other if winner == one else one)
    return left[0], asked


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_graph_follows_the_list_and_asks_one_machine_less_than_classes(digits, kernel):
    X, y = digits[0][::3], digits[1][::3]
    base = OneVsOneSVC(kernel, random_state=0).fit(X, y)
    order = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]
    graph = DecisionDAGClassifier.from_one_vs_one(base, class_order=order)
    # Among rows that it was not trained on are some whose class loses to one that another machine strikes off.
    values = base._machines.decisions(digits[0])
    for row, predicted in zip(values, graph.predict(digits[0]), strict=True):
        winner, asked = reference_walk(base, row, order)
        assert predicted == winner
        assert len(asked) == len(set(asked)) == 9


def test_the_graph_from_a_fitted_1vs1_equals_one_fitted_by_itself(digits):
    X, y = digits[0][::3], digits[1][::3]
    shared = DecisionDAGClassifier.from_one_vs_one(OneVsOneSVC("rbf", random_state=0).fit(X, y))
    alone = DecisionDAGClassifier("rbf", random_state=0).fit(X, y)
    np.testing.assert_array_equal(shared.predict(X), alone.predict(X))


def test_a_class_order_that_misses_a_class_is_refused(digits):
    with pytest.raises(ValueError, match=r"class_order must name each of the 10 classes .* Got \[0, 1\]"):
        DecisionDAGClassifier(class_order=[0, 1]).fit(digits[0][:200], digits[1][:200])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_filter_tree_node_sees_exactly_the_rows_whose_class_wins_its_subtree(
    digits, kernel, weights_of, kernel_decisions
):
    X, y = digits[0][:600], digits[1][:600]
    model = FilterTreeClassifier(kernel, C=0.1, random_state=0).fit(X, y)
    tree = model.tree_
    if kernel == "linear":
        values = X @ weights_of(model._model.table).T + model._model.table.intercept
    else:
        values = kernel_decisions(model._model, X)
    n_filtered = 0
    for node, seen in zip(tree.internal_nodes, model.node_rows_, strict=True):
        expected = []
        for child in (int(tree.children_left[node]), int(tree.children_right[node])):
            rows = np.flatnonzero(np.isin(y, tree.classes_below(child)))
            expected += [row for row in rows if walk_from(tree, child, values[row]) == y[row]]
        n_filtered += np.isin(y, tree.classes_below(int(node))).sum() - len(expected)
        np.testing.assert_array_equal(seen, np.sort(expected))
    # Without a row that the filter holds back the test would say nothing.
    assert n_filtered > 0


def walk_from(tree, node, values):
    """The class that wins the subtree of a node, given the decision values of all nodes."""
    while not tree.is_leaf(node):
        node = int(tree.children_left[node] if values[node] > 0 else tree.children_right[node])
    return tree.leaf_class[node]


def test_a_filter_that_lets_no_row_of_a_side_pass_leaves_a_machine_of_one_answer():
    # Classes 0 and 1 are the same points: one of them never wins.
    X = np.vstack([np.zeros((4, 2)), np.zeros((4, 2)), np.eye(2).repeat(4, axis=0) * 5])
    y = np.repeat([0, 1, 2, 3], 4)
    for seed in range(6):
        for kernel in ("linear", "rbf"):
            model = FilterTreeClassifier(kernel, random_state=seed).fit(X, y)
            assert set(model.predict(X)) <= {0, 1, 2, 3}
            assert min(len(rows) for rows in model.node_rows_) >= 0


def test_random_trees_are_as_shallow_as_can_be_and_differ():
    trees = [random_tree(n, seed) for n in (2, 3, 37, 1000) for seed in (0, 1)]
    assert [t.max_depth for t in trees] == [1, 1, 2, 2, 6, 6, 10, 10]
    assert trees[-1] != trees[-2]
    assert isinstance(trees[0], ClassTree)


def test_a_refit_without_feature_names_forgets_those_of_the_fit_before(digits):
    pandas = pytest.importorskip("pandas")
    X, y = digits[0][:200], digits[1][:200]
    graph = DecisionDAGClassifier(random_state=0).fit(pandas.DataFrame(X, columns=[f"p{i}" for i in range(64)]), y)
    graph.fit(X, y)
    assert not hasattr(graph, "feature_names_in_")
