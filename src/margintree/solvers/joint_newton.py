"""Newton's method for all machines of a tree with one slack per row, for few features and classes.

The loss max_v (1 - m_v)^2 has a kink where two nodes are equally bad, and most rows with a slack end up there. So the
dual is solved by proximal steps: holding the dual variables a near a centre makes the primal smooth,

    min_w  1/2 sum_v |w_v|^2
           + sum_j max_{a >= 0} [ sum_v a_v (1 - m_jv) - r_j/2 (sum_v a_v)^2 - e_j/2 |a - centre_j|^2 ]

with m_jv = t_jv w_v'x_j and e_j = share r_j. It is piecewise quadratic: Newton steps end at its exact minimum. Its
a is the next centre, and with a share that falls the centres reach the dual's optimum after a few rounds
(Rockafellar 1976, Augmented Lagrangians and applications of the proximal point algorithm in convex programming).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from margintree import compiled
from margintree.solvers.solution import Array

# Strong enough at first for some ten Newton steps a round; below the last share rounding outweighs the gain.
FIRST_SHARE, SHARE_FACTOR, LAST_SHARE = 0.1, 0.1, 1e-4
# If r is much larger than |x|^2, a share of r keeps a too close to the centre; a share of |x|^2 is used, down to this.
LEAST_STIFFNESS = 0.01
# A round ends with the step that promises no more than this part of the objective. Looser ones make the next centre
# useless: a is the slack divided by e, and so are its errors.
ROUND_TOL = 1e-10


@dataclass(frozen=True, eq=False)
class TreeRows:
    """Dense rows with their ridge, and for each class the signs of its path, 0 at the nodes off it."""

    features: Array
    classes: npt.NDArray[np.int64]
    ridge: Array
    class_signs: Array

    @cached_property
    def signs(self) -> Array:
        return self.class_signs[self.classes]

    @cached_property
    def coupled_nodes(self) -> list[tuple[int, int]]:
        """Pairs of nodes that some path passes both, and each node with itself."""
        on_path = np.abs(self.class_signs)
        upper, lower = np.nonzero(np.triu(on_path.T @ on_path))
        return list(zip(upper.tolist(), lower.tolist(), strict=True))

    def worst(self, decision: Array) -> Array:
        return np.asarray(np.where(self.signs == 0.0, np.inf, self.signs * decision).min(axis=1))


@dataclass(frozen=True, eq=False)
class Point:
    """Weights, the dual variables that belong to them, and the values of both."""

    weights: Array
    decision: Array
    alpha: Array
    smooth_value: float
    gradient: Array
    primal: float
    dual: float

    @classmethod
    def at(cls, rows: TreeRows, weights: Array, decision: Array, share: float, centre: Array) -> "Point":
        alpha = np.empty_like(centre)
        smooth = 0.5 * np.vdot(weights, weights) + compiled.joint.proximal_blocks(
            decision, rows.class_signs, rows.classes, rows.ridge, share, centre, alpha
        )
        dual_weights = (alpha * rows.signs).T @ rows.features
        slack = np.maximum(0.0, 1.0 - rows.worst(decision))
        primal = 0.5 * np.vdot(weights, weights) + 0.5 * np.sum(slack**2 / rows.ridge)
        blocks = alpha.sum(axis=1)
        dual = blocks.sum() - 0.5 * np.vdot(dual_weights, dual_weights) - 0.5 * np.sum(rows.ridge * blocks**2)
        return cls(weights, decision, alpha, float(smooth), weights - dual_weights, float(primal), float(dual))

    @property
    def gap(self) -> float:
        return self.primal - self.dual


def newton(rows: TreeRows, weights: Array, alpha: Array, tol: float, max_iter: int) -> tuple[int, Point]:
    """Run from ``weights`` and ``alpha`` (rows x nodes); return the number of steps and the best point."""
    squared_norm = np.mean(rows.features**2) * rows.features.shape[1]
    stiffness = float(np.clip(squared_norm / np.mean(rows.ridge), LEAST_STIFFNESS, 1.0))
    share, last_share, centre = stiffness * FIRST_SHARE, stiffness * LAST_SHARE, alpha
    point = best = Point.at(rows, weights, rows.features @ weights.T, share, centre)
    n_iter, round_is_over = 0, False
    while best.gap > tol * best.primal and n_iter < max_iter:
        if round_is_over:
            share, centre = max(last_share, SHARE_FACTOR * share), point.alpha
            point = Point.at(rows, point.weights, point.decision, share, centre)
        n_iter += 1
        following, round_is_over = _step(rows, point, share, centre)
        if following is point and share == last_share:
            break
        point = following
        best = min(best, point, key=lambda p: p.gap)
    return n_iter, best


def _step(rows: TreeRows, point: Point, share: float, centre: Array) -> tuple[Point, bool]:
    """Take one Newton step and return whether it ends the round. A step that is lost in rounding is not taken."""
    try:
        factor = cho_factor(_hessian(rows, point.alpha > 0.0, share), overwrite_a=True, check_finite=False)
    except LinAlgError:
        return point, True
    step = -cho_solve(factor, point.gradient.reshape(-1), check_finite=False).reshape(point.weights.shape)
    moved = rows.features @ step.T
    length, slope = 1.0, float(np.vdot(point.gradient, step))
    for _ in range(compiled.MAX_HALVINGS):
        trial = Point.at(rows, point.weights + length * step, point.decision + length * moved, share, centre)
        if trial.smooth_value <= point.smooth_value + 1e-4 * length * slope:
            return trial, -slope <= ROUND_TOL * point.primal
        length *= 0.5
    return point, True


def _hessian(rows: TreeRows, active: npt.NDArray[np.bool_], share: float) -> Array:
    """Return I + sum_j D_j (x) x_j x_j' with D_j = (I - r_j 11' / (e_j + k_j r_j)) / e_j over the k_j active nodes."""
    n_nodes, n_columns = active.shape[1], rows.features.shape[1]
    hold = share * rows.ridge
    shared = rows.ridge / (hold + active.sum(axis=1) * rows.ridge)
    hessian = np.eye(n_nodes * n_columns).reshape(n_nodes, n_columns, n_nodes, n_columns)
    for u, v in rows.coupled_nodes:
        both = np.flatnonzero(active[:, u] & active[:, v])
        signs = rows.signs[both, u] * rows.signs[both, v]
        curvature = signs * (float(u == v) - shared[both]) / hold[both]
        features = rows.features[both]
        block = features.T @ (curvature[:, None] * features)
        hessian[u, :, v] += block
        if u != v:
            hessian[v, :, u] += block.T
    return hessian.reshape(n_nodes * n_columns, -1)
