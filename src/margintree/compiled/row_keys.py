"""Hashes of the content of rows: a sum over the stored values, in which zeros have no effect, stored or not."""

import numpy as np

from margintree.compiled.compile import compiled
from margintree.compiled.rows import row_entry, row_of

# Odd numbers of 64 bits, drawn once and for all.
FIRST, SECOND = np.uint64(0xB5297A4D3F84D5A7), np.uint64(0x68E31DA4C2B79F1D)


@compiled
def _scattered(number):
    """Mix the bits of a 64-bit number; products wrap around at 2^64."""
    number = (number ^ (number >> np.uint64(31))) * FIRST
    number = (number ^ (number >> np.uint64(29))) * SECOND
    return number ^ (number >> np.uint64(32))


@compiled
def of_rows(rows, n_rows, counts_columns):
    """Return the keys of rows; ``counts_columns`` says whether it matters in which column a value stands."""
    keys = np.empty(n_rows, dtype=np.uint64)
    number = np.empty(1)
    bits = number.view(np.uint64)
    for i in range(n_rows):
        first, last, row = row_of(rows, i)
        total = np.uint64(0)
        for p in range(first, last):
            column, number[0] = row_entry(row, p)
            if number[0] != 0.0:
                total += _scattered(bits[0] + (_scattered(np.uint64(column)) if counts_columns else np.uint64(0)))
        keys[i] = _scattered(total)
    return keys
