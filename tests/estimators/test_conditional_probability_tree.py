"""ConditionalProbabilityTreeClassifier: the tree of a stream, its regressors, and machines on its structure."""

import pickle
import warnings
from math import floor

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from margintree import ConditionalProbabilityTreeClassifier
from margintree.solvers.online import FIRST_ENTRIES, OnlineRegressors
from margintree.structures.stream_tree import Stream, StreamTree


def depth_bound(n_classes: int, alpha: float) -> int:
    """Return a depth that no tree of the stream exceeds."""
    share = 1.0 if alpha == 0.0 else 1.0 / (1.0 + 2.0 ** ((alpha - 1.0) / alpha))
    depth, others = 0, n_classes - 1
    while others > 0:
        # Rounding must not make a bound of a whole number too small; one leaf at least stands on the other side.
        others = min(floor(share * others + 1e-9), others - 1)
        depth += 1
    return depth


class Regressor:
    """The online regressor in plain Python: weights by column of the scaled features."""

    def __init__(self, copied=None):
        self.weights = dict(copied.weights) if copied else {}
        self.squares = dict(copied.squares) if copied else {}

    def output(self, x):
        return 0.5 + sum(self.weights.get(i, 0.0) * v for i, v in x.items())

    def learn(self, x, target, weight, rate, common):
        error = target - self.output(x)
        if error == 0.0 or (target == 1.0) != (error > 0.0):
            return
        for i, v in x.items():
            self.squares[i] = self.squares.get(i, 0.0) + weight * (error * v) ** 2
        rates = {i: common / np.sqrt(self.squares[i]) for i in x}
        speed = sum(rates[i] * v**2 for i, v in x.items())
        for i, v in x.items():
            step = error * (1.0 - np.exp(-weight * rate * speed)) / speed * rates[i] * v
            self.weights[i] = self.weights.get(i, 0.0) + step


class Node:
    def __init__(self, label, parent=None, regressor=None):
        self.label, self.parent, self.left, self.right = label, parent, None, None
        self.regressor = regressor or Regressor()

    def n_leaves(self):
        return 1 if self.left is None else self.left.n_leaves() + self.right.n_leaves()

    def nested(self):
        return self.label if self.left is None else (self.left.nested(), self.right.nested())


class ReferenceTree:
    """The stream of the module's docstring, one dictionary at a time."""

    def __init__(self, alpha, rate):
        self.alpha, self.rate = alpha, rate
        self.root, self.leaves, self.scale = None, {}, {}
        self.total_weight = self.total_square = 0.0

    def scaled(self, x):
        return {"constant": 1.0} | {i: v / self.scale[i] for i, v in enumerate(x) if v != 0.0 and i in self.scale}

    def absorb(self, x, label, weight):
        for i, v in enumerate(x):
            if v != 0.0:
                self.scale[i] = max(self.scale.get(i, 0.0), abs(v))
        x = self.scaled(x)
        self.total_weight += weight
        self.total_square += weight * sum(v**2 for v in x.values())
        common = np.sqrt(self.total_weight / self.total_square)

        def learn(node, target):
            node.regressor.learn(x, target, weight, self.rate, common)

        if label in self.leaves:
            node = self.leaves[label]
            learn(node, 0.0)
            while node.parent is not None:
                node, child = node.parent, node
                learn(node, float(child is node.right))
        elif self.root is None:
            self.root = self.leaves[label] = Node(label)
            learn(self.root, 0.0)
        else:
            node = self.root
            while node.left is not None:
                f = min(1.0, max(0.0, node.regressor.output(x)))
                balance = np.log2(node.left.n_leaves() / node.right.n_leaves())
                right = (1 - self.alpha) * 2 * (f - 0.5) + self.alpha * balance > 0
                learn(node, float(right))
                node = node.right if right else node.left
            node.left = self.leaves[node.label] = Node(node.label, node, Regressor(node.regressor))
            node.right = self.leaves[label] = Node(label, node)
            node.label = None
            learn(node, 1.0)
            learn(node.right, 0.0)

    def probabilities(self, x):
        x, result = self.scaled(x), {}
        for label, leaf in self.leaves.items():
            node, result[label] = leaf, 1.0
            while node.parent is not None:
                node, child = node.parent, node
                f = min(1.0, max(0.0, node.regressor.output(x)))
                result[label] *= f if child is node.right else 1.0 - f
        return [result[label] for label in sorted(result)]

    def predict(self, x):
        node, x = self.root, self.scaled(x)
        while node.left is not None:
            node = node.right if node.regressor.output(x) >= 0.5 else node.left
        return node.label


