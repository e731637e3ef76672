"""Scorers of the leaves: a second look at the few classes that the tree leaves in question.

Every training row gets a shortlist from machines that have not seen it, so the negatives of a class are the rows
that are mistaken for it, and training costs rows x shortlist, not rows x classes. Two facts about a pair of row and
class are honest without a scorer: the score of the path, from held-out machines, and the projection on the direction
of the class mean, taken without the row itself. A blend of them is the offset from which the scorer of the class
starts, so that it learns what they leave open. With few rows per class that makes it far better, and sparser, than
learning from nothing and blending afterwards. For rows of unit length the projection is the cosine.
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

# How far a scorer trusts the offset, and the factor of its C: one that starts from nothing (one class against the
# others on its shortlists) is better with twice the C of the nodes; one that starts from one and a half times what
# separates the pairs best by itself only corrects that. Held-out rows choose between the two. In cross-validation
# anything between 1 and 2 in place of 1.5 makes no difference to the accuracy; more makes the scorers sparser.
STARTS = ((0.0, 2.0), (1.5, 1.0))
# The blend has three parameters and thousands of pairs; the penalty only keeps it finite.
BLEND_PENALTY = 1e-3
CLASSES_PER_TASK = 64
# Gaps to try, and what part of the held-out rows a smaller one may lose.
GAPS = (3.0, 4.0, 6.0, 8.0, 10.0)
GAP_COST = 0.001


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows with the classes on their shortlists, sorted by class; class k has ``start[k]:start[k + 1]``."""

    start: Index
    row: Index
    sign: Array
    path_score: Array
    projection: Array
    is_listed: npt.NDArray[np.bool_]

    @property
    def class_(self) -> Index:
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


def pairs_of(
    training_set: LinearTrainingSet, class_of_row: Index, weight: Array, listed: Index, scores: Array, own: Array
) -> Pairs:
    """Pair each row with the classes listed for it (-1 fills a list), and with its own if that is missing."""
    n_rows, size = listed.shape
    row, class_ = np.repeat(np.arange(n_rows), size), listed.reshape(-1)
    missing = np.flatnonzero(~(listed == class_of_row[:, None]).any(axis=1))
    there = class_ >= 0
    row = np.concatenate([row[there], missing])
    class_ = np.concatenate([class_[there], class_of_row[missing]])
    path_score = np.concatenate([scores.reshape(-1)[there], own[missing]])
    is_listed = np.arange(len(row)) < len(row) - len(missing)
    order = np.argsort(class_, kind="stable")
    row, class_, path_score, is_listed = row[order], class_[order], path_score[order], is_listed[order]
    start = np.searchsorted(class_, np.arange(training_set.n_classes + 1))
    projection = np.empty(len(row))
    rows = layout(training_set.X)
    norms = kernels.rows.squared_norms(rows, n_rows)
    kernels.leaf_dual.class_projections(
        rows, training_set.X.shape[1], training_set.class_start, weight, norms, start, row, projection
    )
    sign = np.where(class_of_row[row] == class_, 1.0, -1.0)
    return Pairs(start, row, sign, path_score, projection, is_listed)


@dataclass(frozen=True)
class Blend:
    """Offset of a pair: constant + mean_weight * projection + path_weight * path score."""

    constant: float
    mean_weight: float
    path_weight: float

    def times(self, factor: float) -> "Blend":
        """Return the blend with all weights multiplied."""
        return Blend(factor * self.constant, factor * self.mean_weight, factor * self.path_weight)

    def of(self, pairs: Pairs) -> Array:
        """Return the offsets of the pairs."""
        return self.constant + self.mean_weight * pairs.projection + self.path_weight * pairs.path_score


def fit_blend(pairs: Pairs, weight: Array) -> Blend:
    """Return the blend with the least squared hinge loss over all pairs."""
    features = np.column_stack([np.ones(len(pairs.row)), pairs.projection, pairs.path_score])
    blend = kernels.leaf_dual.fit_blend(features, pairs.sign, weight[pairs.row], BLEND_PENALTY, 100)
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
        ridge, offsets = self.training_set.ridge / cost_factor, blend.of(self.pairs)
        norms = kernels.rows.squared_norms(layout(self.training_set.X), self.training_set.n_rows)
        n_classes = self.training_set.n_classes
        tasks = [range(k, min(n_classes, k + CLASSES_PER_TASK)) for k in range(0, n_classes, CLASSES_PER_TASK)]
        parts = in_threads(
            lambda classes: self._train_some(classes, blend, offsets, ridge, norms, counted), tasks, self.n_threads
        )
        return [scorer for part in parts for scorer in part]

    def _train_some(
        self,
        classes: range,
        blend: Blend,
        offsets: Array,
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
            part = slice(pairs.start[k], pairs.start[k + 1])
            row, sign, offset = pairs.row[part], pairs.sign[part], offsets[part]
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

    def _exact(self, row: Index, sign: Array, offset: Array, ridge: Array, mean_weight: float) -> tuple[Index, Array]:
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
    n_features = trainer.training_set.X.shape[1]
    blend = fit_blend(trainer.pairs, trainer.importance)
    asked = fold == 0
    best: tuple[float, Blend, float, _HeldOutScores] | None = None
    for trust, cost_factor in STARTS:
        tried = blend.times(trust)
        table = WeightTable.from_classifiers(trainer.train(tried, cost_factor, ~asked), n_features)
        scores = _held_out_scores(trainer, LeafScorers(table, tried.path_weight, 1.0), asked)
        accuracy = scores.accuracy()
        if best is None or accuracy > best[0]:
            best = accuracy, tried, cost_factor, scores
    assert best is not None
    accuracy, chosen, cost_factor, scores = best
    gap = next((gap for gap in GAPS if scores.accuracy(gap) >= accuracy - GAP_COST), GAPS[-1])
    table = WeightTable.from_classifiers(trainer.train(chosen, cost_factor), n_features)
    return LeafScorers(table, chosen.path_weight, scores.temperature()), gap


@dataclass(frozen=True, eq=False)
class _HeldOutScores:
    """Scores of listed pairs, sorted by row; row r has ``start[r]:start[r + 1]``."""

    start: Index
    score: Array
    path_score: Array
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


def _held_out_scores(trainer: LeafTrainer, scorers: LeafScorers, asked: npt.NDArray[np.bool_]) -> _HeldOutScores:
    pairs = trainer.pairs
    kept = np.flatnonzero(asked[pairs.row] & pairs.is_listed)
    kept = kept[np.argsort(pairs.row[kept], kind="stable")]
    row, class_ = pairs.row[kept], pairs.class_[kept]
    score = np.empty(len(row))
    kernels.ranking.pair_scores(layout(trainer.training_set.X), row, class_, scorers.arrays, score)
    path_score = pairs.path_score[kept]
    score += scorers.path_weight * path_score
    first = np.flatnonzero(np.diff(row, prepend=-1))
    start = np.concatenate([first, [len(row)]])
    return _HeldOutScores(start, score, path_score, pairs.sign[kept] > 0.0, trainer.importance[row[first]])
