"""Walks, rankings and probabilities against a slow walk in plain Python."""

import itertools
import pickle
import time
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
from margintree.compiled.ranking import CLEARLY
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


def fitted(case, per_class=8, **parameters):
    X, y = blobs(per_class=per_class)
    X = LAYOUTS[case](X)
    return MarginTreeClassifier(case.split(",")[0], random_state=0, **parameters).fit(X, y), X


class SlowWalk:
    """All that a fitted model says about a row, from its weights and sigmoids, one node at a time."""

    def __init__(self, model, X, weights_of, kernel_decisions):
        self.trees, self.ranker = model.trees_, model._ranker
        self.n_classes = self.trees[0].n_classes
        flat, decider = model._model, self.ranker.decider
        self.roots = np.cumsum([0] + [tree.n_nodes for tree in self.trees])
        if hasattr(flat, "table"):
            values = X @ weights_of(flat.table).T + flat.table.intercept
            table = decider.table
            self.deciding = None if table is None else X @ weights_of(table).T + table.intercept
        else:
            values = kernel_decisions(flat, X)
            values, self.deciding = values[:, : self.roots[-1]], values[:, self.roots[-1] :]
        self.log_odds = flat.sigmoids.slope * values + flat.sigmoids.shift
        self.machine_of_pair = {}
        if decider.kind == "pairs":
            for k, (first, last) in enumerate(itertools.pairwise(decider.pair_start.tolist())):
                self.machine_of_pair |= {(k, int(decider.pair_other[m])): m for m in range(first, last)}
        self.n_missing = self.n_struck_off = 0

    def step(self, row, t, node):
        """Return the children of a node with their log probabilities."""
        tree, log_odds = self.trees[t], self.log_odds[row, self.roots[t] + node]
        return (
            (int(tree.children_left[node]), log_expit(log_odds)),
            (int(tree.children_right[node]), log_expit(-log_odds)),
        )

    def path_scores(self, row, t):
        """Return the score of every class by one tree."""
        scores, pending = np.empty(self.n_classes), [(0, 0.0)]
        while pending:
            node, score = pending.pop()
            if self.trees[t].is_leaf(node):
                scores[self.trees[t].leaf_class[node]] = score
            else:
                pending += [(child, score + part) for child, part in self.step(row, t, node)]
        return scores

    def all_paths(self, row):
        """Return the probability of every class by its paths in all trees."""
        return softmax(np.mean([self.path_scores(row, t) for t in range(len(self.trees))], axis=0))

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
        return {class_: score for score, class_ in found if score >= found[0][0] - gap}, n_asked

    def nominated(self, row, width, gap, size):
        """Return the classes by the mean score of the trees, best first, and the number of machines asked.

        The first ``size`` are finalists.
        """
        if width == 0:
            scores = np.log(self.all_paths(row))
            listed = sorted(enumerate(scores), key=lambda pair: (-pair[1], pair[0]))
            listed = [(class_, score) for class_, score in listed if score >= listed[0][1] - gap]
            return listed, len(self.trees) * (self.n_classes - 1)
        lists, asked = zip(*(self.beam(row, t, width, gap, size) for t in range(len(self.trees))), strict=True)
        floors = [min(min(f.values()), np.inf if len(f) == size else max(f.values()) - gap) for f in lists]
        mean = {
            k: np.mean([found.get(k, floor) for found, floor in zip(lists, floors, strict=True)])
            for k in set().union(*lists)
        }
        listed = sorted(mean.items(), key=lambda pair: (-pair[1], pair[0]))
        if len(self.trees) > 1:
            # Together they are as probable as what the trees list, or certain if they are all.
            mass = np.mean([np.exp(list(found.values())).sum() for found in lists])
            mass = 1.0 if min(len(listed), size) == self.n_classes else mass
            shift = np.log(mass) - logsumexp([score for _, score in listed[:size]])
            listed = [(class_, score + shift) for class_, score in listed]
        return listed, sum(asked)

    def is_tied(self, row):
        """Tell whether rounding decides which class is the last of the finalists."""
        listed, _ = self.nominated(row, self.ranker.width, self.ranker.gap, self.ranker.size)
        size = self.ranker.size
        return len(listed) > size and listed[size - 1][1] - listed[size][1] < 1e-9

    def coupled(self, row, classes, paths):
        """Return the probabilities of finalists from their pairs, and the number of machines asked."""
        n_asked, out = 0, set()
        odds_against = dict.fromkeys(classes, 0.0)
        for (i, one), (j, other) in itertools.combinations(enumerate(classes), 2):
            if one in out or other in out:
                continue
            machine = self.machine_of_pair.get((min(one, other), max(one, other)))
            if machine is None:
                log_odds = paths[i] - paths[j]
                self.n_missing += 1
            else:
                log_odds = self.ranker.decider.slope * self.deciding[row, machine] * (1 if one < other else -1)
                n_asked += 1
            odds_against[one] += np.exp(-log_odds)
            odds_against[other] += np.exp(log_odds)
            if abs(log_odds) > CLEARLY:
                out.add(other if log_odds > 0.0 else one)
        self.n_struck_off += len(out)
        coupled = -np.log1p([odds_against[k] for k in classes])
        return softmax(coupled + self.ranker.decider.path_weight * np.array(paths)), n_asked

    def finalists(self, row):
        """Return the finalists with their probabilities, best first, and the number of machines asked."""
        ranker, decider = self.ranker, self.ranker.decider
        listed, n_asked = self.nominated(row, ranker.width, ranker.gap, ranker.size)
        classes, paths = zip(*listed[: ranker.size], strict=True)
        mass, n_deciding = min(1.0, np.exp(paths).sum()), 0
        parts = softmax(paths)
        if decider.kind == "pairs" and len(classes) > 1:
            parts, n_deciding = self.coupled(row, classes, paths)
        elif decider.kind == "rest" and len(classes) > 1:
            values = self.deciding[row, list(classes)]
            parts = softmax(decider.slope * (decider.path_weight * np.array(paths) + values))
            n_deciding = len(classes)
        order = np.lexsort([classes, -parts])
        return np.array(classes)[order], mass * parts[order], n_asked + n_deciding

    def probabilities(self, row):
        """Return the probability of every class: those that are no finalists have what is left, by their paths."""
        classes, parts, _ = self.finalists(row)
        result = self.all_paths(row)
        result[classes] = 0.0
        if result.sum() > 0.0:
            result *= (1.0 - parts.sum()) / result.sum()
        result = np.minimum(result, 0.999 * parts[0])
        result[classes] = parts
        return result / result.sum()


