"""Rank all classes of a row by one machine each, without a tree.

Probabilities are the softmax of the machines' values times the temperature. See ``margintree.compiled.flat`` for
machines and ``margintree.compiled.single`` for single rows.
"""

import numpy as np

from margintree.compiled.compile import compiled
from margintree.compiled.flat import Machines, fill_values, room_for, values_of
from margintree.compiled.pointers import pointers
from margintree.compiled.walk import bounded, keep


@compiled
def _highest_and_total(values, temperature):
    """Clip the values; return ``highest`` and ``total``, which normalise them.

    The probability of a value v is exp(temperature * (v - highest)) / total.
    """
    highest, total = -np.inf, 0.0
    for k in range(values.shape[0]):
        values[k] = bounded(values[k])
        highest = max(highest, values[k])
    for k in range(values.shape[0]):
        total += np.exp(temperature * (values[k] - highest))
    return highest, total


@compiled
def _softmax(values, temperature):
    """Turn the values into probabilities."""
    highest, total = _highest_and_total(values, temperature)
    for k in range(values.shape[0]):
        values[k] = np.exp(temperature * (values[k] - highest)) / total


@compiled
def _keep_best(values, temperature, classes, scores):
    """Fill the best classes, as many as there is room for, and their probabilities; ties go to the first class."""
    n_kept = 0
    highest, total = _highest_and_total(values, temperature)
    for k in range(values.shape[0]):
        n_kept = keep(classes, scores, 0, classes.shape[0], n_kept, k, values[k])
    for j in range(n_kept):
        scores[j] = np.exp(temperature * (scores[j] - highest)) / total


@compiled
def top(rows, first, last, machines, temperature, classes, scores):
    """Fill rows ``first:last`` of ``classes`` and ``scores`` with the best classes and their probabilities."""
    rows_, machines_ = pointers(rows), Machines(*pointers(machines))
    hits = room_for(rows_, machines_, first, last)
    values = np.empty(machines_.n_machines)
    for i in range(first, last):
        fill_values(rows_, i, machines_, values, hits)
        _keep_best(values, temperature, classes[i], scores[i])


@compiled
def probabilities(rows, first, last, machines, temperature, result):
    """Fill rows ``first:last`` of ``result`` with the probabilities of all classes."""
    rows_, machines_ = pointers(rows), Machines(*pointers(machines))
    hits = room_for(rows_, machines_, first, last)
    for i in range(first, last):
        fill_values(rows_, i, machines_, result[i], hits)
        _softmax(result[i], temperature)


@compiled
def best(row, n_features, machines, temperature, n_asked):
    """Return the ``n_asked`` best classes of one row and their probabilities; the first class is -1 for a bad row."""
    classes, scores = np.full(n_asked, -1), np.zeros(n_asked)
    values = values_of(row, n_features, machines)
    if values.shape[0] > 0:
        _keep_best(values, temperature, classes, scores)
    return classes, scores


@compiled
def all_probabilities(row, n_features, machines, temperature):
    """Return the probability of every class for one row; nothing for a bad one."""
    values = values_of(row, n_features, machines)
    _softmax(values, temperature)
    return values
