"""Dual block coordinate descent for multi-class SVMs that train all classes together.

With one coefficient per row and class, w_m = sum_j b_jm x_j, and y the class of row j, both losses have the dual

    min_b  1/2 sum_m |w_m|^2 - sum_j b_jy + sum_j r_j sum_{m != y} b_jm^2
    with   sum_m b_jm = 0,   b_jm <= 0 for m != y,   b_jy <= u_j.

Crammer and Singer have r_j = 0 and u_j = C s_j, Weston and Watkins r_j = 1 / (C s_j) and no bound. One step solves
the problem of one row exactly (the sequential dual method of Keerthi et al. 2008). For a row with A = |x|^2, the
scores v_m = w_m'x - A b_m without its own share, and a_m = -b_m, the optimum is

    a_m = max(0, v_m - theta) / (A + 2 r),      theta = A sum_m a_m + v_y - 1,

or a larger theta for which sum_m a_m = u. ``theta`` is found without sorting: on a set of classes that is too large
it comes out too small, so classes at or below it drop out until none does (Michelot 1986).

Pairs of row and class with b_jm = 0 and a score well below theta leave the row's list, and rows with no pair left leave
the active set (shrinking). As in ``linear_dual``, the scores computed during an epoch estimate the primal value, and
the exact gap, which takes a pass over all pairs, is computed only if the estimate is small enough.

The weights are feature-major, ``weights[i, m]``: the classes of one feature lie side by side.

See docs/solvers/all_together.md.
"""

import numpy as np

from margintree.compiled.compile import compiled
from margintree.compiled.linear_dual import shuffle
from margintree.compiled.rows import row_entry, row_of

# All pairs are looked at again when the estimated gap has fallen to the first value, and then to this share of the
# exact one: shrinking goes wrong early, and a run on the wrong pairs is wasted.
FIRST_CHECK = 0.1
NEXT_CHECK = 0.1


@compiled
def all_scores(rows, i, weights, scores):
    """Fill ``scores`` with w_m'x of row ``i`` for every class."""
    scores[:] = 0.0
    first, last, row = row_of(rows, i)
    for p in range(first, last):
        column, value = row_entry(row, p)
        if value != 0.0:
            of_feature = weights[column]
            for m in range(scores.shape[0]):
                scores[m] += value * of_feature[m]


@compiled
def some_scores(rows, i, weights, own, listed, scores):
    """Fill ``scores`` for the class ``own`` and the listed ones."""
    scores[own] = 0.0
    for m in listed:
        scores[m] = 0.0
    first, last, row = row_of(rows, i)
    for p in range(first, last):
        column, value = row_entry(row, p)
        of_feature = weights[column]
        scores[own] += value * of_feature[own]
        for m in listed:
            scores[m] += value * of_feature[m]


@compiled
def add_changes(rows, i, weights, changed, change):
    """Add ``change[q]`` times row ``i`` to the weights of class ``changed[q]``."""
    first, last, row = row_of(rows, i)
    for p in range(first, last):
        column, value = row_entry(row, p)
        of_feature = weights[column]
        for q in range(changed.shape[0]):
            of_feature[changed[q]] += value * change[q]


@compiled
def threshold(values, own, squared_norm, ridge, bound):
    """Return theta for the scores ``values`` of the other classes; ``values`` is overwritten."""
    curvature = squared_norm + 2.0 * ridge
    n, before = values.shape[0], -1
    total, theta = 0.0, own - 1.0
    while n != before:
        before = n
        total = values[:n].sum()
        theta = (squared_norm * total + curvature * (own - 1.0)) / (curvature + n * squared_norm)
        n = keep_above(values, n, theta)
    if total - n * theta <= bound * curvature:
        return theta
    before = -1
    while n != before and n > 0:
        before = n
        theta = (values[:n].sum() - bound * curvature) / n
        n = keep_above(values, n, theta)
    return theta


@compiled
def keep_above(values, n, theta):
    """Move those of the first ``n`` values that lie above ``theta`` to the front and return how many they are."""
    kept = 0
    for q in range(n):
        if values[q] > theta:
            values[kept] = values[q]
            kept += 1
    return kept


