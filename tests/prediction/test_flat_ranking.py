"""All classes are finalists and the path has no weight: all machines are asked at once, and nothing else changes."""

import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.svm import LinearSVC

from margintree import MarginTreeClassifier, compiled, load_model, save_model
from margintree.datasets import fetch, prepared
from margintree.prediction.decider import Decider
from margintree.prediction.flat_ranking import FlatRanking
from margintree.prediction.weight_table import WeightTable
from margintree.solvers import training_set as sets
from margintree.solvers.classifier import LinearClassifier
from margintree.solvers.row_layout import layout

# The layouts of machines: how many columns, which part of them has a weight, and whether rows are sparse.
LAYOUTS = {"dense": (30, 1.0, False), "dense weights": (30, 1.0, True), "sparse": (400, 0.2, True)}


def table_of(n_classes, n_features, share, seed=0):
    random = np.random.default_rng(seed)
    machines = []
    for k in range(n_classes):
        # One machine has no weight at all, as that of a class without rows of its own.
        columns = np.flatnonzero(random.random(n_features) < share) if k != 2 else np.empty(0, dtype=np.int64)
        machines.append(LinearClassifier(columns, 10.0**k * random.normal(size=len(columns)), random.normal()))
    return WeightTable.from_classifiers(machines, n_features)


def rows_of(n_features, is_sparse, seed=1):
    random = np.random.default_rng(seed)
    X = random.normal(size=(50, n_features)) * (random.random((50, n_features)) < 0.4)
    X[3] = 0.0
    return sp.csr_array(X) if is_sparse else X


@pytest.mark.parametrize("case", LAYOUTS)
@pytest.mark.parametrize("n_threads", [1, 3])
def test_classes_and_probabilities_are_those_of_the_softmax_of_all_scores(weights_of, case, n_threads):
    n_features, share, is_sparse = LAYOUTS[case]
    table, X = table_of(6, n_features, share), rows_of(n_features, is_sparse)
    # More rows than a second thread is started for.
    X = sp.vstack([X] * 20, format="csr") if is_sparse else np.tile(X, (20, 1))
    flat = FlatRanking.of(table, 0.01)
    assert len(flat.machines[0]) == (3 if case == "sparse" else 1)
    scores = X @ weights_of(table).T + table.intercept
    expected = softmax(0.01 * scores, axis=1)
    np.testing.assert_allclose(flat.probabilities(X, n_threads), expected, atol=1e-12)
    order = np.argsort(-scores, axis=1, kind="stable")
    for k in (1, 3, 6):
        classes, probabilities = flat.top(X, k, n_threads)
        np.testing.assert_array_equal(classes, order[:, :k])
        np.testing.assert_allclose(probabilities, np.take_along_axis(expected, order[:, :k], axis=1), atol=1e-12)


@pytest.mark.parametrize("case", LAYOUTS)
def test_one_row_gets_what_it_gets_in_a_batch(case):
    n_features, share, is_sparse = LAYOUTS[case]
    flat, X = FlatRanking.of(table_of(6, n_features, share), 0.3), rows_of(n_features, is_sparse)
    classes, scores = flat.top(X, 4)
    for i in range(X.shape[0]):
        row = (X[[i]].indices.astype(np.int32), X[[i]].data) if is_sparse else (X[i],)
        assert compiled.flat.largest(row, n_features, flat.machines) == classes[i, 0]
        best, probabilities = compiled.flat_ranking.best(row, n_features, flat.machines, 0.3, 4)
        np.testing.assert_array_equal(best, classes[i])
        np.testing.assert_array_equal(probabilities, scores[i])


def test_of_scores_that_tie_the_first_class_wins_even_where_probabilities_are_zero():
    machines = [LinearClassifier(np.arange(1), np.array([w]), 0.0) for w in (-2.0, 5.0, 5.0, -1.0)]
    flat = FlatRanking.of(WeightTable.from_classifiers(machines, 1), 1e6)
    classes, probabilities = flat.top(np.ones((1, 1)), 4)
    assert classes.tolist() == [[1, 2, 3, 0]]
    assert probabilities.tolist() == [[0.5, 0.5, 0.0, 0.0]]


def test_memory_goes_by_the_weights_however_many_features_there_are():
    n_features = 2**31 - 1
    random = np.random.default_rng(0)
    columns = np.sort(random.choice(n_features, 100, replace=False))
    weights = random.normal(size=(5, 100))
    table = WeightTable.from_classifiers([LinearClassifier(columns, w, 0.0) for w in weights], n_features)
    tracemalloc.start()
    flat = FlatRanking.of(table, 1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20
    values = random.normal(size=(20, 100))
    X = sp.csr_array((values.ravel(), np.tile(columns, 20), 100 * np.arange(21)), shape=(20, n_features))
    np.testing.assert_array_equal(flat.top(X, 1)[0][:, 0], np.argmax(values @ weights.T, axis=1))


@pytest.fixture(scope="module")
def text():
    """Return rows like those of texts: sparse, of unit length, more features than rows of a class."""
    random = np.random.default_rng(0)
    topics = random.dirichlet(np.full(300, 0.05), size=8)
    y = np.repeat(np.arange(8), 150)
    X = np.array([random.multinomial(40, 0.3 * topics[k] + 0.7 / 300) for k in y], dtype=float)
    order = random.permutation(len(y))
    return sp.csr_array(X / np.linalg.norm(X, axis=1, keepdims=True))[order], y[order]


@pytest.fixture(scope="module")
def model(text):
    """Return a model whose path has no weight."""
    fitted = MarginTreeClassifier(decide="rest", n_finalists=8, random_state=0).fit(*text)
    fitted._ranker = replace(fitted._ranker, decider=replace(fitted._ranker.decider, path_weight=0.0))
    assert fitted._ranker.flat is not None
    return fitted


def test_the_walk_along_all_paths_says_the_same(text, model):
    """Paths have no weight and all of them together the probability one, so a walk says what the machines do."""
    X, _ = text
    ranker = model._ranker
    forest = ranker.tree.forest
    decider = ranker.decider.arrays(forest)
    classes, scores = np.empty((X.shape[0], 8), dtype=np.int64), np.empty((X.shape[0], 8))
    compiled.ranking.top(layout(X), 0, X.shape[0], forest, decider, 0, np.inf, 8, classes, scores)
    found, probabilities = model.predict_top_k(X, 8)
    np.testing.assert_array_equal(found, classes)
    np.testing.assert_allclose(probabilities, scores, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), classes[:, 0])
    np.testing.assert_array_equal(model.n_evaluations(X), 8)
    np.testing.assert_array_equal(model.predict_proba(X).argmax(axis=1), classes[:, 0])
    leaves = model.tree_.leaf_of_class[classes[:, 0]]
    assert model.decision_path(X)[np.arange(X.shape[0]), leaves].sum() == X.shape[0]


