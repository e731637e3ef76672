"""Machines trained without the rows that they are evaluated on, and their decision values.

Kernel machines have leave-one-out values for each of their rows. Linear machines, of which there may be thousands on
many sparse rows, are trained without one fold at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.class_tree import ClassTree
from margintree.prediction.decider import Decider
from margintree.prediction.kernel_tree import KernelTree
from margintree.prediction.left_out_tree import LeftOutTree
from margintree.prediction.linear_tree import LinearTree, Sigmoids
from margintree.prediction.ranker import path_candidates
from margintree.prediction.weight_table import WeightTable
from margintree.solvers.classifier import NodeClassifier
from margintree.solvers.solution import Array
from margintree.solvers.training_set import KernelTrainingSet, TrainingSet, pieces
from margintree.training.calibration import fit_sigmoids, own_paths, path_scores
from margintree.training.folds import Folds
from margintree.training.machines import Trainer, as_kept
from margintree.worker_threads import in_tasks

Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Grown = list[tuple[ClassTree, Sequence[NodeClassifier]]]
TreeModel = LinearTree | KernelTree | LeftOutTree
Finalists = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]
# Rows whose finalists are found at a time.
ROWS_PER_TASK = 2**13


@dataclass(frozen=True, eq=False)
class Rows:
    """Training rows as assigned to folds, with their importance, which is 1 on average."""

    training_set: TrainingSet
    # Position of each row before rows of several units were divided.
    original: Index
    fold: Index
    importance: Array
    n_folds: int
    # All rows, in an order that follows from their content.
    order: Index

    @classmethod
    def of(cls, training_set: TrainingSet, folds: Folds, n_folds: int, keys: npt.NDArray[np.uint64]) -> "Rows":
        """Split rows of several units as they are assigned to folds."""
        if len(folds.row) > training_set.n_rows:
            class_start = np.searchsorted(folds.row, training_set.class_start)
            training_set = training_set.part(folds.row, class_start, folds.share)
        cost = 1.0 / training_set.ridge
        importance = cost * (folds.n_units / cost.sum())
        order = np.argsort(keys[folds.row], kind="stable")
        return cls(training_set, folds.row, folds.fold, importance, n_folds, order)

    @classmethod
    def one_by_one(cls, training_set: KernelTrainingSet, keys: npt.NDArray[np.uint64]) -> "Rows":
        """Return rows that are held out one at a time."""
        n_rows, cost = training_set.n_rows, 1.0 / training_set.ridge
        importance = cost * (float(training_set.units.sum()) / cost.sum())
        order = np.argsort(keys, kind="stable")
        return cls(training_set, np.arange(n_rows), np.zeros(n_rows, dtype=np.int64), importance, 1, order)

    @property
    def leave_one_out(self) -> bool:
        """Whether rows are held out one at a time."""
        return isinstance(self.training_set, KernelTrainingSet) and self.training_set.leaves_one_out

    def without(self, left_out: Mask) -> TrainingSet:
        """Return the training set without some rows, except those of classes that would have none."""
        classes, n_classes = self.classes, self.training_set.n_classes
        is_left = np.bincount(classes[~left_out], minlength=n_classes) == 0
        kept = np.flatnonzero(~left_out | is_left[classes])
        return self.training_set.part(kept, np.searchsorted(kept, self.training_set.class_start))

    def take(self, rows: Index) -> Any:
        """Return rows as a model of held-out machines reads them."""
        return rows if self.leave_one_out else self.training_set.take(rows)

    @property
    def classes(self) -> Index:
        """The class of each row."""
        class_start = self.training_set.class_start
        return np.repeat(np.arange(len(class_start) - 1), np.diff(class_start))

    def model(self, grown: Grown, sigmoids: Sigmoids | None, deciding: Sequence[NodeClassifier]) -> TreeModel:
        """Lay out machines that were trained on these rows for prediction."""
        X, function = self.training_set.X, self.training_set.function
        if isinstance(self.training_set, KernelTrainingSet) and self.training_set.leaves_one_out:
            return LeftOutTree.of(grown, self.training_set, sigmoids, deciding)
        if function is None:
            return LinearTree.of_trees(grown, X.shape[1], sigmoids=sigmoids)
        numbers = np.arange(X.shape[0])
        return KernelTree.of_trees(grown, function, X, numbers, sigmoids=sigmoids, deciding=deciding)

    def decider(self, kind: str, deciding: Sequence[Any] | WeightTable, **facts: Any) -> Decider:
        """Lay out machines that decide between finalists; those of a kernel are part of the model."""
        if self.training_set.function is not None or kind == "paths":
            return Decider(kind, **facts)
        if not isinstance(deciding, WeightTable):
            deciding = WeightTable.from_classifiers(deciding, self.training_set.X.shape[1])
        return Decider(kind, deciding, **facts)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """For each fold, a tree whose machines were trained without it and without the rows that are always left out.

    ``own_score`` is the log probability of the path of each row to its own class.
    """

    rows: Rows
    grown: list[Grown]
    models: list[TreeModel]
    own_score: Array
    # Importance of each row, or 0 if its class was missing in the training set of the machines evaluated on it.
    counted: Array
    _lists: dict[tuple[int, float, int], Any] = field(default_factory=dict)

    @property
    def sigmoids(self) -> Sigmoids:
        """The sigmoids of all nodes, which the folds share."""
        sigmoids = self.models[0].sigmoids
        assert sigmoids is not None
        return sigmoids

    def parts(self, asked: Mask, deciding: Sequence[NodeClassifier] = ()) -> Iterator[tuple[Index, TreeModel]]:
        """Yield held-out rows, fold by fold, with a tree that was trained without them.

        Deciding machines of a kernel become part of the tree. Many rows come in pieces.
        """
        for fold, model in enumerate(self.models):
            held_out = np.flatnonzero(asked & (self.rows.fold == fold))
            if len(held_out) and deciding and not isinstance(model, LinearTree):
                model = self.rows.model(self.grown[fold], self.sigmoids, deciding)
            for piece in pieces(held_out, self.rows.training_set.X):
                yield piece, model

    def finalists(self, asked: Mask, width: int, gap: float, size: int, n_threads: int) -> Finalists:
        """Return the finalists of the requested rows and their path scores, padded with -1."""
        shape = (len(asked), size)
        classes, scores = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.float32)
        parts = [
            (held_out[first : first + ROWS_PER_TASK], model)
            for held_out, model in self.parts(asked)
            for first in range(0, len(held_out), ROWS_PER_TASK)
        ]

        def nominate(number: int) -> Finalists:
            held_out, model = parts[number]
            found, path = path_candidates(model, self.rows.take(held_out), width, gap, size)
            return found.astype(np.int32), path.astype(np.float32)

        found = in_tasks(nominate, range(len(parts)), n_threads, "finalists")
        for (held_out, _), part in zip(parts, found, strict=True):
            classes[held_out], scores[held_out] = part
        return classes[asked], scores[asked]

    def lists(self, width: int, gap: float, size: int, n_threads: int, form: Callable[..., Any]) -> Any:
        """Return the finalists of all rows in some form; validation and the final machines share them."""
        if (width, gap, size) not in self._lists:
            everyone = np.ones(len(self.rows.fold), dtype=np.bool_)
            self._lists[width, gap, size] = form(*self.finalists(everyone, width, gap, size, n_threads), self.own_score)
        return self._lists[width, gap, size]


def hold_out(
    trainer: Trainer,
    rows: Rows,
    trees: Sequence[ClassTree],
    left_out: Mask,
    prune: float,
    n_threads: int,
    on_fold: Callable[[], None] = lambda: None,
) -> HeldOut:
    """Train all nodes without each fold in turn, and fit their sigmoids to the decision values of its rows.

    ``trainer`` trains on ``rows``. The rows that are left out are evaluated as well, but not trained on. ``on_fold`` is
    called after each fold.
    """
    grown: list[Grown] = []
    for fold in range(rows.n_folds):
        masked = (rows.fold == fold) | left_out
        grown.append([(tree, machines_without(trainer, tree, masked, prune, n_threads)) for tree in trees])
        on_fold()
    return calibrated(rows, grown, np.where(_is_new_class(rows, left_out), 0.0, rows.importance))


def leave_one_out(rows: Rows, grown: Grown) -> HeldOut:
    """Fit the sigmoids of trained nodes to their leave-one-out values."""
    assert isinstance(rows.training_set, KernelTrainingSet)
    units = np.bincount(rows.classes, rows.training_set.units)
    return calibrated(rows, [grown], np.where(units[rows.classes] == 1, 0.0, rows.importance))


def calibrated(rows: Rows, grown: list[Grown], counted: Array) -> HeldOut:
    """Fit the sigmoids of all nodes to held-out rows, weighted by their importance."""
    classes, trees = rows.classes, [tree for tree, _ in grown[0]]
    models = [rows.model(machines, None, ()) for machines in grown]
    fitted, scores = [], []
    for t, tree in enumerate(trees):
        paths = own_paths(trees, t, models, rows.training_set, rows.fold, classes)
        fitted.append(fit_sigmoids(tree, paths, counted))
        scores.append(path_scores(paths, fitted[-1]))
    sigmoids = Sigmoids(np.concatenate([s.slope for s in fitted]), np.concatenate([s.shift for s in fitted]))
    if rows.training_set.function is None:
        # The flat models have all of them.
        grown.clear()
    models = [replace(model, sigmoids=sigmoids) for model in models]
    return HeldOut(rows, grown, models, np.mean(scores, axis=0), counted)


def _is_new_class(rows: Rows, left_out: Mask) -> Mask:
    """Return whether the machines that are evaluated on a row have seen no row of its class."""
    classes = rows.classes
    counts = np.zeros((rows.training_set.n_classes, rows.n_folds), dtype=np.int64)
    np.add.at(counts, (classes[~left_out], rows.fold[~left_out]), 1)
    return np.asarray(counts[classes, rows.fold] == counts.sum(axis=1)[classes])


def machines_without(
    trainer: Trainer, tree: ClassTree, left_out: Mask, prune: float, n_threads: int
) -> list[NodeClassifier]:
    """Train every node of the tree, in preorder, without the rows that are left out.

    Linear machines are pruned as in the final model.
    """

    def train(node: int) -> NodeClassifier:
        left, right = (
            tree.classes_below(int(child)).astype(np.int64)
            for child in (tree.children_left[node], tree.children_right[node])
        )
        rows, start = trainer.training_set.sample_of(np.concatenate([left, right]))
        sides = (side[~left_out[side]] for side in np.split(rows, [start[len(left)]]))
        return as_kept(trainer.classifier_between(*sides), trainer.training_set, prune)

    return in_tasks(train, tree.internal_nodes.tolist(), n_threads, "node machines of a fold")
