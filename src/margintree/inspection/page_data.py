"""Data of the page about a tree: its shape, the records of its nodes, and the features with the largest weights."""

from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.inspection.labels import Names, checked_names, feature_name, feature_names_of, one_line
from margintree.prediction.linear_tree import LinearTree
from margintree.prediction.probability_tree import ProbabilityTree

# Features that are listed for each side of a node.
N_FEATURES = 8
# Fields of a node's record, by their names in the page.
RECORDED = {
    "margin": "margin",
    "objective": "objective",
    "bound": "lower_bound",
    "gap": "duality_gap",
    "imbalance": "imbalance",
    "n_rows": "n_rows",
}
SHOWN_PARAMETERS = ("kernel", "C", "walk")


def tree_data(estimator: Any, feature_names: Any, class_names: Names | None) -> dict[str, Any]:
    """Return the data that need no rows, ready for JSON.

    ``leaves`` is the class at each node in preorder, -1 at internal ones, which determines the tree; ``nodes`` has a
    list per fact, one entry per internal node in preorder.
    """
    tree, records = estimator.tree_, getattr(estimator, "node_records_", None)
    nodes = {}
    if records is not None:
        nodes = {name: numbers([getattr(record, field) for record in records]) for name, field in RECORDED.items()}
    return {
        "title": type(estimator).__name__,
        "version": version("margintree"),
        "facts": _facts(estimator),
        "classes": checked_names(class_names, estimator.classes_.tolist()),
        "leaves": tree.leaf_class.tolist(),
        "nodes": nodes,
        "features": _features(estimator, feature_names),
    }


def numbers(values: Any, digits: int = 4) -> list[float | None]:
    """Return numbers rounded to so many significant digits; None for missing ones."""
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in np.asarray(values).tolist()]


def _facts(estimator: Any) -> list[tuple[str, str]]:
    parameters = estimator.get_params()
    facts = [(name, one_line(parameters[name])[:40]) for name in SHOWN_PARAMETERS if name in parameters]
    if hasattr(estimator, "decide_"):
        facts.append(("decide", estimator.decide_))
    n_trees = len(getattr(estimator, "trees_", [None]))
    if n_trees > 1:
        facts.append(("trees", f"the first of {n_trees} is shown"))
    return facts


def _features(estimator: Any, feature_names: Any) -> dict[str, Any] | None:
    """Return the features with the largest weights of each side; None for machines without weights.

    ``left`` and ``right`` have a list per internal node: the number of a name, its weight, the next, and so on.
    """
    names, model = feature_names_of(feature_names, estimator), estimator._model
    if not isinstance(model, LinearTree | ProbabilityTree):
        return None
    sides: dict[str, list[list[float | None]]] = {"left": [], "right": []}
    places: dict[int, int] = {}
    for node in estimator.tree_.internal_nodes.tolist():
        columns, weights = _weights(model, node)
        for side, sign in (("left", 1.0), ("right", -1.0)):
            chosen = _largest(sign * weights)
            numbered = [places.setdefault(column, len(places)) for column in columns[chosen].tolist()]
            pairs = zip(numbered, numbers(np.abs(weights[chosen]), 3), strict=True)
            sides[side].append([number for pair in pairs for number in pair])
    return {"names": [feature_name(names, column) for column in places], **sides}


def _weights(model: LinearTree | ProbabilityTree, node: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the columns and the weights of a node's machine; positive ones favour the left side."""
    if isinstance(model, ProbabilityTree):
        part = slice(model.start[node], model.start[node + 1])
        return model.columns[part], model.weights[part]
    return model.table.weights(node)


def _largest(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the indices of the largest positive values, the largest first."""
    size = min(N_FEATURES, len(values))
    chosen = np.argpartition(-values, size - 1)[:size] if size else np.empty(0, dtype=np.int64)
    chosen = chosen[values[chosen] > 0.0]
    return chosen[np.lexsort((chosen, -values[chosen]))]
