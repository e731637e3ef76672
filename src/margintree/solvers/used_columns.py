"""Sparse rows over the columns that they use, where nearly all columns are empty.

A product of two sparse matrices allocates memory for every column of the first. Hashed features have millions of
columns, and a model file can claim two billion without storing any, so unused columns are dropped first.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

# With so many more columns than entries, an array with an element for each column is too large.
FEW_COLUMNS, COLUMNS_PER_ENTRY = 2**20, 16


def has_empty_columns(n_columns: int, n_entries: int) -> bool:
    """Return whether nearly all columns must be empty."""
    return n_columns > FEW_COLUMNS + COLUMNS_PER_ENTRY * n_entries


def over_used_columns(A: Any, B: Any) -> tuple[Any, Any]:
    """Return two matrices of rows without the columns that neither uses; inner products stay the same bit for bit.

    Matrices that are not both CSR, or have a usual number of columns, are returned unchanged.
    """
    is_csr = all(sp.issparse(rows) and rows.format == "csr" for rows in (A, B))
    if not is_csr or not has_empty_columns(A.shape[1], A.nnz + B.nnz):
        return A, B
    columns, place = np.unique(np.concatenate([A.indices, B.indices]), return_inverse=True)
    places = place[: len(A.indices)], place[len(A.indices) :]
    narrow_a, narrow_b = (
        sp.csr_array((rows.data, own, rows.indptr), shape=(rows.shape[0], max(1, len(columns))))
        for rows, own in zip((A, B), places, strict=True)
    )
    return narrow_a, narrow_b
