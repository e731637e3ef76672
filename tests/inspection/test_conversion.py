"""Trees as graphs of networkx and as linkages of SciPy."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import cophenet, dendrogram, is_valid_linkage, leaves_list
from scipy.spatial.distance import squareform

from margintree import ClassTree
from margintree.inspection import to_linkage, to_networkx
from margintree.structures.random_tree import random_tree


def test_the_graph_is_the_tree(digits):
    model, _, _ = digits
    graph, tree = to_networkx(model), model.tree_
    assert nx.is_arborescence(graph)
    assert graph.number_of_nodes() == tree.n_nodes
    for node in tree.internal_nodes.tolist():
        sides = {data["side"]: child for _, child, data in graph.out_edges(node, data=True)}
        assert sides == {"left": tree.children_left[node], "right": tree.children_right[node]}
        below = [graph.nodes[d]["class_index"] for d in nx.descendants(graph, node) if "class_index" in graph.nodes[d]]
        assert sorted(below) == tree.classes_below(node).tolist()
        assert graph.nodes[node]["n_classes"] == len(below)
    assert graph.nodes[0]["margin"] == model.node_records_[0].margin
    assert graph.nodes[0]["n_rows"] == 500


@given(st.integers(2, 40), st.integers(0, 1000), st.sampled_from(["size", "levels"]))
def test_a_linkage_has_the_groups_and_the_order_of_the_tree(n_classes, seed, height):
    tree = random_tree(n_classes, seed)
    Z = to_linkage(tree, height=height)
    assert is_valid_linkage(Z, throw=True)
    assert leaves_list(Z).tolist() == tree.leaf_class[tree.leaf_class >= 0].tolist()
    distance = squareform(cophenet(Z))
    for node in tree.internal_nodes.tolist():
        left = tree.classes_below(int(tree.children_left[node]))
        right = tree.classes_below(int(tree.children_right[node]))
        size = len(left) + len(right)
        between = np.unique(distance[np.ix_(left, right)])
        assert len(between) == 1
        if height == "size":
            assert between[0] == pytest.approx(np.log2(size))


def test_scipy_draws_the_model(digits):
    drawn = dendrogram(to_linkage(digits[0]), no_plot=True)
    leaf_class = digits[0].tree_.leaf_class
    assert drawn["leaves"] == leaf_class[leaf_class >= 0].tolist()


def test_an_unknown_height_is_refused():
    with pytest.raises(ValueError, match=r"height must be one of 'size', 'levels'\. Got 'margin'"):
        to_linkage(ClassTree.from_nested((0, 1)), height="margin")
