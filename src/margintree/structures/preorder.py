"""Trees whose nodes appear in any order, numbered in preorder as a ``ClassTree`` is."""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from margintree.class_tree import ClassTree


def preorder_of(children: Mapping[int, tuple[int, int]]) -> list[int]:
    """Return nodes of any numbers in preorder, from node 0; ``children`` has those of each internal node.

    Examples
    --------
    >>> preorder_of({0: (2, 1), 2: (3, 4)})
    [0, 2, 3, 4, 1]
    """
    order, pending = [], [0]
    while pending:
        node = pending.pop()
        order.append(node)
        pending += children.get(node, ())[::-1]
    return order


def divided(n_classes: int, divide: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]) -> ClassTree:
    """Return the tree in which ``divide`` says which classes of a node go left.

    Examples
    --------
    >>> divided(3, lambda classes: classes < classes.max()).to_nested()
    ((0, 1), 2)
    """
    leaf_class: list[int] = []
    pending = [np.arange(n_classes)]
    while pending:
        classes = pending.pop()
        leaf_class.append(int(classes[0]) if len(classes) == 1 else -1)
        if len(classes) > 1:
            left = divide(classes)
            pending += (classes[~left], classes[left])
    return ClassTree.from_preorder(leaf_class)
