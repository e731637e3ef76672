"""One pass over a stream of rows: a binary tree over the labels grows while its regressors learn.

A regressor is a sparse vector w, one per node, with the output f(x) = clip(1/2 + w'x, 0, 1), the estimated
probability that the row belongs to the right. Features are divided by the largest magnitude that the stream has
shown so far, so w is in scaled units and an effective weight shrinks when its feature grows (Ross, Mineiro & Langford
2013, normalised adaptive gradient). A step for the target t, with the error e = t - 1/2 - w'x, is

    G_i <- G_i + h e^2 x_i^2,    D_i = sqrt(m / Q) / sqrt(G_i),    s = sum_i D_i x_i^2,
    w_i <- w_i + e (1 - exp(-h rate s)) / s D_i x_i

with h the row's weight, m the sum of h and Q the sum of h |x|^2 over all rows so far. It is gradient descent on the
squared loss, run for the time h with D held fixed (Karampatziakis & Langford 2011), and so never overshoots the target.
An output that already lies beyond its target has no loss once clipped and takes no step.

All weights are entries of one list, which an index finds by node and column: an open-addressing hash table. Nothing
grows here: ``absorb`` returns early when there may be too little room for the next row. ``tree`` is a ``GrowingTree``
of ``margintree.structures.stream_tree``, ``model`` are the ``NodeRegressors`` of ``margintree.solvers.online``.

See docs/solvers/stream.md.
"""

from typing import NamedTuple

import numpy as np

from margintree.compiled.compile import compiled
from margintree.compiled.rows import row_entry, row_of


class Row(NamedTuple):
    """Columns and scaled values of one row, and the entries of its weights at the node in question."""

    columns: np.ndarray
    values: np.ndarray
    entries: np.ndarray


@compiled
def scrambled(x):
    """Return a well mixed function of 64 bits (splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled
def content_codes(rows, n_rows, seed):
    """Return a pseudo-random number per row that depends on its non-zero values and the seed alone."""
    number = np.empty(1)
    bits = number.view(np.uint64)
    key = scrambled(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15))
    codes = np.empty(n_rows, dtype=np.uint64)
    for i in range(n_rows):
        first, last, row = row_of(rows, i)
        code = np.uint64(0)
        for p in range(first, last):
            column, number[0] = row_entry(row, p)
            if number[0] != 0.0:
                # A sum, so that the order of the columns in a sparse row does not matter.
                code += scrambled(bits[0] ^ scrambled(key + np.uint64(column)))
        codes[i] = scrambled(code ^ key)
    return codes


@compiled
def load(rows, i, with_constant, row, model):
    """Put the non-zero values of row ``i`` into ``row``, unscaled; return how many there are."""
    first, last, stored = row_of(rows, i)
    count = 0
    for p in range(first, last):
        column, value = row_entry(stored, p)
        if value != 0.0:
            row.columns[count], row.values[count] = column, value
            count += 1
    if with_constant:
        row.columns[count], row.values[count] = model.scale.shape[0] - 1, 1.0
        count += 1
    return count


@compiled
def rescale(row, count, weight, model):
    """Divide the row by the largest magnitudes so far and count it into the step size."""
    squared_norm = 0.0
    for j in range(count):
        column = row.columns[j]
        model.scale[column] = max(model.scale[column], abs(row.values[j]))
        row.values[j] /= model.scale[column]
        squared_norm += row.values[j] * row.values[j]
    model.totals[0] += weight
    model.totals[1] += weight * squared_norm


@compiled
def slot_of(model, node, column):
    """Return the position of the entry of a node and column in the index, or where it would be inserted."""
    mask = model.table.shape[0] - 1
    key = np.uint64(node) * np.uint64(model.scale.shape[0]) + np.uint64(column)
    slot = np.int64(scrambled(key + np.uint64(0x9E3779B97F4A7C15)) & np.uint64(mask))
    entry = model.table[slot]
    while entry >= 0 and (model.column[entry] != column or model.node[entry] != node):
        slot = (slot + 1) & mask
        entry = model.table[slot]
    return slot


@compiled
def add_entry(model, node, column, weight, square):
    """Add an entry, for which there must be room, and return its number."""
    entry = model.n_entries[0]
    model.n_entries[0] = entry + 1
    model.node[entry], model.column[entry] = node, column
    model.state[entry, 0], model.state[entry, 1] = weight, square
    link(model, entry)
    return entry


@compiled
def link(model, entry):
    """Put an entry into the index and behind the others of its node."""
    node = model.node[entry]
    model.table[slot_of(model, node, model.column[entry])] = entry
    model.before[entry], model.last[node] = model.last[node], entry


@compiled
def link_all(model):
    """Put all entries into an index that is empty."""
    for entry in range(model.n_entries[0]):
        link(model, entry)


@compiled
def output(model, node, row, count):
    """Return 1/2 + w'x at a node, not clipped, and leave in ``row`` which entries the weights are."""
    total = 0.5
    for j in range(count):
        entry = model.table[slot_of(model, node, row.columns[j])]
        row.entries[j] = entry
        if entry >= 0:
            total += model.state[entry, 0] * row.values[j]
    return total


