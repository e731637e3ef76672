"""Walks, rankings and probabilities against a slow walk in plain Python."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_expit, logsumexp, softmax
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel

from margintree import MarginTreeClassifier
from margintree.prediction.linear_tree import Sigmoids

LAYOUTS = {"linear": np.asarray, "linear, csr": sp.csr_array, "rbf": np.asarray}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def blobs(n_classes=12, per_class=8, n_features=6, spread=0.7, seed=0):
    random = np.random.default_rng(seed)
    centres = random.normal(size=(n_classes, n_features))
    y = np.repeat(np.arange(n_classes), per_class)
    return centres[y] + spread * random.normal(size=(len(y), n_features)), y


def fitted(case, **parameters):
    X, y = blobs()
    X = LAYOUTS[case](X)
    return MarginTreeClassifier(case.split(",")[0], random_state=0, **parameters).fit(X, y), X


class SlowWalk:
    """All that a fitted model says about a row, from its weights and sigmoids, one node at a time."""

    def __init__(self, model, X, weights_of):
        self.model, self.trees = model, model.trees_
        flat = model._model
        n_nodes = sum(tree.n_nodes for tree in self.trees)
        if hasattr(flat, "table"):
            values = X @ weights_of(flat.table).T + flat.table.intercept
        else:
            values = flat.decisions(X, np.arange(n_nodes))
        self.log_odds = flat.sigmoids.slope * values + flat.sigmoids.shift
        self.roots = np.cumsum([0] + [tree.n_nodes for tree in self.trees])
        ranker = model._ranker
        self.own_scores = None
        if ranker.scorers is not None:
            table = ranker.scorers.table
            self.own_scores = X @ weights_of(table).T + table.intercept

    def step(self, row, t, node):
        """Return the children of a node with their log probabilities."""
        tree, log_odds = self.trees[t], self.log_odds[row, self.roots[t] + node]
        return (
            (int(tree.children_left[node]), log_expit(log_odds)),
            (int(tree.children_right[node]), log_expit(-log_odds)),
        )

    def path_scores(self, row, t):
        """Return the score of every class by one tree."""
        scores, pending = np.empty(self.trees[t].n_classes), [(0, 0.0)]
        while pending:
            node, score = pending.pop()
            if self.trees[t].is_leaf(node):
                scores[self.trees[t].leaf_class[node]] = score
            else:
                pending += [(child, score + part) for child, part in self.step(row, t, node)]
        return scores

    def beam(self, row, t, width, gap, size):
        """Return the best classes of one tree with their scores, and the number of machines asked."""
        level, found, n_asked = [(0.0, 0)], [], 0
        while level:
            best = max(level[0][0], found[0][0] if found else -np.inf)
            below = []
            for score, node in level:
                if score < best - gap or (len(found) == size and score < found[-1][0]):
                    break
                n_asked += 1
                for child, part in self.step(row, t, node):
                    if self.trees[t].is_leaf(child):
                        found.append((score + part, int(self.trees[t].leaf_class[child])))
                    else:
                        below.append((score + part, child))
                found = sorted(found, key=lambda pair: (-pair[0], pair[1]))[:size]
            level = sorted(below, key=lambda pair: (-pair[0], pair[1]))[:width]
        return {class_: score for score, class_ in found}, n_asked

    def mean_scores(self, row, width, gap, size):
        """Return the classes by the mean score of the trees, best first, and the number of machines asked."""
        if width == 0:
            scores = np.mean([self.path_scores(row, t) for t in range(len(self.trees))], axis=0)
            scores -= logsumexp(scores) if len(self.trees) > 1 else 0.0
            mean, n_asked = dict(enumerate(scores)), len(self.trees) * (len(scores) - 1)
        else:
            lists, asked = zip(*(self.beam(row, t, width, gap, size) for t in range(len(self.trees))), strict=True)
            classes, n_asked = set().union(*lists), sum(asked)
            floors = [min(min(f.values()), np.inf if len(f) == size else max(f.values()) - gap) for f in lists]
            mean = {
                k: np.mean([found.get(k, floor) for found, floor in zip(lists, floors, strict=True)]) for k in classes
            }
        listed = sorted(mean.items(), key=lambda pair: (-pair[1], pair[0]))
        if width > 0 and len(self.trees) > 1:
            # Together they are as probable as what the trees list, or certain if they are all.
            mass = np.mean([np.exp(list(found.values())).sum() for found in lists])
            mass = 1.0 if min(len(listed), size) == self.trees[0].n_classes else mass
            shift = np.log(mass) - logsumexp([score for _, score in listed[:size]])
            listed = [(class_, score + shift) for class_, score in listed]
        return listed, n_asked

    def is_tied(self, row, width, gap, size):
        """Tell whether rounding decides which class is the last of the candidates."""
        listed, _ = self.mean_scores(row, width, gap, size)
        return len(listed) > size and listed[size - 1][1] - listed[size][1] < 1e-9

    def ranked(self, row, width, gap, size):
        """Return the classes with their probabilities, best first, and the number of machines asked."""
        listed, n_asked = self.mean_scores(row, width, gap, size)
        classes, scores = (np.array(part) for part in zip(*listed[:size], strict=True))
        mass = min(1.0, np.exp(scores).sum())
        if self.own_scores is not None:
            scorers = self.model._ranker.scorers
            scores = scorers.temperature * (scorers.path_weight * scores + self.own_scores[row, classes])
            n_asked += len(classes)
        order = np.lexsort([classes, -scores])
        return classes[order], mass * softmax(scores)[order], n_asked


WALKS = [
    {"walk": "all", "shortlist": 0},
    {"walk": "all", "shortlist": 3},
    {"walk": "all", "shortlist": 0, "n_trees": 3},
    {"walk": "beam", "shortlist": 0, "beam_width": 4, "beam_gap": 2.0},
    {"walk": "beam", "shortlist": 0, "beam_width": 1, "beam_gap": 100.0},
    {"walk": "beam", "shortlist": 5, "beam_width": 3, "beam_gap": 4.0},
    {"walk": "beam", "shortlist": 4, "beam_width": 3, "beam_gap": 2.0, "n_trees": 3},
    {"walk": "beam", "beam_width": 12, "beam_gap": 1e9},
    {"walk": "beam"},
]


@pytest.mark.parametrize("case", LAYOUTS)
@pytest.mark.parametrize("parameters", WALKS, ids=str)
def test_rankings_and_evaluations_are_those_of_the_slow_walk(weights_of, case, parameters):
    if case == "rbf":
        parameters = {**parameters, "shortlist": "auto"}
    model, X = fitted(case, **parameters)
    slow, ranker = SlowWalk(model, X, weights_of), model._ranker
    k = min(3, ranker.size_for(1)[1])
    width, size = ranker.size_for(k)
    classes, probabilities = model.predict_top_k(X, k)
    predicted, n_evaluations = model.predict(X), model.n_evaluations(X)
    n_compared = 0
    for row in range(X.shape[0]):
        if slow.is_tied(row, width, ranker.gap, size):
            continue
        n_compared += 1
        expected, expected_probabilities, _ = slow.ranked(row, width, ranker.gap, size)
        if len(expected) >= k:
            np.testing.assert_allclose(probabilities[row], expected_probabilities[:k], rtol=1e-5)
            # Of equal classes either may come first.
            probability_of = dict(zip(expected.tolist(), expected_probabilities, strict=True))
            found = [probability_of[class_] for class_ in classes[row].tolist()]
            np.testing.assert_allclose(probabilities[row], found, rtol=1e-5)
        best, _, n_asked = slow.ranked(row, *ranker.size_for(1)[:1], ranker.gap, ranker.size_for(1)[1])
        assert predicted[row] == best[0]
        assert n_evaluations[row] == n_asked
    assert n_compared > 0.7 * X.shape[0]


@pytest.mark.parametrize("case", LAYOUTS)
@pytest.mark.parametrize("n_trees", [1, 3])
def test_probabilities_along_all_paths_are_means_of_the_trees(weights_of, case, n_trees):
    model, X = fitted(case, walk="all", shortlist="auto" if case == "rbf" else 0, n_trees=n_trees)
    slow = SlowWalk(model, X, weights_of)
    scores = [np.mean([slow.path_scores(row, t) for t in range(n_trees)], axis=0) for row in range(X.shape[0])]
    np.testing.assert_allclose(model.predict_proba(X), softmax(scores, axis=1), rtol=1e-5)


@pytest.mark.parametrize("case", LAYOUTS)
@pytest.mark.parametrize("n_trees", [1, 3])
def test_a_beam_without_limits_is_a_walk_along_all_paths(case, n_trees):
    parameters = {"shortlist": "auto" if case == "rbf" else 0, "n_trees": n_trees}
    beam, X = fitted(case, walk="beam", beam_width=12, beam_gap=1e9, **parameters)
    everything, _ = fitted(case, walk="all", **parameters)
    for one, other in zip(beam.predict_top_k(X, 12), everything.predict_top_k(X, 12), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    np.testing.assert_array_equal(beam.predict(X), everything.predict(X))


@pytest.mark.parametrize("case", LAYOUTS)
@pytest.mark.parametrize(("walk", "n_trees"), [("beam", 1), ("beam", 3), ("all", 1), ("all", 3), ("greedy", 1)])
def test_probabilities_sum_to_one_and_agree_with_the_ranking(case, walk, n_trees):
    model, X = fitted(case, walk=walk, n_trees=n_trees)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (X.shape[0], 12)
    assert (probabilities >= 0.0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    classes, scores = model.predict_top_k(X, 4)
    assert (np.diff(scores, axis=1) <= 0.0).all()
    assert (scores[:, 0] > 0.0).all()
    if walk != "greedy":
        np.testing.assert_array_equal(model.classes_[np.argmax(probabilities, axis=1)], model.predict(X))
        np.testing.assert_array_equal(classes[:, 0], model.predict(X))


@pytest.mark.parametrize("case", LAYOUTS)
@pytest.mark.parametrize("walk", ["beam", "all"])
@pytest.mark.parametrize("n_trees", [1, 3])
def test_the_ranking_has_the_probabilities_of_predict_proba(case, walk, n_trees):
    model, X = fitted(case, walk=walk, n_trees=n_trees)
    classes, scores = model.predict_top_k(X, 3)
    expected = np.take_along_axis(model.predict_proba(X), classes, axis=1)
    np.testing.assert_allclose(scores, expected, rtol=1e-9)


@pytest.mark.parametrize("shortlist", [0, 5])
@pytest.mark.parametrize("gap", [0.5, 3.0])
@pytest.mark.parametrize("k", [1, 3, 40])
def test_classes_beyond_the_gap_of_several_trees_have_the_probabilities_of_predict_proba(shortlist, gap, k):
    X, y = blobs(n_classes=40, n_features=4, per_class=5)
    parameters = {"n_trees": 3, "beam_width": 4, "beam_gap": gap, "shortlist": shortlist, "random_state": 0}
    model = MarginTreeClassifier(**parameters).fit(X, y)
    probabilities = model.predict_proba(X)
    classes, scores = model.predict_top_k(X, k)
    if k == 40:
        np.testing.assert_allclose(scores.sum(axis=1), 1.0, rtol=1e-9)
    else:
        # A beam that is as wide as k asks the same classes as predict_proba.
        np.testing.assert_allclose(scores, np.take_along_axis(probabilities, classes, axis=1), rtol=1e-9, atol=1e-12)


def test_several_trees_rank_many_classes_without_following_all_paths():
    X, y = blobs(n_classes=140, n_features=4, per_class=3)
    model = MarginTreeClassifier(n_trees=2, beam_width=4, beam_gap=0.5, shortlist=0, random_state=0).fit(X, y)
    classes, scores = model.predict_top_k(X, 4)
    assert all(len(set(row)) == 4 for row in classes.tolist())
    assert (scores.sum(axis=1) <= 1.0 + 1e-9).all()
    assert (scores > 0.0).all()
    assert model.n_evaluations(X).max() < 100


@pytest.mark.parametrize("walk", ["beam", "all"])
def test_trees_that_contradict_each_other_at_a_row_far_away_still_give_probabilities(walk):
    X, y = blobs(n_classes=30, n_features=4, per_class=5)
    model = MarginTreeClassifier(n_trees=3, walk=walk, beam_gap=1e6, shortlist=0, random_state=0).fit(X, y)
    far = 1e5 * X
    probabilities = model.predict_proba(far)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-9)
    classes, scores = model.predict_top_k(far, 30)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(classes[:, 0], model.predict(far))


@pytest.mark.parametrize(
    "parameters", [{}, {"beam_gap": 0.5, "beam_width": 1}, {"n_trees": 2}, {"walk": "all"}], ids=str
)
def test_a_ranking_of_all_classes_names_each_of_them_once(parameters):
    model, X = fitted("linear", **parameters)
    classes, scores = model.predict_top_k(X, 12)
    np.testing.assert_array_equal(np.sort(classes, axis=1), np.tile(np.arange(12), (len(X), 1)))
    assert (np.diff(scores, axis=1) <= 0.0).all()


@pytest.mark.parametrize("k", [0, 13, -1, 1.0, True, "3", None])
def test_a_number_of_classes_out_of_range_is_told(k):
    model, X = fitted("linear")
    with pytest.raises(ValueError, match=r"k must be a whole number from 1 to the number of classes, 12\. Got"):
        model.predict_top_k(X, k)


def test_two_classes_have_one_decision_value_and_more_have_one_each():
    X, y = blobs(2, 20)
    model = MarginTreeClassifier(random_state=0).fit(X, y)
    probabilities = model.predict_proba(X)
    assert model.decision_function(X).shape == (40,)
    np.testing.assert_allclose(model.decision_function(X), np.log(probabilities[:, 1] / probabilities[:, 0]))
    np.testing.assert_array_equal(model.predict(X), (model.decision_function(X) > 0).astype(int))
    many, X = fitted("linear")
    np.testing.assert_allclose(many.decision_function(X), np.log(many.predict_proba(X)))


def test_the_greedy_walk_follows_the_sign_of_each_machine(weights_of, digits):
    X, y = digits
    model = MarginTreeClassifier(walk="greedy", random_state=0).fit(X[:400], y[:400])
    values = X @ weights_of(model._model.table).T + model._model.table.intercept
    for row, predicted in zip(values, model.predict(X), strict=True):
        node = 0
        while not model.tree_.is_leaf(node):
            node = model.tree_.children_left[node] if row[node] > 0 else model.tree_.children_right[node]
        assert model.tree_.leaf_class[node] == predicted


def test_sigmoids_do_not_change_the_greedy_walk(digits):
    X, y = digits
    with_sigmoids, without = (
        MarginTreeClassifier(walk="greedy", calibration_folds=folds, random_state=0).fit(X[:400], y[:400])
        for folds in (3, 0)
    )
    np.testing.assert_array_equal(with_sigmoids.predict(X), without.predict(X))
    assert not hasattr(without, "predict_top_k")
    with pytest.raises(AttributeError) as refused:
        without.predict_proba(X)
    assert "Set calibration_folds='auto' and fit again" in str(refused.value.__cause__)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_calibrated_probabilities_have_less_log_loss_than_bare_decision_values(digits, kernel):
    X, y = digits
    model = MarginTreeClassifier(kernel, C=10, walk="all", shortlist="auto" if kernel == "rbf" else 0, random_state=0)
    model.fit(X[::2], y[::2])
    plain = Sigmoids(np.ones_like(model._model.sigmoids.slope), np.zeros_like(model._model.sigmoids.shift))
    bare = replace(model._ranker, tree=replace(model._model, sigmoids=plain))
    calibrated = log_loss(y[1::2], model.predict_proba(X[1::2]))
    assert calibrated < 0.6 * log_loss(y[1::2], bare.probabilities(X[1::2]))
    # What is claimed with at least 90 % is true about as often.
    probabilities = model.predict_proba(X[1::2])
    sure = probabilities.max(axis=1) > 0.9
    right = model.classes_[probabilities.argmax(axis=1)] == y[1::2]
    assert abs(right[sure].mean() - probabilities.max(axis=1)[sure].mean()) < 0.03


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"walk": "beam", "calibration_folds": 0}, "walk='beam' needs calibrated sigmoids.*or walk='greedy'"),
        ({"walk": "all", "calibration_folds": 0}, "walk='all' needs calibrated sigmoids"),
        ({"kernel": "rbf", "shortlist": 5}, "shortlist=5 needs kernel='linear'. Got kernel='rbf'; leave shortlist at"),
        ({"walk": "greedy", "n_trees": 2}, "n_trees=2 averages path scores.*Set walk='beam', or n_trees=1"),
        ({"calibration_folds": 1}, "The 'calibration_folds' parameter of MarginTreeClassifier must be"),
        ({"prune": 1.0}, "The 'prune' parameter of MarginTreeClassifier must be"),
        ({"beam_width": 0}, "The 'beam_width' parameter of MarginTreeClassifier must be"),
        ({"shortlist": -1}, "The 'shortlist' parameter of MarginTreeClassifier must be"),
        ({"n_trees": 0}, "The 'n_trees' parameter of MarginTreeClassifier must be"),
        ({"walk": "depth"}, "The 'walk' parameter of MarginTreeClassifier must be a str among"),
    ],
)
def test_parameters_that_do_not_go_together_are_named_with_what_to_do(parameters, message):
    with pytest.raises(ValueError, match=message):
        MarginTreeClassifier(**parameters).fit(*blobs(4, 5))


def arrays_of(model):
    """Return every array of a fitted model's prediction structures."""
    flat, scorers = model._model, model._ranker.scorers
    tables = [part.table for part in (flat, scorers) if hasattr(part, "table")]
    arrays = [array for table in tables for array in (table.start, table.n_weights, table.cells, table.scale)]
    if not tables:
        arrays = [flat.start, flat.support, flat.coefficients, flat.constants]
    return [*arrays, flat.sigmoids.slope, flat.sigmoids.shift]