@compiled
def row_loss(scores, own, listed, ridge, bound):
    """Return the loss of a row from its scores."""
    largest, squares = 0.0, 0.0
    for m in listed:
        slack = 1.0 + scores[m] - scores[own]
        if slack > 0.0:
            largest = max(largest, slack)
            squares += slack * slack
    return squares / (4.0 * ridge) if ridge > 0.0 else bound * largest


@compiled
def move_row(rows, i, own, listed, squared_norm, ridge, bound, coefficients, weights, scores, space):
    """Solve the problem of one row from its ``scores``; ``space`` is a workspace.

    Returns theta, the row's part of the dual value, the growth of sum_m |w_m|^2, and how far the row was from its
    optimum, in scores.
    """
    values, changed, change = space
    curvature = squared_norm + 2.0 * ridge
    for q in range(listed.shape[0]):
        values[q] = scores[listed[q]] - squared_norm * coefficients[listed[q]]
    own_value = scores[own] - squared_norm * coefficients[own]
    theta = threshold(values[: listed.shape[0]], own_value, squared_norm, ridge, bound)
    total, squares, growth, violation = 0.0, 0.0, 0.0, 0.0
    n_changed = 0
    for m in listed:
        value = max(0.0, scores[m] - squared_norm * coefficients[m] - theta) / curvature
        step = -value - coefficients[m]
        total += value
        squares += value * value
        if step != 0.0:
            coefficients[m] = -value
            changed[n_changed] = m
            change[n_changed] = step
            n_changed += 1
            growth += 2.0 * step * scores[m] + squared_norm * step * step
            violation = max(violation, curvature * abs(step))
    if n_changed > 0:
        step = total - coefficients[own]
        coefficients[own] = total
        changed[n_changed] = own
        change[n_changed] = step
        growth += 2.0 * step * scores[own] + squared_norm * step * step
        add_changes(rows, i, weights, changed[: n_changed + 1], change[: n_changed + 1])
    return theta, total - ridge * squares, growth, violation


@compiled
def shrunk(listed, coefficients, scores, below):
    """Move the classes that stay in the list to its front and return how many they are."""
    q, n = 0, listed.shape[0]
    while q < n:
        m = listed[q]
        if coefficients[m] == 0.0 and scores[m] < below:
            n -= 1
            listed[q] = listed[n]
            listed[n] = m
        else:
            q += 1
    return n


@compiled
def other_classes(classes, n_classes):
    """Return for every row the classes that are not its own."""
    lists = np.empty((classes.shape[0], n_classes - 1), dtype=np.int32)
    for i in range(classes.shape[0]):
        q = 0
        for m in range(n_classes):
            if m != classes[i]:
                lists[i, q] = m
                q += 1
    return lists


@compiled
def epoch(problem, coefficients, weights, lists, lengths, active, n_active, slack, loss, dual_part):
    """Visit the active rows once; pairs whose score lies more than ``slack`` below theta leave their list.

    Returns the number of rows that stay active, the growth of sum_m |w_m|^2, and the largest violation met.
    """
    rows, classes, ridge, bound, squared_norms = problem
    n_classes = coefficients.shape[1]
    scores = np.empty(n_classes)
    space = (np.empty(n_classes), np.empty(n_classes, dtype=np.int32), np.empty(n_classes))
    total_growth, worst, position = 0.0, 0.0, 0
    while position < n_active:
        i = active[position]
        own, listed = classes[i], lists[i, : lengths[i]]
        if squared_norms[i] + 2.0 * ridge[i] > 0.0:
            if lengths[i] == n_classes - 1:
                all_scores(rows, i, weights, scores)
            else:
                some_scores(rows, i, weights, own, listed, scores)
            loss[i] = row_loss(scores, own, listed, ridge[i], bound[i])
            theta, dual_part[i], growth, violation = move_row(
                rows, i, own, listed, squared_norms[i], ridge[i], bound[i], coefficients[i], weights, scores, space
            )
            total_growth += growth
            worst = max(worst, violation)
            lengths[i] = shrunk(listed, coefficients[i], scores, theta - slack)
        else:
            # No weight depends on a row without features, but its loss is part of the gap.
            coefficients[i, own], coefficients[i, lists[i, 0]] = bound[i], -bound[i]
            loss[i] = dual_part[i] = bound[i]
            lengths[i] = 0
        if lengths[i] == 0:
            n_active -= 1
            active[position], active[n_active] = active[n_active], i
        else:
            position += 1
    return n_active, total_growth, worst


