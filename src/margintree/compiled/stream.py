"""One pass over a stream of rows: a binary tree over the labels grows while its regressors learn.

A regressor is a sparse vector w, one per node, with the output f(x) = clip(1/2 + w'x, 0, 1), the estimated
probability that the row belongs to the right. Features are divided by the largest magnitude that the stream has
shown so far, so w lives in scaled units and an effective weight shrinks when its feature grows (Ross, Mineiro &
Langford 2013, normalised adaptive gradient). A step for the target t, with the error e = t - 1/2 - w'x, is

    G_i <- G_i + h e^2 x_i^2,    D_i = sqrt(m / Q) / sqrt(G_i),    s = sum_i D_i x_i^2,
    w_i <- w_i + e (1 - exp(-h rate s)) / s D_i x_i

with h the row's weight, m the sum of h and Q the sum of h |x|^2 over all rows so far. It is gradient descent on the
squared loss, run for the time h with D held fixed (Karampatziakis & Langford 2011), and so never passes the target.
An output that already lies beyond its target has no loss once clipped and takes no step.

The weights of a node lie together: as an array over all columns for dense rows, as a hash table of the columns in use
for sparse ones, because there a step waits for memory above all. No array grows here: ``absorb`` returns early when
the pool that these regions come from is too small for the next row.

See docs/solvers/stream.md.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from margintree.compiled.compile import OPTIONS, compiled
from margintree.compiled.rows import _layout, row_end


class GrowingTree(NamedTuple):
    """Nodes in order of creation, -1 where there is none; node 0 is the root."""

    children_left: np.ndarray
    children_right: np.ndarray
    parent: np.ndarray
    leaf_class: np.ndarray
    n_leaves: np.ndarray
    leaf_of_class: np.ndarray
    n_nodes: np.ndarray


class NodeRegressors(NamedTuple):
    """The weights of all nodes; the constant feature is the last column."""

    n_columns: int
    is_dense: bool
    # Largest magnitude of each column so far.
    scale: np.ndarray
    # m and Q of the step size.
    totals: np.ndarray
    # Node i has the region first[i] : first[i] + room[i] of the pool, and uses filled[i] of its slots.
    first: np.ndarray
    room: np.ndarray
    filled: np.ndarray
    # Where the untouched part of the pool begins.
    used: np.ndarray
    # Regions of 2^k slots that were given back, chained by their first slot; -1 at the end.
    returned: np.ndarray
    # Pool: column of each slot, -1 where it is empty, and the pair of w_i and G_i.
    slot_column: np.ndarray
    state: np.ndarray


class Row(NamedTuple):
    """Columns and scaled values of one row, and where its weights stand at the node in question."""

    columns: np.ndarray
    values: np.ndarray
    places: np.ndarray


def column_of(rows, place, start):
    """Return the column of the flat value at ``place`` in a row that starts at ``start``."""
    raise TypeError("column_of is for compiled code only")


@overload(column_of, jit_options=OPTIONS)
def _column_of(rows, place, start):
    def dense(rows, place, start):
        return np.int64(place - start)

    def sparse(rows, place, start):
        return np.int64(rows[1][place])

    return sparse if _layout(rows) == "sparse" else dense


@compiled
def scrambled(x):
    """Return a well mixed function of 64 bits (splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled
def content_codes(rows, n_rows, seed):
    """Return a pseudo-random number per row that depends on its non-zero values and the seed alone."""
    values = rows[-1].reshape(-1)
    bits = values.view(np.uint64)
    key = scrambled(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15))
    codes = np.empty(n_rows, dtype=np.uint64)
    start = np.int64(0)
    for i in range(n_rows):
        stop = row_end(rows, i)
        code = np.uint64(0)
        for p in range(start, stop):
            if values[p] != 0.0:
                # A sum, so that the order of the columns in a sparse row does not matter.
                code += scrambled(bits[p] ^ scrambled(key + np.uint64(column_of(rows, p, start))))
        codes[i] = scrambled(code ^ key)
        start = stop
    return codes


