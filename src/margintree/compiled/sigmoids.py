"""Sigmoids that turn decision values into probabilities, each shrunk towards a common one.

A sigmoid 1 / (1 + exp(-(a f + b))) is fitted by maximum likelihood (Platt 2000) with the penalty
strength / 2 * ((a - prior)^2 + b^2): a node with many held-out rows gets a curve of its own, one with
three rows keeps nearly the common one. The targets are Platt's, (n + 1) / (n + 2) and 1 / (n + 2) for
sides of weight n, so that perfectly separated sides do not make the curve a step function.
"""

import numpy as np

from margintree.compiled import MAX_HALVINGS
from margintree.compiled.compile import compiled
from margintree.compiled.walk import log_probability

MAX_STEPS = 100


@compiled
def fit_sigmoid(values, signs, weights, prior, strength):
    """Return a and b for decision values whose rows belong left (sign 1) or right (sign -1)."""
    a, b = prior, 0.0
    n_left, n_right = 0.0, 0.0
    for j in range(values.shape[0]):
        if signs[j] > 0.0:
            n_left += weights[j]
        else:
            n_right += weights[j]
    left, right = (n_left + 1.0) / (n_left + 2.0), 1.0 / (n_right + 2.0)
    loss = _loss(values, signs, weights, left, right, a, b, prior, strength)
    # Where values are so large that the prior makes a step of the curve, the likelihood is flat around it and
    # Newton's method finds no way out. A level curve is never a step, and the problem is convex.
    level = np.log((n_left + 1.0) / (n_right + 1.0))
    level_loss = _loss(values, signs, weights, left, right, 0.0, level, prior, strength)
    if level_loss < loss:
        a, b, loss = 0.0, level, level_loss
    for _ in range(MAX_STEPS):
        ga, gb = strength * (a - prior), strength * b
        haa, hab, hbb = strength, 0.0, strength
        for j in range(values.shape[0]):
            p = np.exp(log_probability(a * values[j] + b))
            g = weights[j] * (p - (left if signs[j] > 0.0 else right))
            h = weights[j] * p * (1.0 - p)
            ga += g * values[j]
            gb += g
            haa += h * values[j] * values[j]
            hab += h * values[j]
            hbb += h
        determinant = haa * hbb - hab * hab
        da, db = (hbb * ga - hab * gb) / determinant, (haa * gb - hab * ga) / determinant
        # What a full step gains is half of this; nothing is left to gain below rounding.
        if da * ga + db * gb <= 1e-14 * (1.0 + loss):
            break
        step, improved = 1.0, False
        for _ in range(MAX_HALVINGS):
            new_loss = _loss(values, signs, weights, left, right, a - step * da, b - step * db, prior, strength)
            if new_loss < loss:
                improved = True
                break
            step *= 0.5
        if not improved:
            break
        a, b, loss = a - step * da, b - step * db, new_loss
    return a, b


@compiled
def _loss(values, signs, weights, left, right, a, b, prior, strength):
    total = 0.5 * strength * ((a - prior) * (a - prior) + b * b)
    for j in range(values.shape[0]):
        log_odds = a * values[j] + b
        # target * log p + (1 - target) * log (1 - p), with log (1 - p) = log p - log odds.
        target = left if signs[j] > 0.0 else right
        total -= weights[j] * (log_probability(log_odds) - (1.0 - target) * log_odds)
    return total


@compiled
def fit_sigmoids(groups, values, signs, weights, prior, strength, slopes, shifts):
    """Fit one sigmoid for each group of values; ``groups`` names the group of each."""
    start = np.zeros(slopes.shape[0] + 1, dtype=np.int64)
    for g in groups:
        start[g + 1] += 1
    longest = 0
    for g in range(slopes.shape[0]):
        longest = max(longest, start[g + 1])
        start[g + 1] += start[g]
    place, order = start[:-1].copy(), np.empty(groups.shape[0], dtype=np.int32)
    for j in range(groups.shape[0]):
        order[place[groups[j]]] = j
        place[groups[j]] += 1
    group_values, group_signs, group_weights = np.empty(longest), np.empty(longest, signs.dtype), np.empty(longest)
    for g in range(slopes.shape[0]):
        n = start[g + 1] - start[g]
        for p in range(n):
            j = order[start[g] + p]
            group_values[p], group_signs[p], group_weights[p] = values[j], signs[j], weights[j]
        slopes[g], shifts[g] = fit_sigmoid(group_values[:n], group_signs[:n], group_weights[:n], prior, strength)
