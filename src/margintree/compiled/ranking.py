"""Rank the classes of a row: the tree nominates finalists, then a decider ranks them.

Pairs are coupled as by Price, Knerr, Personnaz and Dreyfus (1995): with r_ij = 1 / (1 + exp(-f_ij)) the probability
that i wins against j, p_i is proportional to 1 / (sum_j 1 / r_ij - (k - 2)) = 1 / (1 + sum_j exp(-f_ij)). f_ij is slope
times the value of the machine, or the difference of the path scores where no machine was trained. If f_ij = g_i - g_j
this is the softmax of g. The score of a finalist is log p_i + path_weight * path score.

The total probability of the finalists' paths is divided among them by the softmax of their scores.
"""

from typing import Any, NamedTuple

import numpy as np

from margintree.compiled.compile import compiled
from margintree.compiled.pointers import pointers
from margintree.compiled.tables import room_for_hits, table_dot
from margintree.compiled.walk import Forest, all_paths, beam, bounded, keep, log_probability, machine_value

BY_PATHS, BY_PAIRS, BY_REST = 0, 1, 2
# exp of it is far from overflow, and sums of many as well.
LARGEST_EXPONENT = 600.0
SMALLEST_REST = 1e-290
# Log odds at which a finalist loses clearly to another.
CLEARLY = 3.0
# A beam may miss a path. What was not nominated does not win all the same: the most probable class is the winner.
BELOW_THE_BEST = 0.999


class Decider(NamedTuple):
    """Machine m is number ``first + m`` of the table and has the value scale * (its inner product) + intercept.

    - ``BY_PATHS`` leaves the path scores as they are;
    - ``BY_PAIRS`` has a machine for pairs of classes. Those of class a with the larger classes
      ``pair_other[pair_start[a]:pair_start[a + 1]]``, sorted, are the machines of these places. A positive value means
      a;
    - ``BY_REST`` has machine k for class k, whose score is slope * (path_weight * path score + value).
    """

    kind: Any
    table: Any
    scale: Any
    intercept: Any
    first: Any
    path_weight: Any
    slope: Any
    pair_start: Any
    pair_other: Any


class Workspace(NamedTuple):
    """The arrays that ``candidates`` writes on; one set serves many rows."""

    nodes: Any
    scores: Any
    node_scores: Any
    class_scores: Any
    tree_classes: Any
    tree_scores: Any
    hits: Any


@compiled
def candidates(rows, i, forest, width, gap, size, classes, scores, work):
    """List the best ``size`` classes of one row by path score; return their number and the machines evaluated.

    ``width`` 0 follows all paths. Several trees count by the mean of their path scores; a class that one of them did
    not list gets the lowest score on that list, or the end of the gap if there was room, which is about its upper
    bound. Means of logarithms are not a distribution: they are shifted, so that the listed classes have the mean total
    probability of the lists, and all classes 1.
    """
    roots, n_trees, n_evaluations = forest.roots, forest.n_trees, 0
    if width > 0 and n_trees == 1:
        # A literal 0 would be compiled apart from other numbers.
        base = np.int64(0)
        return beam(rows, i, forest, roots[0], width, gap, classes, scores, base, size, work)
    class_scores = work.class_scores
    class_scores[:] = 0.0
    if width == 0:
        for t in range(n_trees):
            n_evaluations += all_paths(
                rows, i, forest, roots[t], roots[t + 1], work.node_scores, class_scores, work.hits
            )
        highest, shift = 0.0, 0.0
        if n_trees > 1:
            # Where trees contradict each other all means may be so low that only their differences can be told.
            highest = class_scores.max()
            shift = np.log(np.exp((class_scores - highest) / n_trees).sum())
        n_found = 0
        for k in range(class_scores.shape[0]):
            n_found = keep(classes, scores, 0, size, n_found, k, (class_scores[k] - highest) / n_trees - shift)
        while scores[n_found - 1] < scores[0] - gap:
            n_found -= 1
        return n_found, n_evaluations
    listed = np.empty(n_trees, dtype=np.int64)
    for t in range(n_trees):
        listed[t], count = beam(
            rows, i, forest, roots[t], width, gap, work.tree_classes, work.tree_scores, t * size, size, work
        )
        n_evaluations += count
    n_found = _mean_of_lists(
        listed, size, gap, n_classes_of(forest), work.tree_classes, work.tree_scores, classes, scores
    )
    return n_found, n_evaluations


