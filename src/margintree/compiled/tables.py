"""Inner products of a row with weight vectors stored in one flat array, each as a hash table or dense.

``table`` is the tuple ``(start, n_weights, keys, values)``. Machine m owns the cells
``start[m]:start[m + 1]``; ``keys`` (uint32) and ``values`` (float32) are two views of the same memory.
A machine with ``n_weights`` -1 is dense and has one cell per feature. A sparse one with n weights has

- a filter of eight bits per weight, in words of 32: the bit of a column is the top of its product with an odd
  constant. Most columns of a row have no weight deep in a tree, and one bit says so;
- for each word of the filter, how many weights have their bits in the words before it;
- n pairs of cells, column and weight side by side, in the order of their bits. The weights before the word and the
  bits before that of the column tell where to look; only where several columns share a bit is there more than one
  place, and no branch has to be guessed.

The cost of a row depends on its own values only, however many weights the machine has.

A table of ``VALUE_TABLE`` entries, ``(start, support, coefficients)``, has kernel machines over rows that hold their
kernel values: machine m has the coefficients ``start[m]:start[m + 1]``, each with the column of its support vector.

A table of the entries of ``KernelTable`` has kernel machines instead: ``hits`` then holds the kernel values that are
known already, NaN for the others, so that each kernel value on the path of a row is computed once.

The filter is asked for all columns of a row first, without a branch, so that the memory it lies in is
fetched for many columns at a time; ``hits`` holds those that pass. Every loop is bounded by the cells of
the machine, whatever they hold.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from margintree.compiled.compile import by_type, compiled
from margintree.compiled.rows import layout_of

GOLDEN = np.uint64(0x9E3779B1)
LOW = np.uint64(0xFFFFFFFF)
ONE, TWO, FIVE, HALF = np.uint64(1), np.uint64(2), np.uint64(5), np.uint64(32)
LAST_BITS = np.uint64(31)
VALUE_TABLE = 3
# Weights in a word of the filter from which on they are sorted as a whole, and places that are looked at one by one.
CROWDED, STEPS = 64, np.uint64(8)
# Sixteen for each power of two down to 2^-64, below which squares of weights count for nothing.
N_SIZES = 1024


class KernelTable(NamedTuple):
    """Compiled code is called with a plain tuple of these."""

    start: Any
    support: Any
    coefficients: Any
    vectors: Any
    is_gaussian: Any
    gamma: Any
    degree: Any
    coef0: Any
    constant: Any


@intrinsic
def _n_bits(typing_context, word):
    """Return the number of bits that are set."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@compiled
def filter_words(n_weights):
    """Return the words of the filter of a sparse machine."""
    return (n_weights + 3) // 4


@compiled
def _bit(column, n_words):
    """Return the column's bit in the filter: a hash, scaled down to the number of bits."""
    return (((np.uint64(column) * GOLDEN) & LOW) * (n_words << FIVE)) >> HALF


@compiled
def large_enough(weights, prune):
    """Return which weights to keep, in their order, if the smallest may lose this part of the length of all."""
    if prune == 0.0:
        return np.flatnonzero(weights)
    largest = 0.0
    for j in range(weights.shape[0]):
        largest = max(largest, abs(weights[j]))
    squares = np.empty(weights.shape[0])
    for j in range(weights.shape[0]):
        # Relative to the largest, so that no square over- or underflows.
        squares[j] = (weights[j] / largest) ** 2 if largest > 0.0 else 0.0
    return np.flatnonzero(~_smallest_within(squares, prune * prune * squares.sum()))


@compiled
def _smallest_within(squares, budget):
    """Return whether each number, all in 0:1, belongs to the smallest whose sum stays within the budget.

    Sixteen classes of size for each power of two, then a sort of the one class that passes the budget: no sort of all.
    """
    # The first sixteen bits of a number are its sign, its exponent and four digits; those of 1.0 come last here.
    sizes = (squares.view(np.int64) >> 48) - ((np.int64(1023) << 4) - N_SIZES + 1)
    sums = np.zeros(N_SIZES)
    for j in range(squares.shape[0]):
        sizes[j] = min(max(sizes[j], 0), N_SIZES - 1)
        sums[sizes[j]] += squares[j]
    passes, lost = 0, 0.0
    while passes < N_SIZES and lost + sums[passes] <= budget:
        lost += sums[passes]
        passes += 1
    belongs = sizes < passes
    undecided = np.flatnonzero(sizes == passes)
    for j in undecided[np.argsort(squares[undecided], kind="mergesort")]:
        lost += squares[j]
        if squares[j] > 0.0 and lost > budget:
            break
        belongs[j] = True
    return belongs


@compiled
def _order_of(bits, before, columns):
    """Return the weights in the order of their bits, those of one bit in the order of their columns.

    ``before`` has how many weights have their bits in the words before each one.
    """
    n, n_words = bits.shape[0], before.shape[0] - 1
    crowded = False
    for word in range(n_words):
        crowded |= before[word + 1] - before[word] > CROWDED
    if crowded:
        # Only columns that were chosen to share bits are so many in a word.
        by_column = np.argsort(columns, kind="mergesort")
        return by_column[np.argsort(bits[by_column], kind="mergesort")]
    order = np.empty(n, dtype=np.int64)
    n_placed = np.zeros(n_words, dtype=np.int64)
    for j in range(n):
        word = bits[j] // 32
        # Four weights share a word on average: each finds its place among them by insertion.
        place = before[word] + n_placed[word]
        while place > before[word]:
            other = order[place - 1]
            if bits[other] < bits[j] or (bits[other] == bits[j] and columns[other] < columns[j]):
                break
            order[place] = other
            place -= 1
        order[place] = j
        n_placed[word] += 1
    return order


