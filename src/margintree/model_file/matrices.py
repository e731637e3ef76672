"""Dense and compressed sparse matrices, and kernel functions."""

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from margintree.model_file.errors import ModelFileError
from margintree.model_file.sections import Input, Output
from margintree.solvers.kernel_function import KernelFunction

# Layouts of rows, and of machines, which are columns.
ROWS = ("dense", "csr_array", "csr_matrix")
COLUMNS = ("dense", "dense_columns", "csc_array")
SPARSE = {"csr_array": sp.csr_array, "csr_matrix": sp.csr_matrix, "csc_array": sp.csc_array}
KERNELS = ("rbf", "poly", "precomputed")


def put_matrix(out: Output, matrix: Any) -> None:
    """Store a matrix of float64, dense in either order or compressed."""
    if not sp.issparse(matrix):
        is_transposed = not matrix.flags.c_contiguous and matrix.flags.f_contiguous
        # A product of matrices depends on the order of its operands in the last bit.
        out.fact("layout", "dense_columns" if is_transposed else "dense")
        out.array("values", matrix.T if is_transposed else matrix)
        return
    out.fact("layout", type(matrix).__name__)
    for name in ("data", "indices", "indptr"):
        out.array(name, getattr(matrix, name))


def take_matrix(
    source: Input, n_rows: int, n_columns: int, layouts: Collection[str], *, is_finite: bool = False
) -> Any:
    """Return a matrix after checking its indices; with ``is_finite``, raise an error for NaN and infinite values."""
    layout = source.choice("layout", layouts)
    if is_finite:
        source.check_finite("data" if layout in SPARSE else "values")
    if layout == "dense":
        return source.array("values", np.float64, n_rows, n_columns)
    if layout == "dense_columns":
        return source.array("values", np.float64, n_columns, n_rows).T
    n_outer, n_inner = (n_columns, n_rows) if layout == "csc_array" else (n_rows, n_columns)
    data = source.array("data", np.float64, None)
    indices, indptr = source.any_array("indices"), source.any_array("indptr")
    for array in (indices, indptr):
        if array.ndim != 1 or array.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
            raise ModelFileError(f"a sparse matrix has indices of dtype {array.dtype} and shape {array.shape}")
    source.check_range("indices", indices, n_inner)
    is_sound = len(indptr) == n_outer + 1 and indptr[0] == 0 and indptr[-1] == len(indices) == len(data)
    if not is_sound or (indptr[1:] < indptr[:-1]).any():
        raise ModelFileError("a sparse matrix has an indptr that does not ascend")
    return SPARSE[layout]((data, indices, indptr), shape=(n_rows, n_columns), copy=False)


def take_vectors(source: Input, function: KernelFunction, n_vectors: int, n_features: int) -> Any:
    """Return support vectors; each was a training row, so its kernel value with itself must be finite."""
    vectors = take_matrix(source, n_vectors, n_features, ROWS, is_finite=True)
    with np.errstate(over="ignore", invalid="ignore"):
        values = row_norms(vectors, squared=True)
        if function.kernel == "poly":
            values = (function.gamma * values + function.coef0) ** function.degree
    if not np.isfinite(values).all():
        raise ModelFileError(f"its {function.kernel} kernel has no finite value for some of its support vectors")
    return vectors


def take_kind(source: Input, kinds: Collection[str], kernel: str) -> str:
    """Return the kind of the machines, which is "kernel" for all kernels but the linear one."""
    kind = source.choice("kind", kinds)
    if (kind == "kernel") == (kernel == "linear"):
        raise ModelFileError(f"its machines are of kind {kind!r}, which does not match kernel={kernel!r}")
    return kind


def put_function(out: Output, function: KernelFunction) -> None:
    """Store a kernel function by its name."""
    out.fact("kernel", function.kernel)
    out.fact("gamma", float(function.gamma))
    # An integer degree stays an integer: powers with floats are rounded differently.
    out.fact("degree", function.degree.item() if isinstance(function.degree, np.generic) else function.degree)
    out.fact("coef0", float(function.coef0))
    out.fact("fit_intercept", bool(function.fit_intercept))


def take_function(source: Input, kernel: str) -> KernelFunction:
    """Return the kernel function, which must be the one that the estimator names."""
    if source.choice("kernel", KERNELS) != kernel:
        raise ModelFileError(f"its machines have a kernel other than kernel={kernel!r}")
    return KernelFunction(
        kernel,
        source.number("gamma", math.ulp(0.0)),
        source.number("degree", 1.0, stays_whole=True),
        source.number("coef0"),
        source.boolean("fit_intercept"),
    )
