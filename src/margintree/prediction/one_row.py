"""One row as compiled code takes it, and the errors for invalid rows."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.solution import Array

# The values of all machines for a matrix of one row.
Decisions = Callable[[Any], Array]
# Powers with a smaller logarithm are far from overflow, the sum of many included.
LARGEST_LOGARITHM = 600.0


@dataclass(frozen=True, eq=False)
class PolynomialGuard:
    """Finds the rows for which a polynomial kernel is not finite, which compiled code does not check.

    Nearly all rows are too small for that, as their largest value shows. For others, the kernel values are computed as
    for a batch, which raises an error that says why.
    """

    function: KernelFunction
    vectors: Array
    largest_sum: float

    @classmethod
    def of(cls, function: KernelFunction, vectors: Any) -> "PolynomialGuard | None":
        """Return the guard of machines with these support vectors; None where values are always finite."""
        if function.kernel != "poly" or not isinstance(vectors, np.ndarray):
            return None
        with np.errstate(over="ignore"):
            largest_sum = float(np.abs(vectors).sum(axis=1).max(initial=0.0))
        return cls(function, vectors, math.inf if math.isnan(largest_sum) else largest_sum)

    def check(self, row: Array) -> None:
        """Raise an error if a kernel value is not finite; the row itself is checked elsewhere."""
        function = self.function
        # No inner product is larger than the largest value of one vector times the sum of the other's.
        reach = function.gamma * float(np.abs(row).max()) * self.largest_sum
        is_small = function.degree * math.log(max(1.0, reach + abs(function.coef0))) <= LARGEST_LOGARITHM
        has_a_power = function.degree == int(function.degree) or function.coef0 >= reach
        if not (is_small and has_a_power) and np.isfinite(row).all():
            function(row.reshape(1, -1), self.vectors)


@dataclass(frozen=True, eq=False)
class RowReader:
    """Reads a row given as dense ``x``, or as ascending columns ``x`` and their ``values``.

    The compiled code checks the content of the arrays; only their types and shapes are checked here.

    Parameters
    ----------
    n_features : int
    is_linear : bool
        Whether the compiled code reads sparse rows; otherwise they are converted to dense ones.
    decisions : callable or None
        For kernels that are not compiled: the values of all machines, which then replace the row.
    wants_sparse : bool
        Whether ``decisions`` takes sparse matrices.
    guard : PolynomialGuard or None
        Refuses rows for which compiled kernel values would not be finite.
    """

    n_features: int
    is_linear: bool
    decisions: Decisions | None = None
    wants_sparse: bool = False
    guard: PolynomialGuard | None = None

    def read(self, x: Any, values: Any) -> tuple[Any, ...]:
        """Return the row as flat arrays of the types that the compiled code takes."""
        if values is None:
            row = _as_compiled(np.ascontiguousarray(x, dtype=np.float64))
            if row.ndim != 1:
                raise self.complaint(x, values)
            if self.guard is not None and len(row) == self.n_features:
                self.guard.check(row)
            return (row,) if self.decisions is None else (self._machine_values(row, self.decisions),)
        columns, data = np.ascontiguousarray(x), np.ascontiguousarray(values, dtype=np.float64)
        if columns.dtype != np.int32:
            columns = self._as_int32(columns, x, values)
        if columns.ndim != 1 or data.ndim != 1:
            raise self.complaint(x, values)
        if self.is_linear:
            return _as_compiled(columns), _as_compiled(data)
        if len(columns) != len(data) or not _ascend_within(columns, self.n_features):
            raise self.complaint(x, values)
        if self.wants_sparse and self.decisions is not None:
            return (self._machine_values_of_sparse(columns, data, self.decisions),)
        row = np.zeros(self.n_features)
        row[columns] = data
        return self.read(row, None)

    def complaint(self, x: Any, values: Any) -> ValueError:
        """Return the error for an invalid row."""
        if values is None:
            return ValueError(
                f"A dense row must have the shape ({self.n_features},) and finite values. Got shape {np.shape(x)}; "
                "impute or drop values that are NaN or infinite."
            )
        return ValueError(
            f"A sparse row is given by two arrays of equal length: ascending columns from 0 to {self.n_features - 1}, "
            f"and finite values. Got shapes {np.shape(x)} and {np.shape(values)}, columns of type "
            f"{np.asarray(x).dtype}. Sort the columns, add up values of equal ones, and drop columns that the model "
            "does not know."
        )

    def _as_int32(self, columns: npt.NDArray[Any], x: Any, values: Any) -> npt.NDArray[np.int32]:
        if columns.size == 0:
            return np.empty(0, dtype=np.int32)
        if columns.dtype.kind not in "iu" or columns.min() < 0 or columns.max() >= self.n_features:
            raise self.complaint(x, values)
        return columns.astype(np.int32)

    def _machine_values(self, row: Array, decisions: Decisions) -> Array:
        if len(row) != self.n_features or not np.isfinite(row).all():
            raise self.complaint(row, None)
        X = row.reshape(1, -1)
        return _bounded(decisions(sp.csr_array(X) if self.wants_sparse else X)[0])

    def _machine_values_of_sparse(self, columns: npt.NDArray[np.int32], values: Array, decisions: Decisions) -> Array:
        if not np.isfinite(values).all():
            raise self.complaint(columns, values)
        X = sp.csr_array((values, columns, np.array([0, len(columns)], dtype=np.int32)), shape=(1, self.n_features))
        return _bounded(decisions(X)[0])


def _bounded(values: Array) -> Array:
    """Replace infinite values and NaN: an overflow does not make a row invalid, which compiled code checks next."""
    return np.ascontiguousarray(np.nan_to_num(values))


def _ascend_within(columns: npt.NDArray[np.int32], n_features: int) -> bool:
    return len(columns) == 0 or bool(columns[0] >= 0 and columns[-1] < n_features and (np.diff(columns) > 0).all())


def _as_compiled(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array, or a copy if it is read-only or not aligned, which would be compiled separately."""
    return array if array.flags.carray else array.copy()
