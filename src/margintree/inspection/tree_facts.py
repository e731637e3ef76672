"""The facts about every node of a class tree: its classes, rows, margin, and the errors of test rows."""

import heapq
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import column_or_1d

from margintree.class_tree import ClassTree
from margintree.inspection.labels import Names, checked_names, first_names, shortened
from margintree.inspection.layout import TreeLayout

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TreeFacts:
    """A tree with the facts about its nodes; unknown quantities are NaN.

    Attributes
    ----------
    tree : ClassTree
    names : list of str
        One line of text for each class.
    n_classes : ndarray of int, shape (n_nodes,)
        Classes below each node.
    n_rows : ndarray of shape (n_nodes,)
        Rows of these classes: of ``y`` where it is given, else training rows, which leaves do not record.
    margin : ndarray of shape (n_nodes,)
        2 / |w|^2 of the node's machine.
    n_errors : ndarray of shape (n_nodes,)
        Rows that take the wrong side here: the node is the last one on the paths to both the true and the predicted
        class. They sum to the errors of ``predict``.
    accuracy : ndarray of shape (n_nodes,)
        Share of correct decisions at the node, among the rows whose true and predicted classes are both below it.
    confusion_matrix : sparse csr_array of shape (n_classes, n_classes) or None
        Rows of ``y`` by true and predicted class, in the order of ``classes_``.
    """

    tree: ClassTree
    names: list[str]
    n_classes: Index
    n_rows: Array
    margin: Array
    n_errors: Array
    accuracy: Array
    confusion_matrix: sp.csr_array | None = None

    @classmethod
    def of(cls, fitted: Any, class_names: Names | None = None, X: Any = None, y: Any = None) -> "TreeFacts":
        """Return the facts of a fitted estimator with a tree, of a pipeline that ends in one, or of a ``ClassTree``."""
        tree, is_bare = tree_of(fitted), isinstance(fitted, ClassTree)
        if is_bare and not (X is None and y is None):
            raise ValueError("X and y are rows for a fitted estimator to predict. Got them with a ClassTree.")
        labels = [f"class {k}" for k in range(tree.n_classes)] if is_bare else fitted.classes_
        names = checked_names(class_names, labels)
        rows, margin, errors, accuracy = np.full((4, tree.n_nodes), np.nan)
        records = getattr(last_step(fitted), "node_records_", [])
        if len(records):
            margin[tree.internal_nodes] = [record.margin for record in records]
            rows[tree.internal_nodes] = [record.n_rows for record in records]
        if (X is None) != (y is None):
            raise ValueError(f"X and y must be given together. Got only {'X' if y is None else 'y'}.")
        counts = None
        if y is not None:
            predicted = class_numbers(fitted, fitted.predict(X))
            true = class_numbers(fitted, y, len(predicted))
            rows, errors, accuracy = node_errors(tree, true, predicted)
            ones, shape = np.ones(len(true), dtype=np.int64), (tree.n_classes, tree.n_classes)
            counts = sp.coo_array((ones, (true, predicted)), shape=shape).tocsr()
        return cls(tree, names, sums_below(tree, tree.leaf_class >= 0), rows, margin, errors, accuracy, counts)

    def layout(self, max_depth: int | None = None, max_leaves: int | None = None) -> TreeLayout:
        """Return the layout of a drawing in which some groups are collapsed; see ``ends_of``."""
        return TreeLayout.of(self.tree, ends_of(self.tree, max_depth, max_leaves))

    def names_below(self, node: int) -> list[str]:
        """Return the names of the classes below a node, in the order of the tree."""
        below = self.tree.leaf_class[node : self.tree.last_below(node) + 1]
        return [self.names[k] for k in below[below >= 0].tolist()]

    def short_name(self, node: int, length: int) -> str:
        """Return the name of a leaf, or a group's first classes and their number, in about ``length`` characters."""
        names = self.names_below(node)
        if len(names) == 1:
            return shortened(names[0], length)
        return f"{first_names(names, length - 14)} ({len(names):,} classes)"

    def shading(self) -> tuple[str | None, Array]:
        """Return what the colour of a node shows and its value: the accuracy if there are rows, else the margin."""
        for quantity in ("accuracy", "margin"):
            values: Array = getattr(self, quantity)
            if not np.isnan(values).all():
                return quantity, values
        return None, self.margin


def tree_of(fitted: Any) -> ClassTree:
    """Return the tree of a fitted estimator, or raise an error."""
    if isinstance(fitted, ClassTree):
        return fitted
    estimator = last_step(fitted)
    if hasattr(estimator, "_check_fitted"):
        estimator._check_fitted()
    tree = getattr(estimator, "tree_", None)
    if not isinstance(tree, ClassTree):
        raise TypeError(
            f"Expected a ClassTree or a fitted estimator with a tree over its classes, such as MarginTreeClassifier. "
            f"Got {type(estimator).__name__}."
        )
    return tree


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


