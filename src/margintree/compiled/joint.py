"""Dual block descent for the machines of a whole tree with one slack per row.

    max_{a >= 0}  sum_jv a_jv - 1/2 sum_v |w_v|^2 - 1/2 sum_j r_j (sum_v a_jv)^2,    w_v = sum_j a_jv t_jv x_j

with v on the path of row j to the leaf of its class, signs t_jv and ridge r_j = 1 / (C s_j). The a_jv of one row are
a block. With q = |x_j|^2 and the pulls b_v = 1 - t_jv w_v'x_j + q a_jv the block's optimum is

    a_jv = max(0, b_v - l) / q,    l = r_j sum_v a_jv,

and l is the root of a piecewise linear, decreasing, convex function, which Newton's method from 0 reaches exactly
after at most as many steps as the path has nodes. Rows whose block is 0 and stays there leave the active set, as in
``margintree.compiled.linear_dual``, and the run ends on the relative duality gap in the same way.

See docs/solvers/joint.md.
"""

import numpy as np

from margintree.compiled.compile import compiled
from margintree.compiled.linear_dual import shuffle
from margintree.compiled.rows import row_add, row_dot


@compiled
def level_of(pulls, length, squared_norm, ridge):
    """Return l with l = r sum_v max(0, b_v - l) / q over the first ``length`` pulls."""
    level, n_above = 0.0, length + 1
    while True:
        total, count = 0.0, 0
        for p in range(length):
            if pulls[p] > level:
                total += pulls[p]
                count += 1
        # The level rises and the set shrinks, but for rounding.
        if count >= n_above or count == 0:
            return level
        n_above = count
        level = ridge * total / (squared_norm + count * ridge)


@compiled
def block_sum(alpha, start, i):
    """Return sum_v a_jv of row ``i``."""
    total = 0.0
    for p in range(start[i], start[i + 1]):
        total += alpha[p]
    return total


@compiled
def worst_values(rows, classes, paths, weights, worst):
    """Fill ``worst`` with min_v t_jv w_v'x_j of every row."""
    path_start, path_node, path_sign = paths
    for i in range(classes.shape[0]):
        worst[i] = np.inf
        for p in range(path_start[classes[i]], path_start[classes[i] + 1]):
            worst[i] = min(worst[i], path_sign[p] * row_dot(rows, i, weights[path_node[p]]))


@compiled
def loss(worst, ridge):
    """Return 1/2 sum_j max(0, 1 - worst_j)^2 / r_j."""
    total = 0.0
    for i in range(worst.shape[0]):
        slack = max(0.0, 1.0 - worst[i])
        total += slack * slack / ridge[i]
    return 0.5 * total


@compiled
def dual_value(alpha, start, ridge, squared_norm):
    """Return the dual objective for sum_v |w_v|^2 = ``squared_norm``."""
    total = -0.5 * squared_norm
    for i in range(ridge.shape[0]):
        block = block_sum(alpha, start, i)
        total += block - 0.5 * ridge[i] * block * block
    return total


@compiled
def solve_block(rows, i, nodes, signs, ridge, squared_norm, block, weights, pulls, shrink_above):
    """Bring the block of one row to its optimum.

    Returns the row's worst value, the largest gradient that pulled an a_jv down, the change of sum_v |w_v|^2,
    and whether the row may leave the active set, in which case nothing was done.
    """
    total, worst = 0.0, np.inf
    for p in range(nodes.shape[0]):
        signed = signs[p] * row_dot(rows, i, weights[nodes[p]])
        pulls[p] = 1.0 - signed
        worst = min(worst, signed)
        total += block[p]
    if total == 0.0 and worst - 1.0 > shrink_above:
        return worst, 0.0, 0.0, True
    if squared_norm == 0.0:
        # A row of zeros has slack 1 at every node; the optimum asks for the sum alone.
        block[0] = 1.0 / ridge
        return worst, 0.0, 0.0, False
    highest, change = 0.0, 0.0
    for p in range(nodes.shape[0]):
        if block[p] > 0.0:
            highest = max(highest, ridge * total - pulls[p])
        pulls[p] += squared_norm * block[p]
    level = level_of(pulls, nodes.shape[0], squared_norm, ridge)
    for p in range(nodes.shape[0]):
        value = max(0.0, (pulls[p] - level) / squared_norm)
        step = value - block[p]
        if step != 0.0:
            signed = 1.0 - pulls[p] + squared_norm * block[p]
            change += step * (2.0 * signed + step * squared_norm)
            block[p] = value
            row_add(rows, i, step * signs[p], weights[nodes[p]])
    return worst, highest, change, False


