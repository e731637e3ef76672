"""Evaluation of candidates on validation rows: accuracy, cost, and the weights of their scores.

Scores of a decider become probabilities by two weights with the largest likelihood on the validation rows: the slope of
the machines' values, and the weight of the path score.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from margintree.prediction.decider import Decider
from margintree.prediction.ranker import Ranker, decided, machine_values, path_candidates
from margintree.solvers.score_weights import ScoreGroups
from margintree.solvers.solution import Array
from margintree.training.defaults import Candidate
from margintree.training.held_out import HeldOut, Mask, TreeModel

Index = npt.NDArray[np.int64]

# Strength of the pull towards a slope of 1 and a path weight of 0, in rows.
CALIBRATION_PULL = 0.1
LEAST_SLOPE = 1e-3


@dataclass(frozen=True, eq=False)
class Result:
    """The results of a candidate on validation rows."""

    is_right: Mask
    importance: Array
    n_evaluations: Array
    slope: float = 1.0
    path_weight: float = 0.0

    @property
    def accuracy(self) -> float:
        """The share of rows that are classified correctly."""
        total = self.importance.sum()
        return float(self.importance @ self.is_right / total) if total else 0.0

    def gain_over(self, other: "Result") -> tuple[float, float]:
        """Return the difference in accuracy on the same rows, and its standard error."""
        difference = self.importance * (self.is_right.astype(float) - other.is_right)
        total = self.importance.sum()
        return float(difference.sum() / total), float(np.linalg.norm(difference) / total)


# Lengths of groups of scores, two scores of each entry, whether it is that of the row's own class, weights of groups.
Groups = tuple[Index, Array, Array, Mask, Array]


class Evaluation:
    """A decider trained without the validation rows, and the finalists of these.

    ``parts`` are the validation rows with the models that nominate their finalists (``HeldOut.parts``).
    """

    def __init__(
        self,
        held_out: HeldOut,
        validation: Mask,
        candidate: Candidate,
        width: int,
        decider: Decider,
        parts: Sequence[tuple[Index, TreeModel]],
    ) -> None:
        self.held_out, self.validation, self.candidate, self.decider = held_out, validation, candidate, decider
        self.width = candidate.beam(width)
        self._parts = parts
        limits = (self.width, candidate.gap, candidate.n_finalists)
        self._finalists = [
            path_candidates(model, held_out.rows.take(rows), *limits)
            for rows, model in (held_out.parts(validation) if decider.kind != "paths" else ())
        ]

    def _with_own_among_finalists(self) -> Iterator[tuple[Index, TreeModel, Index, Array]]:
        """Yield rows whose own class is a finalist; the others do not depend on the decider."""
        for (rows, model), (finalists, path) in zip(self._parts, self._finalists, strict=True):
            found = np.flatnonzero((finalists == self.held_out.rows.classes[rows][:, None]).any(axis=1))
            if len(found):
                yield rows[found], model, finalists[found], path[found]

    def groups_of_pairs(self) -> Iterator[Groups]:
        """Yield the value of the own class against each other finalist, and zero."""
        for rows, model, finalists, _ in self._with_own_among_finalists():
            own = self.held_out.rows.classes[rows]
            row, place = np.nonzero(finalists >= 0)
            machine, sign = self.decider.machines_between(own[row], finalists[row, place])
            row, machine, sign = row[machine >= 0], machine[machine >= 0], sign[machine >= 0]
            X = self.held_out.rows.take(rows)
            value = np.column_stack([sign * machine_values(model, self.decider, X, row, machine), np.zeros(len(row))])
            weight, is_own = self.held_out.counted[rows][row], np.tile([True, False], len(row))
            yield np.full(len(row), 2), value.ravel(), np.zeros(value.size), is_own, weight

    def groups_of_finalists(self, decider: Decider) -> Iterator[Groups]:
        """Yield the scores of the finalists by the decider and by their paths."""
        for rows, model, finalists, path in self._with_own_among_finalists():
            scores = decided(model, decider, self.held_out.rows.take(rows), finalists, path)
            listed = finalists >= 0
            is_own = (finalists == self.held_out.rows.classes[rows][:, None])[listed]
            weight = self.held_out.counted[rows]
            yield listed.sum(axis=1), scores[listed], path[listed], is_own, weight

    def labels(self, decider: Decider, n_threads: int) -> tuple[Mask, Array]:
        """Return which of the validation rows are classified correctly, and the machines that were evaluated."""
        rows, n_rows = self.held_out.rows, len(self.validation)
        label, count = np.empty(n_rows, dtype=np.int64), np.empty(n_rows)
        for held_out, model in self._parts:
            ranker = Ranker(model, decider, self.width, self.candidate.gap, self.candidate.n_finalists)
            label[held_out], count[held_out] = ranker.winners(rows.take(held_out), n_threads)
        return (label == rows.classes)[self.validation], count[self.validation]


def result_of(folds: Sequence[Evaluation], n_threads: int) -> Result:
    """Fit the weights of a candidate's scores to the validation rows of all folds, and classify them."""
    if not folds:
        return Result(np.empty(0, dtype=np.bool_), np.empty(0), np.empty(0))
    kind, weighs_path = folds[0].decider.kind, folds[0].candidate.weighs_path
    slope, path_weight = 1.0, 0.0
    if kind == "pairs":
        slope, _ = weights_of([groups for one in folds for groups in one.groups_of_pairs()], (True, False))
    if kind != "paths":
        plain = [replace(one.decider, slope=slope) for one in folds]
        groups = [part for one, decider in zip(folds, plain, strict=True) for part in one.groups_of_finalists(decider)]
        found, path_weight = weights_of(groups, (kind == "rest", weighs_path))
        slope *= found
    weighed = [weighed_decider(one.decider, slope, path_weight) for one in folds]
    right, counts = zip(*(one.labels(d, n_threads) for one, d in zip(folds, weighed, strict=True)), strict=True)
    importance = [one.held_out.counted[one.validation] for one in folds]
    return Result(np.concatenate(right), np.concatenate(importance), np.concatenate(counts), slope, path_weight)


def weighed_decider(decider: Decider, slope: float, path_weight: float) -> Decider:
    """Return the decider with its slope, and with the path weight added to the one that it may already have."""
    if decider.kind == "rest":
        # Here the slope multiplies both.
        path_weight = decider.path_weight + path_weight / slope
    return replace(decider, slope=slope, path_weight=path_weight)


def weights_of(groups: Sequence[Groups], is_free: tuple[bool, bool]) -> tuple[float, float]:
    """Return the weights of two scores whose softmax gives the own classes the largest likelihood."""
    if not groups:
        return 1.0, 0.0
    lengths, first, second, is_own, weights = (np.concatenate(column) for column in zip(*groups, strict=True))
    start = np.concatenate([[0], np.cumsum(lengths)])
    pull, usual = np.full(2, CALIBRATION_PULL), np.array([1.0, 0.0])
    found = ScoreGroups(start, np.column_stack([first, second]), is_own, weights)
    slope, path_weight = found.fit(usual, pull, np.array(is_free))
    return max(float(slope), LEAST_SLOPE), float(path_weight)
