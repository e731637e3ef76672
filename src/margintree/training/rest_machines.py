"""One machine per class, against the rest: all other rows, or those with the class among their finalists.

Lists come from machines that have not seen the row, so the negatives of a class are the rows that are mistaken for it,
and training costs rows x finalists instead of rows x classes. Linear machines that learn from lists may start from an
offset. Two scores of a pair of row and class are unbiased without a machine: that of the path, from held-out machines,
and the projection on the direction of the class mean, taken without the row itself (the cosine, for rows of unit
length). The offset is a blend of them, and the machine learns the rest.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from margintree import compiled
from margintree.solvers.classifier import LinearClassifier, NodeClassifier
from margintree.solvers.row_layout import layout
from margintree.solvers.solution import Array
from margintree.solvers.training_set import LinearTrainingSet
from margintree.training.machines import Trainer, as_kept, train_against_the_rest
from margintree.worker_threads import in_tasks, stoppable

Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# The blend has three parameters and thousands of pairs; the penalty only keeps it finite.
BLEND_PENALTY = 1e-3
CLASSES_PER_TASK = 64


def train_against_all(trainer: Trainer, counted: Mask, prune: float, n_threads: int) -> list[NodeClassifier]:
    """Train the machine of each class against all other rows that count."""
    training_set = trainer.training_set
    kept = np.flatnonzero(counted)
    rows = training_set.select(kept, np.searchsorted(kept, training_set.class_start), trainer.seed)
    machines = train_against_the_rest(trainer, rows, range(training_set.n_classes), n_threads)
    return [as_kept(machine.classifier, training_set, prune) for machine in machines]


@dataclass(frozen=True, eq=False)
class Lists:
    """Rows with the classes on their lists, sorted by class; class k has ``start[k]:start[k + 1]``.

    The training rows are sorted by class as well, class k having ``class_start[k]:class_start[k + 1]``. A row is always
    paired with its own class.
    """

    class_start: Index
    start: Index
    row: npt.NDArray[np.int32]
    path_score: npt.NDArray[np.float32]

    @classmethod
    def of(
        cls, class_start: Index, finalists: npt.NDArray[np.integer], scores: npt.NDArray[np.floating], own_score: Array
    ) -> "Lists":
        """Sort the finalists of all rows (padded with -1) by class."""
        start = np.empty(len(class_start), dtype=np.int64)
        compiled.pairs.count_pairs(finalists, class_start, start)
        row, path_score = np.empty(start[-1], dtype=np.int32), np.empty(start[-1], dtype=np.float32)
        compiled.pairs.fill_pairs(finalists, scores, own_score, class_start, start, row, path_score)
        return cls(class_start, start, row, path_score)

    def of_class(self, k: int) -> slice:
        """Return where the pairs of a class are."""
        return slice(int(self.start[k]), int(self.start[k + 1]))

    def sign(self, k: int) -> Array:
        """Return 1 for the rows of class k that are paired with it, -1 for the others."""
        row = self.row[self.of_class(k)]
        return np.where((row >= self.class_start[k]) & (row < self.class_start[k + 1]), 1.0, -1.0)


class Blend(NamedTuple):
    """Offset of a pair: constant + mean_weight * projection + path_weight * path score."""

    constant: float = 0.0
    mean_weight: float = 0.0
    path_weight: float = 0.0


@dataclass(frozen=True, eq=False)
class ListTrainer:
    """Trains machines on lists, without rows of importance 0."""

    trainer: Trainer
    lists: Lists
    importance: Array
    prune: float
    n_threads: int

    @property
    def counted(self) -> Mask:
        """The rows that are trained on."""
        return self.importance > 0.0

    def train(self, offset_scale: float, cost_factor: float) -> tuple[list[NodeClassifier], float]:
        """Return the machine of each class and the weight of the path score.

        ``offset_scale`` multiplies the offset of a linear machine, ``cost_factor`` multiplies C.
        """
        training_set = self.trainer.training_set
        if not isinstance(training_set, LinearTrainingSet):
            return self._in_tasks(self._kernel_machine(cost_factor)), 0.0
        projection, blend = np.zeros(len(self.lists.row)), Blend()
        if offset_scale > 0.0:
            projection = self._projections(training_set)
            blend = Blend(*(offset_scale * weight for weight in self._fit_blend(projection)))
        return self._in_tasks(self._linear_machine(training_set, blend, projection, cost_factor)), blend.path_weight

    def _in_tasks(self, machine_of: Callable[[int, Array], NodeClassifier]) -> list[NodeClassifier]:
        training_set = self.trainer.training_set
        n_classes = training_set.n_classes

        def train(classes: range) -> list[NodeClassifier]:
            work = np.zeros((2, training_set.X.shape[1]))
            return [as_kept(machine_of(k, work), training_set, self.prune) for k in classes]

        tasks = [range(k, min(n_classes, k + CLASSES_PER_TASK)) for k in range(0, n_classes, CLASSES_PER_TASK)]
        return [machine for part in in_tasks(train, tasks, self.n_threads, "one-vs-rest machines") for machine in part]

    def _kernel_machine(self, cost_factor: float) -> Callable[[int, Array], NodeClassifier]:
        trainer, counted = self.trainer.with_cost(cost_factor), self.counted

        def train(k: int, work: Array) -> NodeClassifier:
            row, sign = self.lists.row[self.lists.of_class(k)].astype(np.int64), self.lists.sign(k)
            return trainer.classifier_between(*(row[counted[row] & (sign == side)] for side in (1.0, -1.0)))

        return train

    def _projections(self, training_set: LinearTrainingSet) -> Array:
        """Return the projections of pairs on the directions of the weighted means of the rows that count."""
        rows, projection = layout(training_set.X), np.empty(len(self.lists.row))
        norms = compiled.rows.squared_norms(rows, training_set.n_rows)
        weight, n_columns = self._mean_weight(training_set), training_set.X.shape[1]
        compiled.pairs.class_projections(
            rows, n_columns, training_set.class_start, weight, norms, self.lists.start, self.lists.row, projection
        )
        return projection

    def _mean_weight(self, training_set: LinearTrainingSet) -> Array:
        """Return the weight of each row in its class mean; 1 on average, whatever the scale of the weights."""
        weight = np.where(self.counted, training_set.sample_weight, 0.0)
        return np.asarray(weight * (self.importance.sum() / weight.sum()))

    def _fit_blend(self, projection: Array) -> Blend:
        """Return the blend with nonnegative weights that has the smallest squared hinge loss over all pairs.

        A negative weight would be an artefact: of lists, which leave out pairs with a low path score, or of machines
        that have not seen the class of a row at all.
        """
        lists, path_score = self.lists, self.lists.path_score
        while True:
            fitted = compiled.pairs.fit_blend(
                lists.class_start, lists.start, lists.row, projection, path_score, self.importance, BLEND_PENALTY
            )
            blend = Blend(*fitted.tolist())
            # A fact that is zero everywhere gets the weight zero.
            if blend.path_weight < 0.0:
                path_score = np.zeros_like(path_score)
            elif blend.mean_weight < 0.0:
                projection = np.zeros_like(projection)
            else:
                return blend

    def _linear_machine(
        self, training_set: LinearTrainingSet, blend: Blend, projection: Array, cost_factor: float
    ) -> Callable[[int, Array], NodeClassifier]:
        rows, lists, trainer = layout(training_set.X), self.lists, self.trainer
        ridge = training_set.ridge / cost_factor
        norms = compiled.rows.squared_norms(rows, training_set.n_rows)
        weight = self._mean_weight(training_set)
        counted, tol, max_iter = self.counted, trainer.tol, trainer.max_iter
        # The constant of the offset is an intercept already.
        fit_intercept = training_set.fit_intercept and blend == Blend()

        def train(k: int, work: Array) -> NodeClassifier:
            part = lists.of_class(k)
            taken = counted[lists.row[part]]
            row, sign = lists.row[part][taken], lists.sign(k)[taken]
            offset = blend.mean_weight * projection[part][taken] + blend.path_weight * lists.path_score[part][taken]
            offset += blend.constant
            listed, mean = (row, sign, offset), (row[sign > 0.0], weight, blend.mean_weight)
            with stoppable() as stop:
                columns, weights, intercept = compiled.leaf_dual.solve_leaf(
                    rows, listed, mean, ridge, norms, fit_intercept, work, tol, max_iter, trainer.seed, stop
                )
            return LinearClassifier(columns, weights, blend.constant + intercept)

        return train
