"""Machines that have not seen the rows they are asked about: folds of rows, and the machines without each."""

import hashlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree.class_tree import ClassTree
from margintree.solvers.classifier import NodeClassifier
from margintree.training.machines import Trainer, as_kept
from margintree.worker_threads import in_threads

Index = npt.NDArray[np.int64]
# Juries to which rows are dealt. Prime to two, three and five, so that the jury of a class comes from all folds.
N_JURIES = 7


@dataclass(frozen=True, eq=False)
class Dealt:
    """For each row the numbers of its fold, its jury, and of the rows of its class that are equal to it."""

    fold: Index
    jury: Index
    copy: Index

    @property
    def n_different(self) -> int:
        """How many rows there are, counting equal ones of a class once."""
        return int(self.copy.max()) + 1


def deal_rows(X: Any, class_start: Index, n_folds: int, *, pairwise: bool = False) -> Dealt:
    """Deal the rows of each class out to folds and to juries.

    The order in which they are dealt follows from what the rows hold, and equal rows stay together: a row that
    stands there twice, or in another place, gives the same folds as one of weight 2. Of a matrix of kernel values
    only the set of values in a row is looked at, which does not change when rows are repeated.
    """
    copy = number_copies(X, class_start, pairwise=pairwise)
    class_of_row = np.repeat(np.arange(len(class_start) - 1), np.diff(class_start))
    rank = copy - np.minimum.reduceat(copy, class_start[:-1])[class_of_row]
    # Small classes do not all lose their only row to the same fold or jury.
    return Dealt((rank + class_of_row) % n_folds, (rank + class_of_row + 1) % N_JURIES, copy)


def number_copies(X: Any, class_start: Index, *, pairwise: bool = False) -> Index:
    """Return a number for each row, the same for equal ones of a class, in an order given by what they hold."""
    digests = np.array([_digest(content) for content in _contents(X, pairwise)], dtype=np.uint64)
    number = np.empty(len(digests), dtype=np.int64)
    n_before = 0
    for first, last in itertools.pairwise(class_start.tolist()):
        different, rank = np.unique(digests[first:last], return_inverse=True)
        number[first:last] = rank + n_before
        n_before += len(different)
    return number


def _contents(X: Any, pairwise: bool) -> list[bytes]:
    if pairwise:
        return [np.unique(row).tobytes() for row in X]
    # Rows of the same values have the same content, dense or sparse, with stored zeros or without.
    rows = sp.csr_array(X)
    if not rows.data.all():
        rows = rows.copy()
        rows.eliminate_zeros()
    indices, data = memoryview(rows.indices.astype(np.int32)).cast("B"), memoryview(rows.data).cast("B")
    bounds = rows.indptr.tolist()
    return [bytes(indices[4 * a : 4 * b]) + bytes(data[8 * a : 8 * b]) for a, b in itertools.pairwise(bounds)]


def _digest(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def machines_without(
    trainer: Trainer, tree: ClassTree, left_out: npt.NDArray[np.bool_], prune: float, n_threads: int
) -> list[NodeClassifier]:
    """Train every node of the tree, in preorder, without the rows that are left out.

    Linear machines come as a pruned model keeps them.
    """
    rows_of = _rows_of(trainer, left_out)

    def train(node: int) -> NodeClassifier:
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        machine = trainer.classifier_between(rows_of(tree.classes_below(left)), rows_of(tree.classes_below(right)))
        return as_kept(machine, trainer.training_set, prune)

    return in_threads(train, tree.internal_nodes.tolist(), n_threads)


def _rows_of(trainer: Trainer, left_out: npt.NDArray[np.bool_]) -> Callable[[npt.NDArray[Any]], Index]:
    def rows_of(classes: npt.NDArray[Any]) -> Index:
        rows = trainer.training_set.rows_of(classes.astype(np.int64))[0]
        return rows[~left_out[rows]]

    return rows_of
