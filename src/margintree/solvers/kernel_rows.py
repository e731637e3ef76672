"""Nodes with a kernel: coordinate descent on the dual, reading kernel rows.

Rows are read from the matrix over all training rows, or from one of the node's own, where these fit into the cache.
Otherwise a bounded number of rows is cached; the compiled sweep stops at a missing row, the row is computed together
with those that the sweep needs next, and the sweep resumes where it stopped. Rows used since the last round of
evictions are kept (second chance).
"""

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri

from margintree import compiled
from margintree.solvers.kernel_source import KernelSource
from margintree.solvers.node_rows import Matrix, NodeRows
from margintree.solvers.solution import Array, DualSolution, SVMSolution
from margintree.worker_threads import give_up_if_abandoned, stoppable

# Rows computed in one go when one is missing: enough for a matrix product to pay.
FETCH = 32
# Linear systems over the support vectors; up to this many they take some tens of milliseconds.
SYSTEM_ROWS = 1024
POLISH_ITERATIONS = 10
# Relative duality gap from which a polish finds the support vectors: on letter, usps and embeddings of banking77 it did
# so for all pairs of classes, in five iterations on average.
ROUGH_TOL = 0.1
NO_KERNEL = 1.0 + 1e-6
# Coordinates of phi below this share of the largest eigenvalue are rounding noise.
EIGENVALUE_FLOOR = 1e-12


