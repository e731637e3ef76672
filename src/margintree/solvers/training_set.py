"""The training rows, sorted by class, and the part of them that a node sees."""

from abc import ABC, abstractmethod
from copy import copy
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree import kernels
from margintree.solvers.classifier import KernelClassifier, LinearClassifier, NodeClassifier
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.kernel_rows import KernelRows
from margintree.solvers.kernel_source import KernelSource
from margintree.solvers.linear_rows import POLISH_WORK, LinearRows, SparseRows, layout
from margintree.solvers.node_rows import Matrix, NodeRows
from margintree.solvers.solution import Array, SVMSolution
from margintree.worker_threads import give_up_if_abandoned

Index = npt.NDArray[np.int64]


class TrainingSet(ABC):
    """Rows sorted by class with their weights.

    Parameters
    ----------
    class_start : ndarray of shape (n_classes + 1,)
        The rows of class k are ``class_start[k] : class_start[k + 1]``.
    sample_weight : ndarray of shape (n_rows,)
        Weights s_j; their sums are the sizes n_k of the classes.
    cost : ndarray of shape (n_rows,)
        C times the sample weight times the class weight: the factor of the row's loss.
    """

    X: Matrix
    # None for the linear kernel.
    function: KernelFunction | None = None

    def __init__(self, class_start: Index, sample_weight: Array, cost: Array) -> None:
        self.class_start = class_start
        self.sample_weight = sample_weight
        self.sizes = np.add.reduceat(sample_weight, class_start[:-1])
        self.ridge = 1.0 / cost

    @property
    def n_rows(self) -> int:
        return len(self.ridge)

    @property
    def n_classes(self) -> int:
        return len(self.class_start) - 1

    def rows_of(self, classes: Index) -> tuple[Index, Index]:
        """Return the rows of the given classes, in their order, and where each class starts."""
        lengths = (self.class_start[1:] - self.class_start[:-1])[classes]
        start = np.concatenate([[0], np.cumsum(lengths)])
        offsets = np.repeat(self.class_start[classes] - start[:-1], lengths)
        return np.arange(start[-1]) + offsets, start

    def node_rows(self, classes: Index, seed: int) -> NodeRows:
        """Return the rows of a node that holds the given classes."""
        row_index, start = self.rows_of(classes)
        return self.select(row_index, start, seed)

    @abstractmethod
    def select(self, row_index: Index, class_start: Index, seed: int) -> NodeRows:
        """Return any rows, grouped: group k is ``class_start[k] : class_start[k + 1]`` of ``row_index``."""

    @abstractmethod
    def part(self, row_index: Index, class_start: Index, share: Array | float = 1.0) -> "TrainingSet":
        """Return a training set of some of the rows, sorted by class, with this share of their weights."""

    def with_cost(self, factor: float) -> Self:
        """Return the same rows with another C, that of these times a factor."""
        other = copy(self)
        other.ridge = self.ridge / factor
        return other

    @abstractmethod
    def classifier(self, rows: NodeRows, solution: SVMSolution) -> NodeClassifier:
        """Return what prediction needs of a node's solution."""


