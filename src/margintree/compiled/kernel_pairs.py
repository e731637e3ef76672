"""Kernel machines between two classes of few rows, by Newton's method, with their leave-one-out values.

On the rows with z_j f(x_j) < 1 the optimum has z_j f(x_j) + r_j a_j = 1, elsewhere a_j = 0: a linear system over the
support vectors, solved until their set no longer changes (Chapelle 2007). ``KernelRows.polish`` and
``KernelRows.leave_one_out`` do the same for one machine of any size; with few rows they would mostly wait for Python.

See docs/solvers/kernel_dual.md.
"""

import numpy as np

from margintree.compiled.compile import compiled

MOST_STEPS = 20


@compiled
def factorise(system, n):
    """Replace the lower triangle of a matrix by its Cholesky factor; return whether there is one."""
    for i in range(n):
        for j in range(i + 1):
            total = system[i, j]
            for k in range(j):
                total -= system[i, k] * system[j, k]
            if i > j:
                system[i, j] = total / system[j, j]
            elif total > 0.0:
                system[i, i] = np.sqrt(total)
            else:
                return False
    return True


@compiled
def substitute(factor, n, b):
    """Solve L L' x = b in place."""
    for i in range(n):
        for k in range(i):
            b[i] -= factor[i, k] * b[k]
        b[i] /= factor[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            b[i] -= factor[k, i] * b[k]
        b[i] /= factor[i, i]


@compiled
def inverse_diagonal(factor, n, column, result):
    """Fill ``result`` with the diagonal of (L L')^-1; ``column`` is room for a column of L^-1."""
    for j in range(n):
        result[j] = 0.0
        for i in range(j, n):
            total = 1.0 if i == j else 0.0
            for k in range(j, i):
                total -= factor[i, k] * column[k]
            column[i] = total / factor[i, i]
            result[j] += column[i] * column[i]


@compiled
def solve(gram, pairs, class_start, ridge, units, start, coefficients, left_out, is_solved, tol, stop):
    """Train the machine of each pair; a positive value means its first class.

    Pair p has ``start[p]:start[p + 1]`` of ``coefficients`` (a_j z_j) and ``left_out``, the rows of its first class
    first. ``is_solved`` is false where the function is no kernel, the support vectors keep changing, or rounding leaves
    a relative duality gap above ``tol``.
    """
    most = np.int64(0)
    for p in range(pairs.shape[0]):
        most = max(most, start[p + 1] - start[p])
    rows, support = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    kernel, system = np.empty((most, most)), np.empty((most, most))
    sign, decision, b, work, inverse = np.empty(most), np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    for p in range(pairs.shape[0]):
        if stop[0]:
            return
        n = 0
        for side in range(2):
            k = pairs[p, side]
            for row in range(class_start[k], class_start[k + 1]):
                rows[n], sign[n], decision[n] = row, 1.0 - 2.0 * side, 0.0
                n += 1
        for i in range(n):
            for j in range(n):
                kernel[i, j] = gram[rows[i], rows[j]]
        is_solved[p] = False
        n_support = 0
        for _ in range(MOST_STEPS):
            n_before, is_same, n_support = n_support, True, 0
            for i in range(n):
                if sign[i] * decision[i] < 1.0:
                    is_same &= n_support < n_before and support[n_support] == i
                    support[n_support] = i
                    n_support += 1
            if is_same and n_support == n_before:
                is_solved[p] = True
                break
            for i in range(n_support):
                for j in range(i + 1):
                    system[i, j] = kernel[support[i], support[j]]
                system[i, i] += ridge[rows[support[i]]]
                b[i] = sign[support[i]]
            if not factorise(system, n_support):
                break
            substitute(system, n_support, b)
            for i in range(n):
                decision[i] = 0.0
                for j in range(n_support):
                    decision[i] += kernel[i, support[j]] * b[j]
        if not is_solved[p]:
            continue
        quadratic, linear, hinge, least = 0.0, 0.0, 0.0, 0.0
        for i in range(n):
            slack = 1.0 - sign[i] * decision[i]
            hinge += slack * slack / ridge[rows[i]] if slack > 0.0 else 0.0
        for i in range(n_support):
            row = rows[support[i]]
            alpha = sign[support[i]] * b[i]
            least = min(least, alpha)
            quadratic += b[i] * decision[support[i]]
            linear += alpha - 0.5 * ridge[row] * alpha * alpha
        primal, dual = 0.5 * quadratic + 0.5 * hinge, linear - 0.5 * quadratic
        if least < 0.0 or not primal - dual <= tol * primal:
            is_solved[p] = False
            continue
        inverse_diagonal(system, n_support, work, inverse)
        for i in range(n):
            coefficients[start[p] + i], left_out[start[p] + i] = 0.0, decision[i]
        for i in range(n_support):
            row, place = rows[support[i]], start[p] + support[i]
            coefficients[place] = b[i]
            if units[row] == 1:
                left = b[i] / inverse[i]
            else:
                more = ridge[row] / (units[row] - 1)
                left = (ridge[row] + more) * b[i] / (1.0 + more * inverse[i])
            left_out[place] += ridge[row] * b[i] - left
