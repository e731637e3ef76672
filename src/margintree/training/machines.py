"""Binary machines between two groups of training rows, trained independently."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from margintree.class_tree import ClassTree
from margintree.prediction.weight_table import compact
from margintree.solvers.classifier import KernelClassifier, LinearClassifier, NodeClassifier
from margintree.solvers.node_rows import NodeRows
from margintree.solvers.solution import Array
from margintree.solvers.training_set import LinearTrainingSet, TrainingSet
from margintree.worker_threads import give_up_if_abandoned, in_tasks

Index = npt.NDArray[np.int64]

LEFT_AGAINST_RIGHT = np.array([1.0, -1.0])


@dataclass(frozen=True, eq=False)
class Machine:
    """A trained machine with the record of its training; a positive decision means the first group.

    ``decision`` holds its values on the rows it was trained on, in their order.
    """

    classifier: NodeClassifier
    decision: Array
    objective: float
    duality_gap: float
    n_iter: int


@dataclass(frozen=True)
class Trainer:
    """Trains machines on parts of one training set; ``on_machine`` is called after each, in its thread."""

    training_set: TrainingSet
    tol: float
    max_iter: int
    seed: int
    on_machine: Callable[[Machine], None] | None = None

    def with_cost(self, factor: float) -> "Trainer":
        """Return a trainer with C multiplied by a factor."""
        return replace(self, training_set=self.training_set.with_cost(factor))

    def on_rows(self, rows: NodeRows, labelling: Array) -> Machine:
        """Train one machine on rows whose groups have the given signs.

        Several machines on the same rows share their kernel matrix.
        """
        solution = rows.machine(labelling, tol=self.tol, max_iter=self.max_iter)
        classifier = self.training_set.classifier(rows, solution)
        gap, n_iter = float(solution.duality_gap), solution.n_iter
        return self._reported(Machine(classifier, solution.decision, float(solution.objective), gap, n_iter))

    def between(self, left: Index, right: Index) -> Machine:
        """Train a machine between two sets of training rows; if one is empty, it always decides for the other."""
        if len(left) == 0 or len(right) == 0:
            constant = 1.0 if len(right) == 0 else -1.0
            decision = np.full(len(left) + len(right), constant)
            return self._reported(Machine(self._constant(constant), decision, 0.0, 0.0, 0))
        start = np.array([0, len(left), len(left) + len(right)])
        rows = self.training_set.select(np.concatenate([left, right]), start, self.seed)
        return self.on_rows(rows, LEFT_AGAINST_RIGHT)

    def classifier_between(self, left: Index, right: Index) -> NodeClassifier:
        """Train a machine of which only the classifier is needed, in the fastest way."""
        if isinstance(self.training_set, LinearTrainingSet):
            quick = self.training_set.quick_machine(left, right, tol=self.tol, max_iter=self.max_iter, seed=self.seed)
            if quick is not None:
                return quick
        return self.between(left, right).classifier

    def between_classes(self, left: Index, right: Index) -> Machine:
        """Train a machine between all rows of some classes and all rows of others."""
        return self.between(self.training_set.rows_of(left)[0], self.training_set.rows_of(right)[0])

    def _reported(self, machine: Machine) -> Machine:
        if self.on_machine is not None:
            give_up_if_abandoned()
            self.on_machine(machine)
        return machine

    def _constant(self, value: float) -> NodeClassifier:
        nothing = np.empty(0, dtype=np.int64)
        if isinstance(self.training_set, LinearTrainingSet):
            return LinearClassifier(nothing, np.empty(0), value)
        return KernelClassifier(nothing, np.empty(0), value)


def as_kept(machine: NodeClassifier, training_set: TrainingSet, prune: float) -> NodeClassifier:
    """Return a machine as kept by a pruned model; kernel machines are unchanged."""
    if isinstance(training_set, LinearTrainingSet) and isinstance(machine, LinearClassifier):
        return compact(machine, prune, training_set.X.shape[1])
    return machine


def train_against_the_rest(trainer: Trainer, rows: NodeRows, groups: Iterable[int], n_threads: int) -> list[Machine]:
    """Train one machine for each of the given groups of rows, against all other groups.

    All share one kernel matrix. Kernel rows that do not all fit into the cache are fetched by one machine at a time.
    """

    def train(group: int) -> Machine:
        return trainer.on_rows(rows, np.where(np.arange(rows.n_classes) == group, 1.0, -1.0))

    return in_tasks(train, groups, n_threads if rows.can_be_shared else 1, "one-vs-rest machines")


def all_pairs(n_classes: int) -> Index:
    """Return all pairs of classes, one per row, the smaller one first."""
    return np.array(list(combinations(range(n_classes), 2)))


def train_pairs(trainer: Trainer, pairs: Index, n_threads: int = 1) -> list[Machine]:
    """Train a machine between the two classes of each pair."""
    return in_tasks(lambda pair: trainer.between_classes(pair[:1], pair[1:]), list(pairs), n_threads, "pair machines")


def train_each(trainer: Trainer, tree: ClassTree, n_threads: int = 1) -> list[Machine]:
    """Train the machine of every internal node independently, on the rows of the classes below it, in preorder."""

    def train(node: int) -> Machine:
        sides = (tree.classes_below(int(child)) for child in (tree.children_left[node], tree.children_right[node]))
        left, right = (side.astype(np.int64) for side in sides)
        rows = trainer.training_set.node_rows(np.concatenate([left, right]), trainer.seed)
        return trainer.on_rows(rows, np.repeat(LEFT_AGAINST_RIGHT, [len(left), len(right)]))

    return in_tasks(train, tree.internal_nodes.tolist(), n_threads, "node machines")
