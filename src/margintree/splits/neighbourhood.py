"""Improve a labelling by flips and swaps of classes, the most promising first.

Alternation stops when no class has a lower loss on the other side of the *current* hyperplane, which is almost at once.
Here a neighbour is judged by what its own SVM could reach: every dual point met so far bounds its objective from below
(see ``bounds``), for a few operations per neighbour and no SVM. The neighbour with the lowest bound is solved, and
abandoned as soon as its dual value exceeds the best objective.
"""

import numpy as np
import numpy.typing as npt

from margintree.solvers.solution import Array, SVMSolution
from margintree.splits.bounds import DualPoint
from margintree.splits.node import NodeProblem, canonical

# Older dual points give weak bounds on the neighbours of the current labelling.
REMEMBERED_POINTS = 8
# A smaller relative gain is accepted, but does not restart the count of patience.
WORTHWHILE = 5e-3


def improve(node: NodeProblem, best: SVMSolution, *, tol: float, slack: float, patience: int) -> SVMSolution:
    """Return the best labelling found; stop after ``patience`` SVMs in a row without real improvement."""
    points = [DualPoint(node, best.alpha, node.rows.class_gram(best.alpha))]
    neighbours = _Neighbours(node)
    neighbours.surround(best.labelling, points)
    tried = {best.labelling.tobytes()}
    waited = 0
    while waited < patience:
        candidate = neighbours.most_promising((1.0 - slack) * best.objective, tried)
        if candidate is None:
            break
        tried.add(candidate.tobytes())
        solution = node.solve(candidate, tol=tol, cutoff=best.objective, start=best)
        points.append(DualPoint(node, solution.alpha, node.rows.class_gram(solution.alpha)))
        points = points[-REMEMBERED_POINTS:]
        waited += 1
        if solution.objective < best.objective:
            if solution.objective < (1.0 - WORTHWHILE) * best.objective:
                waited = 0
            best = solution
            neighbours.surround(best.labelling, points)
        else:
            neighbours.raise_bounds(points[-1])
    return best


class _Neighbours:
    """All flips of one class and all swaps of two, around one labelling, with their bounds."""

    def __init__(self, node: NodeProblem) -> None:
        self.node = node
        first, second = np.triu_indices(node.n_classes, k=1)
        self.first = np.concatenate([np.arange(node.n_classes), first])
        self.second = np.concatenate([np.arange(node.n_classes), second])
        self.is_flip = self.first == self.second

    def surround(self, labelling: Array, points: list[DualPoint]) -> None:
        """Move to the neighbours of this labelling, with the bounds given by the dual points."""
        self.labelling = labelling
        self.bounds = np.where(self._feasible(), 0.0, np.inf)
        for point in points:
            self.raise_bounds(point)

    def raise_bounds(self, point: DualPoint) -> None:
        """Raise the bounds to those of one more dual point."""
        np.maximum(self.bounds, point.bounds(self._squared_norms(point.gram)), out=self.bounds)

    def most_promising(self, ceiling: float, tried: set[bytes]) -> Array | None:
        """Return the feasible neighbour with the lowest bound that is new, if that lies below ``ceiling``."""
        while True:
            index = int(np.argmin(self.bounds))
            if self.bounds[index] >= ceiling:
                return None
            candidate = self.labelling.copy()
            candidate[[self.first[index], self.second[index]]] *= -1.0
            candidate = canonical(candidate)
            if candidate.tobytes() not in tried:
                return candidate
            self.bounds[index] = np.inf

    def _squared_norms(self, gram: Array) -> Array:
        z, first, second = self.labelling, self.first, self.second
        product = gram @ z
        change = 4.0 * (gram.diagonal() - z * product)
        swapped = change[first] + change[second] + 8.0 * z[first] * z[second] * gram[first, second]
        return np.asarray(z @ product + np.where(self.is_flip, change[first], swapped))

    def _feasible(self) -> npt.NDArray[np.bool_]:
        weights = self.labelling * self.node.sizes
        moved = weights[self.first] + np.where(self.is_flip, 0.0, weights[self.second])
        sides_differ = self.is_flip | (self.labelling[self.first] != self.labelling[self.second])
        return np.asarray((np.abs(weights.sum() - 2.0 * moved) <= self.node.beta) & sides_differ)
