"""Searches over labellings that need only c*-dimensional matrices, and the sums that make them.

The most violated labelling maximises z'Gz under the balance constraint: exactly, by Gray code with
z_1 = +1 (z and -z are the same split), or by flips and swaps from a given start.
"""

import numpy as np

from margintree.compiled.compile import compiled


@compiled
def flip_costs(decision, ridge, class_start):
    """Return d_k = (loss of class k on the + side) - (its loss on the - side)."""
    result = np.empty(class_start.shape[0] - 1)
    for k in range(result.shape[0]):
        # Not summed up in place, for the reason that ``squared_norms`` has.
        total = 0.0
        for j in range(class_start[k], class_start[k + 1]):
            plus = max(0.0, 1.0 - decision[j])
            minus = max(0.0, 1.0 + decision[j])
            total += 0.5 * (plus * plus - minus * minus) / ridge[j]
        result[k] = total
    return result


@compiled
def largest_quadratic(matrix, sizes, beta):
    """Return the feasible labelling with the largest z'Gz, by enumeration."""
    n_classes = sizes.shape[0]
    labelling = np.ones(n_classes)
    product = matrix.sum(axis=1)
    value, weight = product.sum(), sizes.sum()
    best, best_value = labelling.copy(), -np.inf
    for code in range(1 << (n_classes - 1)):
        if code > 0:
            k = 1
            while not (code >> (k - 1)) & 1:
                k += 1
            value += 4.0 * (matrix[k, k] - labelling[k] * product[k])
            product -= 2.0 * labelling[k] * matrix[k]
            labelling[k] = -labelling[k]
            weight += 2.0 * labelling[k] * sizes[k]
        if value > best_value and abs(weight) <= beta:
            best_value = value
            best[:] = labelling
    return best


@compiled
def climb_quadratic(matrix, sizes, beta, labelling):
    """Raise z'Gz by the best flip, else by the best swap, until neither helps."""
    n_classes = sizes.shape[0]
    product = matrix @ labelling
    weight = np.dot(labelling, sizes)
    threshold = 1e-12 * np.abs(np.diag(matrix)).sum()
    while True:
        best, first, second = threshold, -1, -1
        for k in range(n_classes):
            gain = 4.0 * (matrix[k, k] - labelling[k] * product[k])
            if gain > best and abs(weight - 2.0 * labelling[k] * sizes[k]) <= beta:
                best, first = gain, k
        if first < 0:
            for k in range(n_classes):
                for m in range(k):
                    if labelling[k] == labelling[m]:
                        continue
                    moved = labelling[k] * sizes[k] + labelling[m] * sizes[m]
                    if abs(weight - 2.0 * moved) > beta:
                        continue
                    gain = 4.0 * (
                        matrix[k, k]
                        + matrix[m, m]
                        - labelling[k] * product[k]
                        - labelling[m] * product[m]
                        - 2.0 * matrix[k, m]
                    )
                    if gain > best:
                        best, first, second = gain, k, m
        if first < 0:
            return labelling
        for k in (first, second):
            if k >= 0:
                product -= 2.0 * labelling[k] * matrix[k]
                weight -= 2.0 * labelling[k] * sizes[k]
                labelling[k] = -labelling[k]
