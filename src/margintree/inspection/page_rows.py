"""What the page says of rows: the path of each, the sides that the nodes choose, and the confusion matrix."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import expit
from sklearn.utils import _safe_indexing, column_or_1d

from margintree import compiled
from margintree.class_tree import ClassTree
from margintree.inspection.page_data import numbers
from margintree.prediction.probability_tree import ProbabilityTree

# Rows whose path is part of the page, and classes that are ranked for each.
N_ROWS, N_RANKED = 1000, 5
# Pairs of a row and a node whose sparse rows are multiplied at once.
BLOCK_PAIRS = 2**16

Index = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


def row_data(estimator: Any, X: Any, y: Any) -> dict[str, Any]:
    """Return what rows add to the page, ready for JSON; nothing without rows.

    ``rows`` holds the paths of some rows, one after the other: as many values as the predicted leaf is deep. ``sides``
    counts, for each internal node, the rows of classes below it by their true side and the side that the machine
    chooses: left as left, left as right, right as left, right as right. ``confusion`` is the matrix as triplets.
    """
    if X is None:
        return {"rows": None, "sides": None, "confusion": None}
    # Validated once: names of columns, shape and content are known to be right from here on.
    rows = estimator._checked_rows(X)
    true = None if y is None else _class_numbers(estimator, y, rows.shape[0])
    numbers_of = {label: k for k, label in enumerate(estimator.classes_.tolist())}
    predicted = np.array([numbers_of[label] for label in estimator.predict(X).tolist()], dtype=np.int64)
    data: dict[str, Any] = {"rows": _row_paths(estimator, X, rows, predicted, true), "sides": None, "confusion": None}
    if true is not None:
        data["sides"] = _sides(estimator, rows, true).tolist()
        pairs, count = np.unique(true * len(numbers_of) + predicted, return_counts=True)
        triplets = np.column_stack([*np.divmod(pairs, len(numbers_of)), count])
        data["confusion"] = triplets.ravel().tolist()
    return data


def _class_numbers(estimator: Any, y: Any, n_rows: int) -> Index:
    """Return the number of each label's class."""
    labels = column_or_1d(y)
    if len(labels) != n_rows:
        raise ValueError(f"X has {n_rows} rows and y has {len(labels)} labels. Give one label per row.")
    known = {label: k for k, label in enumerate(estimator.classes_.tolist())}
    found = [known.get(label, -1) for label in labels.tolist()]
    if -1 in found:
        first, count = labels.tolist()[found.index(-1)], found.count(-1)
        raise ValueError(
            f"y has {count} labels that the model was not fitted with, the first being {first!r}; it knows "
            f"{estimator.classes_.tolist()[0]!r} and {len(known) - 1} more. Leave such rows out, or give labels of the "
            "same type."
        )
    return np.array(found, dtype=np.int64)


def paths(tree: ClassTree, leaves: Index) -> tuple[Index, Index]:
    """Return the internal nodes above leaf i, the lowest first, as ``node[start[i]:start[i + 1]]``."""
    start = np.concatenate([[0], np.cumsum(tree.depth[leaves], dtype=np.int64)])
    node, at = np.empty(start[-1], dtype=np.int64), leaves.copy()
    for step in range(tree.max_depth):
        going = np.flatnonzero(tree.depth[leaves] > step)
        at[going] = tree.parent[at[going]]
        node[start[going] + step] = at[going]
    return start, node


