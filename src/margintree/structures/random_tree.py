"""A random binary tree over the classes, as shallow as can be: the structure of the filter tree."""

import numpy as np

from margintree.class_tree import ClassTree


def random_tree(n_classes: int, seed: int) -> ClassTree:
    """Return a tree that halves a random order of the classes at every node.

    Examples
    --------
    >>> random_tree(5, seed=0).max_depth
    3
    """
    order = np.random.default_rng(seed).permutation(n_classes)
    children_left, children_right, leaf_class = (np.full(2 * n_classes - 1, -1) for _ in range(3))
    pending = [(0, n_classes, -1)]
    for node in range(2 * n_classes - 1):
        first, last, right_of = pending.pop()
        if right_of >= 0:
            children_right[right_of] = node
        if last - first == 1:
            leaf_class[node] = order[first]
            continue
        children_left[node] = node + 1
        middle = (first + last + 1) // 2
        pending.append((middle, last, node))
        pending.append((first, middle, -1))
    return ClassTree.from_arrays(children_left, children_right, leaf_class)
