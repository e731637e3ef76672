"""A known tree: every node divides its classes as the tree does."""

from dataclasses import dataclass

import numpy as np

from margintree.class_tree import ClassTree
from margintree.splits.bounds import conclude
from margintree.splits.node import NodeProblem, SplitResult


@dataclass(frozen=True)
class GivenTreeSplit:
    """Divide the classes of each node as a given tree does, regardless of the balance.

    Read more in the :doc:`user guide </splits/given_tree>`.
    """

    tree: ClassTree

    def divide(self, node: NodeProblem) -> SplitResult:
        """Return the labelling that the tree has for the node's classes."""
        leaves = self.tree.leaf_of_class[node.classes]
        # Preorder: the node of a group is the deepest ancestor of its first leaf that reaches its last one.
        place, last = int(leaves.min()), leaves.max()
        while self.tree.last_below(place) < last:
            place = int(self.tree.parent[place])
        return conclude(node, np.where(leaves < self.tree.children_right[place], 1.0, -1.0))
