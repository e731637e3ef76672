"""Code matrices of error-correcting output codes.

A code has one row per class and one column per machine, with entries -1, 0 and +1. The machine of a column is trained
between the classes with +1 and those with -1; classes with 0 are not used (Dietterich and Bakiri 1995, Allwein,
Schapire and Singer 2000). No column is constant, no two columns are equal or each other's negative, since such machines
would be the same; no two rows are equal, since their classes could not be distinguished; and no row is zero.
"""

from itertools import combinations, product
from math import ceil, log2
from typing import Any

import numpy as np
import numpy.typing as npt

Code = npt.NDArray[np.int8]

# Columns per log2(n_classes) (Allwein et al. 2000).
DENSE_LENGTH = 10
SPARSE_LENGTH = 15
# Allwein et al. take the best of 10000 codes. The least distance hardly grows after the first hundreds.
N_DRAWS = 200
# Multiplications that comparing the rows of all draws may take; codes of very many classes get fewer draws.
DRAW_WORK = 2**32
# Inner products of rows that are held at once.
BLOCK_DISTANCES = 2**22


def dense_code(n_classes: int, n_columns: int | None = None, *, seed: int = 0, n_draws: int = N_DRAWS) -> Code:
    """Return the random code of -1 and +1 with the largest minimum distance between rows, among several draws.

    Parameters
    ----------
    n_classes : int
    n_columns : int or None, default=None
        None means 10 log2(n_classes), rounded up. If there are only fewer different columns, 2^(n_classes - 1) - 1, the
        code has all of them.
    seed : int, default=0
    n_draws : int, default=200

    Returns
    -------
    ndarray of shape (n_classes, n_columns)

    Examples
    --------
    >>> from margintree.structures.codes import dense_code
    >>> dense_code(3).T.tolist()
    [[1, -1, -1], [1, -1, 1], [1, 1, -1]]
    >>> dense_code(10).shape
    (10, 34)
    """
    n_columns = ceil(DENSE_LENGTH * log2(n_classes)) if n_columns is None else n_columns
    if n_columns >= 2 ** (n_classes - 1) - 1:
        return _all_columns(n_classes, (-1, 1))
    return _best_draw(n_classes, n_columns, np.array([-1, 1], dtype=np.int8), seed, n_draws)


def sparse_code(n_classes: int, n_columns: int | None = None, *, seed: int = 0, n_draws: int = N_DRAWS) -> Code:
    """Return the random code of -1, 0 and +1 with the most distant rows, among several draws; P(0) = 1/2.

    Parameters
    ----------
    n_classes : int
    n_columns : int or None, default=None
        None means 15 log2(n_classes), rounded up. If there are only fewer different columns, (3^n_classes -
        2^(n_classes + 1) + 1) / 2, the code has all of them.
    seed : int, default=0
    n_draws : int, default=200

    Returns
    -------
    ndarray of shape (n_classes, n_columns)

    Examples
    --------
    >>> from margintree.structures.codes import sparse_code
    >>> sparse_code(10).shape
    (10, 50)
    """
    n_columns = ceil(SPARSE_LENGTH * log2(n_classes)) if n_columns is None else n_columns
    if n_columns >= (3**n_classes - 2 ** (n_classes + 1) + 1) // 2:
        return _all_columns(n_classes, (-1, 0, 1))
    return _best_draw(n_classes, n_columns, np.array([-1, 0, 0, 1], dtype=np.int8), seed, n_draws)


def one_vs_one_code(n_classes: int) -> Code:
    """Return the code with a column for every pair of classes.

    Examples
    --------
    >>> from margintree.structures.codes import one_vs_one_code
    >>> one_vs_one_code(3).T.tolist()
    [[1, -1, 0], [1, 0, -1], [0, 1, -1]]
    """
    pairs = np.array(list(combinations(range(n_classes), 2)))
    code = np.zeros((n_classes, len(pairs)), dtype=np.int8)
    code[pairs[:, 0], np.arange(len(pairs))] = 1
    code[pairs[:, 1], np.arange(len(pairs))] = -1
    return code


def one_vs_rest_code(n_classes: int) -> Code:
    """Return the code with a column for every class; for two classes only one, since the other is its negative.

    Examples
    --------
    >>> from margintree.structures.codes import one_vs_rest_code
    >>> one_vs_rest_code(3).T.tolist()
    [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    """
    code = 2 * np.eye(n_classes, dtype=np.int8) - np.int8(1)
    return code if n_classes > 2 else code[:, :1]


