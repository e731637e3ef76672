"""Inner products of a row with weight vectors that lie flat in one array, each a hash table or dense.

``table`` is the tuple ``(start, n_weights, keys, values)``. Machine m owns the cells
``start[m]:start[m + 1]``; ``keys`` (uint32) and ``values`` (float32) are two views of the same memory.
A machine with ``n_weights`` -1 is dense and has one cell per feature. Of a sparse one the first cells are
a filter of eight bits per weight: most columns of a row have no weight deep in a tree, and one bit says
so. Pairs of cells follow, column and weight side by side, so that finding a weight costs one cache line:
open addressing with linear probing. Places are the top of the column's product with an odd constant.
Each row pays for its own values only, however many weights the machine has.

A table of ``KERNEL_TABLE`` entries, ``(start, support, coefficients, vectors, is_gaussian, gamma, degree,
coef0, constant)``, has kernel machines instead: ``hits`` then holds the kernel values that are known
already, NaN for the others, so that a row pays once for each support vector on its way.

The filter is asked for all columns of a row first, without a branch, so that the memory it lies in is
fetched for many columns at a time; ``hits`` holds those that pass. Every loop is bounded by the cells of
the machine, whatever they hold.
"""

import numpy as np
from numba.extending import overload

from margintree.kernels.compile import OPTIONS, compiled
from margintree.kernels.rows import _layout

EMPTY = np.uint32(0xFFFFFFFF)
GOLDEN = np.uint64(0x9E3779B1)
SILVER = np.uint64(0x85EBCA6B)
LOW = np.uint64(0xFFFFFFFF)
ONE, TWO, FIVE, HALF = np.uint64(1), np.uint64(2), np.uint64(5), np.uint64(32)
LAST_BITS = np.uint64(31)
KERNEL_TABLE = 9


@compiled
def filter_words(n_weights):
    """Return the cells of the filter of a sparse machine."""
    return (n_weights + 3) // 4


@compiled
def table_pairs(n_weights):
    """Return the pairs of a sparse machine, of which a quarter stays empty."""
    return (4 * n_weights + 2) // 3


@compiled
def _place(column, multiplier, n_places):
    """Return a hash of the column, scaled down to the number of places."""
    return (((np.uint64(column) * multiplier) & LOW) * n_places) >> HALF


@compiled
def fill(keys, values, first, columns, weights):
    """Put weights into the empty cells of a sparse machine that begin at ``first``."""
    n_words, n_pairs = filter_words(columns.shape[0]), table_pairs(columns.shape[0])
    keys[first : first + n_words] = np.uint32(0)
    for j in range(columns.shape[0]):
        bit = np.int64(_place(columns[j], SILVER, np.uint64(32 * n_words)))
        keys[first + bit // 32] |= np.uint32(1) << np.uint32(bit % 32)
        pair = np.int64(_place(columns[j], GOLDEN, np.uint64(n_pairs)))
        while keys[first + n_words + 2 * pair] != EMPTY:
            pair = pair + 1 if pair + 1 < n_pairs else 0
        keys[first + n_words + 2 * pair] = columns[j]
        values[first + n_words + 2 * pair + 1] = weights[j]


@compiled
def _look_up(keys, values, first, n_pairs, column):
    """Return the weight of a column; ``first`` is where the pairs begin."""
    pair = _place(column, GOLDEN, n_pairs)
    for _ in range(n_pairs):
        cell = first + TWO * pair
        if keys[cell] == column:
            return np.float64(values[cell + ONE])
        if keys[cell] == EMPTY:
            return 0.0
        pair += ONE
        if pair == n_pairs:
            pair = np.uint64(0)
    return 0.0


def room_for_hits(rows, table, first, last):
    """Return the workspace of ``table_dot`` for rows ``first:last``; for a kernel table it serves one row."""
    raise TypeError("room_for_hits is for compiled code only")


@overload(room_for_hits, jit_options=OPTIONS)
def _room_for_hits(rows, table, first, last):
    def sparse(rows, table, first, last):
        indptr, longest = rows[0], np.uint64(0)
        for i in range(first, last):
            longest = max(longest, indptr[i + 1] - indptr[i])
        # One place more: a column that does not pass is written and overwritten.
        return np.empty(np.int64(longest) + 1, dtype=np.uint64)

    def dense(rows, table, first, last):
        return np.empty(0, dtype=np.uint64)

    def kernel(rows, table, first, last):
        return np.full(table[3].shape[0], np.nan)

    if len(table) == KERNEL_TABLE:
        return kernel
    return sparse if _layout(rows) == "sparse" else dense


def table_dot(rows, i, table, m, hits):
    """Return the inner product of row ``i`` with the weights of machine ``m``."""
    raise TypeError("table_dot is for compiled code only")


@overload(table_dot, jit_options=OPTIONS)
def _table_dot(rows, i, table, m, hits):
    def sparse(rows, i, table, m, hits):
        indptr, indices, row_values = rows
        start, n_weights, keys, values = table
        first = start[m]
        total = 0.0
        if n_weights[m] < 0:
            for p in range(indptr[i], indptr[i + 1]):
                total += row_values[p] * values[first + indices[p]]
            return total
        if n_weights[m] == 0:
            # There is no filter either, and behind the cells of the last machine lies nothing at all.
            return total
        n_words = np.uint64(filter_words(n_weights[m]))
        n_bits, n_pairs = n_words << FIVE, np.uint64(table_pairs(n_weights[m]))
        n_hits = np.uint64(0)
        for p in range(indptr[i], indptr[i + 1]):
            bit = _place(indices[p], SILVER, n_bits)
            hits[n_hits] = p
            n_hits += (np.uint64(keys[first + (bit >> FIVE)]) >> (bit & LAST_BITS)) & ONE
        for h in range(n_hits):
            p = hits[h]
            total += row_values[p] * _look_up(keys, values, first + n_words, n_pairs, indices[p])
        return total

    def dense(rows, i, table, m, hits):
        row = rows[0][i]
        start, n_weights, keys, values = table
        first, stop = start[m], start[m + 1]
        total = 0.0
        if n_weights[m] < 0:
            for j in range(row.shape[0]):
                total += row[j] * values[first + np.uint64(j)]
            return total
        for cell in range(first + np.uint64(filter_words(n_weights[m])), stop, TWO):
            if keys[cell] != EMPTY:
                total += row[keys[cell]] * values[cell + ONE]
        return total

    def kernel(rows, i, table, m, hits):
        start, support, coefficients, vectors, is_gaussian, gamma, degree, coef0, constant = table
        row = rows[0][i]
        total = 0.0
        for p in range(start[m], start[m + 1]):
            vector = support[p]
            if np.isnan(hits[vector]):
                hits[vector] = _kernel_value(row, vectors[vector], is_gaussian, gamma, degree, coef0) + constant
            total += coefficients[p] * hits[vector]
        return total

    if len(table) == KERNEL_TABLE:
        return kernel
    return sparse if _layout(rows) == "sparse" else dense


@compiled
def _kernel_value(row, vector, is_gaussian, gamma, degree, coef0):
    total = 0.0
    if is_gaussian:
        for j in range(row.shape[0]):
            total += (row[j] - vector[j]) * (row[j] - vector[j])
        return np.exp(-gamma * total)
    for j in range(row.shape[0]):
        total += row[j] * vector[j]
    return (gamma * total + coef0) ** degree
