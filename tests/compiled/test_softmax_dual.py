"""Logistic regression on lists of classes: the dual ascent against scipy's minimiser, and the scores of class means."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from margintree.compiled import softmax_dual
from margintree.worker_threads import stop_flag

N_CLASSES, N_FEATURES = 6, 8


def list_problem(seed, *, spread=0.5, factor=1.0, n_rows=60, most_rivals=4):
    """Return rows, lists of one class to five, offsets and costs."""
    random = np.random.default_rng(seed)
    own = random.integers(0, N_CLASSES, size=n_rows)
    means = spread * random.normal(size=(N_CLASSES, N_FEATURES))
    Z = (means[own] + random.normal(size=(n_rows, N_FEATURES))).astype(np.float32)
    listed = np.full((n_rows, 1 + most_rivals), -1, dtype=np.int32)
    for i, y in enumerate(own):
        rivals = random.permutation(np.delete(np.arange(N_CLASSES), y))[: random.integers(0, most_rivals + 1)]
        listed[i, : 1 + len(rivals)] = [y, *rivals]
    offsets = random.normal(size=listed.shape).astype(np.float32)
    return Z, listed, offsets, factor * random.uniform(0.1, 2.0, size=n_rows)


def objective(flat, Z, listed, offsets, cost):
    """Return the primal value of weights with the intercepts behind them, and its gradient."""
    V = flat.reshape(N_CLASSES, -1)
    rows = np.column_stack([Z.astype(np.float64), np.ones(len(Z))])
    scores = np.where(listed >= 0, offsets + np.einsum("ij,ikj->ik", rows, V[listed]), -np.inf)
    total = logsumexp(scores, axis=1)
    residual = np.exp(scores - total[:, None]) - (np.arange(listed.shape[1]) == 0)
    gradient = V.copy()
    row, place = np.nonzero(listed >= 0)
    np.add.at(gradient, listed[row, place], (cost[row] * residual[row, place])[:, None] * rows[row])
    return 0.5 * np.sum(V**2) + cost @ (total - scores[:, 0]), gradient.ravel()


def exact(*problem):
    start = np.zeros(N_CLASSES * (N_FEATURES + 1))
    options = {"maxiter": 10_000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-9}
    best = minimize(objective, start, problem, method="L-BFGS-B", jac=True, options=options)
    return best.x.reshape(N_CLASSES, -1), best.fun


def solved(Z, listed, offsets, cost, *, order=None, tol=1e-6, max_iter=3000):
    weights, intercepts = np.zeros((N_CLASSES, N_FEATURES), dtype=np.float32), np.zeros(N_CLASSES)
    order = np.arange(len(Z)) if order is None else order
    n_iter, gap = softmax_dual.solve(
        Z, order, listed.copy(), offsets.copy(), cost, weights, intercepts, tol, max_iter, stop_flag()
    )
    return np.column_stack([weights, intercepts]), n_iter, gap


@pytest.mark.parametrize("spread", [0.3, 1.0])
@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0, 100.0])
def test_the_solution_is_that_of_scipys_minimiser(factor, spread):
    for seed in range(3):
        problem = list_problem(seed, spread=spread, factor=factor)
        assert len(np.unique((problem[1] >= 0).sum(axis=1))) == 5
        expected, least = exact(*problem)
        assert np.abs(expected[:, -1]).max() > 0.01
        found, _, _ = solved(*problem)
        assert objective(found.ravel(), *problem)[0] <= (1.0 + 1e-4) * least
        assert np.linalg.norm(found - expected) <= 1e-2 * np.linalg.norm(expected)


@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0, 100.0])
def test_a_run_that_ends_lies_no_further_from_the_optimum_than_its_tolerance(factor):
    for seed in range(5):
        problem = list_problem(seed, spread=1.0, factor=factor)
        _, least = exact(*problem)
        for tol in (1e-1, 1e-2, 1e-3):
            found, n_iter, gap = solved(*problem, tol=tol)
            value = objective(found.ravel(), *problem)[0]
            assert n_iter < 3000
            assert gap <= tol
            assert value - least <= tol * value


def test_one_epoch_leaves_a_gap_and_more_of_them_a_smaller_one():
    problem = list_problem(0)
    gaps = [solved(*problem, tol=1e-9, max_iter=n)[2] for n in (1, 5, 20)]
    assert gaps[0] > gaps[1] > gaps[2] > 0.0


def test_a_row_that_is_not_in_the_order_has_no_influence():
    Z, listed, offsets, cost = list_problem(1)
    order = np.random.default_rng(0).permutation(len(Z))[:50]
    left_out = np.setdiff1d(np.arange(len(Z)), order)
    found, *_ = solved(Z, listed, offsets, cost, order=order)
    changed = Z.copy(), listed.copy(), offsets.copy(), cost.copy()
    for array, other in zip(changed, (30.0, [5, 3, 1, 0, 2], 9.0, 70.0), strict=True):
        array[left_out] = other
    np.testing.assert_allclose(solved(*changed, order=order)[0], found, atol=1e-6)
    # Taken in, the same rows do show.
    assert np.abs(solved(*changed)[0] - found).max() > 0.1
    part = Z[order], listed[order], offsets[order], cost[order]
    assert objective(found.ravel(), *part)[0] <= (1.0 + 1e-4) * exact(*part)[1]


def test_a_class_on_no_list_keeps_weights_of_zero():
    Z, listed, offsets, cost = list_problem(2)
    rows = np.flatnonzero(~(listed == 4).any(axis=1))
    assert len(rows) > 10
    found, *_ = solved(Z, listed, offsets, cost, order=rows)
    np.testing.assert_array_equal(found.any(axis=1), np.arange(N_CLASSES) != 4)


def test_offsets_that_satisfy_every_row_leave_nothing_to_learn():
    Z, listed, offsets, cost = list_problem(3)
    offsets[:, 0] += 40.0
    found, n_iter, gap = solved(Z, listed, offsets, cost)
    np.testing.assert_array_equal(found, 0.0)
    assert gap == 0.0
    assert n_iter < 10


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_the_class_means_and_the_own_class_is_taken_without_the_row(seed):
    random = np.random.default_rng(seed)
    own = np.concatenate([np.repeat(np.arange(5), 6), [5]])
    # Rows count three quarters to two and a half; of one that counts more than one, one is left out.
    weight = random.uniform(0.75, 2.5, size=len(own))
    Z = random.normal(size=(len(own), N_FEATURES)).astype(np.float32)
    weight[-1] = 0.8
    members = [np.flatnonzero(own == k) for k in range(6)]
    class_weight = np.array([weight[rows].sum() for rows in members])
    means = np.array([weight[rows] @ Z[rows] / weight[rows].sum() for rows in members]).astype(np.float32)
    rivals = np.array([random.permutation(np.delete(np.arange(6), y))[:3] for y in own])
    listed = np.column_stack([own, rivals]).astype(np.int32)
    listed[::4, 2:] = -1
    found = np.full(listed.shape, 77.0, dtype=np.float32)
    log_prior = random.normal(size=6)
    constants = log_prior - 0.5 * np.sum(means.astype(np.float64) ** 2, axis=1)
    left_out = np.minimum(1.0, weight)
    softmax_dual.mean_scores(Z, means, constants, log_prior, 2.0, listed, left_out, class_weight, found)
    expected = np.full(listed.shape, 77.0)
    for i, classes in enumerate(listed):
        for place, k in enumerate(classes[classes >= 0]):
            counts = weight * (own == k)
            if place == 0:
                counts[i] -= min(1.0, weight[i])
            mean = counts @ Z / counts.sum() if counts.any() else np.zeros(N_FEATURES)
            # The own class is smaller by the row, if it has others.
            share = counts.sum() / class_weight[k] if counts.any() else 1.0
            expected[i, place] = Z[i] @ mean - 0.5 * mean @ mean + log_prior[k] + 2.0 * np.log(share)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    # The class of one row is unknown without it.
    assert found[-1, 0] == np.float32(log_prior[5])
