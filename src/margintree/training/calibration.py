"""Probabilities for the nodes of a tree, calibrated on the decision values of held-out rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from margintree import compiled
from margintree.class_tree import ClassTree
from margintree.prediction.kernel_tree import KernelTree
from margintree.prediction.left_out_tree import LeftOutTree
from margintree.prediction.linear_tree import LinearTree, Sigmoids
from margintree.prediction.ranker import path_values
from margintree.solvers.solution import Array
from margintree.solvers.training_set import TrainingSet, pieces

# Strength of the shrinkage towards the common sigmoid, in rows. Anything between 1 and 30 gave the same accuracy in
# cross-validation on wordnet_hypernyms.
STRENGTH = 3.0
# Slope of the common sigmoid without informative held-out rows, as with one row per class: the most probable path is
# then that of the greedy walk, or differs from it only at nodes where the row lies close to the boundary.
SLOPE = 5.0

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class OwnPaths:
    """Decision values on the path of each row to the leaf of its own class.

    Row j has ``start[j]:start[j + 1]`` of ``node``, ``sign`` (1 where its leaf is to the left) and ``value``.
    """

    start: Index
    node: npt.NDArray[np.int32]
    sign: npt.NDArray[np.int8]
    value: Array


def own_paths(
    trees: Sequence[ClassTree],
    number: int,
    models: Sequence[LinearTree | KernelTree | LeftOutTree],
    training_set: TrainingSet,
    fold: Index,
    class_of_row: Index,
) -> OwnPaths:
    """Evaluate one of the trees of model q, which was trained without fold q, on the rows of fold q.

    Kernel machines have leave-one-out values for their own rows.
    """
    tree, root = trees[number], sum(tree.n_nodes for tree in trees[:number])
    leaves = tree.leaf_of_class[class_of_row].astype(np.int64)
    start, node = tree.paths(leaves)
    goes_left = np.repeat(tree.leaf_of_class[class_of_row], np.diff(start)) < tree.children_right[node]
    # NaN for rows that the sample of a node left out.
    value = np.full(start[-1], np.nan)
    # Models have the nodes of one tree behind those of another.
    parent = tree.parent.astype(np.int64)
    parent_there = np.concatenate([np.zeros(root, dtype=np.int64), np.where(parent >= 0, parent + root, -1)])
    for q, model in enumerate(models):
        if isinstance(model, LeftOutTree):
            for above in tree.internal_nodes.tolist():
                rows, values = model.on_own_rows(root + above)
                value[start[rows] + tree.depth[leaves[rows]] - tree.depth[above] - 1] = values
            continue
        for held_out in pieces(np.flatnonzero(fold == q), training_set.X):
            X = training_set.take(held_out)
            path_values(model, X, leaves[held_out] + root, parent_there, start[held_out], value)
    return OwnPaths(start, node, np.where(goes_left, np.int8(1), np.int8(-1)), value)


def fit_sigmoids(tree: ClassTree, paths: OwnPaths, weight: Array) -> Sigmoids:
    """Fit the sigmoid of every node, shrunk towards one that is common to all."""
    weight = np.where(np.isnan(paths.value), 0.0, np.repeat(weight, np.diff(paths.start)))
    value = np.nan_to_num(paths.value)
    common, _ = compiled.sigmoids.fit_sigmoid(value, paths.sign, weight, SLOPE, 1.0)
    slope, shift = np.empty(tree.n_nodes), np.empty(tree.n_nodes)
    compiled.sigmoids.fit_sigmoids(paths.node, value, paths.sign, weight, common, STRENGTH, slope, shift)
    return Sigmoids(slope, shift)


def path_scores(paths: OwnPaths, sigmoids: Sigmoids) -> Array:
    """Return the log probability of each row's own path."""
    log_odds = sigmoids.slope[paths.node] * np.nan_to_num(paths.value) + sigmoids.shift[paths.node]
    terms = -np.logaddexp(0.0, -paths.sign * log_odds)
    return np.add.reduceat(terms, paths.start[:-1])
