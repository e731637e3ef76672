"""Pairs of a row and one of its candidate classes, and their scores before any machine is trained.

Rows are sorted by class, class k having ``class_start[k]:class_start[k + 1]``; so are the pairs, with
``pair_start``. A pair is of sign 1 if the row is of the class.
"""

import numpy as np

from margintree.compiled import MAX_HALVINGS
from margintree.compiled.compile import compiled
from margintree.compiled.rows import row_add, row_clear, row_dot

MAX_STEPS = 100


@compiled
def count_pairs(listed, class_start, pair_start):
    """Fill where the pairs of each class begin: all listed ones (-1 is none), and each row with its own class."""
    pair_start[:] = 0
    for k in range(class_start.shape[0] - 1):
        for i in range(class_start[k], class_start[k + 1]):
            is_missing = True
            for other in listed[i]:
                if other >= 0:
                    pair_start[other + 1] += 1
                    is_missing &= other != k
            pair_start[k + 1] += is_missing
    for k in range(class_start.shape[0] - 1):
        pair_start[k + 1] += pair_start[k]


@compiled
def fill_pairs(listed, scores, own_scores, class_start, pair_start, pair_row, path_scores):
    """Write the pairs that ``count_pairs`` has counted."""
    place = pair_start[:-1].copy()
    for k in range(class_start.shape[0] - 1):
        for i in range(class_start[k], class_start[k + 1]):
            is_missing = True
            for position in range(listed.shape[1]):
                other = listed[i, position]
                if other >= 0:
                    j = place[other]
                    pair_row[j], path_scores[j] = i, scores[i, position]
                    place[other] += 1
                    is_missing &= other != k
            if is_missing:
                j = place[k]
                pair_row[j], path_scores[j] = i, own_scores[i]
                place[k] += 1


@compiled
def class_projections(rows, n_features, class_start, weights, squared_norms, pair_start, pair_row, result):
    """Fill m_k'x_j / |m_k| for the pairs of row and class, m_k being the weighted sum of the rows of class k.

    For a row of the class itself the sum is taken without the row (without one of it, where it weighs more), so that
    the projection is what a new row like it would get. A sum of nothing projects to zero.
    """
    total = np.zeros(n_features)
    for k in range(class_start.shape[0] - 1):
        for i in range(class_start[k], class_start[k + 1]):
            row_add(rows, i, weights[i], total)
        squared_norm = 0.0
        for i in range(class_start[k], class_start[k + 1]):
            squared_norm += weights[i] * row_dot(rows, i, total)
        for j in range(pair_start[k], pair_start[k + 1]):
            i = pair_row[j]
            product, length = row_dot(rows, i, total), squared_norm
            if class_start[k] <= i < class_start[k + 1]:
                own = min(1.0, weights[i])
                length += own * (own * squared_norms[i] - 2.0 * product)
                product -= own * squared_norms[i]
            # What rounding leaves of a row taken from itself is nothing.
            result[j] = product / np.sqrt(length) if length > 1e-12 * squared_norm else 0.0
        for i in range(class_start[k], class_start[k + 1]):
            row_clear(rows, i, total)


@compiled
def fit_blend(class_start, pair_start, pair_row, projections, path_scores, weights, penalty):
    """Return b that minimises penalty / 2 |b|^2 + 1/2 sum_j weight_j max(0, 1 - sign_j features_j'b)^2.

    The features of a pair are 1, its projection and its path score; its weight is that of its row. The loss is
    piecewise quadratic, so Newton's steps end at the exact minimum once the pairs with a loss stay the same; a step
    that does not lower the loss is halved.
    """
    pairs = (class_start, pair_start, pair_row, projections, path_scores)
    blend = np.zeros(3)
    loss, gradient, curvature = _blend_loss(pairs, weights, penalty, blend)
    for _ in range(MAX_STEPS):
        step = -np.linalg.solve(curvature, gradient)
        improved = False
        for _ in range(MAX_HALVINGS):
            trial = blend + step
            new = _blend_loss(pairs, weights, penalty, trial)
            if new[0] < loss:
                improved = True
                break
            step *= 0.5
        if not improved:
            break
        blend[:] = trial
        loss, gradient, curvature = new
    return blend


@compiled
def _blend_loss(pairs, weights, penalty, blend):
    """Return the loss of a blend with its gradient and its matrix of second derivatives."""
    class_start, pair_start, pair_row, projections, path_scores = pairs
    constant, mean_weight, path_weight = blend
    loss = 0.0
    g0, g1, g2 = 0.0, 0.0, 0.0
    h00, h01, h02, h11, h12, h22 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(class_start.shape[0] - 1):
        for j in range(pair_start[k], pair_start[k + 1]):
            i, projection, path_score = pair_row[j], projections[j], path_scores[j]
            sign = 1.0 if class_start[k] <= i < class_start[k + 1] else -1.0
            slack = 1.0 - sign * (constant + mean_weight * projection + path_weight * path_score)
            if slack > 0.0:
                weight = weights[i]
                loss += weight * slack * slack
                pull = weight * slack * sign
                g0 -= pull
                g1 -= pull * projection
                g2 -= pull * path_score
                h00 += weight
                h01 += weight * projection
                h02 += weight * path_score
                h11 += weight * projection * projection
                h12 += weight * projection * path_score
                h22 += weight * path_score * path_score
    gradient = penalty * blend + np.array([g0, g1, g2])
    curvature = penalty * np.eye(3) + np.array([[h00, h01, h02], [h01, h11, h12], [h02, h12, h22]])
    return 0.5 * (loss + penalty * np.dot(blend, blend)), gradient, curvature
