"""The training rows, sorted by class, and the part of them that a node sees."""

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import eigh, qr

from margintree import compiled
from margintree.solvers.classifier import KernelClassifier, LinearClassifier, NodeClassifier
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.kernel_rows import KernelRows
from margintree.solvers.kernel_source import KernelSource, PairBlocks
from margintree.solvers.linear_rows import POLISH_WORK, LinearRows
from margintree.solvers.node_rows import Matrix, NodeRows, sample_of_classes
from margintree.solvers.row_layout import IndexedRows, SparseRows, layout, with_constant
from margintree.solvers.solution import Array, SVMSolution
from margintree.worker_threads import in_threads, stoppable

Index = npt.NDArray[np.int64]

# Of the order in which coordinate descent visits the rows; fixed, so that models do not depend on random_state.
SOLVER_SEED = 0
# Nodes have copies of their rows, in double precision, while the whole dense matrix has at most so many values.
COPIED_VALUES = 2**22
# Values of dense rows that are copied at a time.
PIECE_VALUES = 2**20
# Sums over products of features need a matrix of that size, up to so many features. Sparse rows are made dense for
# them while that takes no more than so many products.
MOST_DENSE_FEATURES, MOMENT_WORK = 2**12, 2**29
# Sums over products of features are computed by so many threads at most.
GROUPS = 4
# Minimum number of rows of a class in a sample, if the class has them: enough for training when some are left out.
LEAST_ROWS_OF_CLASS = 8
# Number of principal axes on which dense rows are represented in a search for a labelling: on four sets of 256 to 1000
# features, the splits were as good as those found with all features.
LEADING_AXES = 64


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
    # A node of more rows has a sample of about so many.
    most_rows: int | None = None
    # For passes over all rows.
    n_threads = 1

    def __init__(self, class_start: Index, sample_weight: Array, cost: Array) -> None:
        self.class_start = class_start
        self.sample_weight = sample_weight
        self.sizes = np.add.reduceat(sample_weight, class_start[:-1])
        self.ridge = 1.0 / cost
        self.n_rows, self.n_classes = len(cost), len(class_start) - 1

    def rows_of(self, classes: Index) -> tuple[Index, Index]:
        """Return the rows of the given classes, in their order, and where each class starts."""
        lengths = (self.class_start[1:] - self.class_start[:-1])[classes]
        start = np.concatenate([[0], np.cumsum(lengths)])
        offsets = np.repeat(self.class_start[classes] - start[:-1], lengths)
        return np.arange(start[-1]) + offsets, start

    def take(self, row_index: Index) -> Matrix:
        """Return a copy of some rows."""
        return self.X[row_index]

    def sample_of(self, classes: Index) -> tuple[Index, Index]:
        """Return the result of ``rows_of`` or, if that is too large, a sample with the same share of each class."""
        row_index, start = self.rows_of(classes)
        if self.most_rows is not None and len(row_index) > self.most_rows:
            # Rows are sorted by a hash within their class, so the first ones are a random sample, which is contiguous
            # in a mapped file.
            from_front = self.function is None
            sample, start = sample_of_classes(start, self.most_rows, LEAST_ROWS_OF_CLASS, from_front=from_front)
            row_index = row_index[sample]
        return row_index, start

    def node_rows(self, classes: Index, seed: int) -> NodeRows:
        """Return the rows of a node that holds the given classes."""
        row_index, start = self.sample_of(classes)
        return self.select(row_index, start, seed)

    @abstractmethod
    def select(self, row_index: Index, class_start: Index, seed: int) -> NodeRows:
        """Return any rows, grouped: group k is ``class_start[k] : class_start[k + 1]`` of ``row_index``."""

    @abstractmethod
    def part(self, row_index: Index, class_start: Index, share: Array | float = 1.0) -> "TrainingSet":
        """Return a training set of some of the rows, sorted by class, with this share of their weights."""

    def with_cost(self, factor: float) -> Self:
        """Return the same rows with C multiplied by a factor."""
        other = copy(self)
        other.ridge = self.ridge / factor
        return other

    @abstractmethod
    def classifier(self, rows: NodeRows, solution: SVMSolution) -> NodeClassifier:
        """Return the classifier of a node's solution."""


def units_of(weight: Array) -> Index:
    """Return the number of rows that each weight represents: weight / smallest weight if all are integers, else 1."""
    multiple = weight / weight.min()
    whole = np.rint(multiple)
    return whole.astype(np.int64) if np.allclose(multiple, whole, rtol=1e-9) else np.ones(len(weight), dtype=np.int64)


