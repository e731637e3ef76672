"""The cheapest labelling under the balance constraint.

    min_z  sum_k z_k d_k      subject to   |sum_k n_k z_k| <= beta

With p the set of classes on the + side this is a knapsack: minimise sum_{k in p} d_k while the weight
of p stays within [(N - beta)/2, (N + beta)/2]. Exact by Gray-code enumeration for a few classes and
by dynamic programming over integer weights; beyond that the classes that cost least per unit of
weight are moved until the labelling is feasible.

See docs/solvers/knapsack.md.
"""

import numpy as np

from margintree.compiled.compile import compiled

TRY_ALL_UP_TO = 10


def cheapest_labelling(costs, sizes, units, beta, max_cells):
    """Return the labelling; ``units`` are the sizes as integers, or empty where they are not integers.

    Not compiled itself, so that only the method in use has to be compiled.
    """
    n_classes = costs.shape[0]
    free = np.where(costs > 0.0, -1.0, 1.0)
    if abs(np.dot(free, sizes)) <= beta:
        return free
    if n_classes <= TRY_ALL_UP_TO:
        return by_enumeration(costs, sizes, beta)
    if units.shape[0] > 0 and n_classes * (units.sum() + 1) <= max_cells:
        scale = units.sum() / sizes.sum()
        return by_dynamic_programming(costs, units, beta * scale)
    return by_repair(costs, sizes, beta, free)


@compiled
def by_enumeration(costs, sizes, beta):
    """Try all labellings; one class changes side from each to the next."""
    n_classes = costs.shape[0]
    labelling, best, best_value = np.empty(n_classes), np.empty(n_classes), np.inf
    value, weight = 0.0, 0.0
    for k in range(n_classes):
        labelling[k], best[k] = -1.0, -1.0
    for k in range(n_classes):
        value -= costs[k]
        weight -= sizes[k]
    for code in range(1 << n_classes):
        if code > 0:
            k = 0
            while not (code >> k) & 1:
                k += 1
            labelling[k] = -labelling[k]
            value += 2.0 * labelling[k] * costs[k]
            weight += 2.0 * labelling[k] * sizes[k]
        if value < best_value and abs(weight) <= beta:
            best_value = value
            # One by one: to assign whole arrays takes seconds to compile.
            for k in range(n_classes):
                best[k] = labelling[k]
    return best


@compiled
def by_dynamic_programming(costs, units, beta):
    """Fill the table of the cheapest + side for every weight, then walk it back."""
    n_classes = costs.shape[0]
    total = units.sum()
    lowest = max(0, np.int64(np.ceil((total - beta) / 2.0)))
    highest = min(total, np.int64(np.floor((total + beta) / 2.0)))
    cheapest = np.full(highest + 1, np.inf)
    cheapest[0] = 0.0
    taken = np.zeros((n_classes, highest + 1), dtype=np.bool_)
    for k in range(n_classes):
        for weight in range(highest, units[k] - 1, -1):
            with_k = cheapest[weight - units[k]] + costs[k]
            if with_k < cheapest[weight]:
                cheapest[weight] = with_k
                taken[k, weight] = True
    weight = lowest + np.argmin(cheapest[lowest : highest + 1])
    labelling = np.full(n_classes, -1.0)
    for k in range(n_classes - 1, -1, -1):
        if taken[k, weight]:
            labelling[k] = 1.0
            weight -= units[k]
    return labelling


def by_repair(costs, sizes, beta, labelling):
    """Move classes off the heavy side, smallest cost per weight first, until the balance constraint holds."""
    return _repaired(sizes, beta, labelling, np.argsort(np.abs(costs) / sizes, kind="stable"))


@compiled
def _repaired(sizes, beta, labelling, order):
    weight = 0.0
    for k in range(sizes.shape[0]):
        weight += labelling[k] * sizes[k]
    heavy = 1.0 if weight > 0.0 else -1.0
    result = labelling.copy()
    for k in order:
        if abs(weight) <= beta:
            break
        if result[k] == heavy:
            result[k] = -heavy
            weight -= 2.0 * heavy * sizes[k]
    # The last classes moved may have brought more weight than was needed: take back what fits.
    for k in order[::-1]:
        if result[k] != labelling[k] and abs(weight + 2.0 * heavy * sizes[k]) <= beta:
            result[k] = heavy
            weight += 2.0 * heavy * sizes[k]
    return result
