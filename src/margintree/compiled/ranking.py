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
from margintree.compiled.walk import Forest, all_paths, beam, bounded, keep

BY_PATHS, BY_PAIRS, BY_REST = 0, 1, 2
# Up to here several trees follow all their paths in tens of microseconds.
FEW_CLASSES = 128
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
    n_classes = (roots[1] + 1) // 2
    n_found = _mean_of_lists(listed, size, gap, n_classes, work.tree_classes, work.tree_scores, classes, scores)
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
def workspace(rows, first, last, forest, width, n_classes, size):
    """Return what ``candidates`` writes on for rows ``first:last``."""
    n_trees, follows_all = forest.n_trees, width == 0
    may_follow_all = follows_all or follows_all_for_more(forest)
    return Workspace(
        np.empty(2 * width, dtype=np.int64),
        np.empty(2 * width),
        np.empty(forest.n_nodes if may_follow_all else 0),
        np.empty(n_classes if may_follow_all else 0),
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
def ranked(rows, i, forest, decider, width, gap, n_finalists, n_asked, classes, scores, more, work):
    """Rank the classes of one row; return their number, at least ``n_asked`` of them, and the machines evaluated.

    If there are fewer finalists, other paths supply the rest, with the probability of these paths. ``more`` is a second
    pair of arrays for them. Several trees then follow all paths, if there are few, as for probabilities.
    """
    n_found, n_evaluations = candidates(rows, i, forest, width, gap, n_finalists, classes, scores, work)
    n_evaluations += rank(rows, i, decider, classes, scores, n_found, work.hits)
    if n_found >= n_asked:
        return n_found, n_evaluations
    more_classes, more_scores = more
    n_listed, n_trees, best = n_found, forest.n_trees, scores[0]
    listed = classes[:n_listed].copy()
    more_width = 0 if width == 0 or follows_all_for_more(forest) else max(width, n_asked)
    n_more, count = candidates(
        rows, i, forest, more_width, np.inf, more_classes.shape[0], more_classes, more_scores, work
    )
    share = 1.0
    if n_trees > 1:
        # The paths of one tree have what the listed ones leave. Means of several share it.
        known, whole, class_scores = 0.0, 1.0, work.class_scores
        if more_width == 0:
            highest = class_scores.max()
            whole = np.exp((class_scores - highest) / n_trees).sum()
            for m in range(n_listed):
                known += np.exp((class_scores[listed[m]] - highest) / n_trees)
        else:
            for j in range(n_more):
                known += np.exp(more_scores[j]) if _is_in(listed, more_classes[j]) else 0.0
        rest = 1.0 - known / whole
        # Less than rounding leaves is nothing.
        share = max(0.0, 1.0 - scores[:n_listed].sum()) / rest if rest > 1e-12 else 0.0
    for j in range(n_more):
        if not _is_in(listed, more_classes[j]):
            score = min(share * np.exp(more_scores[j]), BELOW_THE_BEST * best)
            n_found = keep(classes, scores, 0, classes.shape[0], n_found, more_classes[j], score)
    return n_found, n_evaluations + count


@compiled
def follows_all_for_more(forest):
    """Return whether classes beyond the lists of several trees are ranked by all paths."""
    return forest.n_trees > 1 and forest.roots[1] < 2 * FEW_CLASSES


@compiled
def _is_in(items, item):
    found = False
    for m in range(items.shape[0]):
        found = found or items[m] == item
    return found


@compiled
def top(rows, first, last, forest, decider, width, gap, n_classes, n_finalists, classes, scores, n_evaluations):
    """Fill rows ``first:last`` of ``classes`` and ``scores`` with the best classes and their probabilities."""
    rows_, forest_, decider_ = pointers(rows), Forest(*pointers(forest)), Decider(*pointers(decider))
    n_asked = classes.shape[1]
    size = max(n_finalists, n_asked)
    # Finalists may turn out less probable than others: so many of these are listed beside them.
    n_more = min(n_classes, size + n_asked)
    work = workspace(rows_, first, last, forest_, 0 if width == 0 else max(width, n_asked), n_classes, n_more)
    row_classes = np.empty(size, dtype=np.int64)
    row_scores = np.empty(size)
    more = np.empty(n_more, dtype=np.int64), np.empty(n_more)
    for i in range(first, last):
        _, n_evaluations[i] = ranked(
            rows_, i, forest_, decider_, width, gap, n_finalists, n_asked, row_classes, row_scores, more, work
        )
        for j in range(n_asked):
            classes[i, j] = row_classes[j]
            scores[i, j] = row_scores[j]


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
    """Fill rows ``first:last`` of ``result``: candidates as ``top`` has them, the rest by their paths."""
    rows_, forest_, decider_ = pointers(rows), Forest(*pointers(forest)), Decider(*pointers(decider))
    n_classes = result.shape[1]
    roots, n_trees = forest_.roots, forest_.n_trees
    work = workspace(rows_, first, last, forest_, width, n_classes, size)
    row_classes = np.empty(size, dtype=np.int64)
    row_scores = np.empty(size)
    node_scores = np.empty(forest_.n_nodes)
    for i in range(first, last):
        row = result[i]
        row[:] = 0.0
        for t in range(n_trees):
            all_paths(rows_, i, forest_, roots[t], roots[t + 1], node_scores, row, work.hits)
        highest = row.max()
        for k in range(n_classes):
            row[k] = np.exp((row[k] - highest) / n_trees)
        n_found, _ = candidates(rows_, i, forest_, width, gap, size, row_classes, row_scores, work)
        rank(rows_, i, decider_, row_classes, row_scores, n_found, work.hits)
        taken = 0.0
        for j in range(n_found):
            row[row_classes[j]] = 0.0
            taken += row_scores[j]
        rest = row.sum()
        for k in range(n_classes):
            # What is left of the paths may be so small that its reciprocal is not finite.
            share = row[k] / rest * max(0.0, 1.0 - taken) if rest > SMALLEST_REST else 0.0
            row[k] = min(share, BELOW_THE_BEST * row_scores[0])
        for j in range(n_found):
            row[row_classes[j]] = row_scores[j]
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
