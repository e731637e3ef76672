"""Machines between pairs of classes, for those pairs that meet among the finalists of a row."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.prediction.weight_table import WeightTable
from margintree.solvers.classifier import NodeClassifier
from margintree.solvers.kernel_pairs import prepare, solve_pairs
from margintree.solvers.kernel_source import PairBlocks
from margintree.solvers.training_set import KernelTrainingSet
from margintree.training.machines import LEFT_AGAINST_RIGHT, Trainer, as_kept
from margintree.worker_threads import in_tasks

Index = npt.NDArray[np.int64]
Machines = list[NodeClassifier] | WeightTable
PAIRS_PER_TASK = 64
TASKS_AT_A_TIME = 64
ROWS_AT_A_TIME = 2**14


def pairs_that_meet(finalists: npt.NDArray[np.integer], own: Index | None, n_classes: int) -> Index:
    """Return the different pairs of classes that are finalists of the same row, the smaller class first.

    ``finalists`` is padded with -1. With ``own``, each finalist also meets the row's own class.
    """
    lists = finalists.astype(np.int64)
    if own is not None:
        lists = np.column_stack([lists, own])
    keys = np.empty(0, dtype=np.int64)
    for part in (lists[first : first + ROWS_AT_A_TIME] for first in range(0, len(lists), ROWS_AT_A_TIME)):
        for i in range(1, lists.shape[1]):
            one, other = np.minimum(part[:, :i], part[:, i, None]), np.maximum(part[:, :i], part[:, i, None])
            met = (one >= 0) & (one < other)
            keys = np.union1d(keys, one[met] * n_classes + other[met])
    return np.column_stack([keys // n_classes, keys % n_classes])


def train_pairs(
    trainer: Trainer, pairs: Index, counted: npt.NDArray[np.bool_], prune: float, n_threads: int
) -> Machines:
    """Train a machine for each pair, on the rows of its classes that count; a positive value means the first class.

    Linear machines are returned as one table: hundreds of thousands of separate ones would take far more memory.
    """
    training_set = trainer.training_set
    class_start, n_features = training_set.class_start, training_set.X.shape[1]

    def rows_of(k: int) -> Index:
        rows = np.arange(class_start[k], class_start[k + 1])
        return rows[counted[rows]]

    def train_on_blocks(some: Index) -> list[NodeClassifier]:
        assert isinstance(training_set, KernelTrainingSet)
        blocks = PairBlocks(training_set.source, class_start)

        def train_one(pair: Index) -> NodeClassifier:
            rows = training_set.pair_rows(int(pair[0]), int(pair[1]), trainer.seed, blocks)
            return trainer.on_rows(rows, LEFT_AGAINST_RIGHT).classifier

        solved = solve_pairs(training_set, some, trainer.tol)
        return [known or train_one(pair) for known, pair in zip(solved, some, strict=True)]

    def train(some: Index) -> list[NodeClassifier]:
        machines = (trainer.classifier_between(rows_of(one), rows_of(other)) for one, other in some.tolist())
        return [as_kept(machine, trainer.training_set, prune) for machine in machines]

    def trained(train: Callable[[Index], list[NodeClassifier]], tasks: list[Index]) -> list[Any]:
        return [machine for part in in_tasks(train, tasks, n_threads, "pair machines") for machine in part]

    tasks = [pairs[i : i + PAIRS_PER_TASK] for i in range(0, len(pairs), PAIRS_PER_TASK)]
    if isinstance(training_set, KernelTrainingSet) and counted.all():
        prepare(training_set, pairs)
        # One block for each thread, so that most values within a class are computed once.
        return trained(train_on_blocks, [part for part in np.array_split(pairs, n_threads) if len(part)])
    if training_set.function is not None:
        return trained(train, tasks)
    parts = (trained(train, tasks[i : i + TASKS_AT_A_TIME]) for i in range(0, len(tasks), TASKS_AT_A_TIME))
    return WeightTable.joined((WeightTable.from_classifiers(part, n_features) for part in parts), n_features)


def joined(machines: Machines, more: Machines) -> Machines:
    """Return the machines of both."""
    if isinstance(machines, WeightTable) and isinstance(more, WeightTable):
        return WeightTable.joined([machines, more], machines.n_features)
    assert isinstance(machines, list)
    assert isinstance(more, list)
    return [*machines, *more]


def selected(machines: Machines, places: Index) -> Machines:
    """Return the machines at some places."""
    return machines.part(places) if isinstance(machines, WeightTable) else [machines[k] for k in places.tolist()]