def rows_of(n_classes, per_class, n_features=6, seed=0, spread=0.3):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_classes, n_features))
    y = rng.permutation(np.repeat(np.arange(n_classes), per_class))
    X = centres[y] + spread * rng.standard_normal((len(y), n_features))
    # Features of different scales, with zeros among them.
    return np.where(rng.random(X.shape) < 0.2, 0.0, X * 10.0 ** np.arange(n_features)), y


def documents(n_classes, per_class, n_features=400, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(n_classes), per_class))
    words = rng.random((n_classes, n_features)) < 0.05
    return (words[y] & (rng.random((len(y), n_features)) < 0.7)) * rng.uniform(0.5, 2.0, (len(y), n_features)), y


def in_order(**parameters):
    return ConditionalProbabilityTreeClassifier(shuffle=False, **parameters)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("data", ["few features", "many features"])
@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
def test_structure_probabilities_and_walk_follow_the_rule_exactly(alpha, data, make):
    X, y = rows_of(15, 8) if data == "few features" else documents(40, 5)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
    model = in_order(alpha=alpha, learning_rate=0.7).fit(make(X), y, weight)
    reference = ReferenceTree(alpha, 0.7)
    for x, label, h in zip(X, y.tolist(), weight, strict=True):
        reference.absorb(x, label, h)
    assert model.tree_.to_nested() == reference.root.nested()
    expected = [reference.probabilities(x) for x in X]
    np.testing.assert_allclose(model.predict_proba(make(X)), expected, rtol=1e-6, atol=1e-9)
    greedy = model.set_params(walk="greedy").predict(make(X))
    np.testing.assert_array_equal(greedy, [reference.predict(x) for x in X])


@pytest.mark.parametrize("node", ["online", "svm"])
@pytest.mark.parametrize("order", ["random", "sorted"])
def test_the_depth_of_1000_classes_stays_below_three_times_the_logarithm(order, node):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(1000), 3)
    X = rng.standard_normal((1000, 20))[y] + 0.1 * rng.standard_normal((3000, 20))
    if order == "random":
        shuffled = rng.permutation(3000)
        X, y = X[shuffled], y[shuffled]
    tree = in_order(node=node, C=10, tol=0.1).fit(X, y).tree_
    assert tree.n_classes == 1000
    assert tree.max_depth <= depth_bound(1000, 0.4) < 3 * np.log2(1000)


@given(st.integers(2, 60), st.floats(0.0, 1.0), st.integers(0, 1000), st.booleans())
def test_no_tree_is_deeper_than_the_bound(n_classes, alpha, seed, is_similar):
    # Rows that are all alike pull every new label the same way: the worst case for the balance.
    rng = np.random.default_rng(seed)
    X = np.ones((n_classes, 3)) if is_similar else rng.standard_normal((n_classes, 3))
    labels = np.arange(n_classes)
    tree = StreamTree(alpha)
    regressors = OnlineRegressors(3, learning_rate=5.0, fit_intercept=True)
    tree.absorb(X, Stream(labels, labels, np.ones(n_classes)), regressors)
    assert tree.class_tree(labels)[0].max_depth <= depth_bound(n_classes, alpha)


def test_alpha_one_gives_a_tree_of_least_depth():
    X, y = rows_of(64, 2)
    assert ConditionalProbabilityTreeClassifier(alpha=1.0, random_state=0).fit(X, y).tree_.max_depth == 6


def test_probabilities_are_not_negative_and_sum_to_one():
    X, y = rows_of(40, 10, spread=1.0)
    probabilities = ConditionalProbabilityTreeClassifier(random_state=0).fit(X, y).predict_proba(3.0 * X)
    assert probabilities.shape == (400, 40)
    assert probabilities.min() >= 0.0
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("spread", [0.1, 1.0, 3.0])
def test_predict_is_the_argmax_of_predict_proba_and_looks_at_fewer_nodes(make, spread):
    X, y = rows_of(40, 10, spread=spread)
    model = ConditionalProbabilityTreeClassifier(random_state=0).fit(make(X), y)
    np.testing.assert_array_equal(model.predict(make(X)), model.predict_proba(make(X)).argmax(axis=1))
    n_evaluations = model.n_evaluations(make(X))
    assert (n_evaluations >= model.decision_path(make(X)).sum(axis=1) - 1).all()
    assert n_evaluations.max() <= 39
    assert n_evaluations.mean() < 30