def checked_code(matrix: Any, n_classes: int) -> Code:
    """Return a matrix given by the user as a code, or raise an error that says what is wrong."""
    code = np.asarray(matrix)
    if code.ndim != 2 or code.shape[0] != n_classes or code.shape[1] == 0:
        raise ValueError(
            f"A code needs one row for each of the {n_classes} classes and at least one column; got shape {code.shape}."
        )
    if not np.isin(code, (-1, 0, 1)).all():
        raise ValueError(f"The entries of a code are -1, 0 and 1; got {np.unique(code[~np.isin(code, (-1, 0, 1))])}.")
    code = code.astype(np.int8)
    one_sided = np.flatnonzero((code.max(axis=0) < 1) | (code.min(axis=0) > -1))
    if len(one_sided):
        raise ValueError(f"Each column of a code needs both 1 and -1; columns {one_sided.tolist()} do not have both.")
    if pair := _equal_lines(code.T * _first_signs(code)[:, None]):
        raise ValueError(f"Columns {pair[0]} and {pair[1]} of the code are equal or negatives: drop one.")
    if pair := _equal_lines(code):
        raise ValueError(
            f"Rows {pair[0]} and {pair[1]} of the code are equal, so that their classes cannot be distinguished."
        )
    if not code.any(axis=1).all():
        unused = np.flatnonzero(~code.any(axis=1)).tolist()
        raise ValueError(f"Rows {unused} of the code are zero: no machine would see these classes.")
    return code


def least_distance(code: Code) -> float:
    """Return the minimum distance between two rows, sum_j (1 - a_j b_j) / 2 (Allwein et al. 2000)."""
    values = code.astype(np.float32)
    largest = -float(code.shape[1])
    height = max(1, BLOCK_DISTANCES // len(code))
    for first in range(0, len(code), height):
        products = values[first : first + height] @ values.T
        products[np.arange(len(products)), first + np.arange(len(products))] = -np.inf
        largest = max(largest, float(products.max()))
    return float(0.5 * (code.shape[1] - largest))


def _all_columns(n_classes: int, entries: tuple[int, ...]) -> Code:
    """Return the code of all columns that are neither constant nor another's negative."""
    columns = np.array(list(product(entries, repeat=n_classes)), dtype=np.int8)
    two_sided = (columns.max(axis=1) == 1) & (columns.min(axis=1) == -1)
    columns = columns[two_sided & (_first_signs(columns.T) == 1)]
    return np.ascontiguousarray(columns.T)


def _best_draw(n_classes: int, n_columns: int, entries: Code, seed: int, n_draws: int) -> Code:
    """Return the draw with the largest minimum distance between rows."""
    random = np.random.default_rng(seed)
    best, best_distance = None, -np.inf
    for _ in range(max(1, min(n_draws, DRAW_WORK // (n_classes**2 * n_columns)))):
        code = _draw(n_classes, n_columns, entries, random)
        distance = least_distance(code)
        if distance > best_distance and code.any(axis=1).all() and not _equal_lines(code):
            best, best_distance = code, distance
    if best is None:
        raise ValueError(
            f"No code of {n_columns} columns was found that distinguishes {n_classes} classes. Increase n_columns."
        )
    return best


def _draw(n_classes: int, n_columns: int, entries: Code, random: np.random.Generator) -> Code:
    """Draw columns until enough of them differ."""
    columns: dict[bytes, Code] = {}
    while len(columns) < n_columns:
        drawn = random.choice(entries, size=(n_classes, n_columns - len(columns)))
        drawn = drawn[:, (drawn.max(axis=0) == 1) & (drawn.min(axis=0) == -1)]
        for column in (drawn * _first_signs(drawn)).T:
            columns[column.tobytes()] = column
    return np.stack(list(columns.values()), axis=1)


def _first_signs(code: Code) -> Code:
    """Return the first entry of every column that is not 0."""
    return np.asarray(code[np.argmax(code != 0, axis=0), np.arange(code.shape[1])])


def _equal_lines(lines: Code) -> tuple[int, int] | None:
    """Return two equal rows of a matrix, if there are any."""
    _, first, inverse = np.unique(lines, axis=0, return_index=True, return_inverse=True)
    repeated = np.flatnonzero(first[inverse.reshape(-1)] != np.arange(len(lines)))
    return (int(first[inverse.reshape(-1)[repeated[0]]]), int(repeated[0])) if len(repeated) else None
