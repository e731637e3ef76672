"""Kernel values between training rows.

The matrix of all training rows is computed once when it fits into ``cache_size``; all nodes and all pairs of classes
read it where it is. Otherwise each node computes its own matrix when that fits, and reads single kernel rows through a
bounded cache when it does not.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from margintree import compiled
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.solution import Array
from margintree.worker_threads import give_up_if_abandoned

Index = npt.NDArray[np.int64]

MEGABYTE = 2**20
# Rows per call when only the diagonal of a kernel is wanted.
DIAGONAL_CHUNK = 64
# Rows and columns of a large matrix that are computed at a time: their values fit into the processor's cache.
ROWS_PER_BLOCK = 1024
# From so many rows on the time of a solver is that of reading kernel values. Single precision halves it, and is far
# more precise than any tolerance down to this one.
MANY_ROWS, SINGLE_TOL = 2048, 1e-5


class KernelSource:
    """Kernel values between training rows, by their index.

    Parameters
    ----------
    function : KernelFunction
    X : array or sparse matrix of shape (n_rows, n_features)
        The training rows, or the kernel matrix itself for ``kernel="precomputed"``.
    cache_size : float
        Megabytes for one matrix of kernel values.
    tol : float, default=0.0
        Relative duality gap of the machines that are trained with these values.
    hold_all : bool, default=True
        Whether the matrix of all rows is worth its memory: if machines learn from all rows, or there are few.

    Attributes
    ----------
    gram : ndarray of shape (n_rows, n_rows) or None
        All kernel values, where they fit into the cache.
    """

    def __init__(
        self, function: KernelFunction, X: Any, cache_size: float, tol: float = 0.0, *, hold_all: bool = True
    ) -> None:
        self.function = function
        self.X = X
        self.cache_size, self.tol = cache_size, tol
        n_rows = X.shape[0]
        self.dtype = np.dtype(np.float32 if n_rows > MANY_ROWS and tol >= SINGLE_TOL else np.float64)
        self.max_entries = int(cache_size * MEGABYTE / self.dtype.itemsize)
        self.gram = self._all_values() if (hold_all or n_rows <= MANY_ROWS) and self.fits(n_rows) else None

    def hold(self) -> None:
        """Compute all kernel values, if they fit into the cache; they stay in memory."""
        if self.gram is None and self.fits(self.X.shape[0]):
            self.gram = self._all_values()

    def part(self, rows: Index) -> "KernelSource":
        """Return the source of some of the rows alone."""
        X = self.X[np.ix_(rows, rows)] if self.function.kernel == "precomputed" else self.X[rows]
        return KernelSource(self.function, X, self.cache_size, self.tol)

    def fits(self, n_rows: int) -> bool:
        """Return whether a square matrix over ``n_rows`` fits into the cache."""
        return n_rows * n_rows <= self.max_entries

    def block(self, rows: Index, columns: Index) -> npt.NDArray[np.floating]:
        """Return the kernel values between two sets of training rows."""
        if self.gram is not None:
            return np.asarray(self.gram[np.ix_(rows, columns)])
        return np.asarray(self._values(rows, columns), dtype=self.dtype)

    def diagonal(self, rows: Index) -> Array:
        """Return k(x, x) of the given training rows."""
        if self.gram is not None:
            return np.asarray(self.gram.diagonal()[rows], dtype=np.float64)
        chunks = np.array_split(rows, max(1, len(rows) // DIAGONAL_CHUNK))
        return np.concatenate([self._values(chunk, chunk).diagonal() for chunk in chunks])

    def _all_values(self) -> npt.NDArray[np.floating]:
        everything = np.arange(self.X.shape[0])
        if len(everything) <= ROWS_PER_BLOCK:
            return np.asarray(self._values(everything, everything), dtype=self.dtype)
        result = np.empty((len(everything), len(everything)), dtype=self.dtype)
        parts = [everything[first : first + ROWS_PER_BLOCK] for first in everything[::ROWS_PER_BLOCK]]
        for i, rows in enumerate(parts):
            give_up_if_abandoned()
            for columns in parts[: i + 1]:
                result[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = self._values(rows, columns)
        compiled.kernel_dual.mirror(result)
        return result

    def _values(self, rows: Index, columns: Index) -> Any:
        if self.function.kernel == "precomputed":
            return self.function.finish(self.X[np.ix_(rows, columns)])
        A = self.X[rows]
        # Passing the same array twice marks the product as symmetric, which halves its cost.
        return self.function(A, A if rows is columns else self.X[columns], dtype=self.dtype)


class PairBlocks:
    """Kernel values of the rows of two classes, which overwrite those of the previous pair.

    Values within a class are computed once, as long as the cache has room for them; those between two classes are
    needed only once.
    """

    def __init__(self, source: KernelSource, class_start: Index) -> None:
        self.source, self.class_start = source, class_start
        self._within: dict[int, npt.NDArray[np.floating]] = {}
        sizes = np.diff(class_start)
        self._keeps = bool((sizes**2).sum() <= source.max_entries)
        self._room = np.empty(0, dtype=source.dtype)

    def values(self, one: int, other: int) -> npt.NDArray[np.floating]:
        """Return the values between the rows of both classes, those of ``one`` first."""
        rows, more = (np.arange(*self.class_start[k : k + 2]) for k in (one, other))
        n, n_one = len(rows) + len(more), len(rows)
        if len(self._room) < n * n:
            self._room = np.empty(n * n, dtype=self.source.dtype)
        result = self._room[: n * n].reshape(n, n)
        result[:n_one, :n_one], result[n_one:, n_one:] = self._of_class(one, rows), self._of_class(other, more)
        between = self.source.block(rows, more)
        result[:n_one, n_one:], result[n_one:, :n_one] = between, between.T
        return result

    def _of_class(self, k: int, rows: Index) -> npt.NDArray[np.floating]:
        if k in self._within:
            return self._within[k]
        values = self.source.block(rows, rows)
        if self._keeps:
            self._within[k] = values
        return values
