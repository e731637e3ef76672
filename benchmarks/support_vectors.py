"""How many different support vectors the prediction of one row evaluates, by method."""

from typing import Any

import numpy as np

from margintree import DecisionDAGClassifier, MarginTreeClassifier
from margintree.compiled.compile import compiled
from margintree.compiled.pointers import pointers
from margintree.compiled.ranking import Decider, Forest, candidates, rank, workspace


@compiled
def _vectors_of_beam(rows, n_rows, forest, decider, width, gap, n_classes, size, counts):
    rows_, forest_, decider_ = pointers(rows), Forest(*pointers(forest)), Decider(*pointers(decider))
    for i in range(n_rows):
        work = workspace(rows_, i, i + 1, forest_, width, n_classes, size)
        classes, scores = np.empty(size, dtype=np.int64), np.empty(size)
        n_found, _ = candidates(rows_, i, forest_, width, gap, size, classes, scores, work)
        rank(rows_, i, decider_, classes, scores, n_found, work.hits)
        # The workspace of a kernel table holds the values that were needed.
        counts[i] = np.sum(~np.isnan(work.hits))


def of_tree(model: MarginTreeClassifier, X: np.ndarray) -> float:
    """Return the mean number on the paths that the rows take."""
    tree = model._model
    if model.walk != "greedy":
        ranker, counts = model._ranker, np.empty(len(X), dtype=np.int64)
        forest = tree.one_row_forest
        decider, limits = ranker.decider.arrays(forest), (ranker.width, ranker.gap, ranker.n_classes, ranker.size)
        _vectors_of_beam((X,), len(X), forest, decider, *limits, counts)
        return float(counts.mean())
    paths = model.decision_path(X)
    total = 0
    for i in range(len(X)):
        nodes = paths.indices[paths.indptr[i] : paths.indptr[i + 1]]
        support = [tree.support[tree.start[node] : tree.start[node + 1]] for node in nodes]
        total += len(np.unique(np.concatenate(support)))
    return total / len(X)


def of_path_by_itself(model: MarginTreeClassifier, X: np.ndarray) -> float:
    """Return the mean number on the greedy path where a vector counts once for each machine that has it."""
    lengths = np.diff(model._model.start)
    return float((model.decision_path(X) @ lengths).mean())


def of_graph(model: DecisionDAGClassifier, X: np.ndarray) -> float:
    """Return the mean number of the machines that the rows meet."""
    machines = model._machines
    values = machines.decisions(X)
    coefficients = machines.coefficients
    total = 0
    for row in values:
        first, last, support = 0, len(model.order_) - 1, []
        while first < last:
            one, other = model.order_[first], model.order_[last]
            machine = model._machine_of[min(one, other), max(one, other)]
            support.append(coefficients.indices[coefficients.indptr[machine] : coefficients.indptr[machine + 1]])
            keeps_first = (row[machine] > 0.0) == (one < other)
            first, last = (first, last - 1) if keeps_first else (first + 1, last)
        total += len(np.unique(np.concatenate(support)))
    return total / len(X)


def of_model(model: Any, X: np.ndarray) -> float:
    """Return the mean number for any method."""
    if isinstance(model, MarginTreeClassifier):
        return of_tree(model, X)
    if isinstance(model, DecisionDAGClassifier):
        return of_graph(model, X)
    return float(model._machines.coefficients.shape[0])
