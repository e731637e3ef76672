"""What a jury hears of scorers, and what follows: a temperature, a weight of the path, and a gap of the beam."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree import kernels
from margintree.solvers.solution import Array

Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# A scorer that starts from nothing knows nothing of the path, which may be added with one of these weights.
LEANS = (0.0, 0.2, 0.5, 1.0)
# The first is taken that is within half a standard error of the best: a ranking by nothing but the row goes before one
# that needs paths to stay what they are.
ENOUGH_TO_LEAN = 0.5
# Gaps to try, and what part of the rows must get a right label for each further class that is looked at on average.
GAPS = (3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
PRICE = 0.0002
# Scorers are compared within this gap. Further out there is more to go wrong for those that do not know the path, and
# a path far below the best is seldom looked at.
USUAL_GAP = 5.0


@dataclass(frozen=True, eq=False)
class JuryScores:
    """Scores of listed pairs, sorted by row, then by class; row r has ``start[r]:start[r + 1]``."""

    start: Index
    score: Array
    path_score: npt.NDArray[np.float32]
    is_own: Mask
    weight: Array
    weight_of_copies: Array

    def is_right(self, gap: float = USUAL_GAP) -> Mask:
        """Return for which rows the own class scores highest among paths within the gap.

        Of classes that tie the first wins, as in prediction; an empty row may have the same score for all of them.
        """
        score = np.where(self._is_near(gap), self.score, -np.inf)
        is_highest = score == np.repeat(self._highest(score), np.diff(self.start))
        before = np.cumsum(is_highest) - is_highest
        is_first = is_highest & (before == np.repeat(before[self.start[:-1]], np.diff(self.start)))
        return np.asarray(self._highest(is_first & self.is_own))

    def mean(self, value: Array | Mask) -> float:
        """Return the weighted mean of a value of rows, 0 without any."""
        return float(self.weight @ value / self.weight.sum()) if self.weight.any() else 0.0

    def gain(self, is_right: Mask, other: Mask) -> tuple[float, float]:
        """Return how much more of the jury is right than in the other case, and the standard error of that.

        The error is that of cases without a difference, as in McNemar's test; copies of a row say the same.
        """
        difference = is_right.astype(float) - other
        variance = self.mean(self.weight_of_copies * np.square(difference))
        return self.mean(difference), float(np.sqrt(variance / max(self.weight.sum(), np.finfo(float).tiny)))

    def leaning(self, lean: float) -> "JuryScores":
        """Return the scores with so much of the path added."""
        return replace(self, score=self.score + lean * self.path_score.astype(np.float64))

    def best_lean(self, *, asks_all: bool = False, enough: float = ENOUGH_TO_LEAN) -> float:
        """Return the smallest lean that is within so many standard errors of the best.

        With ``asks_all`` a ranking without the path is one of all classes, far from the best path or not.
        """
        gaps = [np.inf if asks_all and lean == 0.0 else USUAL_GAP for lean in LEANS]
        right = [self.leaning(lean).is_right(gap) for lean, gap in zip(LEANS, gaps, strict=True)]
        top = max(right, key=self.mean)
        behind = [self.gain(top, is_right) for is_right in right]
        return next(lean for lean, (loss, error) in zip(LEANS, behind, strict=True) if loss <= enough * error)

    def temperature(self) -> float:
        """Return the factor of the scores whose softmax gives the rows' own classes most likelihood.

        Only rows that list their own class can say; without any, scores stay as they are.
        """
        own_listed = self._highest(self.is_own)
        if not own_listed.any():
            return 1.0
        return float(kernels.sigmoids.fit_temperature(self.start, self.score, self.is_own, self.weight * own_listed))

    def best_gap(self) -> float:
        """Return the gap of the beam that is worth the classes it looks at."""
        n_near = [self.mean(self._sum(self._is_near(gap).astype(float))) for gap in GAPS]
        value = [self.mean(self.is_right(gap)) - PRICE * n for gap, n in zip(GAPS, n_near, strict=True)]
        return GAPS[int(np.argmax(value))]

    def _is_near(self, gap: float) -> Mask:
        """Return which pairs have a path within the gap of the row's best."""
        best_path = np.repeat(self._highest(self.path_score), np.diff(self.start))
        return np.asarray(self.path_score >= best_path - gap)

    def _highest(self, value: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.maximum.reduceat(value, self.start[:-1]) if len(self.weight) else value[:0]

    def _sum(self, value: Array) -> Array:
        return np.add.reduceat(value, self.start[:-1]) if len(self.weight) else value[:0]


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
