"""Dual coordinate descent for the linear L2-loss SVM (Hsieh et al. 2008, Algorithm 1 and 3.2).

    max_{a >= 0}  sum_j a_j - 1/2 |w|^2 - 1/2 sum_j r_j a_j^2,      w = sum_j a_j t_j x_j

with signs t_j and ridge r_j = 1 / (C s_j). Coordinate j has the gradient
g_j = t_j w'x_j - 1 + r_j a_j and the curvature q_j = |x_j|^2 + r_j, so the step is
a_j <- max(0, a_j - g_j / q_j). Rows whose a_j = 0 and whose gradient lies above the largest one of
the epoch before leave the active set (shrinking).

The run ends on the relative duality gap. Each epoch computes every w'x_j anyway, which gives a slightly stale primal
value for free; only if that estimate is small enough, a pass over all rows computes the exact gap.

See docs/solvers/linear_dual.md.
"""

import numpy as np

from margintree.compiled.compile import compiled
from margintree.compiled.rows import row_add, row_dot


@compiled
def next_random(state):
    """Advance a xorshift64* generator; ``state`` is one uint64 in an array."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return (x * np.uint64(2685821657736338717)) >> np.uint64(33)


@compiled
def shuffle(order, count, state):
    """Permute the first ``count`` entries of ``order`` in place (Fisher-Yates)."""
    for last in range(count - 1, 0, -1):
        other = np.int64(next_random(state) % np.uint64(last + 1))
        order[last], order[other] = order[other], order[last]


@compiled
def accumulate(rows, coefficients, weights):
    """Add sum_j coefficients_j x_j to ``weights``."""
    for i in range(coefficients.shape[0]):
        if coefficients[i] != 0.0:
            row_add(rows, i, coefficients[i], weights)


@compiled
def class_vectors(rows, coefficients, class_start, n_features):
    """Return V, dense: V_k = sum_{j in class k} coefficients_j x_j."""
    vectors = np.zeros((class_start.shape[0] - 1, n_features))
    for k in range(vectors.shape[0]):
        for i in range(class_start[k], class_start[k + 1]):
            if coefficients[i] != 0.0:
                row_add(rows, i, coefficients[i], vectors[k])
    return vectors


@compiled
def dual_value(alpha, ridge, squared_norm):
    """Return the dual objective for |w|^2 = ``squared_norm``."""
    total = -0.5 * squared_norm
    for i in range(alpha.shape[0]):
        total += alpha[i] - 0.5 * ridge[i] * alpha[i] * alpha[i]
    return total


@compiled
def squared_hinge(signs, ridge, decision):
    """Return 1/2 sum_j max(0, 1 - t_j f_j)^2 / r_j."""
    total = 0.0
    for i in range(signs.shape[0]):
        slack = 1.0 - signs[i] * decision[i]
        if slack > 0.0:
            total += slack * slack / ridge[i]
    return 0.5 * total


@compiled
def solve(rows, signs, ridge, squared_norms, alpha, weights, decision, tol, cutoff, max_iter, seed, stop):
    """Run from ``alpha`` and its ``weights``; fill both and ``decision``, the values w'x_j.

    The run also ends once the dual exceeds ``cutoff``, because the optimum is then above it and of no use to a search
    for a lower one, and after the epoch in which ``stop[0]`` becomes True. Returns the number of epochs, the primal and
    the dual value.
    """
    n = signs.shape[0]
    active = np.arange(n)
    n_active = n
    state = np.array([np.uint64(seed) | np.uint64(1)])
    shrink_above = np.inf
    trigger = tol
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        shuffle(active, n_active, state)
        highest, hinge = 0.0, 0.0
        position = 0
        while position < n_active:
            i = active[position]
            signed = signs[i] * row_dot(rows, i, weights)
            gradient = signed - 1.0 + ridge[i] * alpha[i]
            if alpha[i] == 0.0 and gradient > shrink_above:
                n_active -= 1
                active[position] = active[n_active]
                active[n_active] = i
                continue
            if signed < 1.0:
                hinge += (1.0 - signed) * (1.0 - signed) / ridge[i]
            if alpha[i] > 0.0 or gradient < 0.0:
                highest = max(highest, gradient)
                before = alpha[i]
                alpha[i] = max(0.0, before - gradient / (squared_norms[i] + ridge[i]))
                if alpha[i] != before:
                    row_add(rows, i, (alpha[i] - before) * signs[i], weights)
            position += 1
        # No row pulled its a_j down: any threshold at zero would shrink too eagerly.
        shrink_above = highest if highest > 0.0 else np.inf

        flat = weights.reshape(-1)
        squared_norm = np.dot(flat, flat)
        dual = dual_value(alpha, ridge, squared_norm)
        primal = 0.5 * squared_norm + 0.5 * hinge
        if stop[0]:
            return n_iter, primal, dual
        if primal - dual > trigger * primal and n_iter < max_iter and dual <= cutoff:
            continue
        for i in range(n):
            decision[i] = row_dot(rows, i, weights)
        primal = 0.5 * squared_norm + squared_hinge(signs, ridge, decision)
        if primal - dual <= tol * primal or dual > cutoff:
            return n_iter, primal, dual
        n_active = n
        shrink_above = np.inf
        trigger *= 0.7
    return n_iter, primal, dual
