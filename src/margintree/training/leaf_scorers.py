"""Scorers of the leaves: a second look at the few classes that the tree leaves in question.

Every training row gets a shortlist from machines that have not seen it, so the negatives of a class are the rows
that are mistaken for it, and training costs rows x shortlist, not rows x classes. Two facts about a pair of row and
class are honest without a scorer: the score of the path, from held-out machines, and the projection on the direction
of the class mean, taken without the row itself. A blend of them is the offset from which the scorer of the class
starts, so that it learns what they leave open. With few rows per class that makes it far better, and sparser, than
learning from nothing and blending afterwards. For rows of unit length the projection is the cosine.
"""

from dataclasses import dataclass, replace
from functools import cached_property

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

# How far a scorer trusts the offset, and the factor of its C: one that starts from nothing (one class against the
# others on its shortlists) is better with twice the C of the nodes; one that starts from one and a half times what
# separates the pairs best by itself only corrects that. Held-out rows choose between the two. In cross-validation
# anything between 1 and 2 in place of 1.5 makes no difference to the accuracy; more makes the scorers sparser.
STARTS = ((0.0, 2.0), (1.5, 1.0))
# Scorers that start from nothing get a C this much larger, again and again, as long as the held-out rows gain by it.
# Those that start from an offset lose by that.
COST_STEP, LARGEST_FACTOR = 8.0, 1000.0
# A gain of n held-out rows counts from this over the root of n on: the standard error of a difference in accuracy where
# one row in a hundred gets another class.
STANDARD_ERROR = 0.1
# The blend has three parameters and thousands of pairs; the penalty only keeps it finite.
BLEND_PENALTY = 1e-3
CLASSES_PER_TASK = 64
# Gaps to try, and what part of the held-out rows a smaller one may lose.
GAPS = (3.0, 4.0, 6.0, 8.0, 10.0)
GAP_COST = 0.0005
# Relative duality gap of scorers that only serve to choose.
TRIAL_TOL = 1e-2


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
    path_score, projection = np.empty(start[-1], dtype=np.float32), np.empty(start[-1])
    kernels.pairs.fill_pairs(listed, scores, own, class_start, start, row, path_score, is_listed)
    rows = layout(training_set.X)
    norms = kernels.rows.squared_norms(rows, training_set.n_rows)
    kernels.pairs.class_projections(rows, training_set.X.shape[1], class_start, weight, norms, start, row, projection)
    return Pairs(class_start, start, row, path_score, projection, is_listed)


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
    """Return the blend with the least squared hinge loss over all pairs."""
    blend = kernels.pairs.fit_blend(
        pairs.class_start, pairs.start, pairs.row, pairs.projection, pairs.path_score, weight, BLEND_PENALTY, 100
    )
    return Blend(*blend.tolist())


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

    def train(
        self, blend: Blend, cost_factor: float, counted: npt.NDArray[np.bool_] | None = None
    ) -> list[LinearClassifier]:
        """Train all scorers on the pairs whose rows count."""
        ridge = self.training_set.ridge / cost_factor
        norms = kernels.rows.squared_norms(layout(self.training_set.X), self.training_set.n_rows)
        n_classes = self.training_set.n_classes
        tasks = [range(k, min(n_classes, k + CLASSES_PER_TASK)) for k in range(0, n_classes, CLASSES_PER_TASK)]
        parts = in_threads(
            lambda classes: self._train_some(classes, blend, ridge, norms, counted), tasks, self.n_threads
        )
        return [scorer for part in parts for scorer in part]

    def scorers(
        self,
        blend: Blend,
        cost_factor: float,
        counted: npt.NDArray[np.bool_] | None = None,
        *,
        temperature: float = 1.0,
    ) -> LeafScorers:
        """Train all scorers and lay them out for prediction."""
        machines = self.train(blend, cost_factor, counted)
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
                columns, weights = self._exact(row, sign, offset, ridge[row], blend.mean_weight)
            else:
                columns, weights, _, _ = kernels.leaf_dual.solve_leaf(
                    *(rows, row[sign > 0.0], self.weight, blend.mean_weight, row, sign, offset),
                    *(ridge, norms, work, self.tol, self.max_iter, self.seed),
                )
            scorers.append(compact(LinearClassifier(columns, weights, blend.constant), self.prune, n_features))
        return scorers

    def _exact(
        self, row: npt.NDArray[np.int32], sign: Array, offset: Array, ridge: Array, mean_weight: float
    ) -> tuple[Index, Array]:
        """Return a scorer of a small problem, exact to rounding, as the machines of small nodes are."""
        X = self.training_set.X
        features = X[row] if isinstance(X, np.ndarray) else X[row].toarray()
        start = np.zeros(X.shape[1])
        _, weights, *_ = newton(features, sign, ridge, start, POLISH_TOL, np.inf, NEWTON_ITERATIONS, offset=offset)
        mean = self.weight[row[sign > 0.0]] @ features[sign > 0.0]
        length = np.linalg.norm(mean)
        return np.arange(X.shape[1]), weights + (mean_weight / length * mean if length > 0.0 else 0.0)


