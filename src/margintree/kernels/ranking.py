"""Rank the classes of a row: candidates from the trees, then scorers of the leaves among them.

``scorers`` is the tuple ``(table, scale, intercept, path_weight, temperature, n_scorers)``: candidate k
gets the score path_weight * (its path score) + scale[k] * (its inner product) + intercept[k]. Where there
are no scorers the path score ranks by itself.

Candidates share the probability that their paths have together; within it they get parts by the
softmax of their scores times the temperature.
"""

import numpy as np

from margintree.kernels.compile import compiled
from margintree.kernels.pointers import pointers
from margintree.kernels.tables import room_for_hits, table_dot
from margintree.kernels.walk import all_paths, beam, keep

# Up to here several trees follow all their paths in tens of microseconds.
FEW_CLASSES = 128


@compiled
def candidates(rows, i, forest, width, gap, classes, scores, work):
    """List the best classes of one row by path score; return their number and the machines evaluated.

    ``width`` 0 follows all paths. Several trees count by the mean of their path scores; a class that one of
    them did not list gets the lowest score on that list, or the end of the gap if there was room, above which it
    hardly is. Means of logarithms are those of no distribution: they are shifted, so that the classes have together the
    probability that the lists have on average, and all classes 1.
    """
    work_nodes, work_scores, node_scores, class_scores, tree_classes, tree_scores, hits = work
    roots = forest[0]
    n_trees = forest[9]
    n_evaluations, size = 0, classes.shape[0]
    if width > 0 and n_trees == 1:
        return beam(rows, i, forest, roots[0], width, gap, classes, scores, 0, size, work_nodes, work_scores, hits)
    class_scores[:] = 0.0
    if width == 0:
        for t in range(n_trees):
            n_evaluations += all_paths(rows, i, forest, roots[t], roots[t + 1], node_scores, class_scores, hits)
        shift = 0.0
        if n_trees > 1:
            # Where trees contradict each other all means may be so low that only their differences can be told.
            highest = class_scores.max()
            shift = (highest / n_trees) + np.log(np.exp((class_scores - highest) / n_trees).sum())
        n_found = 0
        for k in range(class_scores.shape[0]):
            n_found = keep(classes, scores, 0, size, n_found, k, class_scores[k] / n_trees - shift)
        return n_found, n_evaluations
    listed = np.empty(n_trees, dtype=np.int64)
    for t in range(n_trees):
        listed[t], count = beam(
            rows,
            i,
            forest,
            roots[t],
            width,
            gap,
            tree_classes,
            tree_scores,
            t * size,
            size,
            work_nodes,
            work_scores,
            hits,
        )
        n_evaluations += count
    n_classes = (roots[1] + 1) // 2
    return _mean_of_lists(listed, size, gap, n_classes, tree_classes, tree_scores, classes, scores), n_evaluations


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
    shift = np.log(min(mass, 1.0) / whole) - highest
    for j in range(n_found):
        scores[j] += shift
    return n_found


@compiled
def workspace(rows, first, last, forest, width, n_classes, size):
    """Return the arrays that ``candidates`` writes on; one set serves many rows."""
    n_trees = forest[9]
    follows_all = width == 0
    may_follow_all = follows_all or follows_all_for_more(forest)
    return (
        np.empty(2 * width, dtype=np.int64),
        np.empty(2 * width),
        np.empty(forest[10] if may_follow_all else 0),
        np.empty(n_classes if may_follow_all else 0),
        np.empty(0 if follows_all else n_trees * size, dtype=np.int64),
        np.empty(0 if follows_all else n_trees * size),
        room_for_hits(rows, forest[4], first, last),
    )


@compiled
def rank(rows, i, scorers, classes, scores, n_found, hits):
    """Turn the path scores of the candidates into probabilities, sorted; return the scorers evaluated."""
    table, scale, intercept, path_weight, temperature, n_scorers = scorers
    mass, highest = 0.0, -np.inf
    n_scored = n_found if n_scorers > 0 else 0
    for j in range(n_found):
        mass += np.exp(scores[j])
        if n_scored > 0:
            k = classes[j]
            own = scale[k] * table_dot(rows, i, table, k, hits) + intercept[k]
            scores[j] = temperature * (path_weight * scores[j] + own)
        highest = max(highest, scores[j])
    total = 0.0
    for j in range(n_found):
        total += np.exp(scores[j] - highest)
    for j in range(n_found):
        probability = min(mass, 1.0) * np.exp(scores[j] - highest) / total
        k = classes[j]
        keep(classes, scores, 0, j + 1, j, k, probability)
    return n_scored