def test_of_equally_probable_classes_the_first_is_predicted():
    X, y = rows_of(9, 4)
    model = in_order().fit(np.abs(X), y)
    nothing_known = np.zeros((1, 6))
    for rows in (nothing_known, np.full((1, 6), 1e9), np.full((1, 6), -1e9)):
        np.testing.assert_array_equal(model.predict(rows), model.predict_proba(rows).argmax(axis=1))
    undecided = in_order(fit_intercept=False).fit(X, y)
    probability = undecided.predict_proba(nothing_known)[0]
    np.testing.assert_array_equal(probability, 0.5 ** undecided.tree_.depth[undecided.tree_.leaf_of_class])
    assert undecided.predict(nothing_known) == [probability.argmax()]


def test_the_greedy_walk_evaluates_one_regressor_per_level():
    X, y = rows_of(30, 5)
    model = ConditionalProbabilityTreeClassifier(walk="greedy", random_state=0).fit(X, y)
    leaf = model.tree_.leaf_of_class[model.predict(X)]
    np.testing.assert_array_equal(model.n_evaluations(X), model.tree_.depth[leaf])


def test_the_greedy_walk_finds_the_most_probable_class_where_its_path_has_probability_one_half():
    X, y = rows_of(12, 30, spread=0.5)
    model = ConditionalProbabilityTreeClassifier(walk="greedy", random_state=0).fit(X, y)
    probabilities, predicted = model.predict_proba(X), model.predict(X)
    sure = probabilities[np.arange(len(y)), predicted] > 0.5
    assert sure.sum() > 50
    np.testing.assert_array_equal(predicted[sure], probabilities[sure].argmax(axis=1))


def test_digits_are_learned_in_one_pass():
    X, y = load_digits(return_X_y=True)
    scores = {"all": [], "greedy": []}
    for seed in range(5):
        model = ConditionalProbabilityTreeClassifier(random_state=seed).fit(X[::2], y[::2])
        for walk, score in scores.items():
            score.append(model.set_params(walk=walk).score(X[1::2], y[1::2]))
    assert np.mean(scores["all"]) > np.mean(scores["greedy"]) > 0.75
    assert np.mean(scores["all"]) > 0.83


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_fit_and_partial_fit_in_parts_are_one_fit_of_all_rows(make):
    X, y = rows_of(20, 12)
    whole = in_order().fit(make(X), y)
    begun = in_order().fit(make(X[:60]), y[:60]).partial_fit(make(X[60:61]), y[60:61]).partial_fit(make(X[61:]), y[61:])
    streamed = in_order()
    for rows in np.array_split(np.arange(len(y)), 30):
        streamed.partial_fit(make(X[rows]), y[rows])
    for model in (begun, streamed):
        assert model.tree_ == whole.tree_
        np.testing.assert_array_equal(model.classes_, whole.classes_)
        np.testing.assert_array_equal(model.predict_proba(make(X)), whole.predict_proba(make(X)))
        np.testing.assert_array_equal(model.predict(make(X)), whole.predict(make(X)))


def test_partial_fit_takes_labels_it_has_never_seen():
    X, y = rows_of(6, 40, spread=0.1)
    names = np.array(["pear", "fig", "apple", "watermelon", "kiwi", "date"])[y]
    known = np.isin(y, [0, 1, 2])
    model = in_order().fit(X[known], names[known])
    np.testing.assert_array_equal(model.classes_, ["apple", "fig", "pear"])
    model.partial_fit(X[~known], names[~known])
    np.testing.assert_array_equal(model.classes_, np.unique(names))
    assert model.predict_proba(X).shape == (240, 6)
    model.partial_fit(X, names)
    assert model.score(X, names) > 0.8


def test_partial_fit_begins_with_a_single_label():
    model = ConditionalProbabilityTreeClassifier().partial_fit([[1.0, 0.0]], [7])
    np.testing.assert_array_equal(model.predict([[0.0, 0.0], [5.0, 5.0]]), [7, 7])
    np.testing.assert_array_equal(model.predict_proba([[2.0, 3.0]]), [[1.0]])
    np.testing.assert_array_equal(model.n_evaluations([[2.0, 3.0]]), [0])
    model.partial_fit([[0.0, 1.0]], [3])
    np.testing.assert_array_equal(model.predict([[1.0, 0.0], [0.0, 1.0]]), [7, 3])


