"""Nodes with explicit features: dual coordinate descent, finished by Newton's method.

There is no kernel matrix, except for the machines over many planes of a relaxation. A node keeps a copy of its own rows
with only the columns in use, so that the deep nodes of a sparse problem work on small arrays. The rows of a large dense
problem are not copied.
"""

import math
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree import compiled
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.kernel_rows import KernelRows
from margintree.solvers.kernel_source import MEGABYTE, KernelSource
from margintree.solvers.newton import Start, newton
from margintree.solvers.node_rows import Matrix, NodeRows
from margintree.solvers.row_layout import IndexedRows, SparseRows, layout, with_constant
from margintree.solvers.solution import Array, DualSolution, SVMSolution
from margintree.worker_threads import stoppable

# Newton needs a features x features matrix. Up to this many features one step costs no more than a
# few hundred epochs of coordinate descent.
NEWTON_FEATURES = 600
# Coordinate descent gets at least this many epochs before Newton takes over.
EPOCHS_BEFORE_NEWTON = 30
# The planes of a relaxation multiply the features. Their machines may take the matrix of inner products instead, where
# that is less work, up to this size.
INNER_PRODUCTS_BYTES = 100 * MEGABYTE
# Sparse rows with few columns and at least this share of non-zeros are handled faster as dense ones.
DENSE_SHARE = 0.1
# Fourth powers of a row's length must stay far from overflow.
LARGEST_SQUARED_NORM = 1e100
# A polish costs a few times rows x features^2; up to this much it takes some milliseconds.
POLISH_WORK = 2**23
POLISH_TOL = 1e-12
# Class vectors of sparse rows are laid out dense up to this many entries (16 MB): their products cost less than the
# bookkeeping of a sparse matrix, on news20 a ninth.
DENSE_CLASS_VECTORS = 2**21


