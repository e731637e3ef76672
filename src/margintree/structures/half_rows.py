"""A random half of the training rows: enough to choose another structure by."""

import itertools

import numpy as np
import numpy.typing as npt

from margintree.solvers.training_set import TrainingSet

Index = npt.NDArray[np.int64]
LEAST_WEIGHT = 0.25


def half_of_the_rows(training_set: TrainingSet, copy: Index, seed: int, number: int) -> TrainingSet:
    """Return a training set with half of the different rows of each class, at least one, drawn by the last two.

    ``copy`` numbers the different rows, class by class. Equal rows of a class have the same number and stay together,
    so that one which stands there twice gives the same halves as one of weight 2. Where the half has drawn rows that
    weigh next to nothing it takes more, until they weigh a quarter of the class.
    """
    random = np.random.default_rng([seed, number])
    kept, start = [], [0]
    for first, last in itertools.pairwise(training_set.class_start.tolist()):
        different, place = np.unique(copy[first:last], return_inverse=True)
        order = random.permutation(len(different))
        weight = np.cumsum(np.bincount(place, training_set.sample_weight[first:last])[order])
        n_kept = max(1, len(different) // 2, 1 + int(np.searchsorted(weight, LEAST_WEIGHT * weight[-1])))
        kept.append(first + np.flatnonzero(np.isin(place, order[:n_kept])))
        start.append(start[-1] + len(kept[-1]))
    return training_set.part(np.concatenate(kept), np.array(start))
