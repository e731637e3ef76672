"""A tree of linear regressors: the probability of a class is the product along its path."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from margintree import compiled
from margintree.class_tree import ClassTree
from margintree.prediction.kernel_tree import BLOCK_ENTRIES
from margintree.solvers.node_rows import Matrix
from margintree.solvers.row_layout import layout, read_only
from margintree.solvers.solution import Array


@dataclass(frozen=True, eq=False)
class ProbabilityTree:
    """A linear tree whose node values are v = 1/2 - f(x), with f(x) the probability of the right side.

    Weights of all nodes are concatenated; node i has ``start[i]:start[i + 1]`` of them.
    """

    tree: ClassTree
    n_features: int
    start: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    weights: Array
    intercepts: Array

    def leaves(self, X: Matrix, n_threads: int = 1) -> npt.NDArray[np.int32]:
        """Return the leaf that each row reaches by the greedy walk."""
        return np.asarray(compiled.paths.greedy(layout(X), X.shape[0], self.n_features, self._nodes()))

    def probabilities(self, X: Matrix) -> Array:
        """Return P(class | row) for every row and class; each row sums to 1."""
        result = np.empty((X.shape[0], self.tree.n_classes))
        for rows in self._parts(X, self.tree.n_nodes):
            product = compiled.paths.products(layout(X[rows]), len(result[rows]), self.n_features, self._nodes())
            result[rows] = product[self.tree.leaf_of_class].T
        return result

    def most_probable(self, X: Matrix) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return the leaf with the largest probability, and the number of nodes evaluated for each row."""
        tree, leaf = self.tree, np.empty(X.shape[0], dtype=np.int32)
        n_evaluations = np.empty(X.shape[0], dtype=np.int64)
        for rows in self._parts(X, self.tree.max_depth + 2):
            leaf[rows], n_evaluations[rows] = compiled.paths.most_probable(
                layout(X[rows]), len(leaf[rows]), self.n_features, self._nodes(), tree.leaf_class, tree.depth
            )
        return leaf, n_evaluations

    def _nodes(self) -> tuple[npt.NDArray[np.generic], ...]:
        # Read-only, so that arrays of a mapped file run the same compiled code.
        machines = (read_only(array) for array in (self.start, self.columns, self.weights, self.intercepts))
        return self.tree.children_left, self.tree.children_right, *machines

    def _parts(self, X: Matrix, entries_per_row: int) -> Iterator[slice]:
        step = max(1, BLOCK_ENTRIES // entries_per_row)
        for first in range(0, X.shape[0], step):
            yield slice(first, first + step)
