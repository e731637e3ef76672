"""Scorers of leaves: whom they are trained against, and what they know of rows that do not count."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from margintree.solvers.linear_rows import POLISH_WORK
from margintree.solvers.training_set import LinearTrainingSet
from margintree.training.leaf_scorers import Blend, LeafTrainer, fit_blend, pairs_of

N_CLASSES, PER_CLASS, N_LISTED = 6, 12, 3
NOTHING = Blend(0.0, 0.0, 0.0)


def shortlists(random, class_of_row, signal, noise):
    """Return classes listed for each row, -1 for none, and path scores that know the own class by ``signal``."""
    scores = noise * random.normal(size=(len(class_of_row), N_CLASSES)) - 2.0
    scores[np.arange(len(class_of_row)), class_of_row] += signal
    listed = np.argsort(-scores, axis=1)[:, :N_LISTED]
    listed_scores = np.take_along_axis(scores, listed, axis=1)
    # Some lists are shorter.
    short = random.random(len(listed)) < 0.3
    listed[short, -1], listed_scores[short, -1] = -1, -np.inf
    return listed, listed_scores, scores[np.arange(len(class_of_row)), class_of_row]


def leaf_trainer(seed, *, n_columns=5, spread=1.0, signal=1.0, noise=1.0, make=np.asarray, change=None):
    """Return a trainer on overlapping classes; ``change`` may replace the rows before training."""
    random = np.random.default_rng(seed)
    class_of_row = np.repeat(np.arange(N_CLASSES), PER_CLASS)
    X = random.normal(size=(N_CLASSES, 5))[class_of_row] + spread * random.normal(size=(len(class_of_row), 5))
    listed, scores, own = shortlists(random, class_of_row, signal, noise)
    X = np.pad(X, [(0, 0), (0, n_columns - 5)])
    X = X if change is None else change(X)
    weight = np.ones(len(X))
    class_start = np.arange(0, len(X) + 1, PER_CLASS)
    training_set = LinearTrainingSet(make(X), class_start, weight, weight, fit_intercept=True)
    pairs = pairs_of(training_set, weight, listed, scores, own)
    trainer = LeafTrainer(
        training_set=training_set,
        pairs=pairs,
        weight=weight,
        importance=weight,
        prune=0.0,
        tol=1e-8,
        max_iter=100_000,
        seed=0,
        n_threads=1,
    )
    return trainer, X, class_of_row, listed, scores, own


def dense(scorer, n_columns):
    weights = np.zeros(n_columns)
    weights[scorer.columns] = scorer.weights
    return weights


def classes_of(pairs):
    return np.repeat(np.arange(N_CLASSES), np.diff(pairs.start))


def test_a_row_is_paired_with_its_list_and_with_its_own_class():
    trainer, _, class_of_row, listed, scores, own = leaf_trainer(0)
    pairs, expected = trainer.pairs, {}
    for row, (classes, values) in enumerate(zip(listed.tolist(), scores.tolist(), strict=True)):
        expected |= {(row, k): (value, True) for k, value in zip(classes, values, strict=True) if k >= 0}
        expected.setdefault((row, int(class_of_row[row])), (own[row], False))
    signs = np.concatenate([pairs.sign(k) for k in range(N_CLASSES)])
    keys = list(zip(pairs.row.tolist(), classes_of(pairs).tolist(), strict=True))
    assert len(keys) == len(set(keys)) == len(expected)
    assert len(keys) <= len(class_of_row) * (N_LISTED + 1)
    for key, score, is_listed, sign in zip(keys, pairs.path_score, pairs.is_listed, signs, strict=True):
        assert (score, is_listed) == (np.float32(expected[key][0]), expected[key][1])
        assert sign == (1.0 if class_of_row[key[0]] == key[1] else -1.0)
    assert not pairs.is_listed.all()


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("n_columns", [5, 150], ids=["small", "large"])
@pytest.mark.parametrize("blend", [Blend(-0.4, 0.7, 0.3), NOTHING], ids=["offset", "nothing"])
def test_a_scorer_minimises_its_loss_from_the_offset(make, n_columns, blend):
    trainer, X, *_ = leaf_trainer(1, n_columns=n_columns, make=make)
    assert (len(X) * n_columns**2 <= POLISH_WORK) == (n_columns == 5)
    # Few of 150 columns are not zero: such rows need no intercept beside the constant of the blend.
    has_intercept = n_columns == 5 or blend == NOTHING
    cost_factor = 2.0
    for k, scorer in enumerate(trainer.train(blend, cost_factor)):
        part = trainer.pairs.of_class(k)
        rows, signs, offset = X[trainer.pairs.row[part], :5], trainer.pairs.sign(k), blend.of(trainer.pairs, part)
        mean = np.append(rows[signs > 0.0].sum(axis=0), 0.0)
        rows = np.column_stack([rows, np.full(len(rows), float(has_intercept))])

        def loss(weights, rows=rows, signs=signs, offset=offset):
            slack = np.maximum(0.0, 1.0 - signs * (rows @ weights + offset))
            return 0.5 * weights @ weights + 0.5 * cost_factor * slack @ slack

        best = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-9}).x
        expected = best + blend.mean_weight * mean / np.linalg.norm(mean)
        np.testing.assert_allclose(dense(scorer, n_columns)[:5], expected[:5], atol=1e-3)
        assert scorer.intercept == pytest.approx(blend.constant + expected[5], abs=1e-3)
        assert (abs(expected[5]) > 1e-3) == has_intercept


@pytest.mark.parametrize("n_columns", [5, 150], ids=["small", "large"])
def test_scorers_do_not_change_with_rows_that_do_not_count(n_columns):
    counted = np.arange(N_CLASSES * PER_CLASS) % 3 != 0

    def poisoned(X):
        return np.where(counted[:, None], X, -10.0 * X)

    blend = Blend(0.1, 0.5, 0.0)
    scorers = []
    for change in (None, poisoned):
        trainer, *_ = leaf_trainer(2, n_columns=n_columns, change=change)
        # The projections are part of the offset and do know all rows of a class; the solver must not.
        without = Blend(blend.constant, 0.0, 0.0)
        scorers.append([dense(scorer, n_columns) for scorer in trainer.train(without, 1.0, counted)])
        everything = [dense(scorer, n_columns) for scorer in trainer.train(without, 1.0)]
    np.testing.assert_array_equal(scorers[0], scorers[1])
    assert np.abs(np.array(everything) - scorers[1]).max() > 0.01


@pytest.mark.parametrize("signal", [2.0, -6.0])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_no_fact_counts_against_a_class(signal, side):
    """Paths or means that point the wrong way are left out, and the rest is fitted as if they were not there."""
    trainer, *_ = leaf_trainer(4, signal=signal, spread=0.3)
    pairs = replace(trainer.pairs, projection=side * trainer.pairs.projection)
    blend = fit_blend(pairs, trainer.importance)
    assert (blend.path_weight > 0.0, blend.mean_weight > 0.0) == (signal > 0.0, side > 0.0)
    signs = np.concatenate([pairs.sign(k) for k in range(N_CLASSES)])

    def loss(constant, mean_weight, path_weight):
        offset = Blend(constant, max(0.0, mean_weight), max(0.0, path_weight)).of(pairs, slice(None))
        return np.square(np.maximum(0.0, 1.0 - signs * offset)).sum()

    lowest = loss(blend.constant, blend.mean_weight, blend.path_weight)
    for step in 1e-2 * np.vstack([np.eye(3), -np.eye(3)]):
        assert loss(*(np.array([blend.constant, blend.mean_weight, blend.path_weight]) + step)) > lowest - 1e-3
