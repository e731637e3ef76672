"""From the leaves up, with a filter: the training of the filter tree (Beygelzimer, Langford, Ravikumar 2009).

A node decides between the winners of its two subtrees. A row can only be classified correctly if its class wins its own
subtree, so a node is trained on exactly the rows whose true class does: those that every machine between the node and
the class's leaf sends the right way.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from margintree.class_tree import ClassTree
from margintree.training.machines import Machine, Trainer

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FilteredMachines:
    """The machines of the internal nodes in preorder, and the training rows that each one saw."""

    machines: list[Machine]
    rows: list[Index]


def train_filtered(trainer: Trainer, tree: ClassTree) -> FilteredMachines:
    """Train every node on the rows that pass the filter, children before parents."""
    class_start = trainer.training_set.class_start
    surviving: dict[int, Index] = {}
    machines: dict[int, Machine] = {}
    seen: dict[int, Index] = {}
    # Preorder backwards meets every child before its parent.
    for node in range(tree.n_nodes - 1, -1, -1):
        if tree.is_leaf(node):
            k = tree.leaf_class[node]
            surviving[node] = np.arange(class_start[k], class_start[k + 1])
            continue
        left = surviving.pop(int(tree.children_left[node]))
        right = surviving.pop(int(tree.children_right[node]))
        machine = trainer.between(left, right)
        went_left = machine.decision > 0.0
        seen[node] = np.concatenate([left, right])
        surviving[node] = np.concatenate([left[went_left[: len(left)]], right[~went_left[len(left) :]]])
        machines[node] = machine
    order = tree.internal_nodes.tolist()
    return FilteredMachines([machines[i] for i in order], [np.sort(seen[i]) for i in order])
