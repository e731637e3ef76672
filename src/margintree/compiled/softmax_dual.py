"""Dual ascent for multinomial logistic regression in which each row has its own list of candidate classes.

With offsets o_ik, costs C_i and the list L_i of row i, whose first entry is its own class y,

    min_V  1/2 sum_k |v_k|^2 + sum_i C_i (log sum_{k in L_i} exp(o_ik + v_k'z_i) - o_iy - v_y'z_i)

has the dual (Yu, Huang and Lin 2011)

    max_p  sum_i C_i (sum_k p_ik (o_ik - log p_ik) - o_iy) - 1/2 sum_k |v_k|^2,
    v_k = sum_i C_i ([k = y] - p_ik) z_i,    p_i a distribution over L_i.

One row is improved at a time, from p_i towards the softmax q of its scores. The derivative of the dual along q - p_i
has one zero between p_i and q, which bisection finds. Every row has one more feature, which is 1.

See docs/solvers/softmax_dual.md.
"""

import numpy as np

from margintree.compiled.compile import compiled
from margintree.compiled.linear_dual import shuffle

# Odds of e^-8 against the best class change nothing: such a rival is not asked about again, from the third epoch on.
HOPELESS, FIRST_TO_SHRINK = 8.0, 3
# Smaller changes of a probability are left to the own class, which saves most additions of rows.
LEAST_CHANGE = 1e-5
# A gap is measured against the primal value, but against no less than this loss per row: where all classes are told
# apart the primal value goes to zero, and nothing that matters is left to gain.
LEAST_LOSS = 1e-3
# Relative precision of a step; a long way to go at a large cost takes small ones.
PRECISION, MOST_BISECTIONS = 0.03, 40


@compiled
def _dot(a, b):
    total = np.float32(0.0)
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@compiled
def _add(factor, a, b):
    for j in range(a.shape[0]):
        b[j] += factor * a[j]


@compiled
def _step(scores, p, target, curvature, n):
    """Return the step length from p towards ``target``; each score falls by ``curvature`` times the change of its p."""
    low, high = 0.0, 1.0
    for _ in range(MOST_BISECTIONS):
        if high - low < PRECISION * high:
            break
        middle = 0.5 * (low + high)
        slope = 0.0
        for k in range(n):
            change = target[k] - p[k]
            now = p[k] + middle * change
            if now > 0.0:
                slope += change * (scores[k] - middle * curvature * change - np.log(now))
        if slope > 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@compiled
