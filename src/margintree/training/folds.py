"""Folds of the training rows: each row is held out once, by machines that are trained on the others.

The order in which the rows of a class are dealt follows from what they hold, so that neither their place nor a seed
plays a part. Rows that repeat are dealt one by one, as in any cross-validation. Weights that are whole multiples of the
smallest one are such rows: one of weight 3 is dealt as three. Other weights only say how much a row counts.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree.solvers.solution import Array
from margintree.solvers.training_set import pieces

Index = npt.NDArray[np.int64]

# Odd numbers of 64 bits, drawn once and for all.
_DRAWN = np.random.default_rng(20200229).integers(0, 2**63, 2, dtype=np.uint64) * 2 + 1


@dataclass(frozen=True, eq=False)
class Folds:
    """Rows as they are dealt: piece p is row ``row[p]``, with this share of its weight, and is held out by ``fold[p]``.

    A row is one piece, unless its weight stands for rows that several folds share. Pieces are sorted by row.
    """

    row: Index
    share: Array
    fold: Index
    n_units: int


def deal(keys: npt.NDArray[np.uint64], class_start: Index, weight: Array, n_folds: int) -> Folds:
    """Deal the rows of each class out to the folds in turn, in the order of their keys.

    Examples
    --------
    >>> keys, class_start = np.array([7, 5, 9], dtype=np.uint64), np.array([0, 2, 3])
    >>> deal(keys, class_start, np.array([1.0, 3.0, 1.0]), n_folds=2).fold.tolist()
    [1, 0, 1, 1]
    """
    class_of_row = np.repeat(np.arange(len(class_start) - 1), np.diff(class_start))
    units = _units(weight)
    order = np.lexsort((keys, class_of_row))
    # The unit at which a row begins among those of its class; small classes do not all begin with the same fold.
    begins = np.empty(len(keys), dtype=np.int64)
    begins[order] = np.cumsum(units[order]) - units[order]
    begins -= np.minimum.reduceat(begins, class_start[:-1])[class_of_row]
    n_pieces = np.minimum(units, n_folds)
    row = np.repeat(np.arange(len(keys)), n_pieces)
    number = np.arange(len(row)) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces)
    n_units = (units[row] - number + n_folds - 1) // n_folds
    return Folds(row, n_units / units[row], (begins[row] + number + class_of_row[row]) % n_folds, int(units.sum()))


def _units(weight: Array) -> Index:
    multiple = weight / weight.min()
    whole = np.rint(multiple)
    return whole.astype(np.int64) if np.allclose(multiple, whole, rtol=1e-9) else np.ones(len(weight), dtype=np.int64)


def row_keys(X: Any, *, pairwise: bool = False) -> npt.NDArray[np.uint64]:
    """Return a number for each row that follows from its content, the same for a dense and for a sparse row.

    Of a matrix of kernel values the set of values in a row counts, which neither other rows that repeat nor their
    order change.
    """
    if pairwise:
        return np.array([_mixed(_bits(np.unique(row + 0.0))).sum() for row in X], dtype=np.uint64)
    if sp.issparse(X):
        terms = _terms(X.data, X.indices)
        total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms)])
        return _mixed(total[X.indptr[1:]] - total[X.indptr[:-1]])
    columns = np.arange(X.shape[1])
    sums = [_terms(X[piece], columns).sum(axis=1) for piece in pieces(np.arange(len(X)), X)]
    return _mixed(np.concatenate(sums))


def _terms(values: npt.NDArray[Any], columns: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return what each stored value adds to the key of its row; a zero adds nothing, stored or not."""
    return np.where(values == 0.0, np.uint64(0), _mixed(_bits(values + 0.0) + _mixed(columns.astype(np.uint64))))


def _bits(values: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    return np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Scatter 64-bit numbers; sums and products come round at 2^64."""
    numbers = (numbers ^ (numbers >> np.uint64(31))) * _DRAWN[0]
    numbers = (numbers ^ (numbers >> np.uint64(29))) * _DRAWN[1]
    return numbers ^ (numbers >> np.uint64(32))
