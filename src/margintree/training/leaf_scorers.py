"""Scorers of the leaves: a second look at the few classes that the tree leaves in question.

Every training row gets a shortlist from machines that have not seen it, so the negatives of a class are the rows
that are mistaken for it, and training costs rows x shortlist, not rows x classes. Two facts about a pair of row and
class are honest without a scorer: the score of the path, from held-out machines, and the projection on the direction
of the class mean, taken without the row itself. A blend of them is the offset from which the scorer of the class
starts, so that it learns what they leave open. On many sets that makes it better, and sparser, than learning from
nothing and blending afterwards; on which, held-out rows decide (see ``scorer_trials``). For rows of unit length the
projection is the cosine.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from margintree import kernels
from margintree.prediction.ranker import LeafScorers
from margintree.prediction.weight_table import WeightTable, compact
from margintree.solvers.classifier import LinearClassifier
from margintree.solvers.linear_rows import NEWTON_ITERATIONS, POLISH_TOL, POLISH_WORK, layout
from margintree.solvers.newton import newton
from margintree.solvers.solution import Array
from margintree.solvers.training_set import LinearTrainingSet
from margintree.worker_threads import give_up_if_abandoned, in_threads

Index = npt.NDArray[np.int64]

# The blend has three parameters and thousands of pairs; the penalty only keeps it finite.
BLEND_PENALTY = 1e-3
CLASSES_PER_TASK = 64
# Scorers that start from an offset have an intercept where at least this part of the values is not zero. Of rows that
# are mostly zeros, texts above all, zero is a natural origin, and the offset has a constant already.
DENSE = 0.1


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows with the classes on their shortlists, sorted by class; class k has ``start[k]:start[k + 1]``.

    The training rows are sorted by class as well, class k having ``class_start[k]:class_start[k + 1]``.
    """

    class_start: Index
    start: Index
    row: npt.NDArray[np.int32]
    path_score: npt.NDArray[np.float32]
    projection: Array
    is_listed: npt.NDArray[np.bool_]

    def of_class(self, k: int) -> slice:
        """Return where the pairs of a class are."""
        return slice(int(self.start[k]), int(self.start[k + 1]))

    def sign(self, k: int) -> Array:
        """Return 1 for the rows of class k that are paired with it, -1 for the others."""
        row = self.row[self.of_class(k)]
        return np.where((row >= self.class_start[k]) & (row < self.class_start[k + 1]), 1.0, -1.0)


def pairs_of(
    training_set: LinearTrainingSet,
    weight: Array,
    listed: npt.NDArray[np.integer],
    scores: npt.NDArray[np.floating],
    own: Array,
) -> Pairs:
    """Pair each row with the classes listed for it (-1 fills a list), and with its own if that is missing."""
    class_start, start = training_set.class_start, np.empty(training_set.n_classes + 1, dtype=np.int64)
    kernels.pairs.count_pairs(listed, class_start, start)
    row, is_listed = np.empty(start[-1], dtype=np.int32), np.empty(start[-1], dtype=np.bool_)
    path_score = np.empty(start[-1], dtype=np.float32)
    kernels.pairs.fill_pairs(listed, scores, own, class_start, start, row, path_score, is_listed)
    projection = projections(training_set, weight, start, row)
    return Pairs(class_start, start, row, path_score, projection, is_listed)


def projections(training_set: LinearTrainingSet, weight: Array, start: Index, row: npt.NDArray[np.int32]) -> Array:
    """Return the projections of pairs on the directions of the weighted class means."""
    rows, projection = layout(training_set.X), np.empty(len(row))
    norms = kernels.rows.squared_norms(rows, training_set.n_rows)
    kernels.pairs.class_projections(
        *(rows, training_set.X.shape[1], training_set.class_start, weight, norms, start, row, projection)
    )
    return projection


@dataclass(frozen=True)
class Blend:
    """Offset of a pair: constant + mean_weight * projection + path_weight * path score."""

    constant: float
    mean_weight: float
    path_weight: float

    def times(self, factor: float) -> "Blend":
        """Return the blend with all weights multiplied."""
        return Blend(factor * self.constant, factor * self.mean_weight, factor * self.path_weight)

    def of(self, pairs: Pairs, part: slice) -> Array:
        """Return the offsets of some of the pairs."""
        return self.constant + self.mean_weight * pairs.projection[part] + self.path_weight * pairs.path_score[part]


