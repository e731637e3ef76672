"""All rules behind the default predictions. docs/prediction.md has them in a table, with the reason for each.

The tree nominates finalists. A candidate says how many, and what decides between them; ``decision`` compares the
candidates in cross-validation and chooses the cheapest one that is as good as the best.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from margintree.solvers.training_set import LinearTrainingSet, TrainingSet

LOSSES = ("squared_hinge", "log")


@dataclass(frozen=True)
class Candidate:
    """A decider that cross-validation may choose.

    Attributes
    ----------
    decide : {"paths", "pairs", "rest"}
    n_finalists : int
        Maximum number of finalists of a row.
    gap : float
        Largest difference of log path probabilities between finalists.
    offset_scale, cost_factor : float
        For one-vs-rest machines: the factor of the offset that they start from, and the factor of their C.
    loss : {"squared_hinge", "log"}
        For one-vs-rest machines: trained one by one, or as one logistic regression over the classes of each list.
    weighs_path : bool
        Whether the path score is added to the machines with a weight that is fitted to the validation rows. Machines
        that start from an offset have the path in it.
    """

    decide: str
    n_finalists: int
    gap: float
    offset_scale: float = 0.0
    cost_factor: float = 1.0
    loss: str = "squared_hinge"
    weighs_path: bool = True

    def beam(self, asked: int) -> int:
        """Return the width of the beam, given the requested one; 0 means no beam.

        Many finalists need a beam as wide as their number; for the usual number, half of it is enough.
        """
        return max(asked, self.n_finalists) if asked and self.n_finalists > LISTED else asked


# 1. Folds: machines from four fifths of the rows resemble the final ones; with many rows halves do, too, in less time.
FOLDS, FEW_ROWS, FOLDS_OF_MANY_ROWS = 5, 5000, 2
# 2. Machines of folds only calibrate and choose, for which this relative duality gap is enough. It is enough for
# logistic regression on lists, too: its predictions did not change with a smaller one. The number of epochs is limited,
# because features of very different scales would take thousands in every fold.
FOLD_TOL, FOLD_EPOCHS = 1e-2, 100
# 3. A candidate counts as good as the best if it is within so many standard errors of it. With a whole standard error,
# candidates were chosen that saved a fraction of a decision function and lost whole percentage points.
ENOUGH = 0.5
# More finalists or a larger C are not tried where fewer, or a smaller one, are so many standard errors behind.
CLEARLY_BEHIND = 2.0
# 4. A class whose path is twenty times less probable than the best one is rarely the right one.
GAP = 3.0
PATHS = Candidate("paths", 10, GAP)
# 5. Pairs decide among three finalists, among eight, or, with many classes, among 16. With a kernel they decide among
# four, 16 or 50: nodes that learn from samples of many rows nominate less exactly, and most finalists are
# eliminated by one machine. Many finalists need a machine between most classes, so that each row is trained on with all
# classes; that is tried up to so many times the work of one-vs-rest machines.
MANY_CLASSES, MOST_WORK_OF_PAIRS = 16, 10
PAIRS = (Candidate("pairs", 3, GAP), Candidate("pairs", 8, 5.0), Candidate("pairs", 16, 8.0))
PAIRS_OF_KERNELS = (Candidate("pairs", 4, 4.0), Candidate("pairs", 16, 8.0), Candidate("pairs", 50, 20.0))
# 6. One class against the rest has liblinear's C, which is twice ours. Machines that learn from lists may start from an
# offset, or have a larger C. Their lists are longer than those of a prediction, because machines need negatives from
# beyond the gap, too. For dense rows there is also logistic regression that starts from discriminant analysis; with
# C = 0 it is discriminant analysis.
REST = Candidate("rest", 20, GAP, cost_factor=2.0, weighs_path=False)
REST_WITH_LARGE_C = replace(REST, cost_factor=16.0)
REST_FROM_OFFSET = replace(REST, cost_factor=1.0, offset_scale=1.25)
LISTED, LISTED_OF_DENSE, LIST_GAP = 20, 50, 2.0 * GAP
LOGISTIC = tuple(replace(REST, cost_factor=cost, loss="log") for cost in (0.0, 1.0, 8.0))
MORE_FINALISTS = ((20, GAP), (50, 2.0 * GAP), (100, 3.0 * GAP))
# The rest are all other rows, and all classes are finalists, while a pass over them takes no more products than this;
# those of dense rows are so much faster.
WORK_OF_ALL, DENSE_SPEED = 2**26, 8
# 7. Folds are validation rows in turn, until there are enough rows to compare candidates. Where machines learn from
# lists, validation rows are left out of the machines that make the lists, too: a seventh of the rows at a time.
# With a single candidate they only fit the weights of its scores.
PARTS, VALIDATION_ROWS, MOST_VALIDATION_ROWS, WEIGHING_ROWS = 7, 1000, 2500, 500
# 8. On no set were paths alone better than pairs, which evaluate one more machine and add the weighted path score. With
# a kernel, one-vs-rest machines take the most time and were the best on no set. Two classes need no decider.
DECIDERS, DECIDERS_OF_KERNELS, DECIDERS_OF_TWO = ("pairs", "rest"), ("pairs",), ("paths",)


@dataclass(frozen=True)
class Wanted:
    """The parameters given by the user; None and "auto" leave the choice to the rules."""

    decide: str
    n_finalists: int | None
    gap: float | None
    n_folds: int | None
    width: int
    prune: float


def number_of_folds(wanted: Wanted, n_rows: int) -> int:
    """Return the folds that calibrate the nodes."""
    return wanted.n_folds or (FOLDS if n_rows <= FEW_ROWS else FOLDS_OF_MANY_ROWS)


def n_products(training_set: TrainingSet, n_classes: int) -> float:
    """Return the products of a pass over the rows, each with so many classes; those of dense rows are faster."""
    X = training_set.X
    return n_classes * (X.size / DENSE_SPEED if isinstance(X, np.ndarray) else X.nnz)


def learns_from_all(training_set: TrainingSet) -> bool:
    """Return whether one-vs-rest machines learn from all rows, not from lists."""
    return n_products(training_set, training_set.n_classes) <= WORK_OF_ALL


def trains_most_pairs(training_set: TrainingSet) -> bool:
    """Return whether machines between most pairs of classes take little enough more work than one-vs-rest machines."""
    of_rest = max(WORK_OF_ALL, n_products(training_set, LISTED))
    return n_products(training_set, training_set.n_classes) <= MOST_WORK_OF_PAIRS * of_rest


def has_covariance(training_set: TrainingSet) -> bool:
    """Return whether the rows have explicit features and a covariance: they are dense, or few and narrow."""
    return isinstance(training_set, LinearTrainingSet) and training_set.has_moments


def number_of_parts(n_rows: int) -> int:
    """Return the number of parts of the rows that are held out in turn for machines that learn from lists."""
    return min(PARTS, math.ceil(VALIDATION_ROWS * PARTS / n_rows))


def rank_without_validation(candidate: Candidate) -> tuple[bool, bool, int]:
    """Return the rank of a candidate if there are no validation rows.

    Logistic regression for dense rows, else one-vs-rest, or one-vs-one with a kernel; always with the most finalists.
    """
    is_logistic = candidate.loss == "log" and candidate.cost_factor == 1.0
    return is_logistic, candidate.decide == "rest" and candidate.offset_scale == 0.0, candidate.n_finalists


def against_the_rest(training_set: TrainingSet) -> list[Candidate]:
    """Return the candidates with one machine per class."""
    n_classes, is_linear = training_set.n_classes, training_set.function is None
    if learns_from_all(training_set):
        flat = (*(LOGISTIC if has_covariance(training_set) else ()), REST)
        return [*(replace(one, n_finalists=n_classes) for one in flat), replace(REST, weighs_path=True)]
    if has_covariance(training_set):
        return [replace(one, n_finalists=size, gap=gap) for size, gap in MORE_FINALISTS for one in LOGISTIC]
    return [REST_FROM_OFFSET, REST, REST_WITH_LARGE_C] if is_linear else [REST]


def candidates(wanted: Wanted, training_set: TrainingSet) -> list[Candidate]:
    """Return the candidates for cross-validation."""
    n_classes, is_linear = training_set.n_classes, training_set.function is None
    names: tuple[str, ...] = DECIDERS if is_linear else DECIDERS_OF_KERNELS
    if wanted.decide != "auto":
        names = (wanted.decide,)
    elif n_classes == 2:
        names = DECIDERS_OF_TWO
    few, more, most = PAIRS if is_linear else PAIRS_OF_KERNELS
    many = [more, most] if n_classes > MANY_CLASSES else [more]
    if is_linear and not trains_most_pairs(training_set):
        many = []
    # What costs most to train comes last, and may not be tried at all.
    found = [one for one in (PATHS, few, *against_the_rest(training_set), *many) if one.decide in names]
    if wanted.n_finalists is not None:
        found = [replace(one, n_finalists=wanted.n_finalists) for one in found]
    if wanted.gap is not None:
        found = [replace(one, gap=wanted.gap) for one in found]
    return list(dict.fromkeys(replace(one, n_finalists=min(one.n_finalists, n_classes)) for one in found))
