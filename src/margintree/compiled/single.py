"""One row at a time: the same walks and rankings as for a batch, checks of the row included, in a single call.

A row is given as ``(x,)``, dense, or ``(columns, values)``. For an invalid row the class is -1.
"""

import numpy as np

from margintree.compiled.compile import by_type, compiled
from margintree.compiled.pointers import read_only
from margintree.compiled.ranking import probabilities, top, winners
from margintree.compiled.walk import Forest, greedy


@by_type
def as_rows(row, indptr):
    """Return the row as a matrix of one row in the layout of a batch; ``indptr`` becomes a part of it."""

    def dense(row, indptr):
        return (read_only(row[0].reshape(1, row[0].shape[0])),)

    def sparse(row, indptr):
        indptr[1] = row[0].shape[0]
        return read_only(indptr), read_only(row[0].view(np.uint32)), read_only(row[1])

    return dense if len(row) == 1 else sparse


@by_type
def is_sound(row, n_features):
    """Return whether all values are finite and the columns of a sparse row ascend within the range."""

    def dense(row, n_features):
        return row[0].shape[0] == n_features and _all_finite(row[0])

    def sparse(row, n_features):
        columns = row[0]
        if columns.shape[0] != row[1].shape[0] or not _all_finite(row[1]):
            return False
        last = -1
        for p in range(columns.shape[0]):
            column = np.int64(columns[p])
            if column <= last or column >= n_features:
                return False
            last = column
        return True

    return dense if len(row) == 1 else sparse


@compiled
def _all_finite(values):
    # Without an early exit the loop uses vector registers, and sound rows are what it is for.
    finite = True
    for j in range(values.shape[0]):
        finite &= np.isfinite(values[j])
    return finite


@compiled
def greedy_class(row, n_features, forest):
    """Return the class of the leaf that the row reaches."""
    if not is_sound(row, n_features):
        return np.int64(-1)
    leaves = np.empty(1, dtype=np.int32)
    greedy(as_rows(row, np.zeros(2, dtype=np.uint64)), 0, 1, forest, leaves)
    return Forest(*forest).leaf_class[leaves[0]]


@compiled
def best(row, n_features, forest, decider, width, gap, n_classes, n_finalists, n_asked):
    """Return the ``n_asked`` best classes of the row and their probabilities; the first class is -1 for a bad row."""
    classes, scores = np.full((1, n_asked), -1), np.zeros((1, n_asked))
    if is_sound(row, n_features):
        rows = as_rows(row, np.zeros(2, dtype=np.uint64))
        top(rows, 0, 1, forest, decider, width, gap, n_finalists, classes, scores)
    return classes[0], scores[0]


@compiled
def best_class(row, n_features, forest, decider, width, gap, n_classes, n_finalists):
    """Return the best class of the row, or -1."""
    classes, count = np.full(1, -1), np.empty(1, dtype=np.int64)
    if is_sound(row, n_features):
        rows = as_rows(row, np.zeros(2, dtype=np.uint64))
        winners(rows, 0, 1, forest, decider, width, gap, n_finalists, classes, count)
    return classes[0]


@compiled
def all_probabilities(row, n_features, forest, decider, width, gap, n_classes, n_finalists):
    """Return the probability of every class; nothing for a bad row."""
    if not is_sound(row, n_features):
        return np.empty(0)
    result = np.empty((1, n_classes))
    probabilities(as_rows(row, np.zeros(2, dtype=np.uint64)), 0, 1, forest, decider, width, gap, n_finalists, result)
    return result[0]