def fit_blend(pairs: Pairs, weight: Array) -> Blend:
    """Return the blend with the least squared hinge loss over all pairs in which no fact counts against a class.

    A weight below zero would be an artefact: of lists, which leave out pairs whose path says no, or of machines that
    have not seen the class of a row at all.
    """
    projection, path_score = pairs.projection, pairs.path_score
    while True:
        fitted = kernels.pairs.fit_blend(
            pairs.class_start, pairs.start, pairs.row, projection, path_score, weight, BLEND_PENALTY, 100
        )
        blend = Blend(*fitted.tolist())
        # A fact that is zero everywhere gets the weight zero.
        if blend.path_weight < 0.0:
            path_score = np.zeros_like(path_score)
        elif blend.mean_weight < 0.0:
            projection = np.zeros_like(projection)
        else:
            return blend


@dataclass(frozen=True)
class LeafTrainer:
    """Trains the scorers of all classes from the same pairs."""

    training_set: LinearTrainingSet
    pairs: Pairs
    weight: Array
    importance: Array
    prune: float
    tol: float
    max_iter: int
    seed: int
    n_threads: int

    def fit_intercept(self, blend: Blend) -> bool:
        """Return whether scorers have intercepts of their own, beside the constant of the blend."""
        starts_from_nothing = blend == Blend(0.0, 0.0, 0.0)
        return self.training_set.fit_intercept and (starts_from_nothing or self.training_set.density >= DENSE)

    def train(
        self,
        blend: Blend,
        cost_factor: float,
        counted: npt.NDArray[np.bool_] | None = None,
        classes: range | None = None,
    ) -> list[LinearClassifier]:
        """Train the scorers of a range of classes, or of all, on the pairs whose rows count."""
        ridge = self.training_set.ridge / cost_factor
        norms = kernels.rows.squared_norms(layout(self.training_set.X), self.training_set.n_rows)
        classes = range(self.training_set.n_classes) if classes is None else classes
        tasks = [classes[k : k + CLASSES_PER_TASK] for k in range(0, len(classes), CLASSES_PER_TASK)]
        parts = in_threads(lambda some: self._train_some(some, blend, ridge, norms, counted), tasks, self.n_threads)
        return [scorer for part in parts for scorer in part]

    def scorers(self, blend: Blend, cost_factor: float, temperature: float) -> LeafScorers:
        """Train all scorers and lay them out for prediction."""
        machines = self.train(blend, cost_factor)
        table = WeightTable.from_classifiers(machines, self.training_set.X.shape[1])
        return LeafScorers(table, blend.path_weight, temperature)

    def _train_some(
        self,
        classes: range,
        blend: Blend,
        ridge: Array,
        norms: Array,
        counted: npt.NDArray[np.bool_] | None,
    ) -> list[LinearClassifier]:
        rows, pairs = layout(self.training_set.X), self.pairs
        n_rows, n_features = self.training_set.X.shape
        work = np.zeros((2, n_features))
        scorers = []
        for k in classes:
            give_up_if_abandoned()
            part = pairs.of_class(k)
            row, sign, offset = pairs.row[part], pairs.sign(k), blend.of(pairs, part)
            if counted is not None:
                taken = counted[row]
                row, sign, offset = row[taken], sign[taken], offset[taken]
            if n_rows * n_features**2 <= POLISH_WORK:
                columns, weights, intercept = self._exact(row, sign, offset, ridge[row], blend)
            else:
                columns, weights, intercept, _, _ = kernels.leaf_dual.solve_leaf(
                    *(rows, row[sign > 0.0], self.weight, blend.mean_weight, row, sign, offset, ridge, norms),
                    *(self.fit_intercept(blend), work, self.tol, self.max_iter, self.seed),
                )
            scorer = LinearClassifier(columns, weights, blend.constant + intercept)
            scorers.append(compact(scorer, self.prune, n_features))
        return scorers

    def _exact(
        self, row: npt.NDArray[np.int32], sign: Array, offset: Array, ridge: Array, blend: Blend
    ) -> tuple[Index, Array, float]:
        """Return a scorer of a small problem, exact to rounding, as the machines of small nodes are."""
        X = self.training_set.X
        features = X[row] if isinstance(X, np.ndarray) else X[row].toarray()
        rows = np.column_stack([features, np.ones(len(row))]) if self.fit_intercept(blend) else features
        start = np.zeros(rows.shape[1])
        _, solution, *_ = newton(rows, sign, ridge, start, POLISH_TOL, np.inf, NEWTON_ITERATIONS, offset=offset)
        weights, intercept = solution[: X.shape[1]], float(solution[X.shape[1] :].sum())
        mean = self.weight[row[sign > 0.0]] @ features[sign > 0.0]
        length = np.linalg.norm(mean)
        weights = weights + (blend.mean_weight / length * mean if length > 0.0 else 0.0)
        return np.arange(X.shape[1]), weights, intercept
