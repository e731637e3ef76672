"""Walk rows down a tree of linear classifiers.

A node's weights are spread over a work vector once for all rows that reach it, so each row pays for
its own values only. Rows are partitioned in place: those of a subtree stay together.
"""

import numpy as np

from margintree.kernels.compile import compiled
from margintree.kernels.rows import row_dot


@compiled
def greedy(rows, n_rows, n_features, children_left, children_right, start, columns, weights, intercepts):
    """Return the leaf of every row; internal node i has ``start[i]:start[i + 1]`` of the weights."""
    leaf = np.empty(n_rows, dtype=np.int32)
    order = np.arange(n_rows)
    spread = np.zeros(n_features)
    pending = [(np.int64(0), np.int64(0), np.int64(n_rows))]
    while len(pending) > 0:
        node, first, last = pending.pop()
        if first == last:
            continue
        if children_left[node] < 0:
            for i in range(first, last):
                leaf[order[i]] = node
            continue
        for p in range(start[node], start[node + 1]):
            spread[columns[p]] = weights[p]
        middle, end = first, last
        while middle < end:
            row = order[middle]
            if row_dot(rows, row, spread) + intercepts[node] > 0.0:
                middle += 1
            else:
                end -= 1
                order[middle] = order[end]
                order[end] = row
        for p in range(start[node], start[node + 1]):
            spread[columns[p]] = 0.0
        pending.append((np.int64(children_right[node]), middle, last))
        pending.append((np.int64(children_left[node]), first, middle))
    return leaf
