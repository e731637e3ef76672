"""Many machines without a tree: their values for a row, and the class that they predict.

Machine m has the value scale[m] * (its inner product) + intercept[m]. In a table of machines one after the other
(``margintree.compiled.tables``), any machine can be evaluated alone. A table by features is for methods that evaluate
all machines: each value of the row is multiplied by the weights of its feature, which are contiguous. It has the form

- ``(weights,)``: dense, features by machines;
- ``(start, machine, weights)``: feature j has the weights ``start[j]:start[j + 1]``, of the machines named there.

For an invalid row the class is -1; see ``margintree.compiled.single`` for rows.
"""

from typing import Any, NamedTuple

import numpy as np

from margintree.compiled.compile import by_type, compiled
from margintree.compiled.pointers import pointers
from margintree.compiled.rows import row_entry, row_of
from margintree.compiled.single import as_rows, is_sound
from margintree.compiled.tables import room_for_hits, table_dot

BY_FEATURE = (1, 3)


class Machines(NamedTuple):
    """Compiled code is called with a plain tuple of these."""

    table: Any
    scale: Any
    intercept: Any
    n_machines: Any


@by_type
def add_feature(table, feature, value, totals, n_machines):
    """Add the weights of one feature, times the row's value of it."""

    def dense(table, feature, value, totals, n_machines):
        (weights,) = table
        for m in range(n_machines):
            totals[m] += value * weights[feature, m]

    def sparse(table, feature, value, totals, n_machines):
        start, machine, weights = table
        for p in range(start[feature], start[feature + np.uint64(1)]):
            totals[machine[p]] += value * weights[p]

    return dense if len(table) == 1 else sparse


@compiled
def add_row(rows, i, table, totals, n_machines):
    """Add the inner products of row ``i`` with all machines of a table by features."""
    first, last, row = row_of(rows, i)
    for p in range(first, last):
        column, value = row_entry(row, p)
        if value != 0.0:
            add_feature(table, np.uint64(column), value, totals, n_machines)


@compiled
def _value(rows, i, machines, m, hits):
    """Return the value of one machine, of those that lie one after the other."""
    return machines.scale[m] * table_dot(rows, i, machines.table, m, hits) + machines.intercept[m]


def _is_by_feature(machines):
    return len(machines[machines.fields.index("table")]) in BY_FEATURE


@by_type
def fill_values(rows, i, machines, values, hits):
    """Fill the values of all machines for row ``i``."""

    def by_feature(rows, i, machines, values, hits):
        for m in range(machines.n_machines):
            values[m] = 0.0
        add_row(rows, i, machines.table, values, machines.n_machines)
        for m in range(machines.n_machines):
            values[m] = machines.scale[m] * values[m] + machines.intercept[m]

    def one_by_one(rows, i, machines, values, hits):
        for m in range(machines.n_machines):
            values[m] = _value(rows, i, machines, m, hits)

    return by_feature if _is_by_feature(machines) else one_by_one


@by_type
def room_for(rows, machines, first, last):
    """Return the workspace of ``fill_values`` for rows ``first:last``."""

    def by_feature(rows, machines, first, last):
        return np.empty(0, dtype=np.uint64)

    def one_by_one(rows, machines, first, last):
        return room_for_hits(rows, machines.table, first, last)

    return by_feature if _is_by_feature(machines) else one_by_one


@compiled
def _values_of_first(rows, machines):
    rows_, machines_ = pointers(rows), Machines(*pointers(machines))
    values = np.empty(machines_.n_machines)
    fill_values(rows_, 0, machines_, values, room_for(rows_, machines_, 0, 1))
    return values


@compiled
def values_of(row, n_features, machines):
    """Return the values of all machines; nothing for a bad row."""
    if not is_sound(row, n_features):
        return np.empty(0)
    return _values_of_first(as_rows(row, np.zeros(2, dtype=np.uint64)), machines)


@compiled
def largest(row, n_features, machines):
    """Return the class with the largest value, the first one in a tie; for a single machine, its sign decides."""
    values = values_of(row, n_features, machines)
    if values.shape[0] == 0:
        return np.int64(-1)
    if values.shape[0] == 1:
        return np.int64(values[0] > 0.0)
    return np.int64(np.argmax(values))


@compiled
def count_votes(values, pairs, sums, votes):
    """Fill the votes of every class, plus a term below one half that breaks ties by the sum of the values.

    Machine m separates the classes ``pairs[m]``, and a positive value is a vote for the first of them.
    """
    sums[:] = 0.0
    votes[:] = 0.0
    for m in range(pairs.shape[0]):
        first, second = pairs[m, 0], pairs[m, 1]
        votes[first if values[m] > 0.0 else second] += 1.0
        sums[first] += values[m]
        sums[second] -= values[m]
    for k in range(votes.shape[0]):
        # Monotone in the sum, and always inside (-1/3, 1/3): votes come first.
        votes[k] += sums[k] / (3.0 * (abs(sums[k]) + 1.0))


@compiled
def count_votes_of_rows(values, pairs, votes):
    """Fill ``votes``, rows by classes."""
    sums = np.empty(votes.shape[1])
    for i in range(values.shape[0]):
        count_votes(values[i], pairs, sums, votes[i])


@compiled
def most_votes(row, n_features, machines, pairs, n_classes):
    """Return the class with the most votes. With two classes, a negative value predicts the second."""
    values = values_of(row, n_features, machines)
    if values.shape[0] == 0:
        return np.int64(-1)
    if n_classes == 2:
        return np.int64(values[0] < 0.0)
    sums, votes = np.empty(n_classes), np.empty(n_classes)
    count_votes(values, pairs, sums, votes)
    return np.int64(np.argmax(votes))


@compiled
def _last_of_first(rows, machines, order, machine_of):
    rows_, machines_ = pointers(rows), Machines(*pointers(machines))
    hits = room_for_hits(rows_, machines_.table, 0, 1)
    first, last = 0, order.shape[0] - 1
    while first < last:
        one, other = order[first], order[last]
        machine = machine_of[min(one, other), max(one, other)]
        value = _value(rows_, 0, machines_, machine, hits)
        # A positive value is a vote for the smaller of the pair.
        if (value > 0.0) == (one < other):
            last -= 1
        else:
            first += 1
    return order[first]


@compiled
def last_left(row, n_features, machines, order, machine_of):
    """Return the class that remains after machines between the first and the last have eliminated all others."""
    if not is_sound(row, n_features):
        return np.int64(-1)
    return np.int64(_last_of_first(as_rows(row, np.zeros(2, dtype=np.uint64)), machines, order, machine_of))
