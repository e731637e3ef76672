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

from margintree.compiled.compile import compiled, inlined, inlined_by_type


def layout_of(rows):
    """Return the name of a layout from the type of the rows."""
    if isinstance(rows[0], types.BaseTuple):
        return "planes"
    return {1: "dense", 2: "indexed", 3: "sparse"}[len(rows)]


@inlined_by_type
def row_of(rows, i):
    """Return the first and the last place of row ``i``, and the row itself for ``row_entry``."""

    def dense(rows, i):
        (values,) = rows
        return 0, values.shape[1], (values[i],)

    def indexed(rows, i):
        values, row_index = rows
        return 0, values.shape[1], (values[row_index[i]],)

    def sparse(rows, i):
        indptr, indices, values = rows
        return indptr[i], indptr[i + 1], (indices, values)

    return {"dense": dense, "indexed": indexed, "sparse": sparse}[layout_of(rows)]


@inlined_by_type
def row_entry(row, place):
    """Return the column and the value at a place of a row."""

    def dense(row, place):
        (values,) = row
        return place, values[place]

    def sparse(row, place):
        indices, values = row
        return indices[place], values[place]

    return dense if len(row) == 1 else sparse


@inlined_by_type
def row_dot(rows, i, weights):
    """Return the inner product of row ``i`` with ``weights``."""

    def plain(rows, i, weights):
        first, last, row = row_of(rows, i)
        total = 0.0
        for p in range(first, last):
            column, value = row_entry(row, p)
            total += value * weights[column]
        return total

    def indexed(rows, i, weights):
        first, last, row = row_of(rows, i)
        total = 0.0
        for p in range(first, last):
            column, value = row_entry(row, p)
            total += value * weights[column]
        return total + weights[last] if weights.shape[0] > last else total

    def planes(rows, i, weights):
        single, classes, mix = rows
        plane = mix[classes[i]]
        first, last, row = row_of(single, i)
        total = 0.0
        for p in range(first, last):
            column, value = row_entry(row, p)
            total += value * _mixed(weights[column], plane)
        return total

    return {"indexed": indexed, "planes": planes}.get(layout_of(rows), plain)


@inlined_by_type
def row_add(rows, i, factor, weights):
    """Add ``factor`` times row ``i`` to ``weights``."""

    def plain(rows, i, factor, weights):
        first, last, row = row_of(rows, i)
        for p in range(first, last):
            column, value = row_entry(row, p)
            weights[column] += factor * value

    def indexed(rows, i, factor, weights):
        first, last, row = row_of(rows, i)
        for p in range(first, last):
            column, value = row_entry(row, p)
            weights[column] += factor * value
        if weights.shape[0] > last:
            weights[last] += factor

    def planes(rows, i, factor, weights):
        single, classes, mix = rows
        plane = mix[classes[i]]
        first, last, row = row_of(single, i)
        for p in range(first, last):
            column, value = row_entry(row, p)
            _spread(weights[column], factor * value, plane)

    return {"indexed": indexed, "planes": planes}.get(layout_of(rows), plain)


@inlined_by_type
def row_clear(rows, i, weights):
    """Set ``weights`` to zero where row ``i`` has entries."""

    def dense(rows, i, weights):
        weights[:] = 0.0

    def sparse(rows, i, weights):
        indptr, indices, _ = rows
        for p in range(indptr[i], indptr[i + 1]):
            weights[indices[p]] = 0.0

    return sparse if layout_of(rows) == "sparse" else dense


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


@compiled
def squared_norms(rows, n_rows):
    """Return |x_j|^2 of every row of a matrix; a constant feature is not counted among those that are indexed."""
    result = np.empty(n_rows)
    for i in range(n_rows):
        result[i] = _squared_norm(rows, i)
    return result


# Summed up outside of the array of results: adding in place, compiled code asks where both arrays lie before it takes
# several values at a time, and the last bit would depend on that.
@inlined_by_type
def _squared_norm(rows, i):
    """Return |x_i|^2."""

    def dense(rows, i):
        _, _, (row,) = row_of(rows, i)
        total = 0.0
        for value in row:
            total += np.float64(value) * value
        return total

    def sparse(rows, i):
        first, last, (_, values) = row_of(rows, i)
        total = 0.0
        for p in range(first, last):
            total += values[p] * values[p]
        return total

    return sparse if layout_of(rows) == "sparse" else dense
