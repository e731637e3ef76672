"""One machine between two groups of sparse rows, from gathering its rows to its weights, in a single call.

Thousands of small nodes cost more in calls and small arrays than in coordinate descent.
"""

import numpy as np

from margintree.compiled.compile import compiled
from margintree.compiled.gather import gather, used_columns
from margintree.compiled.linear_dual import solve
from margintree.compiled.rows import squared_norms


@compiled
def between(rows, n_columns, row_index, n_left, ridge, constant, tol, max_iter, seed, stop):
    """Return the columns in use, and the weights over them and the constant column.

    The first ``n_left`` rows of ``row_index`` are the positive ones; ``ridge`` is that of all rows.
    """
    indptr, indices, values = rows
    columns, stored = used_columns(indptr, indices, row_index, n_columns)
    own_indptr, own_indices, own_values = gather(
        indptr, indices, values, row_index, columns, stored, n_columns, constant
    )
    own = (own_indptr.view(np.uint64), own_indices.view(np.uint32), own_values)
    n = row_index.shape[0]
    signs, own_ridge = np.full(n, -1.0), np.empty(n)
    signs[:n_left] = 1.0
    for i in range(n):
        own_ridge[i] = ridge[row_index[i]]
    weights = np.zeros(columns.shape[0] + (1 if constant else 0))
    alpha, decision = np.zeros(n), np.empty(n)
    norms = squared_norms(own, n)
    solve(own, signs, own_ridge, norms, alpha, weights, decision, tol, np.inf, max_iter, seed, stop)
    return columns, weights
