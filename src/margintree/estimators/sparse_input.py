"""Validation of sparse input: inconsistent arrays are refused, all others converted to one form.

scipy builds a matrix from any arrays, does not notice later changes to them, and converts and multiplies without
checking; compiled code reads wherever the indices point. So all indices are compared with the shape before anything
else is done.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp


def checked_indices(X: Any) -> Any:
    """Return X, or refuse a sparse matrix whose indices point outside of it."""
    if not sp.issparse(X):
        return X
    # scikit-learn, which refuses rows that are not in a matrix, first asks for their number of columns.
    if X.ndim != 2:
        raise ValueError(f"Expected a sparse matrix with 2 dimensions. Got {X.ndim}. Use X.reshape(1, -1) for one row.")
    if X.format in ("csr", "csc", "bsr"):
        _check_compressed(X)
    elif X.format == "coo":
        for name, index, n in (("row", X.row, X.shape[0]), ("col", X.col, X.shape[1])):
            if len(index) != len(X.data):
                raise _broken(X, f"{name!r} has {len(index)} entries for {len(X.data)} values")
            _check_range(X, index, n)
    return X


def _check_compressed(X: Any) -> None:
    block = X.blocksize if X.format == "bsr" else (1, 1)
    n_rows, n_columns = X.shape[0] // block[0], X.shape[1] // block[1]
    if X.format == "csc":
        n_rows, n_columns = n_columns, n_rows
    start, n_stored = X.indptr, len(X.indices)
    if len(start) != n_rows + 1 or start[0] != 0 or np.any(start[1:] < start[:-1]):
        raise _broken(X, f"indptr must ascend from 0 and have {n_rows + 1} entries")
    # More may be stored than is used; scipy leaves such a rest behind.
    if start[-1] > n_stored or start[-1] > len(X.data):
        raise _broken(X, f"indptr ends at {start[-1]}, with {n_stored} indices and {len(X.data)} values")
    _check_range(X, X.indices[: start[-1]], n_columns)


def _check_range(X: Any, index: npt.NDArray[np.integer[Any]], n: int) -> None:
    if len(index) and (index.min() < 0 or index.max() >= n):
        raise _broken(X, f"an index must lie between 0 and {n - 1}, but they range from {index.min()} to {index.max()}")


def _broken(X: Any, what: str) -> ValueError:
    return ValueError(
        f"The arrays of the sparse matrix of format {X.format!r} and shape {X.shape} are inconsistent: {what}. "
        "Rebuild it, for example from (values, (rows, columns)) with the right shape."
    )


def in_canonical_form(X: Any) -> Any:
    """Return CSR X with sorted columns, each stored once, and 32-bit indices where they suffice.

    Solvers and kernel functions take each stored value for an entry of its own, and kernel functions expect 32
    bits, where loaders often give 64.
    """
    if not sp.issparse(X):
        return X
    widest = np.iinfo(np.int32).max
    if X.shape[1] > widest:
        raise ValueError(
            f"A sparse matrix may have up to {widest} columns. Got {X.shape[1]}. Hash or select features first."
        )
    # Formats that were not checked before have been converted by now.
    checked_indices(X)
    n_stored = X.indptr[-1]
    if len(X.indices) > n_stored or len(X.data) > n_stored:
        X = sp.csr_array((X.data[:n_stored], X.indices[:n_stored], X.indptr), shape=X.shape)
    if not _ascends(X):
        X = X.copy()
        X.has_canonical_format = False
        X.has_sorted_indices = False
        X.sum_duplicates()
    if X.indices.dtype != np.int32 and X.nnz <= widest:
        X = X.copy()
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def _ascends(X: Any) -> bool:
    """Return whether the columns of each row ascend; scipy's own flag ignores later changes of the arrays."""
    ascends = X.indices[1:] > X.indices[:-1]
    # The last column of a row and the first of the next one may be in any order.
    first = X.indptr[1:-1]
    ascends[first[(first > 0) & (first < X.indptr[-1])] - 1] = True
    return bool(ascends.all())