@compiled
def load(rows, i, with_constant, row, model):
    """Put the non-zero values of row ``i`` into ``row``, unscaled; return how many there are."""
    values = rows[-1].reshape(-1)
    start = np.int64(0) if i == 0 else np.int64(row_end(rows, i - 1))
    count = 0
    for p in range(start, row_end(rows, i)):
        if values[p] != 0.0:
            row.columns[count] = column_of(rows, p, start)
            row.values[count] = values[p]
            count += 1
    if with_constant:
        row.columns[count] = model.n_columns - 1
        row.values[count] = 1.0
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
    """Return where the weight of a column stands in the pool, or would stand; the node must have a region."""
    if model.is_dense:
        return model.first[node] + column
    mask = model.room[node] - 1
    slot = np.int64(scrambled(np.uint64(column) + np.uint64(0x9E3779B97F4A7C15)) & np.uint64(mask))
    first = model.first[node]
    while model.slot_column[first + slot] >= 0 and model.slot_column[first + slot] != column:
        slot = (slot + 1) & mask
    return first + slot


@compiled
def take_region(model, node, size_bits):
    """Give a node an empty region of 2^``size_bits`` slots, or of one per column; return whether the pool had one."""
    size = model.n_columns if model.is_dense else np.int64(1) << size_bits
    begin = model.returned[size_bits]
    if begin >= 0:
        model.returned[size_bits] = model.slot_column[begin]
        model.slot_column[begin : begin + size] = -1
        model.state[begin : begin + size] = 0.0
    else:
        begin = model.used[0]
        if begin + size > model.state.shape[0]:
            return False
        model.used[0] = begin + size
    model.first[node], model.room[node], model.filled[node] = begin, size, 0
    return True


@compiled
def reserve(model, node, count):
    """Make room at a node for ``count`` more columns; return whether the pool was large enough."""
    if model.is_dense:
        return model.room[node] > 0 or take_region(model, node, 0)
    needed = model.filled[node] + count
    # A table that is up to three quarters full finds a column in two or three looks.
    if 3 * model.room[node] >= 4 * needed:
        return True
    size_bits = 4
    while 3 * (np.int64(1) << size_bits) < 4 * needed:
        size_bits += 1
    begin, size, filled = model.first[node], model.room[node], model.filled[node]
    if not take_region(model, node, size_bits):
        return False
    model.filled[node] = filled
    old_bits = 0
    while (np.int64(1) << old_bits) < size:
        old_bits += 1
    for old in range(begin, begin + size):
        if model.slot_column[old] >= 0:
            new = slot_of(model, node, model.slot_column[old])
            model.slot_column[new] = model.slot_column[old]
            model.state[new, 0], model.state[new, 1] = model.state[old, 0], model.state[old, 1]
    if size > 0:
        model.slot_column[begin] = model.returned[old_bits]
        model.returned[old_bits] = begin
    return True


@compiled
def reserve_path(tree, model, leaf, count):
    """Make room for a row at a leaf and all nodes above it; return whether the pool was large enough."""
    node = leaf
    while node >= 0:
        if not reserve(model, node, count):
            return False
        node = tree.parent[node]
    return True


@compiled
def output(model, node, row, count):
    """Return 1/2 + w'x at a node, not clipped, and leave in ``row`` where the weights stand."""
    total = 0.5
    for j in range(count):
        place = slot_of(model, node, row.columns[j])
        row.places[j] = place
        if model.slot_column[place] < 0:
            model.slot_column[place] = row.columns[j]
            model.filled[node] += 1
        total += model.state[place, 0] * row.values[j]
    return total


@compiled
def step(model, row, count, value, target, weight, rate):
    """Move the weights of the node that gave ``value`` towards ``target``."""
    error = target - value
    # Clipped, such an output is the target itself.
    if error == 0.0 or (target - 0.5) * error < 0.0:
        return
    speed = 0.0
    for j in range(count):
        gradient = error * row.values[j]
        square = model.state[row.places[j], 1] + weight * gradient * gradient
        model.state[row.places[j], 1] = square
        if square > 0.0:
            speed += row.values[j] * row.values[j] / np.sqrt(square)
    common = np.sqrt(model.totals[0] / model.totals[1])
    speed *= common
    if not speed > 0.0:
        return
    factor = -np.expm1(-weight * rate * speed) / speed * common * error
    for j in range(count):
        square = model.state[row.places[j], 1]
        if square > 0.0:
            model.state[row.places[j], 0] += factor * row.values[j] / np.sqrt(square)


