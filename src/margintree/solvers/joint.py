"""All machines of a tree at once: the tree loss of Bengio, Weston and Grangier, with one slack per row.

A row is misclassified as soon as one node on its path sends it the wrong way, so the worst node counts:

    min_w  1/2 sum_v |w_v|^2 + 1/2 sum_j max(0, max_{v on path(j)} (1 - t_jv w_v'x_j))^2 / r_j

with signs t_jv (+1 where the class of row j lies to the left of v) and ridge r_j = 1 / (C s_j). The dual and its
block descent are in ``margintree.compiled.joint``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from margintree import compiled
from margintree.class_tree import ClassTree
from margintree.solvers.classifier import LinearClassifier
from margintree.solvers.joint_newton import TreeRows, newton
from margintree.solvers.linear_rows import EPOCHS_BEFORE_NEWTON, POLISH_TOL, POLISH_WORK, LinearRows
from margintree.solvers.row_layout import layout
from margintree.solvers.solution import Array, DualSolution
from margintree.solvers.training_set import LinearTrainingSet
from margintree.worker_threads import stoppable

Index = npt.NDArray[np.int64]

# Newton needs a matrix over all weights of all nodes. Up to this many, a run of it costs less than the thousands of
# epochs that block descent takes when C is large.
NEWTON_WEIGHTS = 1000
NEWTON_ENTRIES = 2**22
JOINT_NEWTON_ITERATIONS = 300


@dataclass(frozen=True, eq=False)
class JointSolution(DualSolution):
    """The machines of all internal nodes, in preorder, with the record of their joint training.

    ``alpha`` holds the dual variables row by row, along the path from the root, and ``decision`` the value
    min_v t_jv f_v(x_j) of each row: below zero where the walk misses the row's class.
    """

    weights: Array
    classifiers: Sequence[LinearClassifier] = ()


class Paths(NamedTuple):
    """Internal nodes and signs from the root to every class.

    Those of class k are ``start[k] : start[k + 1]``. ``node`` counts the internal nodes in preorder; the sign is +1
    where the class lies to the left.
    """

    start: Index
    node: Index
    sign: Array


def paths_to_classes(tree: ClassTree) -> Paths:
    """Return the paths to the leaves of a tree.

    Examples
    --------
    >>> paths = paths_to_classes(ClassTree.from_nested((1, (2, 0))))
    >>> paths.start.tolist(), paths.node.tolist(), paths.sign.tolist()
    ([0, 2, 3, 5], [0, 1, 0, 0, 1], [-1.0, -1.0, 1.0, -1.0, 1.0])
    """
    start, above = tree.paths(tree.leaf_of_class)
    lengths = np.diff(start)
    node = above[np.repeat(start[:-1] + start[1:] - 1, lengths) - np.arange(len(above))]
    sign = np.where(np.repeat(tree.leaf_of_class, lengths) < tree.children_right[node], 1.0, -1.0)
    return Paths(start, np.searchsorted(tree.internal_nodes, node), sign)


def train_jointly(
    training_set: LinearTrainingSet, tree: ClassTree, *, tol: float, max_iter: int, seed: int
) -> JointSolution:
    """Train the machines of all internal nodes as one problem, to a relative duality gap of ``tol``.

    If there are few weights in all, Newton's method takes over from block descent, and solves small problems to machine
    precision: their machines then depend neither on the order of the rows nor on whether a row occurs twice or has
    weight 2.
    """
    rows = training_set.node_rows(np.arange(training_set.n_classes), seed)
    assert isinstance(rows, LinearRows)
    paths = paths_to_classes(tree)
    n_rows, n_columns = rows.features.shape
    n_nodes = len(tree.internal_nodes)
    newton_pays = (
        isinstance(rows.features, np.ndarray)
        and n_nodes * n_columns <= NEWTON_WEIGHTS
        and n_rows * n_nodes <= NEWTON_ENTRIES
    )
    epochs = min(max_iter, max(EPOCHS_BEFORE_NEWTON, n_nodes * n_columns)) if newton_pays else max_iter
    descended = _descend(rows, paths, n_nodes, tol, epochs)
    work = n_columns**2 * int(np.sum(np.diff(paths.start)[rows.classes] ** 2))
    tol = POLISH_TOL if work <= POLISH_WORK else tol
    trained = _finish(rows, paths, descended, tol) if newton_pays else descended
    return replace(trained, classifiers=[training_set.linear_classifier(rows.columns, w) for w in trained.weights])


def _descend(rows: LinearRows, paths: Paths, n_nodes: int, tol: float, max_iter: int) -> JointSolution:
    arrays, ridge = layout(rows.features), rows.ridge
    norms = compiled.rows.squared_norms(arrays, rows.n_rows)
    start = np.concatenate([[0], np.cumsum(np.diff(paths.start)[rows.classes])])
    alpha, worst = np.zeros(start[-1]), np.zeros(rows.n_rows)
    weights = np.zeros((n_nodes, rows.features.shape[1]))
    with stoppable() as stop:
        n_iter, primal, dual = compiled.joint.solve(
            arrays, rows.classes, paths, ridge, norms, start, alpha, weights, worst, tol, max_iter, rows.seed, stop
        )
    return JointSolution(alpha, worst, primal, dual, float(np.vdot(weights, weights)), n_iter, weights)


def _finish(rows: LinearRows, paths: Paths, trained: JointSolution, tol: float) -> JointSolution:
    """Reduce the gap to ``tol`` by Newton's method, or keep the earlier solution if that is no better."""
    if trained.objective - trained.dual_objective <= tol * trained.objective:
        return trained
    n_classes, n_nodes = len(paths.start) - 1, len(trained.weights)
    class_signs = np.zeros((n_classes, n_nodes))
    class_signs[np.repeat(np.arange(n_classes), np.diff(paths.start)), paths.node] = paths.sign
    tree_rows = TreeRows(rows.features, rows.classes, rows.ridge, class_signs)
    # Along each path the nodes have rising numbers, so both layouts list a row's variables in the same order.
    on_path = tree_rows.signs != 0.0
    alpha = np.zeros(on_path.shape)
    alpha[on_path] = trained.alpha
    steps, point = newton(tree_rows, trained.weights, alpha, tol, JOINT_NEWTON_ITERATIONS)
    n_iter = trained.n_iter + steps
    if point.gap >= trained.objective - trained.dual_objective:
        return replace(trained, n_iter=n_iter)
    worst, norm = tree_rows.worst(point.decision), float(np.vdot(point.weights, point.weights))
    return JointSolution(point.alpha[on_path], worst, point.primal, point.dual, norm, n_iter, point.weights)