def test_single_rows_and_stored_models_say_the_same(text, model, tmp_path):
    X, _ = text
    X = X[::7]
    save_model(model, tmp_path / "model")
    for copy in (model, pickle.loads(pickle.dumps(model)), load_model(tmp_path / "model")):
        np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
        one = copy.single_instance()
        for i in range(X.shape[0]):
            columns, values = X[[i]].indices, X[[i]].data
            assert one.predict(columns, values) == model.predict(X[[i]])[0]
            np.testing.assert_allclose(one.predict_proba(columns, values), model.predict_proba(X[[i]])[0], atol=1e-12)
            classes, scores = one.predict_top_k(X[[i]].toarray()[0], k=3)
            expected, expected_scores = model.predict_top_k(X[[i]], 3)
            np.testing.assert_array_equal(classes, expected[0])
            np.testing.assert_allclose(scores, expected_scores[0], atol=1e-12)
        for bad in ((np.full(300, np.nan),), (np.array([3, 2], dtype=np.int32), np.ones(2))):
            for ask in (one.predict, one.predict_proba, lambda *row, one=one: one.predict_top_k(*row, k=2)):
                with pytest.raises(ValueError, match=r"(dense|sparse) row"):
                    ask(*bad)


def test_pickles_hold_the_machines_once(text, model):
    model.predict(text[0])
    assert "flat" in model._ranker.__dict__
    assert "flat" not in pickle.loads(pickle.dumps(model))._ranker.__dict__


def test_a_greedy_walk_stays_greedy(text, model):
    X, y = text
    greedy = MarginTreeClassifier(walk="greedy", random_state=0).fit(X, y)
    changed = pickle.loads(pickle.dumps(model)).set_params(walk="greedy")
    # Rows between the classes, on which the two ways to predict differ.
    between = sp.csr_array(X + X[::-1])
    assert (greedy.predict(between) != model.predict(between)).any()
    np.testing.assert_array_equal(changed.predict(between), greedy.predict(between))
    one = changed.single_instance()
    labels = [one.predict(between[[i]].indices, between[[i]].data) for i in range(X.shape[0])]
    np.testing.assert_array_equal(labels, greedy.predict(between))


def test_paths_that_count_or_may_leave_a_class_out_are_followed(model):
    ranker = model._ranker
    assert replace(ranker, decider=replace(ranker.decider, path_weight=0.2)).flat is None
    assert replace(ranker, decider=replace(ranker.decider, kind="pairs")).flat is None
    assert replace(ranker, decider=Decider("paths")).flat is None
    # The machines of a kernel lie in its tree.
    assert replace(ranker, decider=replace(ranker.decider, table=None)).flat is None
    assert replace(ranker, n_finalists=7).flat is None
    assert replace(ranker, n_finalists=500).flat is not None


def test_machines_against_all_rows_do_not_depend_on_the_walk(monkeypatch, text):
    # Without the candidates of logistic regression, among which the walk makes a choice.
    monkeypatch.setattr(sets, "MOMENT_WORK", 0)
    X, y = text
    tables = [
        MarginTreeClassifier(decide="rest", n_finalists=8, beam_width=width, beam_gap=gap, random_state=0)
        .fit(X, y)
        ._ranker.decider.table
        for width, gap in ((1, 0.5), (10, 10.0))
    ]
    np.testing.assert_array_equal(tables[0].cells, tables[1].cells)
    np.testing.assert_array_equal(tables[0].intercept, tables[1].intercept)


def test_twenty_classes_of_texts_are_told_apart_as_by_one_against_the_rest(data_directory):
    """Machines that see every row and are all asked solve the problem of LinearSVC."""
    bunch = fetch("news20", download_if_missing=False)
    X, y, n = prepared(bunch, np.arange(bunch.n_train)), bunch.target, bunch.n_train
    model = MarginTreeClassifier(decide="rest", n_finalists=20, beam_gap=100.0, random_state=0).fit(X[:n], y[:n])
    peer = LinearSVC(random_state=0).fit(X[:n], y[:n])
    np.testing.assert_array_equal(model.n_evaluations(X[n:]), 20)
    labels, expected = model.predict(X[n:]), peer.predict(X[n:])
    assert np.mean(labels != expected) < 0.002
    assert np.mean(labels == y[n:]) > np.mean(expected == y[n:]) - 0.001