class LinearRows(NodeRows):
    """Rows with phi(x) = x.

    Parameters
    ----------
    features : ndarray, SparseRows, IndexedRows or csr_array of shape (n_rows, n_columns)
        The node's own rows, without unused columns, with the constant column where there is one.
    columns : ndarray of shape (n_columns,)
        Which column of the training matrix each one is.
    class_start, ridge, seed
        See ``NodeRows``.
    is_exact : bool, default=True
        Whether solutions of small nodes are polished.
    leading : ndarray of shape (n_rows, n_axes) or None
        The rows on the leading principal axes of the training set, for a search.
    """

    SEARCHED_ROWS = 2**14

    def __init__(
        self,
        features: Matrix | SparseRows | IndexedRows,
        columns: npt.NDArray[np.int64],
        class_start: npt.NDArray[np.int64],
        ridge: Array,
        seed: int,
        *,
        is_exact: bool = True,
        leading: Array | None = None,
    ) -> None:
        super().__init__(class_start, ridge, seed)
        self.is_exact = is_exact
        self._leading = leading
        n_rows, n_columns = features.shape
        if not isinstance(features, np.ndarray | IndexedRows) and n_columns <= NEWTON_FEATURES:
            features = features.toarray() if features.nnz >= DENSE_SHARE * n_rows * n_columns else features
        self.features: Any = features
        self.columns = columns
        self._rows = layout(features)
        if isinstance(features, IndexedRows):
            self._squared_norms = features.squared_norms[features.row_index] + float(features.has_constant)
        else:
            self._squared_norms = compiled.rows.squared_norms(self._rows, n_rows)
        # Written so that NaN is refused, too.
        if not self._squared_norms.max(initial=0.0) <= LARGEST_SQUARED_NORM:
            raise ValueError(
                f"A row has the squared length {self._squared_norms.max():.3g}; products of such rows overflow. "
                "Scale the features, for example with sklearn.preprocessing.StandardScaler or MaxAbsScaler."
            )

    def solve(
        self, labelling: Array, *, tol: float, max_iter: int, cutoff: float = np.inf, start: SVMSolution | None = None
    ) -> SVMSolution:
        signs = labelling[self.classes]
        alpha = self.starting_alpha(labelling, start)
        weights = np.zeros(self.features.shape[1])
        if start is not None:
            compiled.linear_dual.accumulate(self._rows, alpha * signs, weights)
        decision, n_iter, primal, dual = self._descend(self._rows, signs, alpha, weights, tol, max_iter, cutoff)
        if self._newton_pays(weights) and primal - dual > tol * primal and dual <= cutoff:
            steps, weights, alpha, decision, primal, dual = newton(
                self.feature_matrix, signs, self.ridge, Start(weights, alpha, dual), tol, cutoff
            )
            n_iter += steps
        return SVMSolution(alpha, decision, primal, dual, float(weights @ weights), n_iter, labelling, weights)

    def polish(self, solution: SVMSolution) -> SVMSolution:
        n_rows, n_columns = self.features.shape
        if not self.is_exact or not isinstance(self.features, np.ndarray) or n_rows * n_columns**2 > POLISH_WORK:
            return solution
        assert solution.weights is not None
        signs = solution.labelling[self.classes]
        start = Start(solution.weights, solution.alpha, solution.dual_objective)
        steps, weights, alpha, decision, primal, dual = newton(self.features, signs, self.ridge, start, POLISH_TOL)
        norm, n_iter = float(weights @ weights), solution.n_iter + steps
        return SVMSolution(alpha, decision, primal, dual, norm, n_iter, solution.labelling, weights)

    def solve_planes(
        self, planes: Array, mu: Array, *, tol: float, max_iter: int, alpha: Array | None = None
    ) -> DualSolution:
        used = mu > 0.0
        if self._inner_products_pay(int(used.sum())):
            return self._by_inner_products.solve_planes(planes, mu, tol=tol, max_iter=max_iter, alpha=alpha)
        signs = np.ones(self.n_rows)
        alpha = np.zeros(self.n_rows) if alpha is None else alpha.copy()
        mix = np.ascontiguousarray((planes[used] * np.sqrt(mu[used])[:, None]).T)
        rows = (layout(self._own_copy), self.classes, mix)
        weights = np.zeros((self.features.shape[1], mix.shape[1]))
        compiled.linear_dual.accumulate(rows, alpha, weights)
        # |psi(x)|^2 = |x|^2 sum_m mu_m = |x|^2.
        signed, n_iter, primal, dual = self._descend(rows, signs, alpha, weights, tol, max_iter, np.inf)
        if self._newton_pays(weights) and primal - dual > tol * primal:
            psi = (self._own_copy[:, :, None] * mix[self.classes][:, None, :]).reshape(self.n_rows, -1)
            steps, flat, alpha, signed, primal, dual = newton(psi, signs, self.ridge, Start(weights.reshape(-1)), tol)
            n_iter += steps
            weights = flat.reshape(weights.shape)
        return DualSolution(alpha, signed, primal, dual, float(np.sum(weights**2)), n_iter)

    def _newton_pays(self, weights: Array) -> bool:
        return self._is_dense and weights.size <= NEWTON_FEATURES

    def _descend(
        self, rows: Any, signs: Array, alpha: Array, weights: Array, tol: float, max_iter: int, cutoff: float
    ) -> tuple[Array, int, float, float]:
        """Run coordinate descent from ``alpha`` and ``weights``, in place; see ``margintree.compiled.linear_dual``."""
        newton_follows = self._newton_pays(weights)
        epochs = min(max_iter, max(EPOCHS_BEFORE_NEWTON, weights.size)) if newton_follows else max_iter
        ridge, norms, decision = self.ridge, self._squared_norms, np.empty(self.n_rows)
        with stoppable() as stop:
            n_iter, primal, dual = compiled.linear_dual.solve(
                rows, signs, ridge, norms, alpha, weights, decision, tol, cutoff, epochs, self.seed, stop
            )
        return decision, n_iter, primal, dual

    def _inner_products_pay(self, n_planes: int) -> bool:
        """Return whether a step over all planes' features costs more than one over the inner products with all rows."""
        if self._is_dense and self.features.shape[1] * n_planes <= NEWTON_FEATURES:
            return False
        stored = math.prod(self.features.shape) if self._is_dense else self.features.nnz
        return 2 * n_planes * stored > self.n_rows**2 and 8 * self.n_rows**2 <= INNER_PRODUCTS_BYTES

    @cached_property
    def _by_inner_products(self) -> KernelRows:
        source = KernelSource(KernelFunction(_inner_products), self.feature_matrix, INNER_PRODUCTS_BYTES / MEGABYTE)
        return KernelRows(source, np.arange(self.n_rows), self.class_start, self.ridge, self.seed)

    @property
    def _is_dense(self) -> bool:
        return isinstance(self.features, np.ndarray | IndexedRows)

    @cached_property
    def _own_copy(self) -> Any:
        return self.features.toarray() if isinstance(self.features, IndexedRows) else self.features

    @property
    def feature_matrix(self) -> Matrix:
        """The features as a matrix that can be multiplied."""
        return self.features.matrix() if isinstance(self.features, SparseRows) else self._own_copy

    def part(self, row: npt.NDArray[np.int64], class_start: npt.NDArray[np.int64]) -> "LinearRows":
        features, leading = self.features, None if self._leading is None else self._leading[row]
        if isinstance(features, IndexedRows):
            features = replace(features, row_index=features.row_index[row])
        elif isinstance(features, SparseRows):
            features = features.matrix()[row]
        else:
            features = features[row]
        rest = (self.columns, class_start, self.ridge[row], self.seed)
        return LinearRows(features, *rest, is_exact=False, leading=leading)

    def reduced(self) -> "LinearRows":
        rows = self.sampled()
        if rows._leading is None:
            return rows
        features = with_constant(rows._leading, rows.features.shape[1] > len(rows.columns))
        columns = np.arange(rows._leading.shape[1])
        return LinearRows(features, columns, rows.class_start, rows.ridge, rows.seed, is_exact=False)

    def class_vectors(self, coefficients: Array) -> Matrix:
        n_columns = self.features.shape[1]
        if self._is_dense or self.n_classes * n_columns <= DENSE_CLASS_VECTORS:
            return np.asarray(compiled.linear_dual.class_vectors(self._rows, coefficients, self.class_start, n_columns))
        selection = sp.csr_array(
            (coefficients, np.arange(self.n_rows), self.class_start), shape=(self.n_classes, self.n_rows)
        )
        return selection @ self.feature_matrix

    def class_gram(self, coefficients: Array) -> Array:
        vectors = self.class_vectors(coefficients)
        gram = vectors @ vectors.T
        return np.asarray(gram if isinstance(gram, np.ndarray) else gram.toarray())

    def class_norms(self, coefficients: Array) -> Array:
        vectors = self.class_vectors(coefficients)
        squares = vectors * vectors if isinstance(vectors, np.ndarray) else vectors.multiply(vectors)
        return np.asarray(np.sqrt(squares.sum(axis=1))).reshape(-1)

    def class_means(self) -> Matrix:
        return self.class_vectors(self.mean_coefficients())


def _inner_products(A: Matrix, B: Matrix) -> Array:
    products = A @ B.T
    return np.asarray(products.toarray() if sp.issparse(products) else products)