@compiled
def _mean_of_lists(listed, size, gap, n_classes, tree_classes, tree_scores, classes, scores):
    """Merge the lists of the trees, which have room for ``size`` each; see ``candidates``."""
    n_trees, n_found = listed.shape[0], 0
    for t in range(n_trees):
        for j in range(t * size, t * size + listed[t]):
            k = tree_classes[j]
            # Scores are added as they are, so that classes with the same ones tie exactly.
            total, is_new = 0.0, True
            for u in range(n_trees):
                score = tree_scores[u * size + listed[u] - 1]
                if listed[u] < size and gap < np.inf:
                    # A list that is not full left out what lies below the gap.
                    score = min(score, tree_scores[u * size] - gap)
                for m in range(u * size, u * size + listed[u]):
                    if tree_classes[m] == k:
                        is_new = is_new and u >= t
                        score = tree_scores[m]
                        break
                total += score
            if is_new:
                n_found = keep(classes, scores, 0, size, n_found, k, total / n_trees)
    mass, whole, highest = 0.0, 0.0, scores[0]
    for t in range(n_trees):
        for j in range(t * size, t * size + listed[t]):
            mass += np.exp(tree_scores[j]) / n_trees
    if n_found == n_classes:
        mass = 1.0
    for j in range(n_found):
        whole += np.exp(scores[j] - highest)
    shift = np.log(min(mass, 1.0) / whole)
    for j in range(n_found):
        scores[j] = (scores[j] - highest) + shift
    return n_found


@compiled
def n_classes_of(forest):
    """Return the number of leaves of each tree."""
    return (forest.roots[1] + 1) // 2


@compiled
def workspace(rows, first, last, forest, width, n_classes, size):
    """Return what ``candidates`` writes on for rows ``first:last``."""
    n_trees, follows_all = forest.n_trees, width == 0
    return Workspace(
        np.empty(2 * width, dtype=np.int64),
        np.empty(2 * width),
        np.empty(forest.n_nodes if follows_all else 0),
        np.empty(n_classes if follows_all else 0),
        np.empty(0 if follows_all else n_trees * size, dtype=np.int64),
        np.empty(0 if follows_all else n_trees * size),
        room_for_hits(rows, forest.table, first, last),
    )


@compiled
def machine_of_pair(pair_start, pair_other, one, other):
    """Return the machine between two classes, ``one`` the smaller; -1 if there is none."""
    low, high = pair_start[one], pair_start[one + 1]
    while low < high:
        middle = (low + high) // 2
        if pair_other[middle] < other:
            low = middle + 1
        else:
            high = middle
    return low if low < pair_start[one + 1] and pair_other[low] == other else -1


@compiled
def deciding_value(rows, i, decider, m, hits):
    """Return the value of machine ``m`` of the decider for one row."""
    m += decider.first
    return bounded(decider.scale[m] * table_dot(rows, i, decider.table, m, hits) + decider.intercept[m])


@compiled
def _score_pairs(rows, i, decider, classes, scores, n_found, hits):
    """Replace path scores by log p up to a constant, from the machines between finalists; return their number.

    The most probable path is compared with all others first. A finalist that clearly loses is dropped from later
    comparisons.
    """
    n_asked, slope = 0, decider.slope
    against, is_out = np.zeros(n_found), np.zeros(n_found, dtype=np.bool_)
    for j in range(n_found):
        for m in range(j + 1, n_found):
            if is_out[j] or is_out[m]:
                continue
            one, other = min(classes[j], classes[m]), max(classes[j], classes[m])
            machine = machine_of_pair(decider.pair_start, decider.pair_other, one, other)
            log_odds = scores[j] - scores[m]
            if machine >= 0:
                value = deciding_value(rows, i, decider, machine, hits)
                log_odds = slope * value if one == classes[j] else -slope * value
                n_asked += 1
            log_odds = min(max(log_odds, -LARGEST_EXPONENT), LARGEST_EXPONENT)
            against[j] += np.exp(-log_odds)
            against[m] += np.exp(log_odds)
            is_out[j], is_out[m] = log_odds < -CLEARLY, log_odds > CLEARLY
    for j in range(n_found):
        scores[j] = decider.path_weight * scores[j] - np.log1p(against[j])
    return n_asked


@compiled
def _score_rest(rows, i, decider, classes, scores, n_found, hits):
    """Replace path scores by those of one machine per class; return the number of machines evaluated."""
    for j in range(n_found):
        own = deciding_value(rows, i, decider, classes[j], hits)
        scores[j] = decider.slope * (decider.path_weight * scores[j] + own)
    return n_found