@compiled
def ranked(rows, i, forest, scorers, width, gap, n_asked, classes, scores, more, work):
    """Rank the classes of one row; return their number, at least ``n_asked`` of them, and the machines evaluated.

    Where the gap leaves fewer, paths beyond it give the others, with the probability that the paths have. ``more``
    is a second pair of arrays for them. Several trees follow all paths then, if they are few, as probabilities do.
    """
    n_found, n_evaluations = candidates(rows, i, forest, width, gap, classes, scores, work)
    n_evaluations += rank(rows, i, scorers, classes, scores, n_found, work[6])
    if n_found >= n_asked:
        return n_found, n_evaluations
    more_classes, more_scores = more
    n_listed, n_trees = n_found, forest[9]
    listed = classes[:n_listed].copy()
    more_width = 0 if follows_all_for_more(forest) else width
    n_more, count = candidates(rows, i, forest, more_width, np.inf, more_classes, more_scores, work)
    share = 1.0
    if n_trees > 1:
        # The paths of one tree have what the listed ones leave. Means of several share it.
        known, whole, class_scores = 0.0, 1.0, work[3]
        if more_width == 0:
            highest = class_scores.max()
            whole = np.exp((class_scores - highest) / n_trees).sum()
            for m in range(n_listed):
                known += np.exp((class_scores[listed[m]] - highest) / n_trees)
        else:
            for j in range(n_more):
                known += np.exp(more_scores[j]) if _is_in(listed, more_classes[j]) else 0.0
        rest = 1.0 - known / whole
        share = max(0.0, 1.0 - scores[:n_listed].sum()) / rest if rest > 0.0 else 0.0
    for j in range(n_more):
        if not _is_in(listed, more_classes[j]):
            score = share * np.exp(more_scores[j])
            n_found = keep(classes, scores, 0, classes.shape[0], n_found, more_classes[j], score)
    return n_found, n_evaluations + count


@compiled
def follows_all_for_more(forest):
    """Tell whether classes beyond the lists of several trees are ranked by all paths."""
    return forest[9] > 1 and forest[0][1] < 2 * FEW_CLASSES


@compiled
def _is_in(items, item):
    found = False
    for m in range(items.shape[0]):
        found = found or items[m] == item
    return found


@compiled
def top(rows, first, last, forest, scorers, width, gap, n_classes, size, classes, scores, n_evaluations):
    """Fill rows ``first:last`` of ``classes`` and ``scores`` with the best of ``size`` candidates."""
    rows_, forest_, scorers_ = pointers(rows), pointers(forest), pointers(scorers)
    work = workspace(rows_, first, last, forest_, width, n_classes, size)
    row_classes = np.empty(size, dtype=np.int64)
    row_scores = np.empty(size)
    more = np.empty(size, dtype=np.int64), np.empty(size)
    n_asked = classes.shape[1]
    for i in range(first, last):
        _, n_evaluations[i] = ranked(
            rows_, i, forest_, scorers_, width, gap, n_asked, row_classes, row_scores, more, work
        )
        for j in range(n_asked):
            classes[i, j] = row_classes[j]
            scores[i, j] = row_scores[j]


@compiled
def paths_of(rows, first, last, forest, width, gap, n_classes, classes, scores):
    """Fill rows ``first:last`` with the candidates and their path scores, without scorers."""
    rows_, forest_ = pointers(rows), pointers(forest)
    work = workspace(rows_, first, last, forest_, width, n_classes, classes.shape[1])
    for i in range(first, last):
        n_found, _ = candidates(rows_, i, forest_, width, gap, classes[i], scores[i], work)
        for j in range(n_found, classes.shape[1]):
            classes[i, j] = -1
            scores[i, j] = -np.inf


@compiled
def probabilities(rows, first, last, forest, scorers, width, gap, size, result):
    """Fill rows ``first:last`` of ``result``: candidates as ``top`` has them, the rest by their paths."""
    rows_, forest_, scorers_ = pointers(rows), pointers(forest), pointers(scorers)
    n_classes = result.shape[1]
    roots, n_trees = forest_[0], forest[9]
    work = workspace(rows_, first, last, forest_, width, n_classes, size)
    row_classes = np.empty(size, dtype=np.int64)
    row_scores = np.empty(size)
    node_scores = np.empty(forest[10])
    for i in range(first, last):
        row = result[i]
        row[:] = 0.0
        for t in range(n_trees):
            all_paths(rows_, i, forest_, roots[t], roots[t + 1], node_scores, row, work[6])
        highest = row.max() if n_trees > 1 else 0.0
        for k in range(n_classes):
            row[k] = np.exp((row[k] - highest) / n_trees)
        n_found, _ = candidates(rows_, i, forest_, width, gap, row_classes, row_scores, work)
        rank(rows_, i, scorers_, row_classes, row_scores, n_found, work[6])
        taken = 0.0
        for j in range(n_found):
            row[row_classes[j]] = 0.0
            taken += row_scores[j]
        rest = row.sum()
        if rest > 0.0:
            row *= max(0.0, 1.0 - taken) / rest
        for j in range(n_found):
            row[row_classes[j]] = row_scores[j]
        row /= row.sum()


@compiled
def pair_scores(rows, row_index, classes, scorers, result):
    """Fill the scores of pairs of row and class, without their paths."""
    rows_ = pointers(rows)
    table, scale, intercept, _, _, _ = pointers(scorers)
    for j in range(row_index.shape[0]):
        k = classes[j]
        hits = room_for_hits(rows_, table, row_index[j], row_index[j] + 1)
        result[j] = scale[k] * table_dot(rows_, row_index[j], table, k, hits) + intercept[k]