def test_partial_fit_is_silent_about_many_classes_in_few_rows():
    X, y = rows_of(30, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ConditionalProbabilityTreeClassifier().partial_fit(X, y).tree_.n_classes == 30


def test_rows_of_weight_zero_leave_no_trace_in_partial_fit():
    X, y = rows_of(8, 10)
    weight = np.where(y == 7, 0.0, 1.0)
    with_them = in_order().partial_fit(X, y, sample_weight=weight)
    without = in_order().partial_fit(X[y < 7], y[y < 7])
    np.testing.assert_array_equal(with_them.classes_, np.arange(7))
    np.testing.assert_array_equal(with_them.predict_proba(X), without.predict_proba(X))


@pytest.mark.parametrize("class_weight", [None, {0: 3.0, 1: 0.5}])
def test_class_weights_are_factors_of_the_sample_weights(class_weight):
    X, y = rows_of(5, 10)
    factors = np.array([(class_weight or {}).get(label, 1.0) for label in y.tolist()])
    expected = in_order().fit(X, y, factors).predict_proba(X)
    for model in (
        in_order(class_weight=class_weight).fit(X, y),
        in_order(class_weight=class_weight).partial_fit(X, y),
        in_order(class_weight=class_weight, C=4.0).fit(X, y),
    ):
        np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9)


@pytest.mark.parametrize("node", ["online", "svm"])
def test_weight_two_is_a_row_that_stands_there_twice_in_any_order(node):
    X, y = rows_of(10, 8)
    rng = np.random.default_rng(3)
    weight = rng.integers(0, 4, len(y))
    repeated = rng.permutation(np.repeat(np.arange(len(y)), weight))
    weighted = ConditionalProbabilityTreeClassifier(node=node, random_state=0).fit(X, y, weight)
    doubled = ConditionalProbabilityTreeClassifier(node=node, random_state=0).fit(X[repeated], y[repeated])
    assert weighted.tree_ == doubled.tree_
    np.testing.assert_array_equal(weighted.predict(X), doubled.predict(X))
    if node == "online":
        np.testing.assert_allclose(weighted.predict_proba(X), doubled.predict_proba(X), rtol=1e-9)


def test_the_shuffled_order_depends_on_the_seed():
    X, y = rows_of(20, 5)
    trees = [ConditionalProbabilityTreeClassifier(random_state=s).fit(X, y).tree_ for s in (0, 0, 1)]
    assert trees[0] == trees[1]
    assert trees[0] != trees[2]


def test_a_new_unit_for_a_feature_changes_nothing():
    X, y = rows_of(10, 10)
    # Powers of two, so that no value is rounded.
    scaled = X * 2.0 ** np.array([-30, -3, 0, 5, 20, 60])
    model, other = in_order().fit(X, y), in_order().fit(scaled, y)
    assert model.tree_ == other.tree_
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(scaled), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("shuffle", [True, False])
def test_machines_stand_on_the_tree_of_the_stream(kernel, shuffle):
    X, y = rows_of(12, 8)
    parameters = {"shuffle": shuffle, "random_state": 4}
    X /= X.std(axis=0)
    online = ConditionalProbabilityTreeClassifier(**parameters).fit(X, y)
    machines = ConditionalProbabilityTreeClassifier(kernel, node="svm", C=100, **parameters).fit(X, y)
    assert online.tree_ == machines.tree_
    assert machines.score(X, y) > 0.5


def test_a_precomputed_kernel_takes_its_values_as_features_of_the_stream():
    X, y = rows_of(8, 10)
    kernel = rbf_kernel(X / X.std(axis=0))
    model = in_order(kernel="precomputed", node="svm", C=100).fit(kernel, y)
    assert model.tree_ == in_order().fit(kernel, y).tree_
    assert model.score(kernel, y) > 0.9