def _path_values(estimator: Any, rows: Any, leaves: Index) -> tuple[Index, Index, Values]:
    """Return the nodes above the given leaf of each row, and the decision values there; a positive one means left."""
    model, tree = estimator._model, estimator.tree_
    start, node = paths(tree, leaves)
    value = np.empty(len(node))
    if isinstance(model, ProbabilityTree):
        arrays = (model.weights, model.columns, model.start)
        weights = sp.csr_array(arrays, shape=(tree.n_nodes, model.n_features))
        row, rows = np.repeat(np.arange(len(leaves)), np.diff(start)), sp.csr_array(rows)
        for first in range(0, len(node), BLOCK_PAIRS):
            part = slice(first, first + BLOCK_PAIRS)
            products = rows[row[part]].multiply(weights[node[part]]).sum(axis=1)
            value[part] = products + model.intercepts[node[part]]
        return start, node, value
    parent = tree.parent.astype(np.int64)
    for first, last, block, forest in model.blocks(rows):
        compiled.walk.path_values(
            block, np.arange(last - first), leaves[first:last], parent, forest, start[first:last], value
        )
    return start, node, value


def _left_probability(estimator: Any, node: Index, value: Values) -> Values | None:
    """Return the probability of the left side; None where nodes are not calibrated."""
    model = estimator._model
    if isinstance(model, ProbabilityTree):
        return np.clip(0.5 + value, 0.0, 1.0)
    if model.sigmoids is None:
        return None
    return np.asarray(expit(model.sigmoids.slope[node] * value + model.sigmoids.shift[node]))


def _sides(estimator: Any, rows: Any, true: Index) -> Index:
    """Count the rows of each internal node by their true side and the one that its machine chooses."""
    tree = estimator.tree_
    leaves = tree.leaf_of_class[true].astype(np.int64)
    start, node, value = _path_values(estimator, rows, leaves)
    is_right = np.repeat(leaves, np.diff(start)) >= tree.children_right[node]
    cell = 4 * node + 2 * is_right + (value <= 0.0)
    return np.asarray(np.bincount(cell, minlength=4 * tree.n_nodes).reshape(-1, 4)[tree.internal_nodes])


def _row_paths(estimator: Any, X: Any, rows: Any, predicted: Index, true: Index | None) -> dict[str, Any]:
    """Return the paths of some rows, evenly spaced, from the root to the leaf that is predicted for them."""
    n_rows, tree = rows.shape[0], estimator.tree_
    chosen = np.unique(np.linspace(0, n_rows - 1, min(n_rows, N_ROWS)).round().astype(np.int64))
    leaves = tree.leaf_of_class[predicted[chosen]].astype(np.int64)
    start, node, value = _path_values(estimator, rows[chosen], leaves)
    # Turned round, each path by itself: the page walks from the root.
    turned = np.repeat(start[:-1] + start[1:] - 1, np.diff(start)) - np.arange(len(node))
    node, value = node[turned], value[turned]
    left = _left_probability(estimator, node, value)
    data: dict[str, Any] = {
        "total": n_rows,
        "number": chosen.tolist(),
        "predicted": predicted[chosen].tolist(),
        "true": None if true is None else true[chosen].tolist(),
        "value": numbers(value, 3),
        "left": None if left is None else numbers(left, 3),
    }
    # Rows as they were given, since an estimator that knows names of columns looks for them.
    return data | _ranked(estimator, rows[chosen] if sp.issparse(X) else _safe_indexing(X, chosen))


def _ranked(estimator: Any, X: Any) -> dict[str, Any]:
    """Return the most probable classes of each row, where the estimator ranks them."""
    k = min(N_RANKED, len(estimator.classes_))
    if hasattr(estimator, "predict_top_k"):
        labels, probabilities = estimator.predict_top_k(X, k)
        known = {label: number for number, label in enumerate(estimator.classes_.tolist())}
        classes = np.array([known[label] for label in labels.ravel().tolist()], dtype=np.int64)
    elif hasattr(estimator, "predict_proba"):
        everything = estimator.predict_proba(X)
        order = np.argsort(-everything, axis=1, kind="stable")[:, :k]
        classes, probabilities = order.ravel(), np.take_along_axis(everything, order, axis=1)
    else:
        return {"ranked": None}
    return {"ranked": {"k": k, "class": classes.tolist(), "probability": numbers(probabilities.ravel(), 3)}}
