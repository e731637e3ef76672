"""A random half of the training rows: enough to choose another structure by."""

import numpy as np

from margintree.solvers.training_set import TrainingSet


def half_of_the_rows(training_set: TrainingSet, seed: int, number: int) -> TrainingSet:
    """Return a training set with half of the rows of each class, at least one, drawn by ``seed`` and ``number``."""
    random = np.random.default_rng([seed, number])
    kept = []
    for first, last in zip(training_set.class_start[:-1].tolist(), training_set.class_start[1:].tolist(), strict=True):
        kept.append(first + np.sort(random.permutation(last - first)[: max(1, (last - first) // 2)]))
    lengths = [len(rows) for rows in kept]
    return training_set.part(np.concatenate(kept), np.concatenate([[0], np.cumsum(lengths)]))
