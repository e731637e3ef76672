"""What a conditional probability tree needs to continue learning.

The nodes of a growing tree are numbered in the order of creation. The class tree has their structure, so only their
numbers are stored. The regressors are stored as columns, weights and squared gradients of each node; their hash tables
are rebuilt when learning continues.
"""

import numpy as np
import numpy.typing as npt

from margintree.class_tree import ClassTree
from margintree.model_file.errors import ModelFileError
from margintree.model_file.sections import Input, Output
from margintree.solvers.online import OnlineRegressors, StoredRegressors
from margintree.structures.stream_tree import StreamTree

Index = npt.NDArray[np.int64]


def put_state(out: Output, tree: StreamTree, regressors: OnlineRegressors, class_of_label: Index) -> None:
    """Store a growing tree, its regressors, and the class of each label in the order of arrival."""
    _, number = tree.class_tree(class_of_label)
    stored = regressors.stored(len(number))
    out.array("number", number)
    out.array("class_of_label", class_of_label)
    out.fact("alpha", float(tree.alpha))
    out.fact("learning_rate", float(regressors.learning_rate))
    out.fact("fit_intercept", bool(regressors.fit_intercept))
    # Earlier readers require it; True meant another layout of the weights.
    out.fact("is_dense", False)
    for name in ("scale", "totals", "columns", "state"):
        out.array(name, getattr(stored, name))
    out.array("n_columns", np.diff(stored.start))


def take_state(source: Input, tree: ClassTree, n_features: int) -> tuple[StreamTree, OnlineRegressors, Index]:
    """Return what ``put_state`` stored, for a class tree that has been checked."""
    number = source.permutation("number", tree.n_nodes)
    if number[0] != 0:
        raise ModelFileError("the root of its growing tree is not the node that came first")
    class_of_label = source.permutation("class_of_label", tree.n_classes)
    alpha, rate = source.number("alpha", 0.0), source.number("learning_rate", 0.0)
    if alpha > 1.0:
        raise ModelFileError(f"its alpha is {alpha}, expected a number from 0 to 1")
    columns = source.indices("columns", n_features + 1, None)
    start = source.starts("n_columns", tree.n_nodes, len(columns))
    ascends = np.diff(columns) > 0
    # Columns ascend within a node only.
    ascends[start[(start > 0) & (start < len(columns))] - 1] = True
    if not ascends.all():
        raise ModelFileError("the regressors of its nodes have columns that do not ascend")
    stored = StoredRegressors(
        source.finite("scale", n_features + 1),
        source.finite("totals", 2),
        start,
        columns,
        source.array("state", np.float64, len(columns), 2),
    )
    source.boolean("is_dense")
    regressors = OnlineRegressors.from_stored(stored, learning_rate=rate, fit_intercept=source.boolean("fit_intercept"))
    return StreamTree.from_class_tree(tree, number, class_of_label, alpha), regressors, class_of_label
