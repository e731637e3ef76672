"""Kernel values between training rows.

The matrix of all training rows is computed once when it fits into ``cache_size``, and every node
takes its part of it. Otherwise each node computes its own matrix when that fits, and reads single
kernel rows through a bounded cache when it does not.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.solution import Array

Index = npt.NDArray[np.int64]

MEGABYTE = 2**20
# Rows per call when only the diagonal of a kernel is wanted.
DIAGONAL_CHUNK = 64


class KernelSource:
    """Kernel values between training rows, by their index.

    Parameters
    ----------
    function : KernelFunction
    X : array or sparse matrix of shape (n_rows, n_features)
        The training rows, or the kernel matrix itself for ``kernel="precomputed"``.
    cache_size : float
        Megabytes for one matrix of kernel values.
    """

    def __init__(self, function: KernelFunction, X: Any, cache_size: float) -> None:
        self.function = function
        self.X = X
        self.cache_size = cache_size
        self.max_entries = int(cache_size * MEGABYTE / 8)
        everything = np.arange(X.shape[0])
        self._gram = self._values(everything, everything) if self.fits(X.shape[0]) else None

    def part(self, rows: Index) -> "KernelSource":
        """Return the source of some of the rows alone."""
        X = self.X[np.ix_(rows, rows)] if self.function.kernel == "precomputed" else self.X[rows]
        return KernelSource(self.function, X, self.cache_size)

    def fits(self, n_rows: int) -> bool:
        """Tell whether a square matrix over ``n_rows`` fits into the cache."""
        return n_rows * n_rows <= self.max_entries

    def block(self, rows: Index, columns: Index) -> Array:
        """Return the kernel values between two sets of training rows."""
        if self._gram is None:
            return self._values(rows, columns)
        everything = np.arange(len(self._gram))
        if np.array_equal(rows, everything) and np.array_equal(columns, everything):
            return self._gram
        return self._gram[np.ix_(rows, columns)]

    def diagonal(self, rows: Index) -> Array:
        """Return k(x, x) of the given training rows."""
        if self._gram is not None:
            return np.asarray(self._gram.diagonal()[rows])
        chunks = np.array_split(rows, max(1, len(rows) // DIAGONAL_CHUNK))
        return np.concatenate([self._values(chunk, chunk).diagonal() for chunk in chunks])

    def _values(self, rows: Index, columns: Index) -> Array:
        if self.function.kernel == "precomputed":
            return self.function.finish(self.X[np.ix_(rows, columns)])
        A = self.X[rows]
        # One and the same array tells a symmetric product, which costs half.
        return self.function(A, A if rows is columns else self.X[columns])
