"""The machines of the columns of an error-correcting output code."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from margintree.solvers.solution import Array
from margintree.solvers.training_set import TrainingSet
from margintree.structures.codes import Code
from margintree.training.machines import Machine, Trainer
from margintree.worker_threads import in_threads


def train_columns(trainer: Trainer, code: Code, n_threads: int = 1) -> list[Machine]:
    """Train the machine of every column; columns without 0 share their rows and kernel values."""
    training_set = trainer.training_set
    everything = None
    if code.all(axis=0).any():
        everything = training_set.node_rows(np.arange(len(code)), trainer.seed)
        # Kernel rows that do not all fit into the cache are fetched by one machine at a time.
        n_threads = n_threads if everything.can_be_shared else 1

    def train(column: Code) -> Machine:
        if everything is not None and column.all():
            return trainer.on_rows(everything, column.astype(np.float64))
        return trainer.between_classes(np.flatnonzero(column > 0), np.flatnonzero(column < 0))

    return in_threads(train, list(code.T), n_threads)


def training_accuracy(
    training_set: TrainingSet, code: Code, machines: Sequence[Machine], sample_weight: Array
) -> Array:
    """Return the share of each class that every machine puts on its side, 0 where the machine does not see the class.

    Rows count by their weight; a decision value of 0 is on no side. The share is (correct + 1) / (all + 2), by
    Laplace's rule. With plain shares, a class that its machines always get wrong, such as a small one, would rely only
    on machines that hardly concern it, and so seem close to every row.
    """
    accuracy = np.zeros(code.shape)
    for j, (column, machine) in enumerate(zip(code.T, machines, strict=True)):
        seen = _classes_seen(column)
        rows, start = training_set.rows_of(seen)
        weight = sample_weight[rows]
        correct = machine.decision * np.repeat(column[seen], np.diff(start)) > 0.0
        sums = np.add.reduceat(weight * correct, start[:-1])
        accuracy[seen, j] = (sums + 1.0) / (np.add.reduceat(weight, start[:-1]) + 2.0)
    return accuracy


def _classes_seen(column: Code) -> npt.NDArray[np.int64]:
    """Return the classes of a column in the order of the rows that its machine was trained on."""
    if column.all():
        return np.arange(len(column))
    return np.concatenate([np.flatnonzero(column > 0), np.flatnonzero(column < 0)])
