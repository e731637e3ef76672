"""A tree of kernel classifiers: support vectors and the coefficients of each node."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.class_tree import ClassTree
from margintree.solvers.classifier import KernelClassifier, NodeClassifier
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.solution import Array

# Kernel values held at once while predicting: 64 MB.
BLOCK_ENTRIES = 2**23


@dataclass(frozen=True, eq=False)
class KernelTree:
    """Coefficients of all nodes behind each other; node i has ``start[i]:start[i + 1]`` of them.

    ``support`` numbers the rows of ``vectors``. For a precomputed kernel ``vectors`` is None and
    ``support`` numbers the columns of the matrix that is given to predict.
    """

    tree: ClassTree
    function: KernelFunction
    vectors: Any
    start: npt.NDArray[np.int64]
    support: npt.NDArray[np.int64]
    coefficients: Array
    constants: Array

    @classmethod
    def from_classifiers(
        cls,
        tree: ClassTree,
        classifiers: Sequence[NodeClassifier],
        function: KernelFunction,
        X: Any,
        original_row: npt.NDArray[np.int64],
    ) -> "KernelTree":
        """Lay the classifiers of the internal nodes, given in preorder, out flat.

        ``original_row`` tells where each row of the sorted training set stood in the user's data.
        """
        kernel = [c for c in classifiers if isinstance(c, KernelClassifier)]
        lengths = np.zeros(tree.n_nodes, dtype=np.int64)
        lengths[tree.internal_nodes] = [len(c.row_index) for c in kernel]
        rows = np.concatenate([c.row_index for c in kernel])
        start = np.concatenate([[0], np.cumsum(lengths)])
        coefficients = np.concatenate([c.coefficients for c in kernel])
        constants = np.zeros(tree.n_nodes)
        constants[tree.internal_nodes] = [c.constant for c in kernel]
        if function.kernel == "precomputed":
            return cls(tree, function, None, start, original_row[rows], coefficients, constants)
        used, support = np.unique(rows, return_inverse=True)
        return cls(tree, function, X[used], start, support, coefficients, constants)

    def leaves(self, X: Any) -> npt.NDArray[np.int32]:
        """Return the leaf that each row reaches by the greedy walk."""
        leaf = np.zeros(X.shape[0], dtype=np.int32)
        pending = [(0, np.arange(X.shape[0]))]
        while pending:
            node, rows = pending.pop()
            if len(rows) == 0:
                continue
            if self.tree.is_leaf(node):
                leaf[rows] = node
                continue
            positive = self.decisions(node, X, rows) > 0.0
            pending.append((int(self.tree.children_right[node]), rows[~positive]))
            pending.append((int(self.tree.children_left[node]), rows[positive]))
        return leaf

    def decisions(self, node: int, X: Any, rows: npt.NDArray[np.int64]) -> Array:
        """Return the decision values of one node for some rows."""
        part = slice(self.start[node], self.start[node + 1])
        support, coefficients = self.support[part], self.coefficients[part]
        result = np.full(len(rows), self.constants[node])
        if len(support) == 0:
            return result
        height = max(1, BLOCK_ENTRIES // max(1, len(support)))
        for first in range(0, len(rows), height):
            chunk = rows[first : first + height]
            if self.vectors is None:
                values = self.function.finish(X[np.ix_(chunk, support)])
            else:
                values = self.function(X[chunk], self.vectors[support])
            result[first : first + height] += values @ coefficients
        return result
