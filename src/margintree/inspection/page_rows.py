"""Data of the page about rows: their paths, the sides that the nodes choose, and the confusion matrix."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import _safe_indexing

from margintree.inspection.page_data import numbers
from margintree.inspection.path_values import path_values, side_probability
from margintree.inspection.tree_facts import class_numbers

# Rows whose path is part of the page, and classes that are ranked for each.
N_ROWS, N_RANKED = 1000, 5

Index = npt.NDArray[np.int64]


def row_data(estimator: Any, X: Any, y: Any) -> dict[str, Any]:
    """Return the data about rows, ready for JSON.

    ``rows`` holds the paths of some rows, one after the other: as many values as the predicted leaf is deep. ``sides``
    counts, for each internal node, the rows of classes below it by their true side and the side that the machine
    chooses: left as left, left as right, right as left, right as right. ``confusion`` is the matrix as triplets.
    """
    data: dict[str, Any] = {"rows": None, "sides": None, "confusion": None}
    if X is None:
        return data
    # Validated once: column names, shape and content are known to be valid from here on.
    rows = estimator._checked_rows(X)
    predicted = class_numbers(estimator, estimator.predict(X))
    true = None if y is None else class_numbers(estimator, y, rows.shape[0])
    data["rows"] = _row_paths(estimator, X, rows, predicted, true)
    if true is not None:
        data["sides"] = _sides(estimator, rows, true).tolist()
        n_classes = len(estimator.classes_)
        pairs, count = np.unique(true * n_classes + predicted, return_counts=True)
        triplets = np.column_stack([*np.divmod(pairs, n_classes), count])
        data["confusion"] = triplets.ravel().tolist()
    return data


def _sides(estimator: Any, rows: Any, true: Index) -> Index:
    """Count the rows of each internal node by their true side and the one that its machine chooses."""
    tree = estimator.tree_
    leaves = tree.leaf_of_class[true].astype(np.int64)
    start, node, value = path_values(estimator, rows, leaves)
    is_right = np.repeat(leaves, np.diff(start)) >= tree.children_right[node]
    cell = 4 * node + 2 * is_right + (value <= 0.0)
    return np.asarray(np.bincount(cell, minlength=4 * tree.n_nodes).reshape(-1, 4)[tree.internal_nodes])


def _row_paths(estimator: Any, X: Any, rows: Any, predicted: Index, true: Index | None) -> dict[str, Any]:
    """Return the paths of some rows, evenly spaced, from the root to the leaf that is predicted for them."""
    n_rows, tree = rows.shape[0], estimator.tree_
    chosen = np.unique(np.linspace(0, n_rows - 1, min(n_rows, N_ROWS)).round().astype(np.int64))
    leaves = tree.leaf_of_class[predicted[chosen]].astype(np.int64)
    start, node, value = path_values(estimator, rows[chosen], leaves)
    # Reverse each path, because the page walks from the root.
    turned = np.repeat(start[:-1] + start[1:] - 1, np.diff(start)) - np.arange(len(node))
    node, value = node[turned], value[turned]
    left = side_probability(estimator, node, value)
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
    """Return the most probable classes of each row, if the estimator ranks classes."""
    k = min(N_RANKED, len(estimator.classes_))
    if hasattr(estimator, "predict_top_k"):
        labels, probabilities = estimator.predict_top_k(X, k)
        classes = class_numbers(estimator, labels.ravel())
    elif hasattr(estimator, "predict_proba"):
        everything = estimator.predict_proba(X)
        order = np.argsort(-everything, axis=1, kind="stable")[:, :k]
        classes, probabilities = order.ravel(), np.take_along_axis(everything, order, axis=1)
    else:
        return {"ranked": None}
    return {"ranked": {"k": k, "class": classes.tolist(), "probability": numbers(probabilities.ravel(), 3)}}
