"""A random binary tree of minimum depth over the classes: the structure of the filter tree."""

import numpy as np
import numpy.typing as npt

from margintree.class_tree import ClassTree
from margintree.structures.preorder import divided


def random_tree(n_classes: int, seed: int) -> ClassTree:
    """Return a tree that halves a random order of the classes at every node.

    Examples
    --------
    >>> random_tree(5, seed=0).max_depth
    3
    """
    rank = np.argsort(np.random.default_rng(seed).permutation(n_classes))

    def first_half(classes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        return np.asarray(rank[classes] < np.sort(rank[classes])[(len(classes) + 1) // 2])

    return divided(n_classes, first_half)