WALKS = [
    {"walk": "all"},
    {"walk": "all", "n_finalists": 5, "beam_gap": 100.0},
    {"walk": "all", "n_finalists": 4, "n_trees": 3},
    {"walk": "beam", "beam_width": 4, "beam_gap": 2.0},
    {"walk": "beam", "beam_width": 1, "beam_gap": 100.0},
    {"walk": "beam", "n_finalists": 5, "beam_width": 3, "beam_gap": 4.0, "n_trees": 3},
    {"walk": "beam", "n_finalists": 11, "beam_width": 12, "beam_gap": 1e9},
    {"walk": "beam"},
]


def assert_as_slow(model, X, slow):
    """Compare labels, evaluations, rankings and probabilities of all rows in which rounding decides nothing."""
    predicted, n_evaluations, probabilities = model.predict(X), model.n_evaluations(X), model.predict_proba(X)
    rankings = {k: model.predict_top_k(X, k) for k in (3, 12)}
    n_compared = 0
    for row in range(X.shape[0]):
        if slow.is_tied(row):
            continue
        n_compared += 1
        expected, parts, n_asked = slow.finalists(row)
        assert n_evaluations[row] == n_asked
        if len(parts) == 1 or parts[0] - parts[1] > 1e-9:
            assert predicted[row] == expected[0]
        np.testing.assert_allclose(probabilities[row], slow.probabilities(row), rtol=1e-5, atol=1e-12)
        for k, (classes, found) in rankings.items():
            expected = slow.probabilities(row)
            np.testing.assert_allclose(found[row], np.sort(expected)[::-1][:k], rtol=1e-5, atol=1e-12)
            # Of equal classes either may come first.
            np.testing.assert_allclose(found[row], expected[classes[row]], rtol=1e-5, atol=1e-12)
    assert n_compared > 0.7 * X.shape[0]


