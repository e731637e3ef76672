"""The metric in which classes are round, and the machines that are trained in it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from scipy.special import logsumexp
from sklearn.covariance import ledoit_wolf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from margintree import compiled
from margintree.solvers import training_set as sets
from margintree.solvers.class_metric import ClassMetric
from margintree.solvers.softmax_machines import RowLists, SoftmaxTrainer
from margintree.solvers.training_set import LinearTrainingSet

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def class_rows(seed=0, *, n_classes=8, per_class=20, n_features=12, apart=1.0, shift=0.0):
    """Return rows of Gaussian classes, sorted, whose shared covariance is far from round."""
    random = np.random.default_rng(seed)
    root = np.geomspace(3.0, 0.2, n_features)[:, None] * np.linalg.qr(random.normal(size=(n_features, n_features)))[0]
    y = np.repeat(np.arange(n_classes), per_class)
    means = apart * random.normal(size=(n_classes, n_features)) + shift
    return means[y] + random.normal(size=(len(y), n_features)) @ root, y


def training_set_of(X, y, weight=None, cost=None, **options):
    weight = np.ones(len(y)) if weight is None else weight
    class_start = np.searchsorted(y, np.arange(y[-1] + 2))
    return LinearTrainingSet(X, class_start, weight, weight if cost is None else cost, fit_intercept=True, **options)


def metric_of(X, y, weight=None, counted=None):
    importance = np.ones(len(y)) if weight is None else weight
    if counted is not None:
        importance = np.where(counted, importance, 0.0)
    return ClassMetric.of(training_set_of(X, y, weight), y, importance)


def centred(X, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return X - np.array([np.average(X[y == k], axis=0, weights=weight[y == k]) for k in range(y[-1] + 1)])[y]


def covariance_of(metric):
    """Return the covariance that the metric makes round, but for a factor: its trace is 1."""
    covariance = np.linalg.inv(metric.transform @ metric.transform.T)
    return covariance / np.trace(covariance)


@DTYPES
@pytest.mark.parametrize("weighted", [False, True])
def test_classes_are_round_in_their_metric(dtype, weighted):
    X, y = class_rows(per_class=1000, shift=2.0)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, size=len(y)) if weighted else np.ones(len(y))
    X = X.astype(dtype)
    metric = metric_of(X, y, weight)

    def roundness(rows):
        within = centred(rows, y, weight)
        variances = np.linalg.eigvalsh(within.T @ (weight[:, None] * within))
        return variances[0] / variances[-1]

    Z = metric.rows(training_set_of(X, y, weight))
    assert Z.dtype == np.float32
    assert roundness(X) < 0.01
    assert roundness(Z) > 0.9
    np.testing.assert_allclose(Z, (X - metric.centre) @ metric.transform, atol=1e-3)


@DTYPES
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_rows_keep_their_length_on_average(dtype, scale):
    X, y = class_rows(1, shift=0.5)
    X, weight = (scale * X).astype(dtype), np.random.default_rng(1).uniform(0.2, 3.0, size=len(y))
    Z = metric_of(X, y, weight).rows(training_set_of(X, y, weight)).astype(np.float64)
    assert weight @ np.sum(Z**2, axis=1) == pytest.approx(weight @ np.sum(X.astype(np.float64) ** 2, axis=1), rel=1e-4)


@DTYPES
@pytest.mark.parametrize("apart", [0.3, 1.0, 10.0])
def test_the_covariance_is_that_of_ledoit_and_wolf_in_units_of_the_fourth_moments(dtype, apart):
    for seed in range(3):
        X, y = class_rows(seed, n_classes=20, per_class=15, n_features=30, apart=apart)
        unit = np.mean(centred(X, y) ** 4, axis=0) ** 0.25
        expected, shrinkage = ledoit_wolf(centred(X, y) / unit, assume_centered=True)
        expected *= np.outer(unit, unit)
        assert shrinkage > 0.02
        found, expected = covariance_of(metric_of(X.astype(dtype), y)), expected / np.trace(expected)
        assert np.linalg.norm(found - expected) <= 0.01 * np.linalg.norm(expected)
        # Without shrinkage the difference would show.
        plain = np.cov(centred(X, y).T)
        assert np.linalg.norm(plain / np.trace(plain) - expected) > 0.02 * np.linalg.norm(expected)


def test_a_row_of_weight_two_counts_as_two_in_the_covariance():
    X, y = class_rows(2, per_class=200)
    times = np.random.default_rng(0).integers(1, 4, size=len(y))
    weighted = metric_of(X, y, times.astype(float))
    repeated = metric_of(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.centre, repeated.centre, atol=1e-9)
    np.testing.assert_allclose(covariance_of(weighted), covariance_of(repeated), atol=1e-9)


def test_rows_that_do_not_count_have_no_influence_on_the_metric():
    X, y = class_rows(3)
    counted = np.random.default_rng(0).random(len(y)) < 0.8
    metric = metric_of(X, y, counted=counted)
    poisoned = metric_of(np.where(counted[:, None], X, 5.0 * X + 7.0), y, counted=counted)
    alone = metric_of(X[counted], y[counted])
    for other in (poisoned, alone):
        np.testing.assert_allclose(covariance_of(other), covariance_of(metric), atol=1e-9)
    for other in (poisoned, alone):
        np.testing.assert_allclose(other.centre, metric.centre, atol=1e-9)
        np.testing.assert_allclose(np.linalg.norm(other.transform), np.linalg.norm(metric.transform), rtol=1e-9)


def test_features_that_do_not_vary_leave_a_finite_metric():
    X, y = class_rows(4, n_features=6)
    X[:, 2], X[:, 4] = 3.0, 0.0
    assert np.isfinite(metric_of(X, y).transform).all()


def test_classes_that_do_not_vary_at_all_keep_their_distances():
    X, _ = class_rows(4, n_features=6)
    means, y = X[::20], np.arange(8)
    for rows, classes in ((means, y), (np.repeat(means, 3, axis=0), np.repeat(y, 3))):
        Z = metric_of(rows, classes).rows(training_set_of(rows, classes))
        ratio = pdist(Z) / np.maximum(pdist(rows), 1e-9)
        np.testing.assert_allclose(ratio[ratio > 1e-6], ratio.max(), rtol=1e-4)
        assert np.sum(Z**2) == pytest.approx(np.sum(rows**2), rel=1e-4)


def test_rows_that_are_all_the_same_leave_a_finite_metric():
    for value in (0.0, 3.0):
        assert np.isfinite(metric_of(np.full((12, 5), value), np.repeat(np.arange(4), 3)).transform).all()


def test_pieces_make_no_difference_to_metric_and_rows(monkeypatch):
    X, y = class_rows(5)
    metric, Z = metric_of(X, y), metric_of(X, y).rows(training_set_of(X, y))
    # Seven rows at a time, so that a class is in several pieces.
    monkeypatch.setattr(sets, "PIECE_VALUES", 7 * X.shape[1])
    np.testing.assert_allclose(covariance_of(metric_of(X, y)), covariance_of(metric), atol=1e-12)
    np.testing.assert_allclose(metric.rows(training_set_of(X, y)), Z, atol=1e-5)


def test_the_own_class_comes_first_and_is_no_rival():
    finalists = np.array([[3, 1, 2, -1], [0, 1, 2, 3], [2, -1, -1, -1], [1, 2, 0, -1]], dtype=np.int32)
    scores = -np.arange(16, dtype=np.float32).reshape(4, 4)
    own, own_score = np.array([1, 0, 2, 3]), np.array([-50.0, -60.0, -70.0, -80.0])
    lists = RowLists.of(own, finalists, scores, own_score)
    np.testing.assert_array_equal(
        lists.classes, [[1, 3, 2, -1, -1], [0, 1, 2, 3, -1], [2, -1, -1, -1, -1], [3, 1, 2, 0, -1]]
    )
    # A class that is a finalist has the score of one; only the last row is none of its own finalists.
    expected = [[-1, 0, -2, 0, 0], [-4, -5, -6, -7, 0], [-8, 0, 0, 0, 0], [-80, -12, -13, -14, 0]]
    np.testing.assert_array_equal(lists.path_scores, expected)


@pytest.fixture
def trained(monkeypatch):
    """Return a function that trains machines, and records what the solver was given and found."""

    def train(seed=0, *, apart=0.5, dtype=np.float64, places=None, order=None, importance=None, poison=None):
        X, y = class_rows(seed, apart=apart, shift=1.0)
        random = np.random.default_rng(seed)
        cost, n_classes = random.uniform(0.1, 2.0, size=len(y)), y[-1] + 1
        if importance is None:
            importance = cost / cost.mean()
        if poison is not None:
            X[poison], cost[poison] = 4.0 * X[poison] + 5.0, 3.0
        # Each row has all classes but one on its list, in any order, and noise as the score of their paths.
        finalists = random.permuted(np.tile(np.arange(n_classes, dtype=np.int32), (len(y), 1)), axis=1)[:, :-1]
        scores = (finalists == y[:, None]) + random.normal(size=finalists.shape)
        order = random.permutation(len(y)) if order is None else order
        if places is not None:
            # Within classes, so that they stay sorted.
            X, cost, importance = X[places], cost[places], importance[places]
            finalists, scores, order = finalists[places], scores[places], np.argsort(places)[order]
        lists = RowLists.of(y, finalists, scores.astype(np.float32), np.full(len(y), -2.0))
        training_set = training_set_of(X.astype(dtype), y, cost=cost)
        trainer = SoftmaxTrainer.of(training_set, lists, importance, order)
        seen = SimpleNamespace(X=X, y=y, trainer=trainer, lists=lists)
        solve = compiled.softmax_dual.solve

        def watched(Z, order, listed, offsets, cost, weights, intercepts, tol, max_iter, stop):
            seen.offsets, seen.cost, seen.rows = offsets.copy(), cost, order
            result = solve(Z, order, listed, offsets, cost, weights, intercepts, tol, max_iter, stop)
            seen.weights, seen.intercepts = weights.copy(), intercepts.copy()
            return result

        with monkeypatch.context() as patch:
            patch.setattr(compiled.softmax_dual, "solve", watched)
            seen.machines, seen.path_weight, seen.gap = trainer.train(2.0, 1e-4, 200)
        return seen

    return train


def machine_scores(machines, X):
    return np.column_stack([X[:, one.columns] @ one.weights + one.intercept for one in machines])


@DTYPES
def test_machines_give_the_rows_the_scores_that_they_have_in_the_metric(trained, dtype):
    seen = trained(dtype=dtype)
    n_rows, size = seen.lists.classes.shape
    scores = machine_scores(seen.machines, seen.X)
    in_metric = seen.trainer.Z.astype(np.float64) @ seen.weights.T + seen.intercepts
    row, place = np.nonzero(seen.lists.classes >= 0)
    is_rival = place > 0
    row, place = row[is_rival], place[is_rival]
    class_ = seen.lists.classes[row, place]
    # The offsets are those of the class means, in the metric, and of the path.
    expected = in_metric[row, class_] + seen.offsets[row, place]
    found = scores[row, class_] + seen.path_weight * seen.lists.path_scores[row, place]
    assert len(row) > 0.8 * n_rows * (size - 1)
    assert np.abs(in_metric[row, class_]).mean() > 0.1
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_offsets_are_discriminant_scores_and_path_scores_in_the_blend_that_is_most_likely(trained):
    seen = trained(1)
    X, y, importance = seen.X, seen.y, seen.trainer.importance
    Z = ((X - seen.trainer.metric.centre) @ seen.trainer.metric.transform).astype(np.float64)
    scores = np.zeros(seen.lists.classes.shape)
    for i, classes in enumerate(seen.lists.classes):
        for place, k in enumerate(classes[classes >= 0]):
            counts = importance * (y == k)
            counts[i] -= min(1.0, importance[i]) * (place == 0)
            mean = counts @ Z / counts.sum()
            log_prior = np.log(counts.sum() / importance.sum())
            scores[i, place] = Z[i] @ mean - 0.5 * mean @ mean + seen.trainer.metric.variance * log_prior

    def offsets(blend):
        return blend[0] * scores + blend[1] * seen.lists.path_scores

    def loss(blend):
        value = np.where(seen.lists.classes >= 0, offsets(blend), -np.inf)
        return importance @ (logsumexp(value, axis=1) - value[:, 0])

    blend = minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-7}).x
    assert blend.min() > 0.1
    assert seen.path_weight == pytest.approx(blend[1], abs=1e-3)
    is_listed = seen.lists.classes >= 0
    np.testing.assert_allclose(seen.offsets[is_listed], offsets(blend)[is_listed], atol=5e-3)


def test_without_a_cost_classes_of_different_sizes_are_those_of_discriminant_analysis():
    random = np.random.default_rng(0)
    sizes = np.array([300, 100, 30, 10, 5])
    y = np.repeat(np.arange(5), sizes)
    X = random.normal(size=(5, 4))[y] + random.normal(size=(len(y), 4))
    training_set = training_set_of(X, y)
    trainer = SoftmaxTrainer.of(training_set, RowLists.of_all(y, 5), np.ones(len(y)), np.arange(len(y)))
    machines, _, _ = trainer.train(0.0, 1e-2, 100)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", priors=sizes / sizes.sum()).fit(X, y)
    rows = 2.0 * random.normal(size=(2000, 4))
    expected = theirs.predict(rows)
    assert np.mean(np.argmax(machine_scores(machines, rows), axis=1) == expected) > 0.97
    # With equal priors it would be another classifier.
    equal = LinearDiscriminantAnalysis(solver="lsqr", priors=np.full(5, 0.2)).fit(X, y)
    assert np.mean(equal.predict(rows) == expected) < 0.8


def test_a_fact_that_speaks_against_the_own_class_is_not_used(trained):
    seen = trained(2)
    against = RowLists(seen.lists.classes, -5.0 * seen.lists.path_scores)
    trainer = replace(seen.trainer, lists=against)
    assert seen.path_weight > 0.1
    assert trainer.train(2.0, 1e-4, 200)[1] == 0.0


def test_the_cost_factor_is_that_of_the_rows(trained):
    seen = trained(3)
    assert 0.0 <= seen.gap <= 1e-4
    np.testing.assert_allclose(seen.cost, 2.0 * np.random.default_rng(3).uniform(0.1, 2.0, size=len(seen.y)))


def test_rows_of_no_importance_teach_nothing(trained):
    importance = np.where(np.random.default_rng(0).random(160) < 0.8, 1.0, 0.0)
    one = trained(4, importance=importance)
    np.testing.assert_array_equal(np.sort(one.rows), np.flatnonzero(importance))
    other = trained(4, importance=importance, poison=importance == 0.0)
    assert np.abs(one.X - other.X).max() > 5.0
    assert other.path_weight == pytest.approx(one.path_weight, abs=1e-6)
    found, expected = (machine_scores(seen.machines, one.X[importance > 0.0]) for seen in (other, one))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_machines_do_not_depend_on_where_the_rows_of_a_class_stand(trained):
    random = np.random.default_rng(5)
    places = np.concatenate([20 * k + random.permutation(20) for k in range(8)])
    one, other = trained(5), trained(5, places=places)
    assert other.path_weight == pytest.approx(one.path_weight, abs=1e-5)
    for mine, theirs in zip(one.machines, other.machines, strict=True):
        np.testing.assert_allclose(theirs.weights, mine.weights, atol=1e-3 * np.abs(mine.weights).max())
        assert theirs.intercept == pytest.approx(mine.intercept, abs=1e-3)
    # Another order of the steps ends elsewhere, within the tolerance of the solver: the order is in use.
    changed = trained(5, order=np.arange(160))
    assert np.abs(changed.machines[0].weights - one.machines[0].weights).max() > 1e-6


@DTYPES
def test_machines_of_rows_that_stand_anywhere_are_those_of_sorted_ones(trained, dtype):
    seen = trained(6, dtype=dtype)
    place = np.random.default_rng(0).permutation(len(seen.y))
    anywhere = np.empty(seen.X.shape, dtype=dtype)
    anywhere[place] = seen.X
    training_set = training_set_of(anywhere, seen.y, cost=seen.cost / 2.0, order=place)
    trainer = SoftmaxTrainer.of(training_set, seen.lists, seen.trainer.importance, seen.trainer.order)
    machines, path_weight, _ = trainer.train(2.0, 1e-4, 200)
    assert path_weight == pytest.approx(seen.path_weight, rel=1e-9)
    for mine, theirs in zip(machines, seen.machines, strict=True):
        np.testing.assert_allclose(mine.weights, theirs.weights, rtol=1e-9)
        assert mine.intercept == pytest.approx(theirs.intercept, rel=1e-9)
