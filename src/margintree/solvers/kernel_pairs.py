"""Kernel machines between pairs of classes of few rows, many of them in one compiled call.

With hundreds of classes there are tens of thousands of pairs, each of which is solved in microseconds.
"""

import numpy as np
import numpy.typing as npt

from margintree import compiled
from margintree.solvers.classifier import KernelClassifier
from margintree.solvers.training_set import KernelTrainingSet
from margintree.worker_threads import stoppable

Index = npt.NDArray[np.int64]
# Up to so many rows a pair takes less time here than its calls from Python would.
MOST_ROWS = 64


def prepare(training_set: KernelTrainingSet, pairs: Index) -> None:
    """Compute all kernel values if there are so many small pairs that their own would be about as many."""
    if (_sizes(training_set, pairs) <= MOST_ROWS).sum() * MOST_ROWS**2 >= training_set.n_rows**2:
        training_set.source.hold()


def solve_pairs(training_set: KernelTrainingSet, pairs: Index, tol: float) -> list[KernelClassifier | None]:
    """Return the machine of each pair of classes; None where there are more rows, or another solver must be used."""
    class_start, leaves_one_out = training_set.class_start, training_set.leaves_one_out
    sizes, gram = _sizes(training_set, pairs), training_set.source.gram
    is_small = sizes <= MOST_ROWS
    found: list[KernelClassifier | None] = [None] * len(pairs)
    if gram is None or not is_small.any():
        return found
    start = np.concatenate([[0], np.cumsum(sizes[is_small])])
    coefficients, left_out = np.empty(start[-1]), np.empty(start[-1])
    is_solved = np.zeros(len(start) - 1, dtype=np.bool_)
    ridge, units, small = training_set.ridge, training_set.units, pairs[is_small]
    with stoppable() as stop:
        compiled.kernel_pairs.solve(
            gram, small, class_start, ridge, units, start, coefficients, left_out, is_solved, tol, stop
        )
    rows, _ = training_set.rows_of(small.ravel())
    places = np.flatnonzero(is_small)
    for number in np.flatnonzero(is_solved).tolist():
        part = slice(start[number], start[number + 1])
        support = start[number] + np.flatnonzero(coefficients[part])
        facts = (rows[part], left_out[part]) if leaves_one_out else ()
        found[places[number]] = KernelClassifier(rows[support], coefficients[support], 0.0, *facts)
    return found


def _sizes(training_set: KernelTrainingSet, pairs: Index) -> Index:
    return np.asarray(np.diff(training_set.class_start)[pairs].sum(axis=1))