@compiled
def _search(keys, pairs, n_words, place, n, bit, column):
    """Return where a column stands from ``place`` on, by halving, or n; pairs are in the order of bit and column."""
    low, high = place, n
    while low < high:
        middle = (low + high) >> ONE
        found = np.uint64(keys[pairs + TWO * middle])
        found_bit = _bit(found, n_words)
        if found_bit < bit or (found_bit == bit and found < column):
            low = middle + ONE
        else:
            high = middle
    return low if low < n and np.uint64(keys[pairs + TWO * low]) == column else n


@compiled
def fill(keys, values, first, columns, weights):
    """Write a sparse machine to the cells that begin at ``first``."""
    n = columns.shape[0]
    n_words = filter_words(n)
    bits = np.empty(n, dtype=np.int64)
    before = np.zeros(n_words + 1, dtype=np.int64)
    for j in range(n):
        bits[j] = np.int64(_bit(columns[j], np.uint64(n_words)))
        before[bits[j] // 32 + 1] += 1
    before = np.cumsum(before)
    keys[first : first + n_words] = np.uint32(0)
    for word in range(n_words):
        keys[first + n_words + word] = before[word]
    for j in range(n):
        keys[first + bits[j] // 32] |= np.uint32(1) << np.uint32(bits[j] % 32)
    order = _order_of(bits, before, columns)
    pairs = first + 2 * n_words
    for place in range(n):
        keys[pairs + 2 * place] = columns[order[place]]
        values[pairs + 2 * place + 1] = weights[order[place]]


@by_type
def room_for_hits(rows, table, first, last):
    """Return the workspace of ``table_dot`` for rows ``first:last``; for a kernel table it serves one row."""

    def sparse(rows, table, first, last):
        indptr, _, _ = rows
        longest = np.uint64(0)
        for i in range(first, last):
            longest = max(longest, indptr[i + 1] - indptr[i])
        # One place more: a column that does not pass is written and overwritten.
        return np.empty(np.int64(longest) + 1, dtype=np.uint64)

    def dense(rows, table, first, last):
        return np.empty(0, dtype=np.uint64)

    def kernel(rows, table, first, last):
        return np.full(KernelTable(*table).vectors.shape[0], np.nan)

    if len(table) == len(KernelTable._fields):
        return kernel
    return sparse if layout_of(rows) == "sparse" else dense


@by_type
def table_dot(rows, i, table, m, hits):
    """Return the inner product of row ``i`` with the weights of machine ``m``."""

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
        n_words, n = np.uint64(filter_words(n_weights[m])), np.uint64(n_weights[m])
        n_hits = np.uint64(0)
        for p in range(indptr[i], indptr[i + 1]):
            bit = _bit(indices[p], n_words)
            hits[n_hits] = p
            n_hits += (np.uint64(keys[first + (bit >> FIVE)]) >> (bit & LAST_BITS)) & ONE
        pairs = first + TWO * n_words
        for h in range(n_hits):
            p = hits[h]
            bit = _bit(indices[p], n_words)
            word = first + (bit >> FIVE)
            before = np.uint64(keys[word]) & ((ONE << (bit & LAST_BITS)) - ONE)
            place = np.uint64(keys[word + n_words]) + _n_bits(before)
            last = place + STEPS
            while place < n and keys[pairs + TWO * place] != indices[p]:
                # Another column has the bit, or one before it shares one; those of later bits end the search.
                if _bit(keys[pairs + TWO * place], n_words) > bit:
                    place = n
                elif place == last:
                    place = _search(keys, pairs, n_words, place, n, bit, np.uint64(indices[p]))
                    break
                else:
                    place += ONE
            if place < n:
                total += row_values[p] * values[pairs + TWO * place + ONE]
        return total

    def dense(rows, i, table, m, hits):
        (row_values,) = rows
        row = row_values[i]
        start, n_weights, keys, values = table
        first, stop = start[m], start[m + 1]
        total = 0.0
        if n_weights[m] < 0:
            for j in range(row.shape[0]):
                total += row[j] * values[first + np.uint64(j)]
            return total
        for cell in range(first + TWO * np.uint64(filter_words(n_weights[m])), stop, TWO):
            # A column beyond the row can only come from a file that was tampered with.
            if keys[cell] < row.shape[0]:
                total += row[keys[cell]] * values[cell + ONE]
        return total

    def values_of_kernel(rows, i, table, m, hits):
        start, support, coefficients = table
        (row_values,) = rows
        row = row_values[i]
        total = 0.0
        for p in range(start[m], start[m + 1]):
            total += coefficients[p] * row[support[p]]
        return total

    def kernel(rows, i, table, m, hits):
        start, support, coefficients, vectors, is_gaussian, gamma, degree, coef0, constant = table
        (row_values,) = rows
        row = row_values[i]
        total = 0.0
        for p in range(start[m], start[m + 1]):
            vector = support[p]
            if np.isnan(hits[vector]):
                hits[vector] = _kernel_value(row, vectors[vector], is_gaussian, gamma, degree, coef0) + constant
            total += coefficients[p] * hits[vector]
        return total

    if len(table) == len(KernelTable._fields):
        return kernel
    if len(table) == VALUE_TABLE:
        return values_of_kernel
    return sparse if layout_of(rows) == "sparse" else dense


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
