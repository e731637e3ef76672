"""Probabilities along the paths of a tree of linear regressors.

A node's value v says that a row goes left with probability clip(1/2 + v, 0, 1); the probability of a node is the
product along its path. The weights of a node are spread over a work vector once for all rows that want them. ``nodes``
is ``(children_left, children_right, start, columns, weights, intercepts)``; see ``ProbabilityTree``.
"""

import numpy as np

from margintree.compiled.compile import compiled
from margintree.compiled.rows import row_dot


@compiled
def left_probability(rows, row, spread, intercept):
    """Return the probability that a row goes left at the node whose weights are spread."""
    return min(1.0, max(0.0, 0.5 + (row_dot(rows, row, spread) + intercept)))


@compiled
def greedy(rows, n_rows, n_features, nodes):
    """Return the leaf that each row reaches by the sign of the values; rows of a subtree stay together."""
    children_left, children_right, start, columns, weights, intercepts = nodes
    leaf = np.empty(n_rows, dtype=np.int32)
    order = np.arange(n_rows)
    spread = np.zeros(n_features)
    pending = [(np.int64(0), np.int64(0), np.int64(n_rows))]
    while len(pending) > 0:
        node, first, last = pending.pop()
        if first == last:
            continue
        if children_left[node] < 0:
            for i in range(first, last):
                leaf[order[i]] = node
            continue
        for p in range(start[node], start[node + 1]):
            spread[columns[p]] = weights[p]
        middle, end = first, last
        while middle < end:
            row = order[middle]
            if row_dot(rows, row, spread) + intercepts[node] > 0.0:
                middle += 1
            else:
                end -= 1
                order[middle] = order[end]
                order[end] = row
        for p in range(start[node], start[node + 1]):
            spread[columns[p]] = 0.0
        pending.append((np.int64(children_right[node]), middle, last))
        pending.append((np.int64(children_left[node]), first, middle))
    return leaf


@compiled
def products(rows, n_rows, n_features, nodes):
    """Return the probability that each row reaches each node, nodes by rows."""
    children_left, children_right, start, columns, weights, intercepts = nodes
    result = np.ones((children_left.shape[0], n_rows))
    spread = np.zeros(n_features)
    # Preorder meets every parent before its children.
    for node in range(children_left.shape[0]):
        left, right = children_left[node], children_right[node]
        if left < 0:
            continue
        for p in range(start[node], start[node + 1]):
            spread[columns[p]] = weights[p]
        for row in range(n_rows):
            share = left_probability(rows, row, spread, intercepts[node])
            result[left, row] = result[node, row] * share
            result[right, row] = result[node, row] * (1.0 - share)
        for p in range(start[node], start[node + 1]):
            spread[columns[p]] = 0.0
    return result


@compiled
def push(pending, waiting, waiting_product, node, members, member_product, prefers_left, wanted):
    """Append the members with the preference ``wanted`` to the queue of a node."""
    first = pending[-1][2] if len(pending) > 0 else np.int64(0)
    last = first
    for i in range(members.shape[0]):
        if prefers_left[i] == wanted:
            waiting[last] = members[i]
            waiting_product[last] = member_product[i]
            last += 1
    if last > first:
        pending.append((np.int64(node), first, last))


@compiled
def arrive(node, members, member_product, leaf_class, leaf, best):
    """Keep a leaf for the rows that have no leaf as probable, or an equally probable one of a later class."""
    for i in range(members.shape[0]):
        row, product = members[i], member_product[i]
        if product > best[row] or (product == best[row] and leaf_class[node] < leaf_class[leaf[row]]):
            best[row], leaf[row] = product, node


@compiled
def most_probable(rows, n_rows, n_features, nodes, leaf_class, depth):
    """Return the most probable leaf of every row and how many nodes were evaluated for it.

    Depth first, the more probable side first; a subtree is skipped if it is less probable than the best leaf so far.
    Ties go to the first class.
    """
    children_left, children_right, start, columns, weights, intercepts = nodes
    leaf = np.zeros(n_rows, dtype=np.int32)
    best = np.full(n_rows, -1.0)
    n_evaluations = np.zeros(n_rows, dtype=np.int64)
    spread = np.zeros(n_features)
    # A row waits once per level at most, besides the node it is going to next.
    room = n_rows * (np.int64(depth.max()) + 2)
    waiting, waiting_product = np.empty(room, dtype=np.int64), np.empty(room)
    members = np.empty(n_rows, dtype=np.int64)
    to_left, to_right = np.empty(n_rows), np.empty(n_rows)
    prefers_left = np.empty(n_rows, dtype=np.bool_)
    waiting[:n_rows] = np.arange(n_rows)
    waiting_product[:n_rows] = 1.0
    pending = [(np.int64(0), np.int64(0), np.int64(n_rows))]
    while len(pending) > 0:
        node, first, last = pending.pop()
        left, right = children_left[node], children_right[node]
        if left < 0:
            arrive(node, waiting[first:last], waiting_product[first:last], leaf_class, leaf, best)
            continue
        for p in range(start[node], start[node + 1]):
            spread[columns[p]] = weights[p]
        count = 0
        for i in range(first, last):
            row, product = waiting[i], waiting_product[i]
            if product < best[row]:
                continue
            share = left_probability(rows, row, spread, intercepts[node])
            n_evaluations[row] += 1
            members[count] = row
            to_left[count], to_right[count] = product * share, product * (1.0 - share)
            prefers_left[count] = share > 0.5
            count += 1
        for p in range(start[node], start[node + 1]):
            spread[columns[p]] = 0.0
        # Last in, first out: the sides that a row prefers are finished before the others are looked at.
        group, sides = members[:count], prefers_left[:count]
        push(pending, waiting, waiting_product, right, group, to_right, sides, True)
        push(pending, waiting, waiting_product, left, group, to_left, sides, False)
        push(pending, waiting, waiting_product, right, group, to_right, sides, False)
        push(pending, waiting, waiting_product, left, group, to_left, sides, True)
    return leaf, n_evaluations
