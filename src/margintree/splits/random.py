"""Random splits: the structure of the filter tree and of random nested dichotomies."""

from dataclasses import dataclass

import numpy as np

from margintree.splits.bounds import conclude
from margintree.splits.node import NodeProblem, SplitResult, canonical


@dataclass(frozen=True)
class RandomSplit:
    """Divide the classes at random, as evenly in weight as the balance asks.

    Read more in the :doc:`user guide </splits/random>`.
    """

    def divide(self, node: NodeProblem) -> SplitResult:
        """Return a random labelling."""
        costs = np.random.default_rng(node.seed).standard_normal(node.n_classes)
        labelling = canonical(node.cheapest_labelling(node.sizes * costs))
        return conclude(node, labelling)
