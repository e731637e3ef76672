"""Multiple kernel learning over labellings: problem (9) of the paper for a given set of planes.

    min_{mu in simplex}  J(mu),   J(mu) = max_{a >= 0} 1'a - 1/2 sum_m mu_m q_m(a) - 1/2 sum_j r_j a_j^2

with q_m(a) = |sum_j a_j z^m_j phi(x_j)|^2 = z^m' G z^m. J is convex, its gradient is -q/2 at the
solution a of the SVM for mu, and for any a the saddle value lies above
1'a - 1/2 max_m q_m(a) - 1/2 sum_j r_j a_j^2: hence the gap. Two ways to move mu:

- ``simplemkl``: reduced gradient with line search (Rakotomamonjy et al. 2008, Algorithm 1);
- ``closed_form``: mu_m proportional to mu_m sqrt(q_m) (Xu et al. 2010). A weight of zero stays zero,
  so a new plane must start positive.

See docs/solvers/multiple_kernel.md.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from margintree.solvers.node_rows import NodeRows
from margintree.solvers.solution import Array, DualSolution

# Golden section search stops when the bracket is this small a part of the step, or the step itself is tiny.
LINE_SEARCH_WIDTH = 0.2
SHORTEST_STEP = 1e-4
# SimpleMKL solves its SVMs to this part of its own tolerance at the sharpest.
SHARPEST_SVM = 1e-3
GOLDEN_SECTION = (np.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True, eq=False)
class MultipleKernelSolution:
    """Weights on the simplex, the SVM that belongs to them, and the gap over the planes given.

    ``value`` is the SVM's primal value: an upper estimate of min J. ``gap`` is relative to it and
    includes the SVM's own gap. ``class_gram`` is G for the SVM's dual variables.
    """

    mu: Array
    svm: DualSolution
    class_gram: Array
    value: float
    gap: float
    n_iter: int


@dataclass(frozen=True, eq=False)
class _Point:
    mu: Array
    svm: DualSolution


class _Problem:
    """J for one set of planes, evaluated with warm-started SVMs."""

    def __init__(self, rows: NodeRows, planes: Array, svm_tol: float, max_iter: int) -> None:
        self.rows, self.planes = rows, planes
        self.svm_tol, self.max_iter = svm_tol, max_iter
        self.n_iter = 0
        # Every dual point bounds the saddle value from below, so the best of all counts.
        self._saddle = -np.inf

    def at(self, mu: Array, alpha: Array | None) -> _Point:
        svm = self.rows.solve_planes(self.planes, mu, tol=self.svm_tol, max_iter=self.max_iter, alpha=alpha)
        self.n_iter += svm.n_iter
        return _Point(mu, svm)

    def squared_norms(self, gram: Array) -> Array:
        return np.asarray(np.einsum("mk,kl,ml->m", self.planes, gram, self.planes, optimize=True))

    def certify(self, point: _Point) -> tuple[MultipleKernelSolution, Array]:
        gram = self.rows.class_gram(point.svm.alpha)
        q = self.squared_norms(gram)
        alpha = point.svm.alpha
        saddle = float(alpha.sum() - 0.5 * q.max() - 0.5 * (self.rows.ridge * alpha) @ alpha)
        self._saddle = max(self._saddle, saddle)
        value = point.svm.objective
        gap = max(0.0, (value - self._saddle) / value)
        return MultipleKernelSolution(point.mu, point.svm, gram, value, gap, self.n_iter), q


def closed_form(
    rows: NodeRows, planes: Array, mu: Array, alpha: Array | None, *, tol: float, max_iter: int, svm_max_iter: int
) -> MultipleKernelSolution:
    """Solve by the closed-form update, from positive weights ``mu``."""
    problem = _Problem(rows, planes, 0.1 * tol, svm_max_iter)
    point = problem.at(mu, alpha)
    best, q = problem.certify(point)
    for _ in range(max_iter):
        if best.gap <= tol:
            break
        weights = point.mu * np.sqrt(np.maximum(q, 0.0))
        point = problem.at(weights / weights.sum(), point.svm.alpha)
        result, q = problem.certify(point)
        if result.gap < best.gap:
            best = result
    return best


def simplemkl(
    rows: NodeRows, planes: Array, mu: Array, alpha: Array | None, *, tol: float, max_iter: int, svm_max_iter: int
) -> MultipleKernelSolution:
    """Solve by SimpleMKL, from weights ``mu`` on the simplex."""
    problem = _Problem(rows, planes, 0.1 * tol, svm_max_iter)
    point = problem.at(mu, alpha)
    result, q = problem.certify(point)
    for _ in range(max_iter):
        if result.gap <= tol:
            break
        moved = _descend(problem, point, reduced_gradient(point.mu, -0.5 * q))
        if moved is point:
            # J falls nowhere along the direction. It changes by the square of the gap, so the SVMs must
            # be solved more exactly to see it, if they can be.
            if point.svm.duality_gap > problem.svm_tol or problem.svm_tol <= SHARPEST_SVM * tol:
                break
            problem.svm_tol *= 0.1
            moved = problem.at(point.mu, point.svm.alpha)
        point = moved
        result, q = problem.certify(point)
    return result


def reduced_gradient(mu: Array, gradient: Array) -> Array:
    """Return SimpleMKL's descent direction: it sums to zero and leaves the simplex nowhere."""
    pivot = int(np.argmax(mu))
    reduced = gradient - gradient[pivot]
    direction = np.where((mu <= 0.0) & (reduced > 0.0), 0.0, -reduced)
    direction[pivot] = 0.0
    direction[pivot] = -direction.sum()
    return direction


