"""The weights of two scores whose softmax is most likely to rank the right entries first."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from margintree.compiled import MAX_HALVINGS
from margintree.solvers.solution import Array

Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MAX_STEPS = 100
# Far below rounding of what is known, these keep the system regular where both scores are the same.
RELATIVE_RIDGE, RIDGE = 1e-9, 1e-300


@dataclass(frozen=True, eq=False)
class ScoreGroups:
    """Groups of entries with two scores each; one entry of each group is the right one.

    Group g has the entries ``start[g] : start[g + 1]`` and counts as ``weights[g]`` rows.
    """

    start: Index
    scores: Array
    is_right: Mask
    weights: Array

    def fit(self, usual: Array, pull: Array, is_free: Mask) -> Array:
        """Return the weights that minimise the negative log likelihood of the right entries; none is negative.

        A penalty towards the ``usual`` weights, with the strength of ``pull`` rows, keeps them finite if every right
        entry ranks first. A weight that is not free keeps its usual value.
        """
        best, free = usual.copy(), is_free.copy()
        while True:
            best = self._newton(best, usual, pull, free)
            lowest = int(np.argmin(best))
            if best[lowest] >= 0.0:
                return best
            best[lowest], free[lowest] = 0.0, False

    def _newton(self, best: Array, usual: Array, pull: Array, free: Mask) -> Array:
        lengths = np.diff(self.start)
        # Differences to the right entry, so that scores of any level keep their precision.
        differences = (self.scores - np.repeat(self.scores[self.is_right], lengths, axis=0)).T
        loss, gradient, hessian = self._loss(best, usual, pull, differences)
        for _ in range(MAX_STEPS):
            step = np.zeros(2)
            ridge = np.diag(RELATIVE_RIDGE * np.diagonal(hessian) + RIDGE)
            step[free] = np.linalg.solve((hessian + ridge)[np.ix_(free, free)], -gradient[free])
            if -(step @ gradient) <= 1e-14 * (1.0 + loss):
                return best
            for _ in range(MAX_HALVINGS):
                new = self._loss(best + step, usual, pull, differences)
                if new[0] < loss:
                    break
                step *= 0.5
            else:
                return best
            best, (loss, gradient, hessian) = best + step, new
        return best

    def _loss(self, blend: Array, usual: Array, pull: Array, differences: Array) -> tuple[float, Array, Array]:
        """Return the loss, its gradient and its Hessian. Products are sums of numpy's: BLAS depends on its threads."""
        first, lengths = self.start[:-1], np.diff(self.start)
        score = blend[0] * differences[0] + blend[1] * differences[1]
        highest = np.maximum.reduceat(score, first)
        p = np.exp(score - np.repeat(highest, lengths))
        total = np.add.reduceat(p, first)
        p /= np.repeat(total, lengths)
        weighed = p * differences
        mean = np.add.reduceat(weighed, first, axis=1)
        away = blend - usual
        loss = 0.5 * np.sum(pull * away**2) + np.sum(self.weights * (highest + np.log(total)))
        spread = differences - np.repeat(mean, lengths, axis=1)
        p *= np.repeat(self.weights, lengths)
        between = [np.sum(p * spread[i] * spread[j]) for i, j in ((0, 0), (0, 1), (1, 1))]
        hessian = np.diag(pull) + np.array([[between[0], between[1]], [between[1], between[2]]])
        return float(loss), pull * away + np.sum(self.weights * mean, axis=1), hessian