def before_last_step(fitted: Any, X: Any, feature_names: Any) -> tuple[Any, Any, Any]:
    """Return the last step of a pipeline, the rows as it receives them, and the names of their features.

    An estimator that is not a pipeline is returned with its arguments. If no names are given, those that the earlier
    steps know are used.
    """
    tree_of(fitted)
    if isinstance(fitted, ClassTree):
        raise TypeError("Expected a fitted estimator or a pipeline that ends in one. Got a ClassTree.")
    if len(getattr(fitted, "steps", ())) < 2:
        return last_step(fitted), X, feature_names
    before = fitted[:-1]
    names = before if feature_names is None else feature_names
    return last_step(fitted), None if X is None else before.transform(X), names


def class_numbers(fitted: Any, labels: Any, n_rows: int | None = None) -> Index:
    """Return the index of each label in ``classes_``; ``n_rows`` is how many labels there must be."""
    labels = column_or_1d(labels).tolist()
    if n_rows is not None and len(labels) != n_rows:
        raise ValueError(f"X and y must have the same number of rows. Got {n_rows} and {len(labels)}.")
    number = {label: k for k, label in enumerate(fitted.classes_.tolist())}
    if unknown := [label for label in labels if label not in number]:
        raise ValueError(
            f"y must contain only classes that the model was fitted with, such as {fitted.classes_.tolist()[0]!r}. Got "
            f"{len(unknown)} labels of other classes or types; the first is {unknown[0]!r}."
        )
    return np.array([number[label] for label in labels], dtype=np.int64)


def node_errors(tree: ClassTree, true: Index, predicted: Index) -> tuple[Array, Array, Array]:
    """Return for each node the rows of its classes, those that take the wrong side there, and the accuracy."""
    leaf = tree.leaf_of_class.astype(np.int64)
    parting = np.bincount(lowest_common(tree.parent, leaf[true], leaf[predicted]), minlength=tree.n_nodes)
    errors = np.where(tree.leaf_class < 0, parting, 0).astype(np.float64)
    reached = sums_below(tree, parting)
    accuracy = np.divide(reached - errors, reached, out=np.full(tree.n_nodes, np.nan), where=reached > 0)
    rows = sums_below(tree, np.bincount(leaf[true], minlength=tree.n_nodes))
    return rows.astype(np.float64), errors, accuracy


def sums_below(tree: ClassTree, values: npt.NDArray[Any]) -> Index:
    """Return the sum of whole numbers over the subtree of each node."""
    total = np.concatenate([[0], np.cumsum(values)])
    end = np.array([tree.last_below(node) + 1 for node in range(tree.n_nodes)])
    return np.asarray(total[end] - total[:-1], dtype=np.int64)


def lowest_common(parent: npt.NDArray[Any], one: Index, other: Index) -> Index:
    """Return the last common node on the paths to pairs of nodes, which are numbered in preorder.

    Examples
    --------
    >>> tree = ClassTree.from_nested(((0, 1), 2))
    >>> lowest_common(tree.parent, np.array([2, 2]), np.array([3, 4])).tolist()
    [1, 0]
    """
    one, other = one.copy(), other.copy()
    apart = np.flatnonzero(one != other)
    while len(apart):
        # A parent has a smaller number than its children, so the larger of two different nodes is not the common one.
        larger = one[apart] > other[apart]
        one[apart[larger]] = parent[one[apart[larger]]]
        other[apart[~larger]] = parent[other[apart[~larger]]]
        apart = apart[one[apart] != other[apart]]
    return one


def ends_of(tree: ClassTree, max_depth: int | None = None, max_leaves: int | None = None) -> list[int]:
    """Return the nodes at which a drawing ends, in preorder: leaves, and subtrees that are collapsed.

    Groups at ``max_depth`` are collapsed. With ``max_leaves`` the largest group is expanded first, until there are that
    many ends.

    Examples
    --------
    >>> ends_of(ClassTree.from_nested((((0, 1), 2), 3)), max_leaves=3)
    [2, 5, 6]
    """
    for name, value, least in (("max_depth", max_depth, 0), ("max_leaves", max_leaves, 1)):
        if value is not None and operator.index(value) < least:
            raise ValueError(f"{name} must be None or an int >= {least}. Got {value}.")
    size = sums_below(tree, tree.leaf_class >= 0).tolist()
    ends: list[int] = []
    groups = [(-size[0], 0)]
    while groups and (max_leaves is None or len(ends) + len(groups) < max_leaves):
        _, node = heapq.heappop(groups)
        if tree.is_leaf(node) or (max_depth is not None and tree.depth[node] >= max_depth):
            ends.append(node)
        else:
            for child in (int(tree.children_left[node]), int(tree.children_right[node])):
                heapq.heappush(groups, (-size[child], child))
    return sorted([*ends, *(node for _, node in groups)])
