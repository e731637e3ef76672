"""A tree, or several, of linear machines as flat arrays."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree import compiled
from margintree.class_tree import ClassTree
from margintree.prediction.row_chunks import in_chunks
from margintree.prediction.weight_table import WeightTable
from margintree.solvers.classifier import LinearClassifier, NodeClassifier
from margintree.solvers.node_rows import Matrix
from margintree.solvers.row_layout import layout, read_only
from margintree.solvers.solution import Array

# Rows in single precision are copied to double precision, so many values at a time.
BLOCK_VALUES = 2**20


@dataclass(frozen=True, eq=False)
class Sigmoids:
    """Calibrated log odds of every node: slope times the decision value, plus shift."""

    slope: Array
    shift: Array


@dataclass(frozen=True, eq=False)
class LinearTree:
    """Nodes of one tree after those of another; machine i belongs to node i, leaves have none."""

    trees: tuple[ClassTree, ...]
    table: WeightTable
    sigmoids: Sigmoids | None = None

    @property
    def n_features(self) -> int | None:
        """The width of a row."""
        return self.table.n_features

    @classmethod
    def of_trees(
        cls,
        grown: Sequence[tuple[ClassTree, Sequence[NodeClassifier]]],
        n_features: int,
        sigmoids: Sigmoids | None = None,
    ) -> "LinearTree":
        """Lay out trees over the same classes; the classifiers of each are given in preorder."""
        places: list[LinearClassifier | None] = []
        for tree, classifiers in grown:
            nodes: list[LinearClassifier | None] = [None] * tree.n_nodes
            for node, classifier in zip(tree.internal_nodes.tolist(), classifiers, strict=True):
                assert isinstance(classifier, LinearClassifier)
                nodes[node] = classifier
            places += nodes
        return cls(tuple(tree for tree, _ in grown), WeightTable.from_classifiers(places, n_features), sigmoids)

    @cached_property
    def forest(self) -> tuple[Any, ...]:
        """The tuple that compiled loops read; see ``margintree.compiled.walk``."""
        return flat_forest(self.trees, self.table.arrays, self.table.scale, self.table.intercept, self.sigmoids)

    def __getstate__(self) -> dict[str, Any]:
        # The forest is made of views of the rest. Copied first, since another thread may be about to add it.
        state = dict(self.__dict__)
        state.pop("forest", None)
        return state

    def blocks(self, X: Matrix) -> Iterator[tuple[int, int, Any, tuple[Any, ...]]]:
        """Yield parts of the rows, ``first:last``, as the compiled loops read them together with the forest."""
        is_single = isinstance(X, np.ndarray) and X.dtype == np.float32
        height = max(1, BLOCK_VALUES // max(1, X.shape[1])) if is_single else X.shape[0]
        for first in range(0, X.shape[0], max(1, height)):
            last = min(X.shape[0], first + height)
            yield first, last, layout(X[first:last].astype(np.float64) if is_single else X), self.forest

    def leaves(self, X: Matrix, n_threads: int = 1) -> npt.NDArray[np.int32]:
        """Return the leaf of the first tree that each row reaches by the greedy walk."""
        rows, leaf = layout(X), np.empty(X.shape[0], dtype=np.int32)
        in_chunks(lambda first, last: compiled.walk.greedy(rows, first, last, self.forest, leaf), len(leaf), n_threads)
        return leaf


def flat_forest(
    trees: Sequence[ClassTree], table: Any, scale: Array, intercept: Array, sigmoids: Sigmoids | None
) -> tuple[Any, ...]:
    """Return the concatenated arrays of several trees."""
    roots = np.concatenate([[0], np.cumsum([tree.n_nodes for tree in trees])])
    left: list[npt.NDArray[np.int64]] = []
    right: list[npt.NDArray[np.int64]] = []
    leaf_class: list[npt.NDArray[np.int64]] = []
    for tree, root in zip(trees, roots[:-1].tolist(), strict=True):
        for children, collected in ((tree.children_left, left), (tree.children_right, right)):
            collected.append(np.where(children >= 0, children.astype(np.int64) + root, -1))
        leaf_class.append(tree.leaf_class.astype(np.int64))
    plain = np.zeros(int(roots[-1]))
    slope, shift = (plain + 1.0, plain) if sigmoids is None else (sigmoids.slope, sigmoids.shift)
    numbers = (np.concatenate(left), np.concatenate(right), np.concatenate(leaf_class))
    return (
        read_only(roots),
        *(read_only(array) for array in numbers),
        table,
        *(read_only(array) for array in (scale, intercept, slope, shift)),
        len(trees),
        int(roots[-1]),
    )
