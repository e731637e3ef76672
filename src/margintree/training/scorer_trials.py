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
from margintree.training.jury import ENOUGH_TO_LEAN, JuryScores, together
from margintree.training.leaf_scorers import CLASSES_PER_TASK, DENSE, Blend, LeafTrainer, fit_blend, projections

Mask = npt.NDArray[np.bool_]

# How far a scorer trusts the offset, and the factor of its C, in the order in which they are tried: correcting a little
# more than what separates the pairs best by itself, or starting from nothing, one class against the others on its
# shortlists, with ever larger C. The first is taken that is within a standard error of the best.
STARTS = ((1.25, 1.0), (0.0, 2.0), (0.0, 16.0), (0.0, 128.0))
# Where all classes may be asked and rows are mostly zeros, as those of texts, one class against all others goes first.
# The offset is then worth less than chance lets it look, and so is the path.
STARTS_BY_ROWS = (STARTS[1], STARTS[0], *STARTS[2:])
ENOUGH = 1.0
# The rest is not tried after two starts that are no better than the best before them, after one that is worse by so
# many standard errors, and once, starting from nothing, a larger C is no better than a smaller one.
HOPELESS = 3.0
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

    def scores(self, trust: float, cost_factor: float) -> JuryScores:
        """Return what the jury gets from scorers that are trained without it."""
        return jury_scores(self, self.blend.times(trust), cost_factor)


def choose(hearings: Sequence[Hearing], *, asks_all: bool = False) -> "Trial":
    """Let the juries choose a start; with ``asks_all`` all classes are asked where the path has no weight."""
    by_rows = asks_all and hearings[0].trainer.training_set.density < DENSE

    def trial(trust: float, cost_factor: float) -> Trial:
        heard = together([hearing.scores(trust, cost_factor) for hearing in hearings])
        return Trial(trust, cost_factor, heard, asks_all, by_rows)

    return best_trial(trial, STARTS_BY_ROWS if by_rows else STARTS)


def best_trial(tried: "Callable[[float, float], Trial]", starts: Sequence[tuple[float, float]] = STARTS) -> "Trial":
    """Go through the starts as long as there is hope, and take the first one that is as good as the best."""
    trials = [tried(*starts[0])]
    top, n_misses = trials[0], 0
    for start in starts[1:]:
        trials.append(tried(*start))
        gain, error = trials[-1].gain_over(top)
        if gain > 0.0:
            top = trials[-1]
            continue
        n_misses += 1
        if n_misses == 2 or gain < -HOPELESS * error or top.trust == start[0] == 0.0:
            break
    behind = [top.gain_over(trial) for trial in trials]
    return next(trial for trial, (loss, error) in zip(trials, behind, strict=True) if loss <= ENOUGH * error)


@dataclass(frozen=True, eq=False)
class Trial:
    """What scorers with a start and a factor of their C make of the juries."""

    trust: float
    cost_factor: float
    heard: JuryScores
    asks_all: bool = False
    by_rows: bool = False

    @cached_property
    def lean(self) -> float:
        """The weight of the path beside the scorers; the offset, where they start from one, has it already."""
        if self.trust > 0.0:
            return 0.0
        return self.heard.best_lean(asks_all=self.asks_all, enough=ENOUGH if self.by_rows else ENOUGH_TO_LEAN)

    @cached_property
    def scores(self) -> JuryScores:
        """Of the listed pairs, with the path."""
        return self.heard.leaning(self.lean)

    @cached_property
    def is_right(self) -> Mask:
        """For each row of the jury."""
        return self.scores.is_right()

    def gain_over(self, other: "Trial") -> tuple[float, float]:
        """Return by how much more of the jury is right than in another trial, and the standard error of that."""
        return self.scores.gain(self.is_right, other.is_right)

    def scorers(self, trainer: LeafTrainer) -> LeafScorers:
        """Return scorers that start in the same way and learn from all rows."""
        blend = fit_blend(trainer.pairs, trainer.importance).times(self.trust)
        scorers = trainer.scorers(blend, self.cost_factor, self.scores.temperature())
        return replace(scorers, path_weight=scorers.path_weight + self.lean)


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
