"""Folds of the training rows: each row is held out once, from machines that are trained on the others.

The rows of a class are assigned to folds in an order that depends on their content, not on their positions or a seed.
Repeated rows are assigned one by one, as in any cross-validation. Weights that are integer multiples of the smallest
one are treated as repeated rows: a row of weight 3 is assigned as three. Other weights only say how much a row counts.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from margintree.solvers.solution import Array
from margintree.solvers.training_set import units_of

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Folds:
    """Rows as assigned: piece p is row ``row[p]``, with this share of its weight, and is held out in ``fold[p]``.

    A row is one piece, unless its weight represents several rows in different folds. Pieces are sorted by row.
    """

    row: Index
    share: Array
    fold: Index
    n_units: int


def deal(keys: npt.NDArray[np.uint64], class_start: Index, weight: Array, n_folds: int) -> Folds:
    """Assign the rows of each class to the folds in turn, in the order of their keys.

    Examples
    --------
    >>> keys, class_start = np.array([7, 5, 9], dtype=np.uint64), np.array([0, 2, 3])
    >>> deal(keys, class_start, np.array([1.0, 3.0, 1.0]), n_folds=2).fold.tolist()
    [1, 0, 1, 1]
    """
    class_of_row = np.repeat(np.arange(len(class_start) - 1), np.diff(class_start))
    units = units_of(weight)
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
