"""The metric of the classes: invariant to units, robust to rare features, defined for any rank."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from margintree import MarginTreeClassifier
from margintree.solvers import training_set as sets
from margintree.solvers.class_metric import ClassMetric
from margintree.solvers.training_set import LinearTrainingSet


def training_set(X, y):
    start = np.searchsorted(y, np.arange(y.max() + 2))
    return LinearTrainingSet(X, start, np.ones(len(y)), np.ones(len(y)), fit_intercept=True)


def metric_of(X, y):
    return ClassMetric.of(training_set(X, y), y, np.ones(len(y)))


def gaussian(random, n_classes=12, n_rows=8, n_features=20):
    y = np.repeat(np.arange(n_classes), n_rows)
    return random.standard_normal((n_classes, n_features))[y] + random.standard_normal((len(y), n_features)), y


def test_the_units_of_features_play_no_part():
    random = np.random.default_rng(0)
    X, y = gaussian(random)
    units = 10.0 ** random.uniform(-3, 3, X.shape[1])
    plain, scaled = metric_of(X, y), metric_of(X * units, y)
    Z, S = plain.rows(training_set(X, y)), scaled.rows(training_set(X * units, y))
    Z, S = Z / np.sqrt(plain.variance), S / np.sqrt(scaled.variance)
    np.testing.assert_allclose(S @ S.T, Z @ Z.T, atol=1e-3)


def test_accuracy_does_not_depend_on_units():
    random = np.random.default_rng(1)
    X, y = gaussian(random, n_rows=40)
    units = 10.0 ** random.uniform(-2, 2, X.shape[1])
    train = np.arange(len(y)) % 4 == 0
    found = MarginTreeClassifier().fit((X * units)[train], y[train]).score((X * units)[~train], y[~train])
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(X[train], y[train])
    assert found > lda.score(X[~train], y[~train]) - 0.01


def test_a_rare_feature_does_not_decide_how_much_is_shrunk():
    random = np.random.default_rng(2)
    X, y = gaussian(random, n_rows=30)
    rare = np.zeros((len(y), 10))
    rare[random.permutation(len(y))[:10], np.arange(10)] = 1.0
    within = metric_of(X, y).rows(training_set(X, y))
    both = np.hstack([X, rare])
    beside = metric_of(both, y).rows(training_set(both, y))
    assert np.corrcoef((within @ within.T).ravel(), (beside @ beside.T).ravel())[0, 1] > 0.95


@pytest.mark.parametrize("seed", range(8))
def test_fewer_rows_than_features(seed):
    # LAPACK's default driver ends with an internal error for some of these, when the covariance is shrunk first.
    random = np.random.default_rng(seed)
    y = np.repeat(np.arange(8), 12)
    X = random.poisson(0.05, (len(y), 600)).astype(np.float64)
    metric = metric_of(X, y)
    within = X - np.stack([X[y == k].mean(axis=0) for k in range(8)])[y]
    assert np.isfinite(metric.transform).all()
    # In all 600 directions; there are none but those of the rows.
    assert np.sum((within @ metric.transform) ** 2) / X.size <= metric.variance


def test_the_metric_of_few_rows_is_that_of_copies_that_share_their_weight():
    # Few rows have a metric in their span, copies one of all features.
    random = np.random.default_rng(4)
    X, y = gaussian(random, n_features=150)
    few, n_copies = training_set(X, y), 2
    copies = training_set(np.repeat(X, n_copies, axis=0), np.repeat(y, n_copies))
    copies.sample_weight = np.full(len(copies.sample_weight), 1 / n_copies)
    metric = ClassMetric.of(few, y, np.ones(len(y)))
    same = ClassMetric.of(copies, np.repeat(y, n_copies), copies.sample_weight)
    assert metric.transform.shape == (150, len(y))
    assert same.transform.shape == (150, 150)
    assert metric.variance == pytest.approx(same.variance)
    Z, S = metric.rows(few), same.rows(copies)[::n_copies]
    np.testing.assert_allclose(Z @ Z.T, S @ S.T, rtol=1e-4, atol=1e-4 * np.mean(np.sum(Z**2, axis=1)))


def test_features_that_are_always_zero_have_no_part_in_the_metric_of_few_rows():
    random = np.random.default_rng(6)
    X, y = gaussian(random, n_rows=4, n_features=100)
    more = np.insert(X, [0, 3, 50], 0.0, axis=1)
    plain, beside = metric_of(X, y), metric_of(more, y)
    assert np.abs(beside.transform[[0, 4, 52]]).max() < 1e-12
    Z, S = plain.rows(training_set(X, y)), beside.rows(training_set(more, y))
    similarity = np.corrcoef((Z @ Z.T).ravel(), (S @ S.T).ravel())[0, 1]
    # The mean variance that covariances are shrunk to is that of all features.
    assert similarity > 0.999


def test_wide_rows_take_seconds_not_minutes():
    # Decompositions of 2,500 x 2,500 numbers, one for each round of validation, would take far longer.
    random = np.random.default_rng(5)
    X, y = gaussian(random, n_classes=6, n_rows=10, n_features=2500)
    MarginTreeClassifier().fit(X[:, :200], y)
    begin = time.process_time()
    MarginTreeClassifier().fit(X, y)
    assert time.process_time() - begin < 5.0


def test_a_feature_that_varies_only_between_classes_has_no_unit_either():
    random = np.random.default_rng(3)
    X, y = gaussian(random, n_rows=30)
    X[:, 0] = np.round(X[:, 0] - X[:, 0] + np.arange(12)[y] % 3)
    Z, S = (metric_of(X * unit, y).rows(training_set(X * unit, y)) for unit in (1.0, np.r_[1e3, np.ones(19)]))
    similarity = [rows @ rows.T / np.mean(np.sum(rows**2, axis=1)) for rows in (Z, S)]
    np.testing.assert_allclose(similarity[0], similarity[1], atol=1e-3)
    # It tells classes apart better than any other one.
    assert np.abs(metric_of(X, y).transform[0]).max() > np.abs(metric_of(X, y).transform[1:]).max()


def test_the_rounding_of_a_constant_feature_is_not_its_unit():
    X, y = gaussian(np.random.default_rng(6), n_rows=30)
    # The mean is not exactly one of these values.
    metric = metric_of(np.column_stack([X, np.full(len(y), 0.1), np.full(len(y), -1e4 / 3)]), y)
    weight = np.abs(metric.transform).max(axis=1)
    # A new row may have another value there.
    assert weight[-2:].max() < 100.0 * weight[:-2].max()


def test_threads_make_no_difference(monkeypatch):
    # Nine rows at a time: passes over the rows have many parts.
    monkeypatch.setattr(sets, "PIECE_VALUES", 180)
    X, y = gaussian(np.random.default_rng(5), n_rows=40)
    several = training_set(X, y)
    several.n_threads = 3
    alone, together = (ClassMetric.of(rows, y, np.ones(len(y))) for rows in (training_set(X, y), several))
    np.testing.assert_array_equal(alone.transform, together.transform)
    np.testing.assert_array_equal(alone.rows(training_set(X, y)), together.rows(several))


def test_few_sparse_rows_are_as_good_as_dense_ones():
    random = np.random.default_rng(4)
    n_classes, n_features, n_levels = 10, 20, 4
    share = random.dirichlet(np.full(n_levels, 0.8), size=(n_classes, n_features))
    y = np.arange(1500) % n_classes
    level = (random.random((len(y), n_features, 1)) > np.cumsum(share, axis=2)[y]).sum(axis=2).clip(max=n_levels - 1)
    X = np.eye(n_levels)[level].reshape(len(y), -1)
    sparse = MarginTreeClassifier().fit(sp.csr_array(X[:500]), y[:500])
    dense = MarginTreeClassifier().fit(X[:500], y[:500])
    assert {one.loss for one in sparse.candidates_} == {one.loss for one in dense.candidates_}
    assert sparse.score(X[500:], y[500:]) == pytest.approx(dense.score(X[500:], y[500:]), abs=0.01)
