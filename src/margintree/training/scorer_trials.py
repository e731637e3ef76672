"""How scorers of leaves start, chosen by juries of rows that no machine or scorer in the trial has seen.

A jury must be out of the fold machines, too. Rows on whose lists a class appears are its negatives: with a row in the
training set of the machines that make the lists, the rows that resemble it are listed with its class, and scorers
trained against just these would look bad at it. With a jury apart, what a trial says of a start is what new rows say of
it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from margintree import kernels
from margintree.prediction.ranker import LeafScorers
from margintree.prediction.weight_table import WeightTable
from margintree.solvers.linear_rows import layout
from margintree.solvers.solution import Array
from margintree.training.leaf_scorers import CLASSES_PER_TASK, Blend, LeafTrainer, fit_blend, projections

Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# How far a scorer trusts the offset, and the factor of its C, in the order in which they are tried: from correcting a
# little more than what separates the pairs best by itself, over learning most of it, to starting from nothing, one
# class against the others on its shortlists, with ever larger C.
STARTS = ((1.25, 1.0), (0.3, 4.0), (0.0, 2.0), (0.0, 16.0), (0.0, 128.0))
# Of starts that are within half a standard error of the best, the first in this order is taken: sparser ones before
# others, then the one that depends on nothing but the row before one that needs paths and means to stay what they are.
PREFERENCE = (0, 2, 1, 3, 4)
ENOUGH = 0.5
# The rest is not tried after two starts that are no better than the best before them, after one that is worse by so
# many standard errors, and once, starting from nothing, a larger C is no better than a smaller one.
HOPELESS = 3.0
# Gaps to try, and what part of the jury a smaller one may lose.
GAPS = (3.0, 4.0, 6.0, 8.0, 10.0)
GAP_COST = 0.0005
# Relative duality gap of scorers that only serve to choose.
TRIAL_TOL = 1e-2
CLASSES_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Hearing:
    """A jury, and the trainer whose pairs come from machines that have not seen it."""

    trainer: LeafTrainer
    jury: Mask
    # Of all rows of the class that are equal to a row.
    weight_of_copies: Array

    @cached_property
    def trainer_without(self) -> LeafTrainer:
        """The trainer when the class means, too, are those of the other rows."""
        trainer, pairs = self.trainer, self.trainer.pairs
        seen = np.where(self.jury, 0.0, trainer.weight)
        means_of_others = projections(trainer.training_set, seen, pairs.start, pairs.row)
        return replace(trainer, pairs=replace(pairs, projection=means_of_others), tol=max(trainer.tol, TRIAL_TOL))

    @cached_property
    def blend(self) -> Blend:
        """The blend of the other rows."""
        return fit_blend(self.trainer_without.pairs, np.where(self.jury, 0.0, self.trainer.importance))

    def scores(self, trust: float, cost_factor: float) -> "JuryScores":
        """Return what the jury gets from scorers that are trained without it."""
        return jury_scores(self, self.blend.times(trust), cost_factor)


def train_scorers(trainer: LeafTrainer, hearings: Sequence[Hearing]) -> tuple[LeafScorers, float]:
    """Let the juries choose a start, then train on all rows.

    Returns the scorers, and the smallest gap of the beam that costs the juries next to nothing.
    """

    def tried(trust: float, cost_factor: float) -> Trial:
        return Trial(trust, cost_factor, together([hearing.scores(trust, cost_factor) for hearing in hearings]))

    best = best_trial(tried)
    gap = next((gap for gap in GAPS if best.scores.accuracy(gap) >= best.scores.accuracy() - GAP_COST), GAPS[-1])
    start = fit_blend(trainer.pairs, trainer.importance).times(best.trust)
    return trainer.scorers(start, best.cost_factor, best.scores.temperature()), gap


def best_trial(tried: "Callable[[float, float], Trial]") -> "Trial":
    """Go through the starts as long as there is hope, and take the preferred one of the best."""
    trials = [tried(*STARTS[0])]
    top, n_misses = trials[0], 0
    for start in STARTS[1:]:
        trials.append(tried(*start))
        gain, error = trials[-1].gain_over(top)
        if gain > 0.0:
            top = trials[-1]
            continue
        n_misses += 1
        if n_misses == 2 or gain < -HOPELESS * error or top.trust == start[0] == 0.0:
            break
    for number in PREFERENCE:
        if number < len(trials):
            loss, error = top.gain_over(trials[number])
            if loss <= ENOUGH * error:
                return trials[number]
    return top


@dataclass(frozen=True, eq=False)
class JuryScores:
    """Scores of listed pairs, sorted by row; row r has ``start[r]:start[r + 1]``."""

    start: Index
    score: Array
    path_score: npt.NDArray[np.float32]
    is_own: Mask
    weight: Array
    weight_of_copies: Array

    def is_right(self, gap: float = np.inf) -> Mask:
        """Return for which rows the own class scores highest among paths within the gap."""
        if len(self.weight) == 0:
            return np.zeros(0, dtype=np.bool_)
        best_path = np.maximum.reduceat(self.path_score, self.start[:-1])
        is_near = self.path_score >= np.repeat(best_path, np.diff(self.start)) - gap
        score = np.where(is_near, self.score, -np.inf)
        highest = np.maximum.reduceat(score, self.start[:-1])
        own = np.where(self.is_own & is_near, score, -np.inf)
        return np.asarray(np.maximum.reduceat(own, self.start[:-1]) >= highest)

    def accuracy(self, gap: float = np.inf) -> float:
        """Return the weighted part of the rows that are right."""
        return float(self.weight @ self.is_right(gap) / self.weight.sum()) if self.weight.any() else 0.0

    def temperature(self) -> float:
        """Return the factor of the scores whose softmax gives the rows' own classes most likelihood.

        Only rows that list their own class can say; without any, scores stay as they are.
        """
        own_listed = np.logical_or.reduceat(self.is_own, self.start[:-1]) if len(self.weight) else np.zeros(0, bool)
        if not own_listed.any():
            return 1.0
        return float(kernels.sigmoids.fit_temperature(self.start, self.score, self.is_own, self.weight * own_listed))


def together(parts: Sequence[JuryScores]) -> JuryScores:
    """Return the scores of all juries, one behind another."""
    ends = np.cumsum([part.start[-1] for part in parts])
    start = [part.start[:-1] + end - part.start[-1] for part, end in zip(parts, ends, strict=True)]
    return JuryScores(
        np.concatenate([*start, ends[-1:]]),
        np.concatenate([part.score for part in parts]),
        np.concatenate([part.path_score for part in parts]),
        np.concatenate([part.is_own for part in parts]),
        np.concatenate([part.weight for part in parts]),
        np.concatenate([part.weight_of_copies for part in parts]),
    )


@dataclass(frozen=True, eq=False)
class Trial:
    """What scorers with a start and a factor of their C make of the juries."""

    trust: float
    cost_factor: float
    scores: JuryScores

    @cached_property
    def is_right(self) -> Mask:
        """For each row of the jury."""
        return self.scores.is_right()

    def gain_over(self, other: "Trial") -> tuple[float, float]:
        """Return by how much more of the jury is right than in another trial, and the standard error of that.

        The error is that of trials without a difference, as in McNemar's test; copies of a row say the same.
        """
        weight = self.scores.weight
        if not weight.any():
            return 0.0, 0.0
        difference = self.is_right.astype(float) - other.is_right
        variance = (weight * self.scores.weight_of_copies) @ np.square(difference)
        return float(weight @ difference / weight.sum()), float(np.sqrt(variance) / weight.sum())


def jury_scores(hearing: Hearing, blend: Blend, cost_factor: float) -> JuryScores:
    """Return what scorers that are trained on the other rows say of the classes on the lists of the jury."""
    trainer, jury = hearing.trainer_without, hearing.jury
    pairs, n_classes = trainer.pairs, trainer.training_set.n_classes
    start, pair, class_ = kernels.pairs.pairs_by_row(pairs.class_start, pairs.start, pairs.row, pairs.is_listed, jury)
    row, path_score = pairs.row[pair], pairs.path_score[pair]
    score = blend.path_weight * path_score.astype(np.float64)
    # Some classes at a time: all scorers at once would be much of the memory of a fit, for nothing that is kept.
    at_once = max(CLASSES_AT_ONCE, trainer.n_threads * CLASSES_PER_TASK)
    for first in range(0, n_classes, at_once):
        classes = range(first, min(n_classes, first + at_once))
        machines = trainer.train(blend, cost_factor, ~jury, classes)
        table = WeightTable.from_classifiers(machines, trainer.training_set.X.shape[1])
        mine = np.flatnonzero((class_ >= first) & (class_ < classes.stop))
        own = np.empty(len(mine))
        scorers = LeafScorers(table, blend.path_weight, 1.0)
        kernels.ranking.pair_scores(
            layout(trainer.training_set.X), row[mine], class_[mine] - first, scorers.arrays, own
        )
        score[mine] += own
    is_own = (row >= pairs.class_start[class_]) & (row < pairs.class_start[class_ + 1])
    juror = row[start[:-1]]
    return JuryScores(start, score, path_score, is_own, trainer.importance[juror], hearing.weight_of_copies[juror])
