"""A tree of linear classifiers as flat arrays."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from margintree import kernels
from margintree.class_tree import ClassTree
from margintree.solvers.classifier import LinearClassifier, NodeClassifier
from margintree.solvers.linear_rows import layout
from margintree.solvers.node_rows import Matrix
from margintree.solvers.solution import Array


@dataclass(frozen=True, eq=False)
class LinearTree:
    """Weights of all nodes behind each other; node i has ``start[i]:start[i + 1]`` of them."""

    tree: ClassTree
    n_features: int
    start: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    weights: Array
    intercepts: Array

    @classmethod
    def from_classifiers(cls, tree: ClassTree, classifiers: Sequence[NodeClassifier], n_features: int) -> "LinearTree":
        """Lay the classifiers of the internal nodes, given in preorder, out flat."""
        linear = [c for c in classifiers if isinstance(c, LinearClassifier)]
        lengths = np.zeros(tree.n_nodes, dtype=np.int64)
        lengths[tree.internal_nodes] = [len(c.columns) for c in linear]
        intercepts = np.zeros(tree.n_nodes)
        intercepts[tree.internal_nodes] = [c.intercept for c in linear]
        return cls(
            tree,
            n_features,
            np.concatenate([[0], np.cumsum(lengths)]),
            np.concatenate([c.columns for c in linear]),
            np.concatenate([c.weights for c in linear]),
            intercepts,
        )

    def leaves(self, X: Matrix) -> npt.NDArray[np.int32]:
        """Return the leaf that each row reaches by the greedy walk."""
        leaf = kernels.walk.greedy(
            layout(X),
            X.shape[0],
            self.n_features,
            self.tree.children_left,
            self.tree.children_right,
            self.start,
            self.columns,
            self.weights,
            self.intercepts,
        )
        return np.asarray(leaf)