def train_scorers(trainer: LeafTrainer, fold: Index) -> tuple[LeafScorers, float]:
    """Choose by the rows of the first fold how far to trust the offset, then train on all rows.

    Returns the scorers, and the smallest gap of the beam that costs the rows of the first fold next to nothing.
    """
    blend = fit_blend(trainer.pairs, trainer.importance)
    asked = fold == 0
    trial = replace(trainer, tol=max(trainer.tol, TRIAL_TOL))

    def tried(trust: float, cost_factor: float) -> _Trial:
        start = blend.times(trust)
        return _Trial(start, cost_factor, _held_out_scores(trial, trial.scorers(start, cost_factor, ~asked), asked))

    best = max([tried(trust, cost_factor) for trust, cost_factor in STARTS], key=lambda each: each.accuracy)
    while best.starts_from_nothing and best.cost_factor < LARGEST_FACTOR:
        larger = tried(0.0, COST_STEP * best.cost_factor)
        if larger.accuracy < best.accuracy + STANDARD_ERROR / np.sqrt(len(best.scores.weight)):
            break
        best = larger
    scores = best.scores
    gap = next((gap for gap in GAPS if scores.accuracy(gap) >= best.accuracy - GAP_COST), GAPS[-1])
    return trainer.scorers(best.start, best.cost_factor, temperature=scores.temperature()), gap


@dataclass(frozen=True, eq=False)
class _HeldOutScores:
    """Scores of listed pairs, sorted by row; row r has ``start[r]:start[r + 1]``."""

    start: Index
    score: Array
    path_score: npt.NDArray[np.float32]
    is_own: npt.NDArray[np.bool_]
    weight: Array

    def accuracy(self, gap: float = np.inf) -> float:
        """Return the weighted part of the rows whose own class scores highest among paths within the gap."""
        if len(self.weight) == 0:
            return 0.0
        best_path = np.maximum.reduceat(self.path_score, self.start[:-1])
        is_near = self.path_score >= np.repeat(best_path, np.diff(self.start)) - gap
        score = np.where(is_near, self.score, -np.inf)
        highest = np.maximum.reduceat(score, self.start[:-1])
        own = np.where(self.is_own & is_near, score, -np.inf)
        right = np.maximum.reduceat(own, self.start[:-1]) >= highest
        return float(self.weight @ right / self.weight.sum())

    def temperature(self) -> float:
        """Return the factor of the scores whose softmax gives the rows' own classes most likelihood.

        Only rows that list their own class can say; without any, scores stay as they are.
        """
        own_listed = np.logical_or.reduceat(self.is_own, self.start[:-1]) if len(self.weight) else np.zeros(0, bool)
        if not own_listed.any():
            return 1.0
        return float(kernels.sigmoids.fit_temperature(self.start, self.score, self.is_own, self.weight * own_listed))


@dataclass(frozen=True, eq=False)
class _Trial:
    """What scorers with a start and a factor of their C make of the held-out rows."""

    start: Blend
    cost_factor: float
    scores: _HeldOutScores

    @cached_property
    def accuracy(self) -> float:
        return self.scores.accuracy()

    @property
    def starts_from_nothing(self) -> bool:
        return self.start.path_weight == 0.0


def _held_out_scores(trainer: LeafTrainer, scorers: LeafScorers, asked: npt.NDArray[np.bool_]) -> _HeldOutScores:
    pairs = trainer.pairs
    start, pair, class_ = kernels.pairs.pairs_by_row(pairs.class_start, pairs.start, pairs.row, pairs.is_listed, asked)
    row, score = pairs.row[pair], np.empty(len(pair))
    kernels.ranking.pair_scores(layout(trainer.training_set.X), row, class_, scorers.arrays, score)
    path_score = pairs.path_score[pair]
    score += scorers.path_weight * path_score
    is_own = (row >= pairs.class_start[class_]) & (row < pairs.class_start[class_ + 1])
    return _HeldOutScores(start, score, path_score, is_own, trainer.importance[row[start[:-1]]])