class KernelRows(NodeRows):
    """Rows known through their kernel values.

    Parameters
    ----------
    source : KernelSource
    row_index : ndarray of shape (n_rows,)
        Which training rows these are.
    class_start, ridge, seed
        See ``NodeRows``.
    gram : ndarray of shape (n_rows, n_rows) or None
        Their kernel values, if they are known.
    """

    SEARCHED_ROWS = 2**11

    def __init__(
        self,
        source: KernelSource,
        row_index: npt.NDArray[np.int64],
        class_start: npt.NDArray[np.int64],
        ridge: Array,
        seed: int,
        *,
        gram: npt.NDArray[np.floating] | None = None,
    ) -> None:
        super().__init__(class_start, ridge, seed)
        self.source = source
        self.row_index = row_index
        n = len(row_index)
        self.holds_all = source.fits(n)
        self._column, self._slot = class_start[:-1], np.arange(n)
        if gram is not None:
            self._gram, self.holds_all = gram, True
        elif source.gram is not None and self._stands_in_order():
            self._gram, self._slot, self._column = source.gram, row_index, row_index[class_start[:-1]]
        elif self.holds_all:
            self._gram = source.block(row_index, row_index)
        else:
            capacity = min(n, max(2 * FETCH, source.max_entries // n))
            self._gram = np.empty((capacity, n), dtype=source.dtype)
            self._slot = np.full(n, -1)
            self._holder = np.full(capacity, -1)
            self._next = 0
        self.can_be_shared = self.holds_all
        diagonal = np.asarray(gram.diagonal(), dtype=np.float64) if gram is not None else source.diagonal(row_index)
        self._recent = np.zeros(len(self._gram), dtype=np.uint8)
        # As compiled loops read them.
        self._rows = (self._gram, self._slot, self._column, self._recent, self.classes, class_start)
        # A function that is no kernel may have k(x, x) < 0; the gap that then stays open is reported.
        self._curvature = np.maximum(diagonal, 0.0) + ridge
        self._coordinates: Array | None = None
        # Rows and Cholesky factor of the system that was solved last.
        self._factored: tuple[npt.NDArray[np.int64], Array] | None = None

    def _stands_in_order(self) -> bool:
        """Return whether the rows of each class follow each other in the matrix over all training rows."""
        follows = np.diff(self.row_index) == 1
        follows[self.class_start[1:-1] - 1] = True
        return bool(follows.all())

    def part(self, row: npt.NDArray[np.int64], class_start: npt.NDArray[np.int64]) -> "KernelRows":
        return KernelRows(self.source, self.row_index[row], class_start, self.ridge[row], self.seed)

    def solve(
        self, labelling: Array, *, tol: float, max_iter: int, cutoff: float = np.inf, start: SVMSolution | None = None
    ) -> SVMSolution:
        alpha = self.starting_alpha(labelling, start)
        signed, n_iter, primal, dual = self._descend(np.outer(labelling, labelling), alpha, tol, max_iter, cutoff)
        decision = signed * labelling[self.classes]
        return SVMSolution(alpha, decision, primal, dual, float(alpha @ signed), n_iter, labelling)

    def polish(self, solution: SVMSolution) -> SVMSolution:
        """Solve the linear system of the support vectors until their set no longer changes.

        On the rows with z_j f(x_j) < 1 the optimum has z_j f(x_j) + r_j a_j = 1, and a_j = 0 elsewhere
        (Chapelle 2007, Training a support vector machine in the primal).
        """
        if not self.holds_all:
            return solution
        signs, decision = solution.labelling[self.classes], solution.decision
        for step in range(POLISH_ITERATIONS):
            support = np.flatnonzero(signs * decision < 1.0)
            if len(support) > SYSTEM_ROWS:
                return solution
            factor = self._factor(support)
            if factor is None:
                # The function is not a kernel: keep the solution of coordinate descent.
                return solution
            b = np.zeros(self.n_rows)
            b[support] = dpotrs(factor, signs[support], lower=True)[0]
            decision = self._signed_decisions(np.ones((self.n_classes, self.n_classes)), b)
            if np.array_equal(np.flatnonzero(signs * decision < 1.0), support):
                alpha, signed = signs * b, signs * decision
                primal, dual = compiled.kernel_dual.values(alpha, signed, self.ridge)
                norm, n_iter = float(alpha @ signed), solution.n_iter + step + 1
                return SVMSolution(alpha, decision, primal, dual, norm, n_iter, solution.labelling)
        return solution

    def machine(self, labelling: Array, *, tol: float, max_iter: int, start: SVMSolution | None = None) -> SVMSolution:
        """Return the solution for the final classifier: a rough one is polished, if that succeeds."""
        rough = self.solve(labelling, tol=max(tol, ROUGH_TOL), max_iter=max_iter, start=start)
        polished = self.polish(rough)
        if polished.duality_gap <= tol:
            return polished
        return self.polish(self.solve(labelling, tol=tol, max_iter=max_iter, start=rough))

    def leave_one_out(self, solution: SVMSolution, units: npt.NDArray[np.int64]) -> Array:
        """Return the decision value of each row by the machine that is trained without it.

        ``units`` is the number of rows that each of them represents; one is left out. With t_j = +-1 and signed dual
        variables b_j = t_j a_j, the support vectors satisfy (K + R) b = t. As long as the others stay what they are,
        the machine without support vector j has the value t_j - b_j / m_jj there, with m_jj on the diagonal of (K +
        R)^-1: 1 / m_jj
        - r_j is the squared distance of phi(x_j) from their span (Vapnik and Chapelle 2000, Bounds on error expectation
        for support vector machines). With n units r_j becomes r_j n / (n - 1) instead. A row that is not a support
        vector changes nothing. Many support vectors are divided into several systems.
        """
        decision = solution.decision.copy()
        support = np.flatnonzero(solution.alpha)
        n_systems = -(-len(support) // SYSTEM_ROWS)
        for part in (support[first::n_systems] for first in range(n_systems)):
            give_up_if_abandoned()
            signs = solution.labelling[self.classes[part]]
            b, ridge, n = signs * solution.alpha[part], self.ridge[part], units[part]
            inverse = self._inverse_diagonal(part)
            more = ridge / np.maximum(n - 1, 1)
            left = np.where(n == 1, b / inverse, (ridge + more) * b / (1.0 + more * inverse))
            # The decision value is t_j - r_j b_j only approximately, unless the machine is solved to rounding error.
            decision[part] += ridge * b - left
        return decision

    def _inverse_diagonal(self, rows: npt.NDArray[np.int64]) -> Array:
        """Return the diagonal of the inverse of K + R over some rows: that of L^-T L^-1 with K + R = L L'."""
        factor = self._factor(rows)
        if factor is None:
            # The function is not a kernel: use the value for a row that is orthogonal to all others, an upper bound.
            return np.asarray(1.0 / self._curvature[rows])
        self._factored = None
        inverse = dtrtri(factor, lower=True, overwrite_c=True)[0]
        return np.asarray(np.einsum("ij,ij->j", inverse, inverse))

    def _factor(self, rows: npt.NDArray[np.int64]) -> Array | None:
        """Return the Cholesky factor of K + R over some rows, None if there is none; it is 0 above its diagonal."""
        if self._factored is None or not np.array_equal(rows, self._factored[0]):
            system = self._upper_triangle(rows)
            system.flat[:: len(rows) + 1] += self.ridge[rows]
            # LAPACK stores by columns: to it this is the lower triangle.
            factor, failed = dpotrf(system.T, lower=True, clean=False, overwrite_a=True)
            self._factored = None if failed else (rows, factor)
        return self._factored and self._factored[1]

    def _upper_triangle(self, rows: npt.NDArray[np.int64]) -> Array:
        """Return the kernel values between some rows, and 0 below the diagonal."""
        if not self.holds_all:
            return np.triu(self.source.block(self.row_index[rows], self.row_index[rows])).astype(np.float64)
        kernel = np.zeros((len(rows), len(rows)))
        place = self._column[self.classes[rows]] + rows - self.class_start[self.classes[rows]]
        compiled.kernel_dual.triangle(self._gram, self._slot[rows], place, kernel)
        return kernel

    def solve_planes(
        self, planes: Array, mu: Array, *, tol: float, max_iter: int, alpha: Array | None = None
    ) -> DualSolution:
        alpha = np.zeros(self.n_rows) if alpha is None else alpha.copy()
        coupling = (planes.T * mu) @ planes
        signed, n_iter, primal, dual = self._descend(coupling, alpha, tol, max_iter, np.inf)
        return DualSolution(alpha, signed, primal, dual, float(alpha @ signed), n_iter)

    def _descend(
        self, coupling: Array, alpha: Array, tol: float, max_iter: int, cutoff: float
    ) -> tuple[Array, int, float, float]:
        """Run coordinate descent from ``alpha``, in place; see ``margintree.compiled.kernel_dual``."""
        signed = self._signed_decisions(coupling, alpha)
        # The optimum is at most the primal value of w = 0. A larger dual value shows that the function is not a kernel,
        # and that the dual is unbounded.
        cutoff = min(cutoff, NO_KERNEL * 0.5 * float((1.0 / self.ridge).sum()))
        # One iteration is n_rows updates, which cost as much as an epoch.
        n_left = max_updates = max_iter * self.n_rows
        ridge, curvature, resume = self.ridge, self._curvature, np.zeros(2)
        while True:
            with stoppable() as stop:
                updates, primal, dual, missing = compiled.kernel_dual.sweeps(
                    self._rows, coupling, ridge, curvature, alpha, signed, tol, cutoff, n_left, resume, stop
                )
            n_left -= updates
            if missing < 0:
                return signed, -(-(max_updates - n_left) // self.n_rows), primal, dual
            gradient = signed[missing:] - 1.0 + ridge[missing:] * alpha[missing:]
            gains = np.where((alpha[missing:] > 0.0) | (gradient < 0.0), gradient**2, 0.0) / curvature[missing:]
            # The compiled loop may round a gain at the threshold differently; the missing row is always fetched.
            gains[0] = np.inf
            self._fetch(missing + np.flatnonzero(gains >= resume[1]))

    def _signed_decisions(self, coupling: Array, alpha: Array) -> Array:
        signed, first = np.zeros(self.n_rows), 0
        while True:
            missing = compiled.kernel_dual.signed_decisions(self._rows, coupling, alpha, signed, first)
            if missing < 0:
                return signed
            self._fetch(missing + np.flatnonzero(alpha[missing:]))
            first = missing

    def _fetch(self, wanted: npt.NDArray[np.int64]) -> None:
        """Compute the first few rows of ``wanted`` that are not cached."""
        give_up_if_abandoned()
        rows = wanted[self._slot[wanted] < 0][:FETCH]
        fresh = self.source.block(self.row_index[rows], self.row_index)
        for row, kernel_row in zip(rows, fresh, strict=True):
            while self._recent[self._next]:
                self._recent[self._next] = 0
                self._next = (self._next + 1) % len(self._gram)
            if self._holder[self._next] >= 0:
                self._slot[self._holder[self._next]] = -1
            self._gram[self._next] = kernel_row
            self._holder[self._next] = row
            self._slot[row] = self._next
            # A row that was just computed is spared until it has been used.
            self._recent[self._next] = 1
            self._next = (self._next + 1) % len(self._gram)

    def class_gram(self, coefficients: Array) -> Array:
        result = np.zeros((self.n_classes, self.n_classes))
        first = 0
        while True:
            missing = compiled.kernel_dual.class_gram(self._rows, coefficients, result, first)
            if missing < 0:
                return 0.5 * (result + result.T)
            self._fetch(missing + np.flatnonzero(coefficients[missing:]))
            first = missing

    def class_vectors(self, coefficients: Array) -> Matrix:
        """Return V in the eigenvectors of the kernel matrix (footnote 1 of the paper)."""
        if self._coordinates is None:
            if not self.holds_all:
                raise ValueError(
                    f"The eigen-decomposition of a kernel matrix over {self.n_rows} rows needs "
                    f"{8 * self.n_rows**2 / 2**20:.0f} MB, more than cache_size allows. Increase cache_size, "
                    "or use RelaxationSplit(oracle='gram'), which needs no coordinates."
                )
            eigenvalues, vectors = np.linalg.eigh(self._upper_triangle(np.arange(self.n_rows)), UPLO="U")
            kept = eigenvalues > EIGENVALUE_FLOOR * eigenvalues[-1]
            self._coordinates = vectors[:, kept] * np.sqrt(eigenvalues[kept])
        return np.asarray(np.add.reduceat(self._coordinates * coefficients[:, None], self.class_start[:-1], axis=0))

    def class_norms(self, coefficients: Array) -> Array:
        return np.sqrt(np.maximum(0.0, self.class_gram(coefficients).diagonal()))

    def class_means(self) -> Matrix:
        eigenvalues, vectors = np.linalg.eigh(self.class_gram(self.mean_coefficients()))
        return np.asarray(vectors * np.sqrt(np.maximum(eigenvalues, 0.0)))
