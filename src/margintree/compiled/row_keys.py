"""Hashes of the content of rows: a sum over the stored values, in which zeros have no effect, stored or not."""

import numpy as np

from margintree.compiled.compile import compiled

# Odd numbers of 64 bits, drawn once and for all.
FIRST, SECOND = np.uint64(0xB5297A4D3F84D5A7), np.uint64(0x68E31DA4C2B79F1D)


@compiled
def _scattered(number):
    """Mix the bits of a 64-bit number; products wrap around at 2^64."""
    number = (number ^ (number >> np.uint64(31))) * FIRST
    number = (number ^ (number >> np.uint64(29))) * SECOND
    return number ^ (number >> np.uint64(32))


@compiled
def of_dense(values, counts_columns):
    """Return the keys of dense rows; ``counts_columns`` says whether it matters in which column a value stands."""
    keys = np.empty(values.shape[0], dtype=np.uint64)
    number = np.empty(1)
    bits = number.view(np.uint64)
    columns = np.empty(values.shape[1], dtype=np.uint64)
    for j in range(values.shape[1]):
        columns[j] = _scattered(np.uint64(j)) if counts_columns else np.uint64(0)
    for i in range(values.shape[0]):
        total = np.uint64(0)
        for j in range(values.shape[1]):
            if values[i, j] != 0.0:
                number[0] = values[i, j]
                total += _scattered(bits[0] + columns[j])
        keys[i] = _scattered(total)
    return keys


@compiled
def of_sparse(indptr, indices, values):
    """Return the keys of CSR rows."""
    keys = np.empty(indptr.shape[0] - 1, dtype=np.uint64)
    number = np.empty(1)
    bits = number.view(np.uint64)
    for i in range(keys.shape[0]):
        total = np.uint64(0)
        for p in range(indptr[i], indptr[i + 1]):
            if values[p] != 0.0:
                number[0] = values[p]
                total += _scattered(bits[0] + _scattered(np.uint64(indices[p])))
        keys[i] = _scattered(total)
    return keys
