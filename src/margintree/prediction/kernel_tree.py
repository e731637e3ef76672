"""A tree of kernel classifiers: support vectors and the coefficients of each node."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.class_tree import ClassTree
from margintree.prediction.linear_tree import Sigmoids, flat_forest
from margintree.prediction.row_chunks import in_chunks
from margintree.solvers.classifier import KernelClassifier, NodeClassifier
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.row_layout import layout, read_only
from margintree.solvers.solution import Array

# Kernel values held at once while predicting: 64 MB.
BLOCK_ENTRIES = 2**23


@dataclass(frozen=True, eq=False)
class KernelTree:
    """Coefficients of all machines, concatenated; machine i has ``start[i]:start[i + 1]`` of them.

    The machines of the nodes come first, those of leaves being empty, then deciding ones, if any.

    ``support`` numbers the rows of ``vectors``. For a precomputed kernel ``vectors`` is None and
    ``support`` numbers the columns of the matrix that is given to predict. The nodes of several trees over the same
    classes are concatenated.
    """

    trees: tuple[ClassTree, ...]
    function: KernelFunction
    vectors: Any
    start: npt.NDArray[np.int64]
    support: npt.NDArray[np.int64]
    coefficients: Array
    constants: Array
    sigmoids: Sigmoids | None = None

    @property
    def n_features(self) -> int | None:
        """Number of features of a row; None if rows are kernel values."""
        return None if self.vectors is None else int(self.vectors.shape[1])

    @classmethod
    def of_trees(
        cls,
        grown: Sequence[tuple[ClassTree, Sequence[NodeClassifier]]],
        function: KernelFunction,
        X: Any,
        original_row: npt.NDArray[np.int64],
        *,
        sigmoids: Sigmoids | None = None,
        deciding: Sequence[NodeClassifier] = (),
    ) -> "KernelTree":
        """Lay out trees over the same classes, and the machines that decide between their finalists.

        The classifiers of each tree are given in preorder. ``original_row`` is the position of each row of the sorted
        training set in the user's data.
        """
        machines: dict[int, KernelClassifier] = {}
        root = 0
        for tree, classifiers in grown:
            for node, classifier in zip(tree.internal_nodes.tolist(), classifiers, strict=True):
                assert isinstance(classifier, KernelClassifier)
                machines[root + node] = classifier
            root += tree.n_nodes
        for classifier in deciding:
            assert isinstance(classifier, KernelClassifier)
            machines[root] = classifier
            root += 1
        nodes = list(machines)
        lengths, constants = np.zeros(root, dtype=np.int64), np.zeros(root)
        lengths[nodes] = [len(c.row_index) for c in machines.values()]
        constants[nodes] = [c.constant for c in machines.values()]
        rows = np.concatenate([c.row_index for c in machines.values()])
        start = np.concatenate([[0], np.cumsum(lengths)])
        coefficients = np.concatenate([c.coefficients for c in machines.values()])
        trees = tuple(tree for tree, _ in grown)
        if function.kernel == "precomputed":
            return cls(trees, function, None, start, original_row[rows], coefficients, constants, sigmoids)
        used, support = np.unique(rows, return_inverse=True)
        return cls(trees, function, X[used], start, support, coefficients, constants, sigmoids)

    def leaves(self, X: Any, n_threads: int = 1) -> npt.NDArray[np.int32]:
        """Return the leaf of the first tree that each row reaches by the greedy walk.

        A kernel value is computed once for each support vector on a row's path, and for no other.
        """
        leaf = np.zeros(X.shape[0], dtype=np.int32)
        height = max(1, BLOCK_ENTRIES // max(1, len(np.unique(self.support))))

        def walk(first: int, last: int) -> None:
            for low in range(first, last, height):
                rows = slice(low, min(last, low + height))
                self._walk(X[rows], leaf[rows])

        in_chunks(walk, X.shape[0], n_threads)
        return leaf

    def _walk(self, X: Any, leaf: npt.NDArray[np.int32]) -> None:
        tree = self.trees[0]
        known = np.empty((X.shape[0], 0))
        pending = [(0, np.arange(X.shape[0]), np.empty(0, dtype=np.int64), known)]
        while pending:
            node, rows, columns, known = pending.pop()
            if len(rows) == 0:
                continue
            if tree.is_leaf(node):
                leaf[rows] = node
                continue
            support, coefficients = self._machine(node)
            new = np.setdiff1d(support, columns)
            if len(new):
                known = np.hstack([known, self._kernel_values(X[rows], new)])
                columns = np.concatenate([columns, new])
            order = np.argsort(columns)
            place = order[np.searchsorted(columns, support, sorter=order)]
            positive = known[:, place] @ coefficients + self.constants[node] > 0.0
            children = int(tree.children_left[node]), int(tree.children_right[node])
            for child, taken in zip(children, (positive, ~positive), strict=True):
                below = None if tree.is_leaf(child) else known[taken]
                pending.append((child, rows[taken], columns, np.empty((0, 0)) if below is None else below))

    def _machine(self, node: int) -> tuple[npt.NDArray[np.int64], Array]:
        part = slice(self.start[node], self.start[node + 1])
        return self.support[part], self.coefficients[part]

    def _kernel_values(self, X: Any, support: npt.NDArray[np.int64]) -> Array:
        if self.vectors is None:
            return np.asarray(self.function.finish(X[:, support]))
        return np.asarray(self.function(X, self.vectors[support]))

    @cached_property
    def _columns(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The support vectors in use, and the position of each coefficient's support vector among them."""
        used, place = np.unique(self.support, return_inverse=True)
        return used, place

    @cached_property
    def forest(self) -> tuple[Any, ...]:
        """A forest over rows that hold their kernel values; see ``kernel_values``."""
        table = tuple(read_only(array) for array in (self.start, self._columns[1], self.coefficients))
        return flat_forest(self.trees, table, np.ones(len(self.constants)), self.constants, self.sigmoids)

    @property
    def n_support(self) -> int:
        """The number of support vectors in use."""
        return len(self._columns[0])

    def kernel_values(self, X: Any) -> Array:
        """Return the kernel values with all support vectors in use, one column each."""
        if self.n_support == 0:
            return np.empty((X.shape[0], 0))
        return np.ascontiguousarray(self._kernel_values(X, self._columns[0]))

    @cached_property
    def one_row_forest(self) -> tuple[Any, ...] | None:
        """A forest that evaluates the kernel for one dense row, if the kernel is compiled; else None."""
        table = kernel_table(self.function, self.vectors, self.start, self.support, self.coefficients)
        if table is None:
            return None
        return flat_forest(self.trees, table, np.ones(len(self.constants)), self.constants, self.sigmoids)

    def __getstate__(self) -> dict[str, Any]:
        made = ("_columns", "forest", "one_row_forest")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    def blocks(self, X: Any) -> Iterator[tuple[int, int, Any, tuple[Any, ...]]]:
        """Yield parts of the rows, ``first:last``, as their kernel values together with the forest over these."""
        height = max(1, BLOCK_ENTRIES // max(1, self.n_support))
        for first in range(0, X.shape[0], height):
            last = min(X.shape[0], first + height)
            yield first, last, layout(self.kernel_values(X[first:last])), self.forest


def kernel_table(
    function: KernelFunction,
    vectors: Any,
    start: npt.NDArray[np.int64],
    support: npt.NDArray[np.int64],
    coefficients: Array,
) -> tuple[Any, ...] | None:
    """Return the table of kernel machines that compiled code evaluates for a dense row; None if it cannot.

    See ``margintree.compiled.tables``. Machine i has the coefficients ``start[i]:start[i + 1]``.
    """
    if function.kernel not in ("rbf", "poly") or not isinstance(vectors, np.ndarray):
        return None
    arrays = (start, support, coefficients, np.ascontiguousarray(vectors))
    parameters = (function.gamma, function.degree, function.coef0, function.fit_intercept)
    return (*(read_only(array) for array in arrays), function.kernel == "rbf", *(float(p) for p in parameters))