@pytest.mark.parametrize("case", LAYOUTS)
@pytest.mark.parametrize("decide", ["paths", "pairs", "rest"])
@pytest.mark.parametrize("parameters", WALKS, ids=str)
def test_rankings_and_evaluations_are_those_of_the_slow_walk(weights_of, kernel_decisions, case, decide, parameters):
    model, X = fitted(case, decide=decide, **parameters)
    assert model.decide_ == decide
    if model._ranker.flat is not None:
        # Without a path to follow there is nothing to walk; see tests/prediction/test_flat_ranking.py.
        model._ranker = replace(model._ranker, n_finalists=11)
    assert_as_slow(model, X, SlowWalk(model, X, weights_of, kernel_decisions))


@pytest.mark.parametrize("case", LAYOUTS)
def test_who_loses_clearly_is_not_compared_any_more(weights_of, kernel_decisions, case):
    model, X = fitted(case, decide="pairs", n_finalists=6, beam_gap=100.0)
    before = model.n_evaluations(X)
    decider = model._ranker.decider
    model._ranker = replace(model._ranker, decider=replace(decider, slope=4.0 * decider.slope))
    slow = SlowWalk(model, X, weights_of, kernel_decisions)
    assert_as_slow(model, X, slow)
    assert slow.n_struck_off > X.shape[0]
    assert model.n_evaluations(X).mean() < before.mean()


@pytest.mark.parametrize("case", LAYOUTS)
@pytest.mark.parametrize("decide", ["pairs", "rest"])
@pytest.mark.parametrize("path_weight", [0.5, 3.0])
def test_the_path_has_its_weight_beside_the_machines(weights_of, kernel_decisions, case, decide, path_weight):
    model, X = fitted(case, decide=decide, n_finalists=6, beam_gap=20.0)
    model._ranker = replace(model._ranker, decider=replace(model._ranker.decider, path_weight=path_weight))
    assert_as_slow(model, X, SlowWalk(model, X, weights_of, kernel_decisions))


@pytest.mark.parametrize("case", LAYOUTS)
def test_paths_decide_between_classes_that_never_met(weights_of, kernel_decisions, case):
    # With a kernel, pairs that are fewer than rows are all trained.
    model, X = fitted(case, per_class=4, decide="pairs", n_finalists=2, beam_gap=100.0)
    model._ranker = replace(model._ranker, n_finalists=6)
    slow = SlowWalk(model, X, weights_of, kernel_decisions)
    assert_as_slow(model, X, slow)
    assert slow.n_missing > X.shape[0]
    assert len(slow.machine_of_pair) > 12


@pytest.mark.parametrize("case", LAYOUTS)
@pytest.mark.parametrize("n_trees", [1, 3])
def test_probabilities_along_all_paths_are_means_of_the_trees(weights_of, kernel_decisions, case, n_trees):
    model, X = fitted(case, walk="all", decide="paths", n_trees=n_trees)
    slow = SlowWalk(model, X, weights_of, kernel_decisions)
    expected = [slow.all_paths(row) for row in range(X.shape[0])]
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-5)


@pytest.mark.parametrize("case", LAYOUTS)
@pytest.mark.parametrize("decide", ["paths", "pairs", "rest"])
@pytest.mark.parametrize("n_trees", [1, 3])
def test_a_beam_without_limits_is_a_walk_along_all_paths(case, decide, n_trees):
    parameters = {"decide": decide, "n_finalists": 12, "beam_gap": 1e9, "n_trees": n_trees}
    beam, X = fitted(case, walk="beam", beam_width=12, **parameters)
    everything, _ = fitted(case, walk="all", **parameters)
    for model in (beam, everything):
        # With a weight of the path no model can do without a walk.
        model._ranker = replace(model._ranker, decider=replace(model._ranker.decider, path_weight=0.5))
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


RANKINGS = [
    {},
    {"walk": "greedy", "decide": "auto"},
    {"walk": "all"},
    {"walk": "all", "n_trees": 3},
    {"n_trees": 3, "beam_width": 4, "beam_gap": 0.5, "n_finalists": 5},
    {"beam_width": 1, "beam_gap": 100.0},
    {"beam_width": 4, "beam_gap": 0.5, "n_finalists": 5},
]


