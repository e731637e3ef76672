"""Decision values and probabilities at the nodes between the root and given leaves."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import expit

from margintree.prediction import ranker
from margintree.prediction.probability_tree import ProbabilityTree

# Pairs of a row and a node whose sparse rows are multiplied at once.
BLOCK_PAIRS = 2**16

Index = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


def path_values(estimator: Any, rows: Any, leaves: Index) -> tuple[Index, Index, Values]:
    """Return the nodes above the given leaf of each row, and the decision values there; a positive one means left."""
    model, tree = estimator._model, estimator.tree_
    start, above = tree.paths(leaves)
    node, value = above.astype(np.int64), np.empty(len(above))
    if isinstance(model, ProbabilityTree):
        arrays = (model.weights, model.columns, model.start)
        weights = sp.csr_array(arrays, shape=(tree.n_nodes, model.n_features))
        row, rows = np.repeat(np.arange(len(leaves)), np.diff(start)), sp.csr_array(rows)
        for first in range(0, len(node), BLOCK_PAIRS):
            part = slice(first, first + BLOCK_PAIRS)
            products = rows[row[part]].multiply(weights[node[part]]).sum(axis=1)
            value[part] = products + model.intercepts[node[part]]
        return start, node, value
    ranker.path_values(model, rows, leaves, tree.parent.astype(np.int64), start, value)
    return start, node, value


def side_probability(estimator: Any, node: Index, value: Values, sign: Any = 1.0) -> Values | None:
    """Return the probability of a side, the left one where the sign is 1; None if nodes are not calibrated."""
    model = estimator._model
    if isinstance(model, ProbabilityTree):
        return np.asarray(np.clip(0.5 + sign * value, 0.0, 1.0))
    if model.sigmoids is None:
        return None
    return np.asarray(expit(sign * (model.sigmoids.slope[node] * value + model.sigmoids.shift[node])))