class LinearTrainingSet(TrainingSet):
    """Rows with explicit features, dense or CSR; a constant feature supplies the intercept."""

    def __init__(
        self, X: Matrix, class_start: Index, sample_weight: Array, cost: Array, *, fit_intercept: bool
    ) -> None:
        super().__init__(class_start, sample_weight, cost)
        if sp.issparse(X) and not X.has_canonical_format:
            # Entries that are stored twice add up; the solvers take each stored value for one of its own.
            X = X.copy()
            X.sum_duplicates()
        self.X = X
        self.fit_intercept = fit_intercept
        self._arrays = layout(X)
        # Small problems are solved to rounding, so that weights and repeated rows give the same model.
        self.is_exact = X.shape[0] * X.shape[1] ** 2 <= POLISH_WORK

    @cached_property
    def density(self) -> float:
        """Part of the values that are not zero; a row of weight 2 counts as two."""
        if not sp.issparse(self.X):
            counts = np.count_nonzero(self.X, axis=1)
        elif self.X.data.all():
            counts = np.diff(self.X.indptr)
        else:
            counts = np.asarray((self.X != 0.0).sum(axis=1)).ravel()
        n_values = self.sample_weight.sum() * self.X.shape[1]
        return float(self.sample_weight @ counts) / n_values if n_values else 0.0

    def select(self, row_index: Index, class_start: Index, seed: int) -> LinearRows:
        n_columns = self.X.shape[1]
        features: Matrix | SparseRows
        if isinstance(self.X, np.ndarray):
            columns = np.arange(n_columns)
            features = np.empty((len(row_index), n_columns + self.fit_intercept))
            features[:, :n_columns] = self.X[row_index]
            if self.fit_intercept:
                features[:, n_columns] = 1.0
        else:
            indptr, indices, values = self._arrays
            columns, stored = kernels.gather.used_columns(indptr, indices, row_index, n_columns)
            indptr, indices, values = kernels.gather.gather(
                indptr, indices, values, row_index, columns, stored, n_columns, self.fit_intercept
            )
            features = SparseRows(indptr, indices, values, (len(row_index), len(columns) + self.fit_intercept))
        return LinearRows(features, columns, class_start, self.ridge[row_index], seed, is_exact=self.is_exact)

    def quick_machine(
        self, left: Index, right: Index, *, tol: float, max_iter: int, seed: int
    ) -> LinearClassifier | None:
        """Return a machine between two sets of rows where one compiled call makes it: with many sparse rows.

        Nothing is recorded of its training. None means that it is worth more care.
        """
        if self.is_exact or isinstance(self.X, np.ndarray) or len(left) == 0 or len(right) == 0:
            return None
        give_up_if_abandoned()
        rows = np.concatenate([left, right])
        columns, weights, _ = kernels.machine.between(
            self._arrays, self.X.shape[1], rows, len(left), self.ridge, self.fit_intercept, tol, max_iter, seed
        )
        return self._kept(columns, weights)

    def part(self, row_index: Index, class_start: Index, share: Array | float = 1.0) -> "LinearTrainingSet":
        weight, cost = share * self.sample_weight[row_index], share / self.ridge[row_index]
        return LinearTrainingSet(self.X[row_index], class_start, weight, cost, fit_intercept=self.fit_intercept)

    def classifier(self, rows: NodeRows, solution: SVMSolution) -> LinearClassifier:
        assert isinstance(rows, LinearRows)
        assert solution.weights is not None
        return self.linear_classifier(rows, solution.weights)

    def linear_classifier(self, rows: LinearRows, weights: Array) -> LinearClassifier:
        """Return the classifier of a weight vector over the columns of ``rows``."""
        return self._kept(rows.columns, weights)

    def _kept(self, columns: Index, weights: Array) -> LinearClassifier:
        kept = np.flatnonzero(weights[: len(columns)])
        intercept = float(weights[-1]) if self.fit_intercept else 0.0
        return LinearClassifier(columns[kept], weights[kept], intercept)


class KernelTrainingSet(TrainingSet):
    """Rows known through a kernel."""

    def __init__(self, source: KernelSource, class_start: Index, sample_weight: Array, cost: Array) -> None:
        super().__init__(class_start, sample_weight, cost)
        self.source = source
        self.X, self.function = source.X, source.function

    def select(self, row_index: Index, class_start: Index, seed: int) -> KernelRows:
        return KernelRows(self.source, row_index, class_start, self.ridge[row_index], seed)

    def part(self, row_index: Index, class_start: Index, share: Array | float = 1.0) -> "KernelTrainingSet":
        weight, cost = share * self.sample_weight[row_index], share / self.ridge[row_index]
        return KernelTrainingSet(self.source.part(row_index), class_start, weight, cost)

    def classifier(self, rows: NodeRows, solution: SVMSolution) -> KernelClassifier:
        assert isinstance(rows, KernelRows)
        support = np.flatnonzero(solution.alpha)
        coefficients = solution.alpha[support] * solution.labelling[rows.classes[support]]
        return KernelClassifier(rows.row_index[support], coefficients)