def pieces(row_index: Index, X: Matrix) -> list[Index]:
    """Divide row numbers of X into pieces whose rows are small to copy, compared with a large dense training set."""
    height = max(1, PIECE_VALUES // X.shape[1]) if isinstance(X, np.ndarray) else max(1, len(row_index))
    return [row_index[first : first + height] for first in range(0, len(row_index), height)]


@dataclass(frozen=True, eq=False)
class Moments:
    """The weighted sums of dense rows x, of (x - centre)^2 for each feature, and of (x - centre)(x - centre)'.

    If the rows are fewer than their features, ``scatter`` is in the coordinates of an orthonormal basis of their span.
    """

    total: float
    centre: Array
    of_features: Array
    scatter: Array
    span: Array | None = None

    @classmethod
    def of(cls, training_set: "LinearTrainingSet", row_index: Index) -> "Moments":
        """Sum over some rows, whose mean is the centre."""
        X, weight = training_set.X, training_set.sample_weight
        total, n_features = float(weight[row_index].sum()), X.shape[1]
        centre = np.zeros(n_features)
        for piece in pieces(row_index, X):
            centre += weight[piece] @ training_set.take(piece) / total
        factor, shift = np.sqrt(weight).astype(X.dtype), centre.astype(X.dtype)
        if len(row_index) < n_features:
            few = training_set.take(row_index).astype(np.float64)
            span = qr(few.T, mode="economic")[0]
            few = (few - centre) * factor[row_index, None]
            rows = few @ span
            # Of the rows themselves, so that a feature that is always zero has exactly zero.
            return cls(total, centre, np.einsum("ij,ij->j", few, few), rows.T @ rows, span)

        def scatter_of(group: Index) -> Array:
            scatter = np.zeros((n_features, n_features))
            for piece in pieces(group, X):
                rows = (training_set.take(piece) - shift) * factor[piece, None]
                scatter += rows.T @ rows
            return scatter

        # A fixed number of sums, whatever the number of threads; together they are smaller than the rows.
        groups = np.array_split(row_index, max(1, min(GROUPS, len(row_index) // (2 * n_features))))
        scatter = np.sum(in_threads(scatter_of, groups, training_set.n_threads), axis=0)
        return cls(total, centre, np.diagonal(scatter), scatter)

    def within(self, vectors: Array) -> Array:
        """Return the coordinates of vectors, in columns, in the span."""
        return vectors if self.span is None else self.span.T @ vectors

    def principal_axes(self, size: int) -> Array:
        """Return the directions in which the weighted sum of squares of the rows is largest, in columns."""
        centre = self.within(self.centre)
        second, n_axes = self.scatter + self.total * np.outer(centre, centre), len(centre)
        axes = eigh(second, subset_by_index=[max(0, n_axes - size), n_axes - 1], driver="evx")[1]
        return axes if self.span is None else np.asarray(self.span @ axes)


class LinearTrainingSet(TrainingSet):
    """Rows with explicit features, dense or CSR; a constant feature supplies the intercept.

    Dense rows need not be sorted by class: ``order`` then has their positions in X.
    """

    def __init__(
        self,
        X: Matrix,
        class_start: Index,
        sample_weight: Array,
        cost: Array,
        *,
        fit_intercept: bool,
        order: Index | None = None,
    ) -> None:
        super().__init__(class_start, sample_weight, cost)
        self.order = order
        if sp.issparse(X) and not X.has_canonical_format:
            # Entries that are stored twice add up; the solvers take each stored value for one of its own.
            X = X.copy()
            X.sum_duplicates()
        self.X = X
        self.fit_intercept = fit_intercept
        self._arrays = layout(X)
        # Small problems are solved to rounding, so that weights and repeated rows give the same model.
        self.is_exact = X.shape[0] * X.shape[1] ** 2 <= POLISH_WORK

    def take(self, row_index: Index) -> Matrix:
        return self.X[self._places(row_index)]

    def _places(self, row_index: Index) -> Index:
        return row_index if self.order is None else self.order[row_index]

    def select(self, row_index: Index, class_start: Index, seed: int) -> LinearRows:
        n_columns = self.X.shape[1]
        features: Matrix | SparseRows | IndexedRows
        leading = None
        if isinstance(self.X, np.ndarray):
            columns = np.arange(n_columns)
            leading = None if self.leading is None else self.leading[row_index]
            if self.X.size > COPIED_VALUES:
                features = IndexedRows(self.X, self._places(row_index), self.fit_intercept, self._squared_norms)
            else:
                features = with_constant(self.take(row_index), self.fit_intercept)
        else:
            indptr, indices, values = self._arrays
            columns, stored = compiled.gather.used_columns(indptr, indices, row_index, n_columns)
            indptr, indices, values = compiled.gather.gather(
                indptr, indices, values, row_index, columns, stored, n_columns, self.fit_intercept
            )
            features = SparseRows(indptr, indices, values, (len(row_index), len(columns) + self.fit_intercept))
        ridge, is_exact = self.ridge[row_index], self.is_exact
        return LinearRows(features, columns, class_start, ridge, seed, is_exact=is_exact, leading=leading)

    @cached_property
    def _squared_norms(self) -> Array:
        return np.asarray(compiled.rows.squared_norms(self._arrays, self.X.shape[0]))

    @property
    def has_moments(self) -> bool:
        """Whether the rows are dense, or few, and narrow enough for sums over products of features."""
        n_rows, n_features = self.X.shape
        is_cheap = isinstance(self.X, np.ndarray) or n_rows * n_features**2 <= MOMENT_WORK
        return bool(is_cheap and n_features <= MOST_DENSE_FEATURES)

    def as_dense(self) -> "LinearTrainingSet":
        """Return the rows in a dense array."""
        if isinstance(self.X, np.ndarray):
            return self
        other = copy(self)
        other.X = self.X.toarray()
        other._arrays = layout(other.X)
        return other

    @cached_property
    def moments(self) -> Moments:
        """Sums over the rows, by their weights."""
        return Moments.of(self, np.arange(self.n_rows))

    @cached_property
    def leading(self) -> Array | None:
        """Dense rows on their leading principal axes; None if there are hardly more features than axes."""
        n_features = self.X.shape[1]
        if sp.issparse(self.X) or not self.has_moments or n_features <= 2 * LEADING_AXES:
            return None
        axes = self.moments.principal_axes(LEADING_AXES).astype(self.X.dtype)
        result = np.empty((self.n_rows, axes.shape[1]))

        def project(piece: Index) -> None:
            result[piece] = self.take(piece) @ axes

        in_threads(project, pieces(np.arange(self.n_rows), self.X), self.n_threads)
        return result

    def quick_machine(
        self, left: Index, right: Index, *, tol: float, max_iter: int, seed: int
    ) -> LinearClassifier | None:
        """Return a machine between two sets of many sparse rows, trained by one compiled call.

        Its training is not recorded. None means that the regular solver must be used.
        """
        if self.is_exact or isinstance(self.X, np.ndarray) or len(left) == 0 or len(right) == 0:
            return None
        rows, constant = np.concatenate([left, right]), self.fit_intercept
        arrays, n_columns = self._arrays, self.X.shape[1]
        with stoppable() as stop:
            columns, weights = compiled.machine.between(
                arrays, n_columns, rows, len(left), self.ridge, constant, tol, max_iter, seed, stop
            )
        return self.linear_classifier(columns, weights)

    def part(self, row_index: Index, class_start: Index, share: Array | float = 1.0) -> "LinearTrainingSet":
        weight, cost = share * self.sample_weight[row_index], share / self.ridge[row_index]
        found = LinearTrainingSet(self.take(row_index), class_start, weight, cost, fit_intercept=self.fit_intercept)
        found.n_threads = self.n_threads
        return found

    def classifier(self, rows: NodeRows, solution: SVMSolution) -> LinearClassifier:
        assert isinstance(rows, LinearRows)
        assert solution.weights is not None
        return self.linear_classifier(rows.columns, solution.weights)

    def linear_classifier(self, columns: Index, weights: Array) -> LinearClassifier:
        """Return the classifier of a weight vector over some columns and, if there is one, the constant feature."""
        kept = np.flatnonzero(weights[: len(columns)])
        intercept = float(weights[-1]) if self.fit_intercept else 0.0
        return LinearClassifier(columns[kept], weights[kept], intercept)


class KernelTrainingSet(TrainingSet):
    """Rows known through a kernel.

    Attributes
    ----------
    most_rows : int or None
        Size of the sample of a node's rows, which is enough if its machine only nominates.
    leaves_one_out : bool
        Whether classifiers have the leave-one-out decision values of their training rows.
    """

    def __init__(
        self,
        source: KernelSource,
        class_start: Index,
        sample_weight: Array,
        cost: Array,
        *,
        most_rows: int | None = None,
    ) -> None:
        super().__init__(class_start, sample_weight, cost)
        self.most_rows = most_rows
        self.source = source
        self.X, self.function = source.X, source.function
        self.leaves_one_out = False

    @cached_property
    def units(self) -> Index:
        """The number of rows that each one represents."""
        return units_of(self.sample_weight)

    def select(self, row_index: Index, class_start: Index, seed: int) -> KernelRows:
        return KernelRows(self.source, row_index, class_start, self.ridge[row_index], seed)

    def pair_rows(self, one: int, other: int, seed: int, blocks: PairBlocks) -> KernelRows:
        """Return the rows of two classes; ``blocks`` computes kernel values that are not in memory."""
        row_index, start = self.rows_of(np.array([one, other]))
        if self.source.gram is not None or not self.source.fits(len(row_index)):
            return self.select(row_index, start, seed)
        gram = blocks.values(one, other)
        return KernelRows(self.source, row_index, start, self.ridge[row_index], seed, gram=gram)

    def part(self, row_index: Index, class_start: Index, share: Array | float = 1.0) -> "KernelTrainingSet":
        weight, cost = share * self.sample_weight[row_index], share / self.ridge[row_index]
        return KernelTrainingSet(self.source.part(row_index), class_start, weight, cost)

    def classifier(self, rows: NodeRows, solution: SVMSolution) -> KernelClassifier:
        assert isinstance(rows, KernelRows)
        support = np.flatnonzero(solution.alpha)
        coefficients = solution.alpha[support] * solution.labelling[rows.classes[support]]
        found = KernelClassifier(rows.row_index[support], coefficients)
        if not self.leaves_one_out:
            return found
        left_out = rows.leave_one_out(solution, self.units[rows.row_index])
        return replace(found, trained_on=rows.row_index, left_out=left_out)