@compiled
def rank(rows, i, decider, classes, scores, n_found, hits):
    """Turn the path scores of the finalists into probabilities, sorted; return the deciding machines evaluated."""
    mass, highest, total, n_asked = 0.0, -np.inf, 0.0, 0
    for j in range(n_found):
        mass += np.exp(scores[j])
    if n_found > 1 and decider.kind == BY_PAIRS:
        n_asked = _score_pairs(rows, i, decider, classes, scores, n_found, hits)
    elif n_found > 1 and decider.kind == BY_REST:
        n_asked = _score_rest(rows, i, decider, classes, scores, n_found, hits)
    for j in range(n_found):
        highest = max(highest, scores[j])
    for j in range(n_found):
        total += np.exp(scores[j] - highest)
    for j in range(n_found):
        probability = min(mass, 1.0) * np.exp(scores[j] - highest) / total
        k = classes[j]
        keep(classes, scores, 0, j + 1, j, k, probability)
    return n_asked


@compiled
def winners(rows, first, last, forest, decider, width, gap, size, classes, n_evaluations):
    """Fill the most probable class of rows ``first:last``, and the machines evaluated."""
    rows_, forest_, decider_ = pointers(rows), Forest(*pointers(forest)), Decider(*pointers(decider))
    work = workspace(rows_, first, last, forest_, width, n_classes_of(forest_), size)
    finalists, scores = np.empty(size, dtype=np.int64), np.empty(size)
    for i in range(first, last):
        n_found, n_evaluations[i] = candidates(rows_, i, forest_, width, gap, size, finalists, scores, work)
        n_evaluations[i] += rank(rows_, i, decider_, finalists, scores, n_found, work.hits)
        classes[i] = finalists[0]


@compiled
def top(rows, first, last, forest, decider, width, gap, size, classes, scores):
    """Fill rows ``first:last`` of ``classes`` and ``scores`` with the best classes and their probabilities.

    They are the largest of ``probabilities``. Means of several trees are known for all classes or none; of one tree
    only the paths are followed that lead to the best classes.
    """
    rows_, forest_, decider_ = pointers(rows), Forest(*pointers(forest)), Decider(*pointers(decider))
    n_asked, n_classes, follows_all = classes.shape[1], n_classes_of(forest_), width == 0 or forest_.n_trees > 1
    work = workspace(rows_, first, last, forest_, width, n_classes, size)
    finalists, finalist_scores = np.empty(size, dtype=np.int64), np.empty(size)
    # Pending nodes of one tree are fewer than its nodes.
    pending, node_scores = np.empty(forest_.n_nodes, dtype=np.int64), np.empty(forest_.n_nodes)
    row = np.empty(n_classes if follows_all else 0)
    for i in range(first, last):
        n_found, _ = candidates(rows_, i, forest_, width, gap, size, finalists, finalist_scores, work)
        rank(rows_, i, decider_, finalists, finalist_scores, n_found, work.hits)
        n_kept = 0
        if follows_all:
            _fill_all(rows_, i, forest_, finalists, finalist_scores, n_found, row, node_scores, work.hits)
            for k in range(n_classes):
                n_kept = keep(classes[i], scores[i], 0, n_asked, n_kept, k, row[k])
            continue
        for j in range(n_found):
            n_kept = keep(classes[i], scores[i], 0, n_asked, n_kept, finalists[j], finalist_scores[j])
        most = BELOW_THE_BEST * finalist_scores[0]
        total = _best_others(
            *(rows_, i, forest_, finalists, n_found, most, classes[i], scores[i], n_kept),
            *(pending, node_scores, work.hits),
        )
        scores[i] /= total


@compiled
def _best_others(rows, i, forest, finalists, n_found, most, classes, scores, n_kept, pending, node_scores, hits):
    """Put classes of one tree that are no finalists among the best; return the sum of all probabilities.

    They have the probability of their path, but not more than ``most``, which may leave the sum below 1. Path
    probabilities only fall on the way down, so that nodes are left out below which all are at most ``most`` and none is
    among the best.
    """
    left, right, slope, shift = forest.left, forest.right, forest.slope, forest.shift
    n_asked, n_pending, total, is_whole = classes.shape[0], 1, 0.0, True
    pending[0], node_scores[0] = forest.roots[0], 0.0
    while n_pending > 0:
        n_pending -= 1
        node, score = pending[n_pending], node_scores[n_pending]
        probability = np.exp(score)
        if n_kept == n_asked and probability <= most and (probability < scores[n_asked - 1] or probability == 0.0):
            total += probability
            continue
        if left[node] < 0:
            k = forest.leaf_class[node]
            if not _is_in(finalists, n_found, k):
                is_whole = is_whole and probability <= most
                probability = min(probability, most)
                n_kept = keep(classes, scores, 0, n_asked, n_kept, k, probability)
            total += probability
            continue
        log_odds = slope[node] * machine_value(rows, i, forest, node, hits) + shift[node]
        to_left = log_probability(log_odds)
        # The more probable side is followed first.
        for side in range(2):
            is_left = (side == 0) == (log_odds <= 0.0)
            pending[n_pending] = left[node] if is_left else right[node]
            node_scores[n_pending] = score + (to_left if is_left else to_left - log_odds)
            n_pending += 1
    return 1.0 if is_whole else total