@pytest.mark.parametrize("case", LAYOUTS)
@pytest.mark.parametrize("decide", ["paths", "pairs", "rest"])
@pytest.mark.parametrize("parameters", RANKINGS, ids=str)
def test_the_ranking_has_the_largest_probabilities_of_predict_proba(case, decide, parameters):
    model, X = fitted(case, **{"decide": decide, **parameters})
    one = model.single_instance()
    for rows in (X, 100.0 * X, 1e300 * X) if case != "rbf" else (X,):
        probabilities = model.predict_proba(rows)
        for k in (1, 5, 12):
            classes, scores = model.predict_top_k(rows, k)
            np.testing.assert_allclose(scores, -np.sort(-probabilities, axis=1)[:, :k], rtol=1e-9, atol=1e-12)
            own = np.take_along_axis(probabilities, classes, axis=1)
            np.testing.assert_allclose(scores, own, rtol=1e-9, atol=1e-12)
            assert all(len(set(row)) == k for row in classes.tolist())
            if not sp.issparse(rows):
                found = one.predict_top_k(rows[0], k=k)
                np.testing.assert_array_equal(found[0], classes[0])
                np.testing.assert_allclose(found[1], scores[0], rtol=1e-9, atol=1e-12)
        if parameters.get("walk") != "greedy":
            np.testing.assert_array_equal(model.predict_top_k(rows, 1)[0][:, 0], model.predict(rows))


def test_classes_that_are_equally_probable_are_ranked_by_their_number():
    X, y = blobs()
    model = MarginTreeClassifier(decide="paths", n_finalists=1, random_state=0).fit(X, y)
    sigmoids = model._model.sigmoids
    none = replace(sigmoids, slope=np.zeros_like(sigmoids.slope), shift=np.zeros_like(sigmoids.shift))
    model._model = replace(model._model, sigmoids=none)
    model._ranker = replace(model._ranker, tree=model._model)
    expected = np.argsort(-model.predict_proba(X), axis=1, kind="stable")
    np.testing.assert_array_equal(model.predict_top_k(X, 7)[0], expected[:, :7])


def test_a_ranking_of_few_of_many_classes_follows_few_paths():
    """Following all of 8,000 paths takes tens of times as long as the few that lead to the best classes."""
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(8_000), 2)
    X = sp.csr_array(sp.random(len(y), 3_000, 0.003, random_state=random))
    X = X + sp.csr_array((np.full(len(y), 5.0), (np.arange(len(y)), y % 3_000)), X.shape)
    parameters = {"split": "random", "decide": "paths", "calibration_folds": 2, "random_state": 0}
    model = MarginTreeClassifier(**parameters).fit(X, y)
    rows = X[:400]
    seconds = {}
    for name, ask in (("all", model.predict_proba), ("five", lambda rows: model.predict_top_k(rows, 5))):
        ask(rows[:2])
        started = time.perf_counter()
        ask(rows)
        seconds[name] = time.perf_counter() - started
    assert seconds["five"] < 0.3 * seconds["all"]


def test_several_trees_predict_without_following_all_paths():
    X, y = blobs(n_classes=140, n_features=4, per_class=3)
    model = MarginTreeClassifier(n_trees=2, beam_width=4, beam_gap=0.5, decide="paths", random_state=0).fit(X, y)
    assert model.n_evaluations(X).max() < 100
    classes, scores = model.predict_top_k(X, 4)
    np.testing.assert_allclose(scores, -np.sort(-model.predict_proba(X), axis=1)[:, :4], rtol=1e-9)
    np.testing.assert_array_equal(classes[:, 0], model.predict(X))


@pytest.mark.parametrize("walk", ["beam", "all"])
def test_trees_that_contradict_each_other_at_a_row_far_away_still_give_probabilities(walk):
    X, y = blobs(n_classes=30, n_features=4, per_class=5)
    model = MarginTreeClassifier(n_trees=3, walk=walk, beam_gap=1e6, decide="paths", random_state=0).fit(X, y)
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


