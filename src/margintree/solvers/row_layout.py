"""Rows as compiled loops take them: flat arrays of one type and layout each, and read-only.

Every other type of an array would be compiled separately.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree import compiled
from margintree.solvers.node_rows import Matrix
from margintree.solvers.solution import Array


@dataclass(frozen=True, eq=False)
class SparseRows:
    """CSR arrays of a node's own rows; a scipy matrix costs more to set up than a small node costs to solve."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    data: Array
    shape: tuple[int, int]

    @property
    def nnz(self) -> int:
        return len(self.data)

    def toarray(self) -> Array:
        """Return the rows as a dense matrix."""
        return np.asarray(compiled.gather.dense(self.indptr, self.indices, self.data, self.shape[1]))

    def matrix(self) -> sp.csr_array:
        """Return the rows as a scipy matrix."""
        return sp.csr_array((self.data, self.indices, self.indptr), shape=self.shape, copy=False)


@dataclass(frozen=True, eq=False)
class IndexedRows:
    """Rows of a dense matrix that is too large for copies, with a constant feature or without."""

    values: npt.NDArray[np.floating]
    row_index: npt.NDArray[np.int64]
    has_constant: bool
    # Of all rows of the matrix: many small problems share them.
    squared_norms: Array

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.row_index), self.values.shape[1] + self.has_constant

    def toarray(self) -> Array:
        """Return a copy of the rows."""
        return with_constant(self.values[self.row_index], self.has_constant)


def with_constant(values: npt.NDArray[np.floating], has_constant: bool) -> Array:
    """Return dense rows in double precision, with a last column of ones if there is a constant feature."""
    n_rows, n_columns = values.shape
    features = np.ones((n_rows, n_columns + has_constant))
    features[:, :n_columns] = values
    return features


def layout(features: Matrix | SparseRows | IndexedRows) -> tuple[npt.NDArray[np.generic], ...]:
    """Return the arrays that the compiled loops read; see ``margintree.compiled.rows``.

    They are read-only views, so that a user's read-only array and a writable one run the same
    compiled code.
    """
    if isinstance(features, np.ndarray):
        return (read_only(np.ascontiguousarray(features)),)
    if isinstance(features, IndexedRows):
        return read_only(np.ascontiguousarray(features.values)), read_only(features.row_index)
    return (
        read_only(features.indptr.astype(np.int64, copy=False).view(np.uint64)),
        read_only(features.indices.astype(np.int32, copy=False).view(np.uint32)),
        read_only(features.data),
    )


def read_only(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return a view that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
