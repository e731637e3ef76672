"""One row against the weights, for every layout of the rows.

``rows`` is a tuple of arrays, so that the solvers are written once and compiled per layout:

- ``(values,)``: a dense float64 matrix in C order;
- ``(values, row_index)``: some rows of a dense matrix, which stay where they are. Weights that are longer than a row
  have one more, that of a feature which is 1;
- ``(indptr, indices, values)``: CSR with unsigned indices. Unsigned matters: a signed index costs a
  wrap-around test at every access, which made the sparse dot product 1.6 to 2 times slower;
- ``(one of the above, classes, mix)``: several planes at once (Remark 2 of the paper). For planes
  z^1..z^p with weights mu, the multiple kernel problem (9) is a linear SVM on

      psi(x_j) = [sqrt(mu_1) z^1_j x_j, ..., sqrt(mu_p) z^p_j x_j]

  (eq. 10-11 as printed have mu in place of sqrt(mu); their kernel is sum mu_m^2 K_m, not that of
  (9)). Apart from x_j, psi depends on the row's class alone: ``mix[k, m] = sqrt(mu_m) z^m_k``. The
  weights are feature-major, ``weights[i, m]``, so that the planes of one feature lie side by side.
"""

import numpy as np
from numba import types
from numba.extending import overload

from margintree.compiled.compile import INLINED, compiled, inlined


def row_dot(rows, i, weights):
    """Return the inner product of row ``i`` with ``weights``."""
    raise TypeError("row_dot is for compiled code only")


def row_add(rows, i, factor, weights):
    """Add ``factor`` times row ``i`` to ``weights``."""
    raise TypeError("row_add is for compiled code only")


def row_clear(rows, i, weights):
    """Set ``weights`` to zero where row ``i`` has entries."""
    raise TypeError("row_clear is for compiled code only")


def row_end(rows, i):
    """Return the position in the flat values at which row ``i`` ends."""
    raise TypeError("row_end is for compiled code only")


def _layout(rows):
    if isinstance(rows[0], types.BaseTuple):
        return "planes of " + _layout(rows[0])
    return {1: "dense", 2: "indexed", 3: "sparse"}[len(rows)]


@overload(row_dot, jit_options=INLINED)
def _row_dot(rows, i, weights):
    def dense(rows, i, weights):
        row = rows[0][i]
        total = 0.0
        for j in range(row.shape[0]):
            total += row[j] * weights[j]
        return total

    def indexed(rows, i, weights):
        values, row_index = rows
        row = values[row_index[i]]
        total = 0.0
        for j in range(row.shape[0]):
            total += row[j] * weights[j]
        return total + weights[row.shape[0]] if weights.shape[0] > row.shape[0] else total

    def sparse(rows, i, weights):
        indptr, indices, values = rows
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += values[p] * weights[indices[p]]
        return total

    def planes_of_dense(rows, i, weights):
        (values,), classes, mix = rows
        row, plane = values[i], mix[classes[i]]
        total = 0.0
        for j in range(row.shape[0]):
            total += row[j] * _mixed(weights[j], plane)
        return total

    def planes_of_sparse(rows, i, weights):
        (indptr, indices, values), classes, mix = rows
        plane = mix[classes[i]]
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += values[p] * _mixed(weights[indices[p]], plane)
        return total

    return {
        "dense": dense,
        "indexed": indexed,
        "sparse": sparse,
        "planes of dense": planes_of_dense,
        "planes of sparse": planes_of_sparse,
    }[_layout(rows)]


@overload(row_add, jit_options=INLINED)
def _row_add(rows, i, factor, weights):
    def dense(rows, i, factor, weights):
        row = rows[0][i]
        for j in range(row.shape[0]):
            weights[j] += factor * row[j]

    def indexed(rows, i, factor, weights):
        values, row_index = rows
        row = values[row_index[i]]
        for j in range(row.shape[0]):
            weights[j] += factor * row[j]
        if weights.shape[0] > row.shape[0]:
            weights[row.shape[0]] += factor

    def sparse(rows, i, factor, weights):
        indptr, indices, values = rows
        for p in range(indptr[i], indptr[i + 1]):
            weights[indices[p]] += factor * values[p]

    def planes_of_dense(rows, i, factor, weights):
        (values,), classes, mix = rows
        row, plane = values[i], mix[classes[i]]
        for j in range(row.shape[0]):
            _spread(weights[j], factor * row[j], plane)

    def planes_of_sparse(rows, i, factor, weights):
        (indptr, indices, values), classes, mix = rows
        plane = mix[classes[i]]
        for p in range(indptr[i], indptr[i + 1]):
            _spread(weights[indices[p]], factor * values[p], plane)

    return {
        "dense": dense,
        "indexed": indexed,
        "sparse": sparse,
        "planes of dense": planes_of_dense,
        "planes of sparse": planes_of_sparse,
    }[_layout(rows)]


@overload(row_clear, jit_options=INLINED)
def _row_clear(rows, i, weights):
    def dense(rows, i, weights):
        weights[:] = 0.0

    def sparse(rows, i, weights):
        indptr, indices, _ = rows
        for p in range(indptr[i], indptr[i + 1]):
            weights[indices[p]] = 0.0

    return sparse if _layout(rows) == "sparse" else dense


@inlined
def _mixed(feature_weights, plane):
    total = 0.0
    for m in range(plane.shape[0]):
        total += plane[m] * feature_weights[m]
    return total


@inlined
def _spread(feature_weights, amount, plane):
    for m in range(plane.shape[0]):
        feature_weights[m] += amount * plane[m]


@overload(row_end, jit_options=INLINED)
def _row_end(rows, i):
    def dense(rows, i):
        return (i + 1) * rows[0].shape[1]

    def sparse(rows, i):
        return np.int64(rows[0][i + 1])

    return sparse if _layout(rows) == "sparse" else dense


@compiled
def squared_norms(rows, n_rows):
    """Return |x_j|^2 of every row of a matrix; a constant feature is not counted among those that are indexed."""
    result = np.empty(n_rows)
    for i in range(n_rows):
        result[i] = _squared_norm(rows, i)
    return result


def _squared_norm(rows, i):
    """Return |x_i|^2."""
    raise TypeError("_squared_norm is for compiled code only")


# Summed up outside of the array of results: adding in place, compiled code asks where both arrays lie before it takes
# several values at a time, and the last bit would depend on that.
@overload(_squared_norm, jit_options=INLINED)
def _squared_norm_of(rows, i):
    def dense(rows, i):
        total = 0.0
        for value in rows[0][i]:
            total += value * value
        return total

    def indexed(rows, i):
        values, row_index = rows
        total = 0.0
        for value in values[row_index[i]]:
            total += np.float64(value) * value
        return total

    def sparse(rows, i):
        indptr, _, values = rows
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += values[p] * values[p]
        return total

    return {"dense": dense, "indexed": indexed, "sparse": sparse}[_layout(rows)]
