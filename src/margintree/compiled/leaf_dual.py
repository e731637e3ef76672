"""One-vs-rest machines on lists of finalists: linear L2-loss machines that start from an offset, one per class.

Class k is trained on the rows whose finalists include it, each with an offset o_j, its score so far:

    min_v  1/2 |v|^2 + 1/2 sum_j max(0, 1 - t_j (v'x_j + o_j))^2 / r_j

which is the problem of ``linear_dual`` with the margin 1 - t_j o_j instead of 1, and is solved in the same way. With an
intercept, every row has one more feature, which is 1.

See docs/solvers/leaf_dual.md.
"""

import numpy as np

from margintree.compiled.compile import by_type, compiled
from margintree.compiled.linear_dual import shuffle
from margintree.compiled.rows import layout_of, row_add, row_clear, row_dot, row_of


@compiled
def solve_with_margins(
    rows, row_index, signs, margins, ridge, squared_norms, fit_intercept, weights, tol, max_iter, seed, stop
):
    """Add the solution to ``weights``, zero where the rows have entries; return intercept, epochs and relative gap."""
    n = row_index.shape[0]
    intercept, one = 0.0, 1.0 if fit_intercept else 0.0
    alpha = np.zeros(n)
    order = np.arange(n)
    n_active = n
    state = np.array([np.uint64(seed) | np.uint64(1)])
    shrink_above, trigger = np.inf, tol
    squared_norm, gap = 0.0, 0.0
    for n_iter in range(1, max_iter + 1):
        shuffle(order, n_active, state)
        highest, hinge, position = 0.0, 0.0, 0
        while position < n_active:
            j = order[position]
            i = row_index[j]
            slack = margins[j] - signs[j] * (row_dot(rows, i, weights) + intercept)
            gradient = ridge[i] * alpha[j] - slack
            if alpha[j] == 0.0 and gradient > shrink_above:
                n_active -= 1
                order[position] = order[n_active]
                order[n_active] = j
                continue
            if slack > 0.0:
                hinge += slack * slack / ridge[i]
            if alpha[j] > 0.0 or gradient < 0.0:
                highest = max(highest, gradient)
                before = alpha[j]
                alpha[j] = max(0.0, before - gradient / (squared_norms[i] + one + ridge[i]))
                step = alpha[j] - before
                if step != 0.0:
                    # |w + s t x|^2 = |w|^2 + 2 s t w'x + s^2 |x|^2, so the norm costs no pass over the weights.
                    squared_norm += step * (2.0 * (margins[j] - slack) + step * (squared_norms[i] + one))
                    row_add(rows, i, step * signs[j], weights)
                    intercept += step * signs[j] * one
            position += 1
        shrink_above = highest if highest > 0.0 else np.inf
        dual = -0.5 * squared_norm
        for j in range(n):
            dual += alpha[j] * (margins[j] - 0.5 * ridge[row_index[j]] * alpha[j])
        primal = 0.5 * (squared_norm + hinge)
        gap = (primal - dual) / primal if primal > 0.0 else 0.0
        if stop[0]:
            return intercept, n_iter, gap
        if gap > trigger and n_iter < max_iter:
            continue
        hinge = 0.0
        for j in range(n):
            slack = margins[j] - signs[j] * (row_dot(rows, row_index[j], weights) + intercept)
            if slack > 0.0:
                hinge += slack * slack / ridge[row_index[j]]
        primal = 0.5 * (squared_norm + hinge)
        gap = (primal - dual) / primal if primal > 0.0 else 0.0
        if gap <= tol:
            return intercept, n_iter, gap
        n_active, shrink_above = n, np.inf
        trigger *= 0.7
    return intercept, max_iter, gap


@by_type
def _take_out(rows, row_index, work, columns, values):
    """Move the entries of ``work`` that the given rows can have to ``columns`` and ``values``; return their number."""

    def dense(rows, row_index, work, columns, values):
        n_taken = 0
        for c in range(work.shape[0]):
            if work[c] != 0.0:
                columns[n_taken], values[n_taken] = c, work[c]
                work[c] = 0.0
                n_taken += 1
        return n_taken

    def sparse(rows, row_index, work, columns, values):
        indptr, indices, _ = rows
        n_taken = 0
        for i in row_index:
            for p in range(indptr[i], indptr[i + 1]):
                c = indices[p]
                if work[c] != 0.0:
                    columns[n_taken], values[n_taken] = c, work[c]
                    work[c] = 0.0
                    n_taken += 1
        return n_taken

    return sparse if layout_of(rows) == "sparse" else dense


@compiled
def solve_leaf(rows, listed, mean, ridge, squared_norms, fit_intercept, work, tol, max_iter, seed, stop):
    """Return columns, weights and intercept of one machine.

    The weights are the solution plus ``mean_weight`` times the direction of the class mean.

    ``listed`` has the rows with their signs and offsets, ``mean`` those that count for the mean of the class, the
    weights of all rows and ``mean_weight``. ``work`` has two rows of zeros, as long as a row is wide, and is left so.
    """
    (row_index, signs, offsets), (members, weights, mean_weight) = listed, mean
    solution, total = work[0], work[1]
    margins = 1.0 - signs * offsets
    intercept, _, _ = solve_with_margins(
        rows, row_index, signs, margins, ridge, squared_norms, fit_intercept, solution, tol, max_iter, seed, stop
    )
    if mean_weight != 0.0:
        squared_norm = 0.0
        for i in members:
            row_add(rows, i, weights[i], total)
        for i in members:
            squared_norm += weights[i] * row_dot(rows, i, total)
        for i in members:
            row_clear(rows, i, total)
        if squared_norm > 0.0:
            for i in members:
                row_add(rows, i, weights[i] * mean_weight / np.sqrt(squared_norm), solution)
    # Each column is taken once, so there are at most as many as stored values and as columns.
    room = 0
    for i in row_index:
        first, last, _ = row_of(rows, i)
        room += np.int64(last - first)
    room = min(room, solution.shape[0])
    columns, values = np.empty(room, dtype=np.int64), np.empty(room)
    n_taken = _take_out(rows, row_index, solution, columns, values)
    order = np.argsort(columns[:n_taken])
    return columns[order], values[order], intercept
