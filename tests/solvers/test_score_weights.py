import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp

from margintree.solvers.score_weights import ScoreGroups


def score_problem(seed, scale=1.0):
    """Return groups of two scores of which the own entry has more, and the weights of the groups."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 7, size=200)
    start = np.concatenate([[0], np.cumsum(lengths)])
    is_own = np.isin(np.arange(start[-1]), start[:-1] + random.integers(0, lengths))
    first, second = (scale * (random.normal(size=start[-1]) + gain * is_own) for gain in (1.0, 0.5))
    return start, first, second, is_own, random.uniform(0.0, 2.0, size=200)


def groups_of(start, first, second, is_own, weights):
    return ScoreGroups(start, np.column_stack([first, second]), is_own, weights)


@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([0.01, 1.0, 50.0]),
    is_free=st.sampled_from([(True, True), (True, False), (False, True)]),
    sign=st.sampled_from([1.0, -1.0]),
)
@settings(max_examples=25)
def test_weights_of_scores_are_the_most_likely_ones_that_are_not_negative(seed, scale, is_free, sign):
    start, first, second, is_own, weights = score_problem(seed, scale)
    second, usual, pull = sign * second, np.array([1.0, 0.0]), np.array([0.1, 0.3])

    def loss(blend):
        scores = blend[0] * first + blend[1] * second
        likelihood = [scores[a:b][is_own[a:b]][0] - logsumexp(scores[a:b]) for a, b in itertools.pairwise(start)]
        return 0.5 * pull @ (np.asarray(blend) - usual) ** 2 - weights @ likelihood

    bounds = [(0.0, None) if free else (value, value) for free, value in zip(is_free, usual, strict=True)]
    best = minimize(loss, np.array([0.5 if is_free[0] else 1.0, 0.5 if is_free[1] else 0.0]), bounds=bounds)
    found = groups_of(start, first, second, is_own, weights).fit(usual, pull, np.array(is_free))
    assert found.min() >= 0.0
    assert [f == u for f, u, free in zip(found, usual, is_free, strict=True) if not free] in ([], [True])
    assert loss(found) <= best.fun + 1e-6 * (1.0 + abs(best.fun))


def test_scores_that_tell_every_own_entry_have_finite_weights():
    start, _, second, is_own, weights = score_problem(0)
    usual, pull, both = np.array([1.0, 0.0]), np.array([0.1, 0.1]), np.array([True, True])
    sure = groups_of(start, is_own.astype(float), second, is_own, weights).fit(usual, pull, both)
    assert np.isfinite(sure).all()
    assert sure[0] > 3.0
    nothing = np.zeros(start[-1])
    found = groups_of(start, nothing, nothing, is_own, weights).fit(usual, pull, both)
    np.testing.assert_array_equal(found, usual)
