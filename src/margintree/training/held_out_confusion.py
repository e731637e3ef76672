"""Which classes a one-vs-rest model confuses on rows that it was not trained on.

Rows are assigned to folds by their content, not by their position: identical rows go to the same fold, so that weight 2
is equivalent to a row that occurs twice, and the order of the rows has no effect.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from margintree.prediction.machine_set import KernelMachines, LinearMachines, MachineSet
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.node_rows import Matrix
from margintree.solvers.row_keys import row_keys
from margintree.solvers.solution import Array
from margintree.training.machines import Machine, Trainer, train_against_the_rest

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class HeldOutConfusion:
    """The confusion matrix of all folds together, and the duality gaps of the machines behind it.

    ``matrix[p, q]`` is the sample weight of the rows of class p that were held out and taken for class q.
    """

    matrix: Array
    duality_gaps: list[float]


def held_out_confusion(
    trainer: Trainer, X: Matrix, function: KernelFunction | None, *, n_folds: int, n_threads: int
) -> HeldOutConfusion:
    """Train one-vs-rest machines without each fold in turn, and count their predictions for its rows.

    A class whose rows are all held out at once, because they are identical or there is only one, has no machine in that
    fold: its rows count for the class with the largest decision value. That is not their own, but it is the similarity
    that the tree is built on.
    """
    training_set, n_classes = trainer.training_set, trainer.training_set.n_classes
    labels = np.repeat(np.arange(n_classes), np.diff(training_set.class_start))
    is_kernel_matrix = function is not None and function.kernel == "precomputed"
    folds = assign_folds(row_keys(X, pairwise=is_kernel_matrix), labels, n_folds)
    matrix = np.zeros((n_classes, n_classes))
    gaps: list[float] = []
    for fold in range(n_folds):
        held_out, kept = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        if len(held_out) == 0 or len(kept) == 0:
            continue
        present, start = np.unique(labels[kept], return_index=True)
        chosen = np.zeros(len(held_out), dtype=np.int64)
        if len(present) > 1:
            rows = training_set.select(kept, np.append(start, len(kept)), trainer.seed)
            trained = train_against_the_rest(trainer, rows, range(rows.n_classes), n_threads)
            gaps += [machine.duality_gap for machine in trained]
            chosen = np.argmax(_machines(trained, X, function).decisions(X[held_out]), axis=1)
        np.add.at(matrix, (labels[held_out], present[chosen]), training_set.sample_weight[held_out])
    return HeldOutConfusion(matrix, gaps)


def _machines(trained: list[Machine], X: Matrix, function: KernelFunction | None) -> MachineSet:
    classifiers = [machine.classifier for machine in trained]
    if function is None:
        return LinearMachines.from_classifiers(classifiers, X.shape[1])
    # A precomputed kernel matrix is sorted like the rows here, not like the user's.
    return KernelMachines.from_classifiers(classifiers, function, X, np.arange(X.shape[0]))


def assign_folds(keys: npt.NDArray[np.uint64], labels: Index, n_folds: int) -> Index:
    """Assign the distinct rows of each class to the folds in turn, in the order of their keys.

    Classes follow each other without a break, those with the smallest key first, so that classes of a single row spread
    over the folds and the names of the classes have no effect.

    Examples
    --------
    >>> keys = np.array([7, 7, 3, 5, 4], dtype=np.uint64)
    >>> assign_folds(keys, np.array([0, 0, 0, 0, 1]), n_folds=3).tolist()
    [2, 2, 0, 1, 0]
    """
    smallest = np.full(labels.max() + 1, np.iinfo(np.uint64).max)
    np.minimum.at(smallest, labels, keys)
    order = np.lexsort((keys, labels, smallest[labels]))
    is_new = np.ones(len(keys), dtype=bool)
    is_new[1:] = (keys[order][1:] != keys[order][:-1]) | (labels[order][1:] != labels[order][:-1])
    folds = np.empty(len(keys), dtype=np.int64)
    folds[order] = (np.cumsum(is_new) - 1) % n_folds
    return folds