@compiled
def solve(rows, classes, paths, ridge, squared_norms, start, alpha, weights, worst, tol, max_iter, seed, stop):
    """Run from ``alpha`` and its ``weights``; fill both and ``worst``, the values min_v t_jv w_v'x_j.

    ``paths`` are the ``Paths`` of ``margintree.solvers.joint``; the block of row j is ``start[j] : start[j + 1]`` of
    ``alpha``. Returns the number of epochs, the primal and the dual value.
    """
    path_start, path_node, path_sign = paths
    n = ridge.shape[0]
    active = np.arange(n)
    n_active = n
    state = np.array([np.uint64(seed) | np.uint64(1)])
    pulls = np.empty(np.max(path_start[1:] - path_start[:-1]))
    flat = weights.reshape(-1)
    squared_norm = np.dot(flat, flat)
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
            path = slice(path_start[classes[i]], path_start[classes[i] + 1])
            nodes, signs, block = path_node[path], path_sign[path], alpha[start[i] : start[i + 1]]
            value, gradient, change, leaves = solve_block(
                rows, i, nodes, signs, ridge[i], squared_norms[i], block, weights, pulls, shrink_above
            )
            if leaves:
                n_active -= 1
                active[position] = active[n_active]
                active[n_active] = i
                continue
            slack = max(0.0, 1.0 - value)
            hinge += slack * slack / ridge[i]
            highest = max(highest, gradient)
            squared_norm += change
            position += 1
        # No row pulled its block down: any threshold at zero would shrink too eagerly.
        shrink_above = highest if highest > 0.0 else np.inf

        dual = dual_value(alpha, start, ridge, squared_norm)
        primal = 0.5 * squared_norm + 0.5 * hinge
        if stop[0]:
            return n_iter, primal, dual
        if primal - dual > trigger * primal and n_iter < max_iter:
            continue
        squared_norm = np.dot(flat, flat)
        dual = dual_value(alpha, start, ridge, squared_norm)
        worst_values(rows, classes, paths, weights, worst)
        primal = 0.5 * squared_norm + loss(worst, ridge)
        if primal - dual <= tol * primal:
            return n_iter, primal, dual
        n_active = n
        shrink_above = np.inf
        trigger *= 0.7
    return n_iter, primal, dual


@compiled
def proximal_blocks(decision, class_signs, classes, ridge, share, centre, alpha):
    """Fill ``alpha`` with the maximum of each row's conjugate that is held near ``centre``; return their sum.

    For signed decisions m_v the conjugate is

        max_{a >= 0} sum_v a_v (1 - m_v) - r/2 (sum_v a_v)^2 - e/2 |a - centre|^2,    e = share r,

    which is smooth in m, with gradient -a. ``class_signs`` is 0 where a node is not on the path to a class.
    """
    pulls = np.empty(class_signs.shape[1])
    total = 0.0
    for i in range(classes.shape[0]):
        signs = class_signs[classes[i]]
        hold = share * ridge[i]
        length = 0
        for v in range(signs.shape[0]):
            if signs[v] != 0.0:
                pulls[length] = 1.0 - signs[v] * decision[i, v] + hold * centre[i, v]
                length += 1
        level = level_of(pulls, length, hold, ridge[i])
        block, p = 0.0, 0
        for v in range(signs.shape[0]):
            alpha[i, v] = 0.0
            if signs[v] != 0.0:
                a = max(0.0, (pulls[p] - level) / hold)
                p += 1
                moved = a - centre[i, v]
                total += a * (1.0 - signs[v] * decision[i, v]) - 0.5 * hold * moved * moved
                alpha[i, v] = a
                block += a
        total -= 0.5 * ridge[i] * block * block
    return total