@compiled
def _is_in(items, n_items, item):
    found = False
    for m in range(n_items):
        found = found or items[m] == item
    return found


@compiled
def paths_of(rows, forest, width, gap, n_classes, classes, scores):
    """Fill the candidates of all rows and their path scores, without a decider."""
    rows_, forest_, n_rows = pointers(rows), Forest(*pointers(forest)), classes.shape[0]
    work = workspace(rows_, 0, n_rows, forest_, width, n_classes, classes.shape[1])
    for i in range(n_rows):
        n_found, _ = candidates(rows_, i, forest_, width, gap, classes.shape[1], classes[i], scores[i], work)
        for j in range(n_found, classes.shape[1]):
            classes[i, j] = -1
            scores[i, j] = -np.inf


@compiled
def probabilities(rows, first, last, forest, decider, width, gap, size, result):
    """Fill rows ``first:last`` of ``result``: finalists by their rank, the rest by their paths."""
    rows_, forest_, decider_ = pointers(rows), Forest(*pointers(forest)), Decider(*pointers(decider))
    work = workspace(rows_, first, last, forest_, width, result.shape[1], size)
    finalists, scores, node_scores = np.empty(size, dtype=np.int64), np.empty(size), np.empty(forest_.n_nodes)
    for i in range(first, last):
        n_found, _ = candidates(rows_, i, forest_, width, gap, size, finalists, scores, work)
        rank(rows_, i, decider_, finalists, scores, n_found, work.hits)
        _fill_all(rows_, i, forest_, finalists, scores, n_found, result[i], node_scores, work.hits)


@compiled
def _fill_all(rows, i, forest, finalists, scores, n_found, row, node_scores, hits):
    """Fill the probability of every class: the finalists have theirs, others share what is left by their paths."""
    roots, n_trees, n_classes = forest.roots, forest.n_trees, row.shape[0]
    row[:] = 0.0
    for t in range(n_trees):
        all_paths(rows, i, forest, roots[t], roots[t + 1], node_scores, row, hits)
    highest, taken = row.max(), 0.0
    for k in range(n_classes):
        row[k] = np.exp((row[k] - highest) / n_trees)
    for j in range(n_found):
        row[finalists[j]] = 0.0
        taken += scores[j]
    rest = row.sum()
    for k in range(n_classes):
        # What is left of the paths may be so small that its reciprocal is not finite.
        share = row[k] / rest * max(0.0, 1.0 - taken) if rest > SMALLEST_REST else 0.0
        row[k] = min(share, BELOW_THE_BEST * scores[0])
    for j in range(n_found):
        row[finalists[j]] = scores[j]
    row /= row.sum()


@compiled
def decided(rows, decider, classes, scores):
    """Replace the path scores of the finalists of each row (padded with -1) by the scores of the decider."""
    rows_, decider_ = pointers(rows), Decider(*pointers(decider))
    for i in range(classes.shape[0]):
        n_found = 0
        while n_found < classes.shape[1] and classes[i, n_found] >= 0:
            n_found += 1
        hits = room_for_hits(rows_, decider_.table, i, i + 1)
        if decider_.kind == BY_PAIRS:
            _score_pairs(rows_, i, decider_, classes[i], scores[i], n_found, hits)
        elif decider_.kind == BY_REST:
            _score_rest(rows_, i, decider_, classes[i], scores[i], n_found, hits)


@compiled
def machine_values(rows, row_index, machines, decider, result):
    """Fill the value of one machine of the decider for each of some rows."""
    rows_, decider_ = pointers(rows), Decider(*pointers(decider))
    for j in range(row_index.shape[0]):
        hits = room_for_hits(rows_, decider_.table, row_index[j], row_index[j] + 1)
        result[j] = deciding_value(rows_, row_index[j], decider_, machines[j], hits)
