"""Random splits: the structure of the filter tree and of random nested dichotomies."""

from dataclasses import dataclass

import numpy as np

from margintree.splits.bounds import conclude
from margintree.splits.node import NodeProblem, SplitResult, canonical


@dataclass(frozen=True)
class RandomSplit:
    """Divide the classes at random, within the balance constraint.

    Read more in the :doc:`user guide </splits/random>`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import MarginTreeClassifier
    >>> from margintree.splits import RandomSplit
    >>> X, y = load_iris(return_X_y=True)
    >>> MarginTreeClassifier(split=RandomSplit(), random_state=0).fit(X, y).tree_.to_nested()
    ((0, 1), 2)
    """

    def divide(self, node: NodeProblem) -> SplitResult:
        """Return a random labelling."""
        costs = np.random.default_rng(node.seed).standard_normal(node.n_classes)
        labelling = canonical(node.cheapest_labelling(node.sizes * costs))
        return conclude(node, labelling)