@pytest.mark.parametrize("case", LAYOUTS)
@pytest.mark.parametrize("n_trees", [1, 2])
def test_models_and_predictions_are_the_same_for_any_number_of_threads(digits, case, n_trees):
    X, y = LAYOUTS[case](digits[0]), digits[1]
    models = [
        MarginTreeClassifier(case.split(",")[0], n_jobs=n, n_trees=n_trees, random_state=0).fit(X[:300], y[:300])
        for n in (1, 2, 4)
    ]
    for model in models[1:]:
        for one, other in zip(arrays_of(models[0]), arrays_of(model), strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(model.predict(X), models[0].predict(X))
        np.testing.assert_array_equal(model.predict_proba(X), models[0].predict_proba(X))
        np.testing.assert_array_equal(model.predict_top_k(X, 3)[1], models[0].predict_top_k(X, 3)[1])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_several_trees_differ_and_are_no_worse_than_one(digits, kernel):
    X, y = digits
    gains, differ = [], []
    # On the rows of one draw chance alone is as large as the bound.
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[::2], order[1::2]
        one, three = (
            MarginTreeClassifier(kernel, C=10, n_trees=n, walk="all", random_state=0).fit(X[train], y[train])
            for n in (1, 3)
        )
        assert len(three.trees_) == 3
        assert three.trees_[0] == one.tree_ == three.tree_
        differ += [tree != three.tree_ for tree in three.trees_[1:]]
        gains.append(three.score(X[test], y[test]) - one.score(X[test], y[test]))
    # Halves of the rows may agree on a structure, but not as a rule.
    assert np.mean(differ) > 0.5
    assert np.mean(gains) >= -0.005


@pytest.mark.parametrize("case", LAYOUTS)
def test_threads_that_share_a_model_get_the_labels_of_one(digits, case):
    X, y = LAYOUTS[case](digits[0]), digits[1]
    model = MarginTreeClassifier(case.split(",")[0], random_state=0).fit(X[:300], y[:300])
    # A copy that has not predicted yet: the threads also race for what is made on first use.
    expected, model = model.predict(X), pickle.loads(pickle.dumps(model))
    with ThreadPoolExecutor(8) as pool:
        for labels in pool.map(lambda _: model.predict(X), range(8)):
            np.testing.assert_array_equal(labels, expected)


@pytest.mark.parametrize("case", LAYOUTS)
@pytest.mark.parametrize("walk", ["greedy", "beam"])
def test_a_model_in_a_read_only_memory_map_gives_the_same_labels(digits, tmp_path, case, walk):
    X, y = LAYOUTS[case](digits[0]), digits[1]
    model = MarginTreeClassifier(case.split(",")[0], walk=walk, random_state=0).fit(X[:300], y[:300])
    joblib.dump(model, tmp_path / "model.joblib")
    mapped = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    flat = mapped._model
    stored = flat.table.cells if hasattr(flat, "table") else flat.coefficients
    assert isinstance(stored, np.memmap)
    assert not stored.flags.writeable
    np.testing.assert_array_equal(mapped.predict(X), model.predict(X))
    np.testing.assert_array_equal(mapped.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("walk", ["greedy", "beam", "all"])
def test_a_precomputed_kernel_ranks_as_the_named_one(digits, walk):
    X, y = digits[0][:200], digits[1][:200]
    named = MarginTreeClassifier("rbf", gamma=0.05, walk=walk, tol=1e-8, random_state=0).fit(X, y)
    matrix = MarginTreeClassifier("precomputed", walk=walk, tol=1e-8, random_state=0).fit(rbf_kernel(X, X, 0.05), y)
    new = digits[0][200:300]
    assert matrix.tree_ == named.tree_
    assert np.mean(matrix.predict(rbf_kernel(new, X, 0.05)) == named.predict(new)) >= 0.97


def test_no_row_gives_a_warning_however_far_away_it_is(digits):
    X, y = digits
    model = MarginTreeClassifier(random_state=0).fit(X[:300], y[:300])
    far = np.vstack([X[:5] * 1e6, np.zeros((1, 64)), -X[:5] * 1e6])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        probabilities = model.predict_proba(far)
        scores = model.decision_function(far)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("walk", ["beam", "all"])
def test_a_shortlist_of_one_class_is_the_best_path(walk):
    """Scorers rank the classes on the shortlist only, however wide the beam is."""
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 40)
    X = random.normal(size=(6, 4))[y] + random.normal(size=(len(y), 4))
    parameters = {"walk": walk, "beam_gap": 10.0, "calibration_folds": 3, "random_state": 0}
    one = MarginTreeClassifier(shortlist=1, **parameters).fit(X, y)
    none = MarginTreeClassifier(shortlist=0, **parameters).fit(X, y)
    np.testing.assert_array_equal(one.predict(X), none.predict(X))
