"""Multi-class linear SVMs that train the weights of all classes in one problem.

Crammer and Singer (2001), with a linear slack per row, the largest of its violations:

    min_w  1/2 sum_k |w_k|^2 + C sum_j s_j max(0, max_{k != y_j} 1 - (w_{y_j} - w_k)'x_j)

Weston and Watkins (1999), with the squared hinge of this package and a slack per pair of row and class:

    min_w  1/2 sum_k |w_k|^2 + C/4 sum_j s_j sum_{k != y_j} max(0, 1 - (w_{y_j} - w_k)'x_j)^2

The factor 1/4 makes the problem of two classes the binary one, 1/2 |w|^2 + C/2 sum_j s_j max(0, 1 - t_j w'x_j)^2,
with w = w_1 - w_2, at the same C. Both problems are strictly convex in w, so the weights are unique, and
sum_k w_k = 0 at the optimum. The method is in ``margintree.compiled.all_together``.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from margintree import compiled
from margintree.solvers.linear_rows import EPOCHS_BEFORE_NEWTON, POLISH_TOL, LinearRows
from margintree.solvers.newton import Start, newton
from margintree.solvers.row_layout import layout
from margintree.solvers.solution import Array, DualSolution
from margintree.worker_threads import stoppable

MulticlassLoss = Literal["crammer_singer", "weston_watkins"]

# Newton's method on pairs of row and class costs about pairs x (features x classes)^2 per step; this much takes
# some hundredths of a second.
NEWTON_WORK = 2**26
# Otherwise a problem with up to this many rows x features x classes is refined by coordinate descent.
REFINE_SIZE = 2**15
# Multiplications that this may take: some tenths of a second at most.
REFINE_WORK = 2**24
# In scores, which are about 1 where it matters.
REFINE_PRECISION = 1e-13


@dataclass(frozen=True, eq=False)
class AllTogetherSolution(DualSolution):
    """The solution of one of the problems above.

    ``alpha`` holds the coefficients b_jk with w_k = sum_j b_jk x_j, and ``decision`` the values w_k'x_j; both have
    shape (n_rows, n_classes).

    Attributes
    ----------
    weights : ndarray of shape (n_columns, n_classes)
    """

    weights: Array


def solve_all_together(rows: LinearRows, loss: MulticlassLoss, *, tol: float, max_iter: int) -> AllTogetherSolution:
    """Solve for the weights of all classes of ``rows`` to a relative duality gap of ``tol``.

    A small problem is solved to machine precision, whatever ``max_iter``, so that its weights depend neither on the
    order of the rows nor on whether a row occurs twice or has weight 2. This needs memory for rows x classes
    coefficients.
    """
    n_rows, n_columns = rows.features.shape
    arrays = layout(rows.features)
    no_ridge, no_bound = np.zeros(n_rows), np.full(n_rows, np.inf)
    ridge, bound = (no_ridge, 1.0 / rows.ridge) if loss == "crammer_singer" else (rows.ridge, no_bound)
    problem = (arrays, rows.classes, ridge, bound, compiled.rows.squared_norms(arrays, n_rows))
    coefficients = np.zeros((n_rows, rows.n_classes))
    weights = np.zeros((n_columns, rows.n_classes))
    newton_pays = loss == "weston_watkins" and _newton_pays(rows)
    epochs = min(max_iter, max(EPOCHS_BEFORE_NEWTON, weights.size)) if newton_pays else max_iter
    with stoppable() as stop:
        n_iter, primal, dual = compiled.all_together.solve(problem, coefficients, weights, tol, epochs, rows.seed, stop)
    steps = 0
    if newton_pays:
        steps, coefficients, weights, primal, dual = _finish_by_newton(rows, weights)
    elif coefficients.size * n_columns <= REFINE_SIZE:
        epochs = REFINE_WORK // max(1, coefficients.size * n_columns)
        with stoppable() as stop:
            steps, primal, dual = compiled.all_together.refine(
                problem, coefficients, weights, REFINE_PRECISION, epochs, rows.seed, stop
            )
    return AllTogetherSolution(
        coefficients, rows.feature_matrix @ weights, primal, dual, float(np.sum(weights**2)), n_iter + steps, weights
    )


def _newton_pays(rows: LinearRows) -> bool:
    n_rows, n_columns = rows.features.shape
    work = n_rows * (rows.n_classes - 1) * (n_columns * rows.n_classes) ** 2
    return isinstance(rows.features, np.ndarray) and work <= NEWTON_WORK


def _finish_by_newton(rows: LinearRows, weights: Array) -> tuple[int, Array, Array, float, float]:
    """Minimise the problem of Weston and Watkins from ``weights``.

    It is a binary one with a row x_j (e_y - e_k)' for every pair of row j and rival k, all of them positive. Returns
    the number of steps, the coefficients, the weights, the primal and the dual value.
    """
    n_rows, n_columns = rows.features.shape
    row, rival = np.nonzero(rows.classes[:, None] != np.arange(rows.n_classes))
    own = rows.classes[row]
    pairs = np.zeros((len(row), n_columns, rows.n_classes))
    pairs[np.arange(len(row)), :, own] = rows.features[row]
    pairs[np.arange(len(row)), :, rival] = -rows.features[row]
    steps, flat, alpha, _, primal, dual = newton(
        pairs.reshape(len(row), -1), np.ones(len(row)), 2.0 * rows.ridge[row], Start(weights.reshape(-1)), POLISH_TOL
    )
    coefficients = np.zeros((n_rows, rows.n_classes))
    coefficients[row, rival] = -alpha
    coefficients[np.arange(n_rows), rows.classes] = -coefficients.sum(axis=1)
    return steps, coefficients, flat.reshape(weights.shape), primal, dual
