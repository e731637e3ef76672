"""Sigmoids and temperatures against scikit-learn's and scipy's answers to the same problems."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.calibration import _sigmoid_calibration

from margintree.compiled import sigmoids

WEAK = 1e-9


def decision_values(seed, n=60, slope=2.0, shift=-0.5):
    random = np.random.default_rng(seed)
    values = 2.0 * random.normal(size=n)
    signs = np.where(random.random(n) < expit(slope * values + shift), 1.0, -1.0)
    return values, signs, random.uniform(0.1, 3.0, size=n)


def penalised_loss(parameters, values, signs, weights, prior, strength):
    a, b = parameters
    n_left, n_right = weights[signs > 0].sum(), weights[signs < 0].sum()
    target = np.where(signs > 0, (n_left + 1) / (n_left + 2), 1 / (n_right + 2))
    log_odds = a * values + b
    likelihood = target * log_expit(log_odds) + (1 - target) * log_expit(-log_odds)
    return strength / 2 * ((a - prior) ** 2 + b**2) - weights @ likelihood


@pytest.mark.parametrize("seed", range(5))
def test_without_a_penalty_the_sigmoid_is_that_of_platt(seed):
    values, signs, _ = decision_values(seed)
    a, b = sigmoids.fit_sigmoid(values, signs, np.ones(len(values)), 1.0, WEAK)
    # scikit-learn's sigmoid is 1 / (1 + exp(A f + B)).
    theirs = _sigmoid_calibration(values, signs)
    np.testing.assert_allclose([a, b], [-theirs[0], -theirs[1]], atol=1e-3)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 80),
    slope=st.sampled_from([-3.0, 0.0, 0.5, 20.0]),
    prior=st.sampled_from([0.1, 1.0, 30.0]),
    strength=st.sampled_from([0.01, 3.0, 100.0]),
)
@settings(max_examples=60)
def test_no_other_curve_has_a_smaller_penalised_loss(seed, n, slope, prior, strength):
    problem = (*decision_values(seed, n, slope), prior, strength)
    found = sigmoids.fit_sigmoid(*problem)
    best = minimize(penalised_loss, [prior, 0.0], args=problem, method="BFGS", options={"gtol": 1e-9})
    assert penalised_loss(found, *problem) <= best.fun * (1 + 1e-9) + 1e-9
    np.testing.assert_allclose(found, best.x, rtol=1e-3, atol=1e-3)


def test_sides_that_are_told_apart_perfectly_give_no_step():
    values = np.concatenate([np.linspace(-2, -1, 20), np.linspace(1, 2, 20)])
    a, b = sigmoids.fit_sigmoid(values, np.sign(values), np.ones(40), 1.0, WEAK)
    # Platt's target for 20 rows is 21 / 22.
    assert 0.9 < expit(a * 1.5 + b) < 0.97


@pytest.mark.parametrize("scale", [10.0, 1e3, 1e6, 1e9, 1e100])
def test_large_values_have_the_probabilities_of_small_ones(scale):
    # From slope 1, with nearly all probabilities 0 or 1, the way to the minimum is long.
    values, signs, weights = decision_values(3, 400)
    a, b = sigmoids.fit_sigmoid(values, signs, weights, 1.0, 1.0)
    scaled = sigmoids.fit_sigmoid(scale * values, signs, weights, 1.0, 1.0)
    np.testing.assert_allclose(expit(scaled[0] * scale * values + scaled[1]), expit(a * values + b), atol=0.01)


def test_weight_two_is_a_value_that_stands_there_twice():
    values, signs, _ = decision_values(4)
    weights = np.where(np.arange(len(values)) % 3 == 0, 2.0, 1.0)
    repeated = np.repeat(np.arange(len(values)), weights.astype(int))
    one = sigmoids.fit_sigmoid(values, signs, weights, 1.0, 3.0)
    other = sigmoids.fit_sigmoid(values[repeated], signs[repeated], np.ones(len(repeated)), 1.0, 3.0)
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_groups_are_fitted_by_themselves_and_an_empty_one_keeps_the_prior():
    values, signs, weights = decision_values(5, 90)
    groups = np.where(np.arange(90) % 9 < 5, 0, 2)
    slopes, shifts = np.empty(3), np.empty(3)
    sigmoids.fit_sigmoids(groups, values, signs, weights, 7.0, 3.0, slopes, shifts)
    for group in (0, 2):
        part = groups == group
        alone = sigmoids.fit_sigmoid(values[part], signs[part], weights[part], 7.0, 3.0)
        assert (slopes[group], shifts[group]) == alone
    assert (slopes[1], shifts[1]) == (7.0, 0.0)