def _descend(problem: _Problem, point: _Point, direction: Array) -> _Point:
    """Move to the face of the simplex as long as J falls, then search the last segment."""
    while np.any(direction < 0.0):
        shrinking = np.flatnonzero(direction < 0.0)
        ratios = -point.mu[shrinking] / direction[shrinking]
        largest, leaving = float(ratios.min()), int(shrinking[np.argmin(ratios)])
        if largest <= 0.0:
            break
        end = point.mu + largest * direction
        end[leaving] = 0.0
        end = np.maximum(end, 0.0)
        trial = problem.at(end / end.sum(), point.svm.alpha)
        if trial.svm.dual_objective >= point.svm.dual_objective:
            return _golden_section(problem, point, trial)
        point = trial
        pivot = int(np.argmax(point.mu))
        direction = direction.copy()
        direction[[leaving, pivot]] = 0.0
        direction[pivot] = -direction.sum()
    return point


def _golden_section(problem: _Problem, near: _Point, far: _Point) -> _Point:
    """Minimise J on the segment from ``near`` to ``far``; keep ``near`` unless J falls."""

    def at(step: float) -> _Point:
        return problem.at((1.0 - step) * near.mu + step * far.mu, best.svm.alpha)

    best = near
    low, high = 0.0, 1.0
    inner, outer = 1.0 - GOLDEN_SECTION, GOLDEN_SECTION
    left, right = at(inner), at(outer)
    while high - low > LINE_SEARCH_WIDTH * high and high > SHORTEST_STEP:
        if left.svm.dual_objective <= right.svm.dual_objective:
            high, outer, right = outer, inner, left
            inner = high - GOLDEN_SECTION * (high - low)
            left = at(inner)
        else:
            low, inner, left = inner, outer, right
            outer = low + GOLDEN_SECTION * (high - low)
            right = at(outer)
        candidate = min(left, right, key=lambda p: p.svm.dual_objective)
        if candidate.svm.dual_objective < best.svm.dual_objective:
            best = candidate
    return best


MKL_METHODS: dict[str, Callable[..., MultipleKernelSolution]] = {"simplemkl": simplemkl, "closed_form": closed_form}