@pytest.mark.parametrize("k", [0, 13, -1, 1.0, True, "3"])
def test_a_number_of_classes_out_of_range_is_told(k):
    model, X = fitted("linear")
    with pytest.raises(ValueError, match=r"k must be an integer from 1 to the number of classes, 12\. Got"):
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
    assert "Set calibration_folds='auto' and fit again" in str(refused.value)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_calibrated_probabilities_have_less_log_loss_than_bare_decision_values(digits, kernel):
    X, y = digits
    model = MarginTreeClassifier(kernel, C=10, walk="all", decide="paths", random_state=0)
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
        (
            {"walk": "greedy", "decide": "pairs"},
            "decide='pairs' chooses between finalists.*Set walk='beam', or leave decide",
        ),
        ({"walk": "greedy", "n_trees": 2}, "n_trees=2 averages path scores.*Set walk='beam', or n_trees=1"),
        ({"calibration_folds": 1}, "The 'calibration_folds' parameter of MarginTreeClassifier must be"),
        ({"prune": 1.0}, "The 'prune' parameter of MarginTreeClassifier must be"),
        ({"beam_width": 0}, "The 'beam_width' parameter of MarginTreeClassifier must be"),
        ({"n_finalists": 0}, "The 'n_finalists' parameter of MarginTreeClassifier must be"),
        ({"decide": "votes"}, "The 'decide' parameter of MarginTreeClassifier must be a str among"),
        ({"n_trees": "auto"}, "The 'n_trees' parameter of MarginTreeClassifier must be an int"),
        ({"n_trees": 0}, "The 'n_trees' parameter of MarginTreeClassifier must be"),
        ({"walk": "depth"}, "The 'walk' parameter of MarginTreeClassifier must be a str among"),
    ],
)
def test_parameters_that_do_not_go_together_are_named_with_what_to_do(parameters, message):
    with pytest.raises(ValueError, match=message):
        MarginTreeClassifier(**parameters).fit(*blobs(4, 5))


def arrays_of(model):
    """Return every array of a fitted model's prediction structures."""
    flat, decider = model._model, model._ranker.decider
    tables = [part.table for part in (flat, decider) if getattr(part, "table", None) is not None]
    arrays = [array for table in tables for array in (table.start, table.n_weights, table.cells, table.scale)]
    if not tables:
        arrays = [flat.start, flat.support, flat.coefficients, flat.constants]
    return [*arrays, flat.sigmoids.slope, flat.sigmoids.shift, decider.pair_start, decider.pair_other]


@pytest.mark.parametrize("case", LAYOUTS)
@pytest.mark.parametrize("n_trees", [1, 2])
def test_models_and_predictions_are_the_same_for_any_number_of_threads(digits, case, n_trees):
    X, y = LAYOUTS[case](digits[0]), digits[1]
    models = [
        MarginTreeClassifier(case.split(",")[0], n_jobs=n, n_trees=n_trees, random_state=0).fit(X[:200], y[:200])
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
            MarginTreeClassifier(kernel, C=10, n_trees=n, decide="paths", random_state=0).fit(X[train], y[train])
            for n in (1, 3)
        )
        assert len(three.trees_) == 3
        assert three.trees_[0] == one.tree_ == three.tree_
        differ += [tree != three.tree_ for tree in three.trees_[1:]]
        gains.append(three.score(X[test], y[test]) - one.score(X[test], y[test]))
    # Halves of the rows may agree on a structure, but not as a rule.
    assert np.mean(differ) >= 0.5
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
@pytest.mark.parametrize("decide", ["pairs", "rest"])
def test_a_single_finalist_is_the_best_path(walk, decide):
    """Nobody but finalists is decided between, however wide the beam is."""
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 40)
    X = random.normal(size=(6, 4))[y] + random.normal(size=(len(y), 4))
    parameters = {"walk": walk, "beam_gap": 10.0, "calibration_folds": 3, "random_state": 0}
    one = MarginTreeClassifier(decide=decide, n_finalists=1, **parameters).fit(X, y)
    paths = MarginTreeClassifier(decide="paths", **parameters).fit(X, y)
    np.testing.assert_array_equal(one.predict(X), paths.predict(X))