@compiled
def exact_values(problem, weights, lists, loss, dual_part):
    """Return primal value, dual value and sum_m |w_m|^2, without anything stale; fill ``loss``."""
    rows, classes, ridge, bound, _ = problem
    scores = np.empty(weights.shape[1])
    for i in range(classes.shape[0]):
        all_scores(rows, i, weights, scores)
        loss[i] = row_loss(scores, classes[i], lists[i], ridge[i], bound[i])
    flat = weights.reshape(-1)
    squared_norm = np.dot(flat, flat)
    return 0.5 * squared_norm + loss.sum(), dual_part.sum() - 0.5 * squared_norm, squared_norm


@compiled
def solve(problem, coefficients, weights, tol, max_iter, seed, stop):
    """Run from zero until the relative duality gap is at most ``tol``; fill ``coefficients`` and ``weights``.

    ``problem`` holds rows, their classes, r_j, u_j and |x_j|^2. Returns the number of epochs, the primal and the
    dual value.
    """
    n, n_classes = coefficients.shape
    _, classes, _, _, _ = problem
    lists, lengths = other_classes(classes, n_classes), np.full(n, n_classes - 1)
    loss, dual_part = np.zeros(n), np.zeros(n)
    active, n_active = np.arange(n), n
    state = np.array([np.uint64(seed) | np.uint64(1)])
    slack, trigger, squared_norm = np.inf, max(tol, FIRST_CHECK), 0.0
    n_iter, primal, dual, is_closed = 0, 0.0, 0.0, False
    while n_iter < max_iter and not is_closed and not stop[0]:
        n_iter += 1
        shuffle(active, n_active, state)
        n_active, growth, slack = epoch(
            problem, coefficients, weights, lists, lengths, active, n_active, slack, loss, dual_part
        )
        squared_norm += growth
        dual = dual_part.sum() - 0.5 * squared_norm
        primal = 0.5 * squared_norm + loss.sum()
        if primal - dual > trigger * primal and n_iter < max_iter:
            continue
        primal, dual, squared_norm = exact_values(problem, weights, lists, loss, dual_part)
        is_closed = primal - dual <= tol * primal
        n_active, slack = n, np.inf
        lengths[:] = n_classes - 1
        following = NEXT_CHECK * (primal - dual) / primal
        trigger = following if following > tol else 0.7 * min(trigger, tol)
    return n_iter, primal, dual


@compiled
def refine(problem, coefficients, weights, precision, max_iter, seed, stop):
    """Continue from a solution until no row is further from its optimum than ``precision``, in scores.

    The gap is lost in rounding long before the weights are: they err by its square root.
    """
    n, n_classes = coefficients.shape
    _, classes, _, _, _ = problem
    lists, lengths = other_classes(classes, n_classes), np.full(n, n_classes - 1)
    loss, dual_part = np.zeros(n), np.zeros(n)
    active = np.arange(n)
    state = np.array([np.uint64(seed) | np.uint64(1)])
    n_iter, worst = 0, np.inf
    while n_iter < max_iter and worst > precision and not stop[0]:
        n_iter += 1
        shuffle(active, n, state)
        _, _, worst = epoch(problem, coefficients, weights, lists, lengths, active, n, np.inf, loss, dual_part)
        lengths[:] = n_classes - 1
    primal, dual, _ = exact_values(problem, weights, lists, loss, dual_part)
    return n_iter, primal, dual
