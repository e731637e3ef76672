"""Kernel functions: named ones and callables, with the constant that stands for an intercept."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from margintree.solvers.solution import Array
from margintree.solvers.used_columns import over_used_columns

Kernel = str | Callable[[Any, Any], Any]
NOT_FINITE = (
    "The kernel returned values that are not finite. Scale the features, or lower gamma, degree or coef0; "
    "a degree that is not an integer also needs gamma x'y + coef0 >= 0."
)
# Up to this size, single precision errs by some millionths.
SMALL_EXPONENT = 16.0


@dataclass(frozen=True)
class KernelFunction:
    """k(x, y), plus 1 where there is an intercept.

    Parameters
    ----------
    kernel : {"rbf", "poly", "precomputed"} or callable
        With "precomputed" there is nothing to evaluate: ``finish`` is applied to the given values.
    gamma, degree, coef0 : float
        Of exp(-gamma |x - y|^2) and (gamma x'y + coef0)^degree.
    fit_intercept : bool
    """

    kernel: Kernel
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 0.0
    fit_intercept: bool = False

    def __call__(self, A: Any, B: Any, dtype: npt.DTypeLike = np.float64) -> Any:
        """Return the kernel values between two sets of rows; Gaussian ones of dense rows in the given precision."""
        if isinstance(self.kernel, str):
            A, B = over_used_columns(A, B)
        if self.kernel == "rbf":
            if dtype == np.float32 and isinstance(A, np.ndarray):
                return self._with_intercept(_gaussian_in_single_precision(A, B, self.gamma))
            return self.finish(rbf_kernel(A, B, gamma=self.gamma))
        if self.kernel == "poly":
            # Powers that overflow or do not exist are refused below, with a reason.
            with np.errstate(over="ignore", invalid="ignore"):
                values = polynomial_kernel(A, B, gamma=self.gamma, degree=self.degree, coef0=self.coef0)
            return self.finish(values)
        assert callable(self.kernel)
        # A copy: the function may keep what it returns.
        values = np.array(self.kernel(A, B), dtype=np.float64, order="C")
        if values.shape != (A.shape[0], B.shape[0]):
            raise ValueError(
                f"The kernel function returned an array of shape {values.shape} for {A.shape[0]} and "
                f"{B.shape[0]} rows; expected {(A.shape[0], B.shape[0])}."
            )
        return self.finish(values)

    def finish(self, values: Any) -> Any:
        """Add the intercept's 1 in place and raise an error for values that are not finite."""
        # One sum is finite unless a value is not, or the values are absurdly large; no second array is needed.
        if not np.isfinite(values.sum()) and not np.isfinite(values).all():
            raise ValueError(NOT_FINITE)
        return self._with_intercept(values)

    def _with_intercept(self, values: Any) -> Any:
        if self.fit_intercept:
            values += 1.0
        return values


def _gaussian_in_single_precision(A: Array, B: Array, gamma: float) -> npt.NDArray[np.float32]:
    """Return exp(-gamma |x - y|^2).

    -gamma |x - y|^2 is one product of (2 gamma x, -gamma |x|^2, 1) and (y, 1, -gamma |y|^2). It is a difference of
    terms of the size of gamma |x|^2: where these are large, it takes double precision.
    """
    squares = [-gamma * np.einsum("ij,ij->i", rows, rows) for rows in (A, B)]
    largest = max(-square.min(initial=0.0) for square in squares)
    if not np.isfinite(largest):
        raise ValueError(NOT_FINITE)
    dtype = np.float32 if largest <= SMALL_EXPONENT else np.float64
    left, right = np.empty((len(A), A.shape[1] + 2), dtype), np.empty((len(B), B.shape[1] + 2), dtype)
    np.multiply(A, 2.0 * gamma, out=left[:, :-2], casting="same_kind")
    left[:, -2], left[:, -1] = squares[0], 1.0
    right[:, :-2], right[:, -2], right[:, -1] = B, 1.0, squares[1]
    values: npt.NDArray[np.float32] = (left @ right.T).astype(np.float32, copy=False)
    np.minimum(values, 0.0, out=values)
    np.exp(values, out=values)
    return values