@pytest.mark.parametrize("node", ["online", "svm"])
@pytest.mark.parametrize("shuffle", [True, False])
def test_sparse_and_dense_rows_give_the_same_model(node, shuffle):
    X, y = rows_of(12, 8)
    model = ConditionalProbabilityTreeClassifier(node=node, shuffle=shuffle, random_state=0)
    dense, sparse = clone(model).fit(X, y), clone(model).fit(sp.csc_array(X), y)
    assert dense.tree_ == sparse.tree_
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(sp.csr_array(X)))
    if node == "online":
        np.testing.assert_allclose(dense.predict_proba(X), sparse.predict_proba(sp.csr_array(X)), rtol=1e-9, atol=1e-12)
        dense.partial_fit(sp.csr_array(X), y)
        sparse.partial_fit(X, y)
        np.testing.assert_allclose(dense.predict_proba(X), sparse.predict_proba(X), rtol=1e-9, atol=1e-12)


def test_a_pickled_model_learns_on():
    X, y = rows_of(10, 10)
    model = in_order().fit(X[:50], y[:50])
    restored = pickle.loads(pickle.dumps(model)).partial_fit(X[50:], y[50:])
    np.testing.assert_array_equal(restored.predict_proba(X), model.partial_fit(X[50:], y[50:]).predict_proba(X))


def test_machines_have_neither_probabilities_nor_partial_fit():
    model = ConditionalProbabilityTreeClassifier(node="svm").fit(*rows_of(3, 5))
    for method in ("predict_proba", "partial_fit"):
        assert not hasattr(model, method)
        assert hasattr(ConditionalProbabilityTreeClassifier(), method)
        with pytest.raises(AttributeError) as raised:
            getattr(model, method)
        assert "node='online'; this ConditionalProbabilityTreeClassifier has node='svm'" in str(raised.value)


def test_a_change_of_node_asks_for_a_new_fit():
    X, y = rows_of(3, 5)
    model = ConditionalProbabilityTreeClassifier(node="svm").fit(X, y).set_params(node="online")
    for call in (lambda: model.predict_proba(X), lambda: model.partial_fit(X, y)):
        with pytest.raises(ValueError, match=r"fitted with node='svm'.*call fit"):
            call()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "rbf"}, "node='online' has linear regressors and needs kernel='linear'; got kernel='rbf'"),
        ({"alpha": 1.5}, "The 'alpha' parameter of ConditionalProbabilityTreeClassifier must be a float in the range"),
        ({"learning_rate": 0.0}, "The 'learning_rate' parameter .* must be a float in the range"),
        ({"walk": "beam"}, "The 'walk' parameter of ConditionalProbabilityTreeClassifier must be a str among"),
        ({"node": "tree"}, "The 'node' parameter of ConditionalProbabilityTreeClassifier must be a str among"),
    ],
)
def test_parameters_that_do_not_fit_are_named(parameters, message):
    X, y = rows_of(3, 5)
    for method in ("fit", "partial_fit"):
        model = ConditionalProbabilityTreeClassifier(**parameters)
        if hasattr(model, method):
            with pytest.raises(ValueError, match=message):
                getattr(model, method)(X, y)


def test_partial_fit_refuses_what_it_cannot_know():
    X, y = rows_of(3, 5)
    with pytest.raises(ValueError, match=r"class_weight='balanced' needs all rows at once"):
        ConditionalProbabilityTreeClassifier(class_weight="balanced").partial_fit(X, y)
    with pytest.raises(ValueError, match=r"not in classes=\[0, 1\]"):
        ConditionalProbabilityTreeClassifier().partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"all numbers or all strings"):
        ConditionalProbabilityTreeClassifier().partial_fit(X, y).partial_fit(X, y.astype(str))
    with pytest.raises(ValueError, match=r"at least one row of positive weight"):
        ConditionalProbabilityTreeClassifier(class_weight={0: 0, 1: 0, 2: 0}).partial_fit(X, y)


def test_verbose_prints_one_line(capsys):
    ConditionalProbabilityTreeClassifier(verbose=2, alpha=1.0, random_state=0).fit(*rows_of(8, 5))
    assert capsys.readouterr().out == "[margintree] pass 1/1: 40 rows, 8 classes, depth 3\n"


def test_rows_that_are_wider_than_all_weights_so_far_find_room():
    X = np.random.default_rng(0).standard_normal((4, 3 * FIRST_ENTRIES))
    model = ConditionalProbabilityTreeClassifier(random_state=0).fit(X, [0, 1, 0, 1])
    assert model.predict(X).tolist() == [0, 1, 0, 1]