@compiled
def train(model, node, row, count, target, weight, rate):
    """Move the weights of one node towards ``target``."""
    error = target - output(model, node, row, count)
    # Clipped, such an output is the target itself.
    if error == 0.0 or (target - 0.5) * error < 0.0:
        return
    speed = 0.0
    for j in range(count):
        if row.entries[j] < 0:
            row.entries[j] = add_entry(model, node, row.columns[j], 0.0, 0.0)
        gradient = error * row.values[j]
        square = model.state[row.entries[j], 1] + weight * gradient * gradient
        model.state[row.entries[j], 1] = square
        if square > 0.0:
            speed += row.values[j] * row.values[j] / np.sqrt(square)
    common = np.sqrt(model.totals[0] / model.totals[1])
    speed *= common
    if not speed > 0.0:
        return
    factor = -np.expm1(-weight * rate * speed) / speed * common * error
    for j in range(count):
        square = model.state[row.entries[j], 1]
        if square > 0.0:
            model.state[row.entries[j], 0] += factor * row.values[j] / np.sqrt(square)


@compiled
def train_above(tree, model, node, row, count, weight, rate):
    """Train each node above the given one to send the row towards it."""
    while tree.parent[node] >= 0:
        child, node = node, tree.parent[node]
        train(model, node, row, count, 1.0 if tree.children_right[node] == child else 0.0, weight, rate)


@compiled
def place_of_new_label(tree, model, row, count, alpha):
    """Return the leaf at which a new label ends."""
    node = np.int64(0)
    while tree.children_left[node] >= 0:
        left, right = tree.children_left[node], tree.children_right[node]
        clipped = min(1.0, max(0.0, output(model, node, row, count)))
        balance = np.log2(tree.n_leaves[left] / tree.n_leaves[right])
        node = right if (1.0 - alpha) * 2.0 * (clipped - 0.5) + alpha * balance > 0.0 else left
    return node


@compiled
def add_leaf(tree, parent, label):
    """Make a new node at the end of the arrays."""
    node = tree.n_nodes[0]
    tree.n_nodes[0] = node + 1
    tree.parent[node] = parent
    tree.leaf_class[node] = label
    tree.leaf_of_class[label] = node
    tree.n_leaves[node] = 1
    return node


@compiled
def split_leaf(tree, node, label):
    """Put a leaf's label on its left and a new one on its right."""
    left = add_leaf(tree, node, tree.leaf_class[node])
    right = add_leaf(tree, node, label)
    tree.leaf_class[node] = -1
    tree.children_left[node], tree.children_right[node] = left, right
    while node >= 0:
        tree.n_leaves[node] += 1
        node = tree.parent[node]


@compiled
def copy_regressor(model, source, target):
    """Copy the weights of a node to one without weights."""
    entry = model.last[source]
    while entry >= 0:
        add_entry(model, target, model.column[entry], model.state[entry, 0], model.state[entry, 1])
        entry = model.before[entry]


@compiled
def has_room(tree, model, leaf, count):
    """Return whether a row may train all nodes from a leaf up, two children of it, and a copy of its regressor."""
    needed, node, entry = 2 * count, leaf, model.last[leaf]
    while node >= 0:
        needed += count
        node = tree.parent[node]
    while entry >= 0:
        needed += 1
        entry = model.before[entry]
    return model.n_entries[0] + needed <= model.node.shape[0]


@compiled
def learn_row(tree, model, label, row, count, weight, rate, alpha):
    """Train the path of a label that has a leaf, or find a place for one that has none.

    Returns whether there was enough room; nothing is learned when there was not.
    """
    if tree.n_nodes[0] == 0:
        add_leaf(tree, -1, label)
    leaf = tree.leaf_of_class[label]
    is_new = leaf < 0
    if is_new:
        leaf = place_of_new_label(tree, model, row, count, alpha)
    if not has_room(tree, model, leaf, count):
        return False
    if not is_new:
        # A leaf that is split later keeps its label on the left: that is what its regressor learns.
        train(model, leaf, row, count, 0.0, weight, rate)
        train_above(tree, model, leaf, row, count, weight, rate)
        return True
    train_above(tree, model, leaf, row, count, weight, rate)
    split_leaf(tree, leaf, label)
    copy_regressor(model, leaf, tree.children_left[leaf])
    train(model, leaf, row, count, 1.0, weight, rate)
    train(model, tree.children_right[leaf], row, count, 0.0, weight, rate)
    return True


@compiled
def absorb(rows, stream, first, tree, model, alpha, rate, with_constant):
    """Process the rows of a ``Stream`` one by one from ``first`` on; return how many of them are done in all.

    Fewer than all means that the list must grow first.
    """
    order, labels, row_weight = stream
    row = Row(
        np.empty(model.scale.shape[0], dtype=np.int64),
        np.empty(model.scale.shape[0]),
        np.empty(model.scale.shape[0], dtype=np.int64),
    )
    for position in range(first, order.shape[0]):
        count = load(rows, order[position], with_constant, row, model)
        weight = row_weight[position]
        total_weight, total_square = model.totals[0], model.totals[1]
        rescale(row, count, weight, model)
        if not learn_row(tree, model, labels[position], row, count, weight, rate, alpha):
            # The row comes again once there is room, and must not count twice.
            model.totals[0], model.totals[1] = total_weight, total_square
            return position
    return order.shape[0]
