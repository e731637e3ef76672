"""A random half of the training rows, from which another structure is learned."""

import itertools

import numpy as np

from margintree.solvers.training_set import TrainingSet

LEAST_WEIGHT = 0.25


def half_of_the_rows(training_set: TrainingSet, seed: int, number: int) -> TrainingSet:
    """Return a training set with a random half of the rows of each class, at least one.

    If the rows drawn have hardly any weight, more are drawn until they have a quarter of the weight of the class.
    """
    random = np.random.default_rng([seed, number])
    kept, start = [], [0]
    for first, last in itertools.pairwise(training_set.class_start.tolist()):
        order = random.permutation(last - first)
        weight = np.cumsum(training_set.sample_weight[first:last][order])
        n_kept = max(1, len(order) // 2, 1 + int(np.searchsorted(weight, LEAST_WEIGHT * weight[-1])))
        kept.append(first + np.sort(order[:n_kept]))
        start.append(start[-1] + n_kept)
    return training_set.part(np.concatenate(kept), np.array(start))
