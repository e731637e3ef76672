"""Newton's method for the linear L2-loss SVM in the primal (Mangasarian 2002, Keerthi & DeCoste 2005).

The objective 1/2 |w|^2 + 1/2 sum_j max(0, 1 - t_j w'x_j)^2 / r_j is piecewise quadratic, so Newton steps reach the
exact minimum after a few changes of the set of rows with a positive slack. A step costs rows x features^2: with few
features and a large C that is far less than the thousands of epochs that coordinate descent takes there, and it is used
only then.

See docs/solvers/newton.md.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv

from margintree.compiled import MAX_HALVINGS
from margintree.solvers.solution import Array
from margintree.worker_threads import give_up_if_abandoned

MAX_ITERATIONS = 60


class Start(NamedTuple):
    """Weights to start from, and a known dual point."""

    weights: Array
    alpha: Array | None = None
    dual: float = -np.inf


def newton(
    features: Array,
    signs: Array,
    ridge: Array,
    start: Start,
    tol: float,
    cutoff: float = np.inf,
    max_iter: int = MAX_ITERATIONS,
    *,
    offset: Array | float = 0.0,
) -> tuple[int, Array, Array, Array, float, float]:
    """Minimise from ``start``; return iterations, weights, alpha, decisions, primal and dual value.

    The dual point is a_j = max(0, 1 - t_j w'x_j) / r_j. Its weight vector is w minus the gradient of
    the primal, which is available, so the duality gap costs nothing. A known dual point is kept unless Newton's steps
    find a better one. ``offset`` is added to every w'x_j.
    """
    weights, best_dual = start.weights, start.dual
    best_alpha = np.zeros_like(signs) if start.alpha is None else start.alpha
    decision = features @ weights + offset
    margins = 1.0 - signs * offset
    for n_iter in range(max_iter + 1):
        give_up_if_abandoned()
        slack = np.maximum(0.0, 1.0 - signs * decision)
        present = slack / ridge
        primal = 0.5 * (weights @ weights + slack @ present)
        support = np.flatnonzero(slack)
        rows = features[support]
        dual_weights = (present[support] * signs[support]) @ rows
        value = float(present @ margins - 0.5 * (dual_weights @ dual_weights + slack @ present))
        if value > best_dual:
            best_dual, best_alpha = value, present
        if primal - best_dual <= tol * primal or best_dual > cutoff or n_iter == max_iter:
            break
        gradient = weights - dual_weights
        scaled = rows / np.sqrt(ridge[support])[:, None]
        hessian = scaled.T @ scaled
        hessian.flat[:: hessian.shape[0] + 1] += 1.0
        # The transpose is the same matrix, in LAPACK's order.
        _, step, info = dposv(hessian.T, -gradient, overwrite_a=True)
        if info > 0:
            # Features of extreme scale: rounding makes the matrix indefinite. The current point is returned.
            break
        moved = features @ step
        length, slope = 1.0, float(gradient @ step)
        for _ in range(MAX_HALVINGS):
            trial = weights + length * step
            trial_slack = np.maximum(0.0, 1.0 - signs * (decision + length * moved))
            value = 0.5 * (trial @ trial + (trial_slack / ridge) @ trial_slack)
            if value <= primal + 1e-4 * length * slope:
                break
            length *= 0.5
        else:
            break
        weights, decision = trial, decision + length * moved
    return n_iter, weights, best_alpha, decision, float(primal), float(best_dual)
