"""Conversion of class trees for other libraries: a networkx graph and SciPy's linkage matrix."""

from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.inspection.labels import Names
from margintree.inspection.layout import TreeLayout
from margintree.inspection.tree_facts import TreeFacts, ends_of, sums_below, tree_of


def to_networkx(estimator: Any, *, class_names: Names | None = None) -> Any:
    """Return the class tree as a directed graph, from the root to the leaves.

    Parameters
    ----------
    estimator : MarginTreeClassifier, another fitted estimator with a tree, a pipeline that ends in one, or ClassTree
    class_names : sequence of length n_classes, default=None
        Names for the attribute ``label``, instead of the labels.

    Returns
    -------
    networkx.DiGraph
        Nodes are numbered as in ``tree_``. All have ``n_classes``; leaves also have ``class_index`` and ``label``, and
        internal nodes ``margin`` and ``n_rows`` if these are known. Edges have ``side``, "left" or "right".

    Examples
    --------
    >>> from margintree import ClassTree
    >>> from margintree.inspection import to_networkx
    >>> graph = to_networkx(ClassTree.from_nested((0, (2, 1))), class_names=["cat", "dog", "fox"])
    >>> sorted(graph.edges)
    [(0, 1), (0, 2), (2, 3), (2, 4)]
    >>> graph.nodes[3]
    {'n_classes': 1, 'class_index': 2, 'label': 'fox'}
    """
    try:
        import networkx
    except ImportError as error:
        raise ImportError("to_networkx needs networkx. Install it with: pip install networkx") from error
    facts = TreeFacts.of(estimator, class_names)
    tree, graph = facts.tree, networkx.DiGraph()
    for node in range(tree.n_nodes):
        attributes: dict[str, Any] = {"n_classes": int(facts.n_classes[node])}
        if tree.is_leaf(node):
            k = int(tree.leaf_class[node])
            attributes |= {"class_index": k, "label": facts.names[k]}
        elif not np.isnan(facts.margin[node]):
            attributes |= {"margin": float(facts.margin[node]), "n_rows": int(facts.n_rows[node])}
        graph.add_node(node, **attributes)
    for node in tree.internal_nodes.tolist():
        graph.add_edge(node, int(tree.children_left[node]), side="left")
        graph.add_edge(node, int(tree.children_right[node]), side="right")
    return graph


def to_linkage(estimator: Any, *, height: str = "size") -> npt.NDArray[np.float64]:
    """Return the class tree as SciPy's linkage matrix, which ``scipy.cluster.hierarchy.dendrogram`` draws.

    Parameters
    ----------
    estimator : MarginTreeClassifier, another fitted estimator with a tree, a pipeline that ends in one, or ClassTree
    height : {"size", "levels"}, default="size"
        The distance at which the two sides of a node are joined. "size" is the base-2 logarithm of the number of
        classes, which is the number of levels in a balanced tree; "levels" is the number of edges down to the deepest
        leaf.

    Returns
    -------
    ndarray of shape (n_classes - 1, 4)
        Observation k is class k, and the leaves of the dendrogram come in the order of the tree.

    Examples
    --------
    >>> from margintree import ClassTree
    >>> from margintree.inspection import to_linkage
    >>> to_linkage(ClassTree.from_nested((0, (2, 1))), height="levels")
    array([[2., 1., 1., 2.],
           [0., 3., 2., 3.]])
    """
    tree = tree_of(estimator)
    size = sums_below(tree, tree.leaf_class >= 0)
    if height == "size":
        heights = np.log2(size)
    elif height == "levels":
        level = TreeLayout.of(tree, ends_of(tree)).level
        heights = np.array([level[node] for node in range(tree.n_nodes)])
    else:
        raise ValueError(f"height must be one of 'size', 'levels'. Got {height!r}.")
    internal = tree.internal_nodes.astype(np.int64)
    # A parent is higher than its children, so sorting by height puts the children first.
    order = internal[np.lexsort((-internal, heights[internal]))]
    cluster = tree.leaf_class.astype(np.int64)
    cluster[order] = tree.n_classes + np.arange(len(order))
    sides = cluster[tree.children_left[order]], cluster[tree.children_right[order]]
    return np.column_stack([*sides, heights[order], size[order]]).astype(np.float64)
