"""The rows of one node, taken from the training matrix without unused columns."""

import numpy as np

from margintree.compiled.compile import compiled


@compiled
def used_columns(indptr, indices, row_index, n_columns):
    """Return the columns in use, sorted, and the number of stored values of the rows."""
    stored = 0
    for i in row_index:
        stored += np.int64(indptr[i + 1] - indptr[i])
    # A mark per column is cheapest until the matrix is far wider than the node has values.
    if n_columns <= 8 * stored:
        seen = np.zeros(n_columns, dtype=np.bool_)
        for i in row_index:
            for p in range(indptr[i], indptr[i + 1]):
                seen[indices[p]] = True
        return np.flatnonzero(seen), stored
    gathered = np.empty(stored, dtype=np.int64)
    position = 0
    for i in row_index:
        for p in range(indptr[i], indptr[i + 1]):
            gathered[position] = indices[p]
            position += 1
    return np.unique(gathered), stored


@compiled
def gather(indptr, indices, values, row_index, columns, stored, n_columns, constant):
    """Return CSR arrays of the rows over ``columns``, with a last column of ones if ``constant``."""
    extra = 1 if constant else 0
    new_indptr = np.empty(row_index.shape[0] + 1, dtype=np.int64)
    new_indices = np.empty(stored + extra * row_index.shape[0], dtype=np.int32)
    new_values = np.empty(new_indices.shape[0])
    by_table = n_columns <= 8 * stored
    place = np.empty(n_columns if by_table else 0, dtype=np.int32)
    if by_table:
        for k in range(columns.shape[0]):
            place[columns[k]] = k
    position = 0
    new_indptr[0] = 0
    for i in range(row_index.shape[0]):
        for p in range(indptr[row_index[i]], indptr[row_index[i] + 1]):
            column = np.int64(indices[p])
            new_indices[position] = place[column] if by_table else np.searchsorted(columns, column)
            new_values[position] = values[p]
            position += 1
        if constant:
            new_indices[position] = columns.shape[0]
            new_values[position] = 1.0
            position += 1
        new_indptr[i + 1] = position
    return new_indptr, new_indices, new_values


@compiled
def dense(indptr, indices, values, n_columns):
    """Return the rows as a dense matrix."""
    result = np.zeros((indptr.shape[0] - 1, n_columns))
    for i in range(result.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            result[i, indices[p]] += values[p]
    return result