def solve(Z, order, listed, offsets, cost, weights, intercepts, tol, max_iter, stop):
    """Fill ``weights`` and ``intercepts``, which must be zero; return the epochs and the relative duality gap.

    ``order`` has the rows that count, ``listed`` the classes of each row (-1 is none), its own one first.
    """
    n_lists = listed.shape[1]
    probability = np.zeros(listed.shape, dtype=np.float32)
    probability[:, 0] = 1.0
    length = np.zeros(listed.shape[0], dtype=np.int64)
    norms = np.zeros(listed.shape[0])
    # Terms of the dual by rows, which hold until the row is met again.
    entropy = np.zeros(listed.shape[0])
    for i in order:
        while length[i] < n_lists and listed[i, length[i]] >= 0:
            length[i] += 1
        norms[i] = _dot(Z[i], Z[i]) + 1.0
    state = np.array([np.uint64(1)])
    scores, target, change = np.empty(n_lists), np.empty(n_lists), np.empty(n_lists)
    order = order.copy()
    whole = length.copy()
    gap, trigger, least = np.inf, tol, 0.0
    for i in order:
        least += LEAST_LOSS * cost[i]
    for n_iter in range(1, max_iter + 1):
        shuffle(order, order.shape[0], state)
        loss, dual = 0.0, 0.0
        for i in order:
            row, n, p = Z[i], length[i], probability[i]
            highest = -np.inf
            for k in range(n):
                c = listed[i, k]
                scores[k] = offsets[i, k] + _dot(row, weights[c]) + intercepts[c]
                highest = max(highest, scores[k])
            total = 0.0
            for k in range(n):
                target[k] = np.exp(scores[k] - highest)
            for k in range(n):
                total += target[k]
            loss += cost[i] * (highest + np.log(total) - scores[0])
            largest, rest = 0.0, 0.0
            for k in range(1, n):
                target[k] /= total
                if abs(target[k] - p[k]) < LEAST_CHANGE:
                    target[k] = p[k]
            for k in range(1, n):
                largest = max(largest, abs(target[k] - p[k]))
                rest += target[k]
            target[0] = 1.0 - rest
            if largest > 0.0:
                step = _step(scores, p, target, cost[i] * norms[i], n)
                entropy[i] = 0.0
                for k in range(n):
                    change[k] = step * (target[k] - p[k])
                    p[k] += change[k]
                    if change[k] != 0.0:
                        c = listed[i, k]
                        _add(np.float32(-cost[i] * change[k]), row, weights[c])
                        intercepts[c] -= cost[i] * change[k]
                    if p[k] > 0.0:
                        entropy[i] += p[k] * (offsets[i, k] - np.log(p[k]))
                entropy[i] -= offsets[i, 0]
            dual += cost[i] * entropy[i]
            if n_iter >= FIRST_TO_SHRINK:
                k = 1
                while k < n:
                    if p[k] == 0.0 and scores[k] < highest - HOPELESS:
                        n -= 1
                        listed[i, k], listed[i, n] = listed[i, n], listed[i, k]
                        offsets[i, k], offsets[i, n] = offsets[i, n], offsets[i, k]
                        p[k], p[n] = p[n], p[k]
                        scores[k] = scores[n]
                    else:
                        k += 1
                length[i] = n
        squared_norm = 0.0
        for c in range(weights.shape[0]):
            squared_norm += _dot(weights[c], weights[c]) + intercepts[c] * intercepts[c]
        dual -= 0.5 * squared_norm
        # Losses were met on the way, from weights that have changed since. The exact ones are worth a pass over all
        # rows only when the gap looks small enough.
        primal = loss + 0.5 * squared_norm
        gap = (primal - dual) / max(primal, least)
        if stop[0]:
            return n_iter, gap
        if gap > trigger and n_iter < max_iter:
            continue
        primal = 0.5 * squared_norm
        for i in order:
            length[i] = whole[i]
            highest, total = -np.inf, 0.0
            for k in range(length[i]):
                c = listed[i, k]
                scores[k] = offsets[i, k] + _dot(Z[i], weights[c]) + intercepts[c]
                highest = max(highest, scores[k])
            for k in range(length[i]):
                total += np.exp(scores[k] - highest)
            primal += cost[i] * (highest + np.log(total) - scores[0])
        gap = (primal - dual) / max(primal, least)
        if gap <= tol:
            return n_iter, gap
        trigger *= 0.7
    return max_iter, gap


@compiled
def mean_scores(Z, means, constants, log_prior, variance, listed, own_weight, class_weight, result):
    """Fill z_i'm_k + constant_k for the classes on the list of each row, the first one being its own.

    ``constants`` are log_prior_k - |m_k|^2 / 2, and log_prior_k is ``variance`` times the log of the share of class k.

    That one is taken without the row (without one of it, where it weighs more), so that it is what a new row like it
    would get; a class of one row has the mean zero then.
    """
    mean = np.empty(Z.shape[1], dtype=Z.dtype)
    for i in range(listed.shape[0]):
        for position in range(listed.shape[1]):
            k = listed[i, position]
            if k < 0:
                break
            if position > 0:
                result[i, position] = _dot(Z[i], means[k]) + constants[k]
                continue
            rest = class_weight[k] - own_weight[i]
            if rest <= 1e-9 * class_weight[k]:
                result[i, 0] = log_prior[k]
                continue
            for j in range(mean.shape[0]):
                mean[j] = (class_weight[k] * means[k, j] - own_weight[i] * Z[i, j]) / rest
            prior = log_prior[k] + variance * np.log(rest / class_weight[k])
            result[i, 0] = _dot(Z[i], mean) - 0.5 * _dot(mean, mean) + prior
