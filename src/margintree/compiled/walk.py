"""Walk rows down trees of linear machines: greedily, with a beam, or along all paths.

The machine of node i has the value f = scale[i] * (its inner product) + intercept[i]; a positive one
means left. Its calibrated log odds are slope[i] * f + shift[i], and the score of a path is the sum of
the log probabilities on it.
"""

from typing import Any, NamedTuple

import numpy as np

from margintree.compiled.compile import compiled
from margintree.compiled.pointers import pointers
from margintree.compiled.tables import room_for_hits, table_dot

# Sums over paths of larger values would not be finite.
LARGEST_VALUE = 1e100


class Forest(NamedTuple):
    """Trees over the same classes, tree t having the nodes ``roots[t]:roots[t + 1]``.

    Compiled code is called with a plain tuple of these, which takes half the time to hand over.
    """

    roots: Any
    left: Any
    right: Any
    leaf_class: Any
    table: Any
    scale: Any
    intercept: Any
    slope: Any
    shift: Any
    n_trees: Any
    n_nodes: Any


@compiled
def bounded(value):
    """Return a finite decision value: products of huge finite features may be infinite, or NaN."""
    if np.isnan(value):
        return 0.0
    return min(max(value, -LARGEST_VALUE), LARGEST_VALUE)


@compiled
def machine_value(rows, i, forest, node, hits):
    """Return the decision value of one node for one row."""
    return bounded(forest.scale[node] * table_dot(rows, i, forest.table, node, hits) + forest.intercept[node])


@compiled
def log_probability(log_odds):
    """Return the logarithm of the sigmoid, accurate at both ends."""
    return min(log_odds, 0.0) - np.log1p(np.exp(-abs(log_odds)))


@compiled
def greedy(rows, first, last, forest, leaves):
    """Fill ``leaves[first:last]`` with the leaf that each row reaches by the sign of the machines."""
    rows_, forest_ = pointers(rows), Forest(*pointers(forest))
    root, left, right = forest_.roots[0], forest_.left, forest_.right
    hits = room_for_hits(rows_, forest_.table, first, last)
    for i in range(first, last):
        node = root
        while left[node] >= 0:
            node = left[node] if machine_value(rows_, i, forest_, node, hits) > 0.0 else right[node]
        leaves[i] = node


@compiled
def path_values(rows, row_index, leaves, parent, forest, start, values):
    """Fill the decision values on the path from each row's given leaf up to the root, the leaf's parent first."""
    rows_, forest_ = pointers(rows), Forest(*pointers(forest))
    for r in range(row_index.shape[0]):
        hits = room_for_hits(rows_, forest_.table, row_index[r], row_index[r] + 1)
        position = start[r]
        node = parent[leaves[r]]
        while node >= 0:
            values[position] = machine_value(rows_, row_index[r], forest_, node, hits)
            position += 1
            node = parent[node]


@compiled
def keep(items, scores, base, size, n_kept, new_item, new_score):
    """Insert an item into a list of the best, highest score first; return the list's new length.

    The list has room for ``size`` and begins at ``base``. Equal scores are ordered by item, so that the outcome does
    not depend on the order of insertion.
    """
    if n_kept == size:
        if not _is_before(new_score, new_item, scores[base + size - 1], items[base + size - 1]):
            return n_kept
        n_kept -= 1
    position = base + n_kept
    while position > base and _is_before(new_score, new_item, scores[position - 1], items[position - 1]):
        scores[position], items[position] = scores[position - 1], items[position - 1]
        position -= 1
    scores[position], items[position] = new_score, new_item
    return n_kept + 1


@compiled
def _is_before(score, item, other_score, other_item):
    return score > other_score or (score == other_score and item < other_item)


@compiled
def beam(rows, i, forest, root, width, gap, classes, scores, base, size, work):
    """Keep the ``width`` most probable nodes of each level; list the best leaves that they lead to.

    A node or leaf is dropped as well when the score of its path lies more than ``gap`` below the best one. The list has
    room for ``size`` classes and begins at ``base``. The nodes and scores of ``work`` hold this level and the next,
    ``width`` each. Returns how many leaves were listed and how many machines were evaluated.
    """
    left, right, leaf_class, slope, shift = forest.left, forest.right, forest.leaf_class, forest.slope, forest.shift
    work_nodes, work_scores, hits = work.nodes, work.scores, work.hits
    n_found, n_evaluations = 0, 0
    if left[root] < 0:
        return keep(classes, scores, base, size, n_found, leaf_class[root], 0.0), 0
    now, after, n_now = 0, width, 1
    work_nodes[0], work_scores[0] = root, 0.0
    while n_now > 0:
        n_next = 0
        lowest = max(work_scores[now], scores[base] if n_found > 0 else -np.inf) - gap
        for b in range(now, now + n_now):
            node, score = work_nodes[b], work_scores[b]
            # Scores only fall on the way down: what lies below this node cannot enter a full list either.
            if score < lowest or (n_found == size and score < scores[base + size - 1]):
                break
            log_odds = slope[node] * machine_value(rows, i, forest, node, hits) + shift[node]
            n_evaluations += 1
            to_left = log_probability(log_odds)
            for side in range(2):
                child = left[node] if side == 0 else right[node]
                child_score = score + (to_left if side == 0 else to_left - log_odds)
                if left[child] < 0:
                    n_found = keep(classes, scores, base, size, n_found, leaf_class[child], child_score)
                else:
                    n_next = keep(work_nodes, work_scores, after, width, n_next, child, child_score)
        now, after, n_now = after, now, n_next
    while scores[base + n_found - 1] < scores[base] - gap:
        n_found -= 1
    return n_found, n_evaluations


@compiled
def all_paths(rows, i, forest, root, stop, node_scores, class_scores, hits):
    """Add the score of every leaf of the tree at nodes ``root:stop`` to its class; return the evaluations."""
    left, right, leaf_class, slope, shift = forest.left, forest.right, forest.leaf_class, forest.slope, forest.shift
    n_evaluations = 0
    node_scores[root] = 0.0
    # Preorder: a parent comes before its children.
    for node in range(root, stop):
        if left[node] < 0:
            class_scores[leaf_class[node]] += node_scores[node]
            continue
        log_odds = slope[node] * machine_value(rows, i, forest, node, hits) + shift[node]
        n_evaluations += 1
        to_left = log_probability(log_odds)
        node_scores[left[node]] = node_scores[node] + to_left
        node_scores[right[node]] = node_scores[node] + to_left - log_odds
    return n_evaluations
