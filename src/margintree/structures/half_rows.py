"""A random half of the training rows: enough to choose another structure by."""

import itertools

import numpy as np
import numpy.typing as npt

from margintree.solvers.training_set import TrainingSet

Index = npt.NDArray[np.int64]


def half_of_the_rows(training_set: TrainingSet, copy: Index, seed: int, number: int) -> TrainingSet:
    """Return a training set with half of the different rows of each class, at least one, drawn by the last two.

    ``copy`` numbers the different rows, class by class. Equal rows of a class have the same number and stay together,
    so that one which stands there twice gives the same halves as one of weight 2.
    """
    random = np.random.default_rng([seed, number])
    kept, start = [], [0]
    for first, last in itertools.pairwise(training_set.class_start.tolist()):
        different = np.unique(copy[first:last])
        half = random.permutation(different)[: max(1, len(different) // 2)]
        kept.append(first + np.flatnonzero(np.isin(copy[first:last], half)))
        start.append(start[-1] + len(kept[-1]))
    return training_set.part(np.concatenate(kept), np.array(start))
