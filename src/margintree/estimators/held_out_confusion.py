"""Which classes a one-vs-rest model confuses on rows that it was not trained on.

Rows are assigned to folds by their content, not by their position: identical rows go to the same fold, so that weight 2
is equivalent to a row that occurs twice, and the order of the rows has no effect.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from margintree.estimators.training_data import TrainingData
from margintree.prediction.machine_set import KernelMachines, LinearMachines, MachineSet
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.row_keys import row_keys
from margintree.solvers.solution import Array
from margintree.training.machines import Trainer, train_against_the_rest

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class HeldOutConfusion:
    """The confusion matrix of all folds together, and the duality gaps of the machines behind it.

    ``matrix[p, q]`` is the sample weight of the rows of class p that were held out and taken for class q.
    """

    matrix: Array
    duality_gaps: list[float]


def held_out_confusion(
    trainer: Trainer, data: TrainingData, function: KernelFunction | None, *, n_folds: int, n_threads: int
) -> HeldOutConfusion:
    """Train one-vs-rest machines without each fold in turn, and count their predictions for its rows.

    A class whose rows are all held out at once, because they are identical or there is only one, has no machine in that
    fold: its rows count for the class with the largest decision value. That is not their own, but it is the similarity
    that the tree is built on.
    """
    n_classes = len(data.classes)
    labels = np.repeat(np.arange(n_classes), np.diff(data.class_start))
    is_kernel_matrix = function is not None and function.kernel == "precomputed"
    folds = assign_folds(row_keys(data.X, pairwise=is_kernel_matrix), labels, n_folds)
    matrix = np.zeros((n_classes, n_classes))
    gaps: list[float] = []
    for fold in range(n_folds):
        held_out, kept = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        if len(held_out) == 0 or len(kept) == 0:
            continue
        present, start = np.unique(labels[kept], return_index=True)
        chosen = np.zeros(len(held_out), dtype=np.int64)
        if len(present) > 1:
            machines, fold_gaps = _one_vs_rest(trainer, data, function, kept, np.append(start, len(kept)), n_threads)
            gaps += fold_gaps
            chosen = np.argmax(machines.decisions(data.X[held_out]), axis=1)
        np.add.at(matrix, (labels[held_out], present[chosen]), data.sample_weight[held_out])
    return HeldOutConfusion(matrix, gaps)


def _one_vs_rest(
    trainer: Trainer,
    data: TrainingData,
    function: KernelFunction | None,
    kept: Index,
    class_start: Index,
    n_threads: int,
) -> tuple[MachineSet, list[float]]:
    rows = trainer.training_set.select(kept, class_start, trainer.seed)
    trained = train_against_the_rest(trainer, rows, range(rows.n_classes), n_threads)
    classifiers = [machine.classifier for machine in trained]
    machines: MachineSet
    if function is None:
        machines = LinearMachines.from_classifiers(classifiers, data.X.shape[1])
    else:
        # A precomputed kernel matrix is sorted like the rows here, not like the user's.
        machines = KernelMachines.from_classifiers(classifiers, function, data.X, np.arange(data.X.shape[0]))
    return machines, [machine.duality_gap for machine in trained]


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
