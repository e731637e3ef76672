"""How many trees there are where the user sets nothing."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import balanced_accuracy_score
from sklearn.svm import LinearSVC

from margintree import MarginTreeClassifier, load_model, save_model
from margintree.datasets import fetch, prepared
from margintree.estimators import margin_tree


def rows(n_classes, *, n_zeros=0, per_class=4, seed=0):
    """Return rows of 20 features, of which each row has so many zeros."""
    random = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), per_class)
    X = random.normal(size=(n_classes, 20))[y] + 0.7 * random.normal(size=(len(y), 20))
    order = random.permuted(np.tile(np.arange(20), (len(y), 1)), axis=1)
    np.put_along_axis(X, order[:, :n_zeros], 0.0, axis=1)
    return X, y


@pytest.fixture
def always_with_paths(monkeypatch):
    """Short lists and a tree for each, so that what is grown is also kept."""
    monkeypatch.setattr(margin_tree, "FEW_PAIRS", 0)


@pytest.mark.usefixtures("always_with_paths")
@pytest.mark.parametrize(
    ("n_classes", "n_zeros", "parameters", "expected"),
    [
        (20, 0, {}, 1),
        (21, 0, {}, 3),
        (21, 18, {}, 3),
        (21, 19, {}, 1),
        (128, 0, {}, 3),
        (129, 0, {}, 1),
        (21, 0, {"walk": "all"}, 3),
        (21, 0, {"walk": "greedy"}, 1),
        (21, 0, {"shortlist": 0}, 1),
        (21, 0, {"kernel": "rbf"}, 1),
        (21, 0, {"n_trees": 2}, 2),
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_dense_rows_of_more_classes_than_a_list_holds_and_not_too_many_get_three(
    make, n_classes, n_zeros, parameters, expected
):
    X, y = rows(n_classes, n_zeros=n_zeros)
    model = MarginTreeClassifier(random_state=0, **parameters).fit(make(X), y)
    assert len(model.trees_) == expected
    assert model.tree_ is model.trees_[0]
    assert model.n_trees == parameters.get("n_trees", "auto"), "fit must not change a parameter"


@pytest.mark.usefixtures("always_with_paths")
def test_three_trees_of_their_own_accord_are_the_three_that_one_asks_for():
    X, y = rows(40)
    by_itself, asked_for = (MarginTreeClassifier(n_trees=n, random_state=0).fit(X, y) for n in ("auto", 3))
    assert by_itself.trees_ == asked_for.trees_
    assert all(one != other for one, other in itertools.combinations(by_itself.trees_, 2)), "of different halves"
    np.testing.assert_array_equal(by_itself.predict_proba(X), asked_for.predict_proba(X))


def test_where_no_path_is_followed_only_the_first_tree_is_kept(tmp_path):
    # Labels by the largest of as many features: one class against all others is right, and paths have nothing to add.
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 24))
    y = X.argmax(axis=1)
    by_itself, asked_for, one = (MarginTreeClassifier(n_trees=n, random_state=0).fit(X, y) for n in ("auto", 3, 1))
    assert by_itself._ranker.flat is not None, "the data of this test must need no path"
    assert asked_for._ranker.flat is not None
    assert (len(by_itself.trees_), len(asked_for.trees_)) == (1, 3)
    assert by_itself.tree_ == asked_for.trees_[0] == one.tree_
    assert by_itself._ranker.tree is by_itself._model
    assert by_itself._model.table.cells.base is None, "the cells of all trees would stay in memory"
    np.testing.assert_array_equal(by_itself.predict_proba(X), asked_for.predict_proba(X))
    # What is left of the first tree is what a fit of one tree has: other walks work, and a file holds no more.
    for name in ("start", "n_weights", "cells", "scale", "intercept"):
        np.testing.assert_array_equal(getattr(by_itself._model.table, name), getattr(one._model.table, name))
    sigmoids, of_three = by_itself._model.sigmoids, asked_for._model.sigmoids
    np.testing.assert_array_equal(sigmoids.slope, of_three.slope[: one.tree_.n_nodes])
    np.testing.assert_array_equal(sigmoids.shift, of_three.shift[: one.tree_.n_nodes])
    save_model(by_itself, tmp_path / "one.margintree")
    loaded = load_model(tmp_path / "one.margintree")
    assert loaded.trees_ == by_itself.trees_
    np.testing.assert_array_equal(loaded.predict_proba(X), by_itself.predict_proba(X))


@pytest.mark.usefixtures("always_with_paths")
@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
def test_weight_two_is_a_row_that_stands_there_twice_with_several_trees_too(kernel):
    X, y = rows(24, per_class=6)
    weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    twice = np.random.default_rng(1).permutation(np.repeat(np.arange(len(y)), weight.astype(int)))
    # The search of best_first ends where rounding lets it; here only the halves of the rows are in question.
    parameters = {"kernel": kernel, "n_trees": 3, "split": "alternating", "tol": 1e-8, "max_iter": 10_000}

    def fitted(of, weights=None):
        seen = X[of] if kernel == "linear" else X[of] @ X[of].T
        model = MarginTreeClassifier(random_state=0, **parameters).fit(seen, y[of], weights)
        return model, model.predict_proba(X if kernel == "linear" else X @ X[of].T)

    weighted, repeated = fitted(np.arange(len(y)), weight), fitted(twice)
    assert weighted[0].trees_ == repeated[0].trees_
    np.testing.assert_allclose(weighted[1], repeated[1], atol=1e-4)


@pytest.mark.usefixtures("always_with_paths")
def test_a_row_of_weight_four_counts_four_times_where_rows_are_just_dense_enough():
    X, y = rows(21, n_zeros=17, per_class=6)
    is_empty = np.arange(len(y)) % 6 == 0
    X[is_empty] = 0.0
    times = np.where(is_empty, 4, 1)
    # Of the values 5/6 * 3/20 are not zero, 5/9 * 3/20 where empty rows count four times.
    plain, weighted = (MarginTreeClassifier(random_state=0).fit(X, y, weight) for weight in (None, times))
    repeated = MarginTreeClassifier(random_state=0).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert [len(model.trees_) for model in (plain, weighted, repeated)] == [3, 1, 1]


@pytest.mark.parametrize("share", [1e-3, 1e-16, 1e-20])
@pytest.mark.parametrize("split", ["best_first", "alternating", "random", "relaxation"])
def test_rows_that_weigh_next_to_nothing_do_not_make_a_half_of_their_class(split, share):
    X, y = rows(22, per_class=2)
    model = MarginTreeClassifier(split=split, random_state=0, n_trees=3).fit(X, y, np.tile([1.0, share], 22))
    assert model.score(X[::2], y[::2]) > 0.9


def test_random_splits_draw_another_tree_each_time():
    X, y = rows(24)
    trees = MarginTreeClassifier(split="random", n_trees=3, random_state=0).fit(X, y).trees_
    assert all(one != other for one, other in itertools.combinations(trees, 2))


def test_images_of_a_hundred_classes_are_told_apart_better_than_by_one_against_the_rest(data_directory):
    """Thirty images of each class to learn from; the mean per class over three draws of them."""
    bunch = fetch("caltech101", download_if_missing=False)
    gains = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(bunch.target))
        train = np.concatenate([order[bunch.target[order] == k][:30] for k in np.unique(bunch.target)])
        X, y = prepared(bunch, train), bunch.target
        test = np.setdiff1d(np.arange(len(y)), train)
        model, peer = MarginTreeClassifier(random_state=0), LinearSVC(random_state=0)
        scores = [balanced_accuracy_score(y[test], m.fit(X[train], y[train]).predict(X[test])) for m in (model, peer)]
        gains.append(scores[0] - scores[1])
    assert np.mean(gains) > 0.0, gains