@compiled
def train(model, node, row, count, target, weight, rate):
    """Train the regressor of one node."""
    step(model, row, count, output(model, node, row, count), target, weight, rate)


@compiled
def train_above(tree, model, node, row, count, weight, rate):
    """Train each node above the given one to send the row towards it."""
    while tree.parent[node] >= 0:
        child, node = node, tree.parent[node]
        train(model, node, row, count, 1.0 if tree.children_right[node] == child else 0.0, weight, rate)


@compiled
def place_of_new_label(tree, model, row, count, alpha):
    """Return the leaf at which a new label ends, or -1 where the pool is too small to tell."""
    node = np.int64(0)
    while tree.children_left[node] >= 0:
        if not reserve(model, node, count):
            return np.int64(-1)
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
    """Give a node that has a region of the same size the weights of another."""
    size = model.room[source]
    old, new = model.first[source], model.first[target]
    model.slot_column[new : new + size] = model.slot_column[old : old + size]
    model.state[new : new + size] = model.state[old : old + size]
    model.filled[target] = model.filled[source]


@compiled
def reserve_children(tree, model, leaf, count):
    """Make room for the regressors of the two leaves that would come next below ``leaf``."""
    left, right = tree.n_nodes[0], tree.n_nodes[0] + 1
    # A region as large as that of the leaf, because it is copied as a whole.
    same_bits = 0
    while not model.is_dense and (np.int64(1) << same_bits) < model.room[leaf]:
        same_bits += 1
    if model.room[left] != model.room[leaf] and not take_region(model, left, same_bits):
        return False
    return reserve(model, right, count)


@compiled
def restore(model, done, start, columns, state):
    """Give nodes ``done`` and later a region with the given columns; return how many nodes are done in all.

    Fewer than all means that the pool must grow first.
    """
    for node in range(done, start.shape[0] - 1):
        if start[node] == start[node + 1]:
            continue
        if not reserve(model, node, start[node + 1] - start[node]):
            return node
        for p in range(start[node], start[node + 1]):
            place = slot_of(model, node, columns[p])
            model.slot_column[place] = columns[p]
            model.filled[node] += 1
            model.state[place, 0], model.state[place, 1] = state[p, 0], state[p, 1]
    return start.shape[0] - 1


@compiled
def learn_row(tree, model, label, row, count, weight, rate, alpha):
    """Train the path of a label that has a leaf, or find a place for one that has none.

    Returns whether the pool was large enough; nothing is learned when it was not.
    """
    leaf = tree.leaf_of_class[label]
    if leaf < 0 and tree.n_nodes[0] == 0:
        if not reserve(model, 0, count):
            return False
        leaf = add_leaf(tree, -1, label)
    if leaf >= 0:
        if not reserve_path(tree, model, leaf, count):
            return False
        # A leaf that is split later keeps its label on the left: that is what its regressor learns.
        train(model, leaf, row, count, 0.0, weight, rate)
        train_above(tree, model, leaf, row, count, weight, rate)
        return True
    leaf = place_of_new_label(tree, model, row, count, alpha)
    if leaf < 0 or not reserve(model, leaf, count) or not reserve_children(tree, model, leaf, count):
        return False
    train_above(tree, model, leaf, row, count, weight, rate)
    split_leaf(tree, leaf, label)
    copy_regressor(model, leaf, tree.children_left[leaf])
    train(model, leaf, row, count, 1.0, weight, rate)
    train(model, tree.children_right[leaf], row, count, 0.0, weight, rate)
    return True


@compiled
def absorb(rows, order, labels, row_weight, first, tree, model, alpha, rate, with_constant):
    """Take rows ``order[first:]`` one by one; return how many entries of ``order`` are done in all.

    ``labels`` and ``row_weight`` go with ``order``. Fewer than all means that the pool must grow first.
    """
    row = Row(
        np.empty(model.n_columns, dtype=np.int64),
        np.empty(model.n_columns),
        np.empty(model.n_columns, dtype=np.int64),
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
