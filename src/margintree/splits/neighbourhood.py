"""Improve a labelling by flips and swaps of classes, the most promising first.

Alternation stops where no class would rather be on the other side of the *present* hyperplane, which is
almost at once. Here a neighbour is judged by what its own SVM could reach: every dual point met so far
bounds its objective from below (see ``bounds``), for a few operations per neighbour and no SVM. The
neighbour with the lowest bound is solved, and given up as soon as its dual value passes the best objective.
"""

import numpy as np
import numpy.typing as npt

from margintree.solvers.solution import Array, SVMSolution
from margintree.splits.bounds import DualPoint
from margintree.splits.node import NodeProblem, canonical

# Dual points of labellings long left behind say little about the neighbours of the present one.
REMEMBERED_POINTS = 8
# A smaller relative gain is taken along, but it is no reason to go on searching.
WORTHWHILE = 5e-3


def improve(node: NodeProblem, best: SVMSolution, *, tol: float, slack: float, patience: int) -> SVMSolution:
    """Return the best labelling met; ends after ``patience`` SVMs in a row that were hardly better."""
    neighbours = _Neighbours(node)
    points = [DualPoint(node, best.alpha, node.rows.class_gram(best.alpha))]
    tried = {best.labelling.tobytes()}
    waited = 0
    while waited < patience:
        candidate = neighbours.most_promising(best.labelling, points, (1.0 - slack) * best.objective, tried)
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
    return best


class _Neighbours:
    """All flips of one class and all swaps of two."""

    def __init__(self, node: NodeProblem) -> None:
        self.node = node
        first, second = np.triu_indices(node.n_classes, k=1)
        self.first = np.concatenate([np.arange(node.n_classes), first])
        self.second = np.concatenate([np.arange(node.n_classes), second])
        self.is_flip = self.first == self.second

    def most_promising(
        self, labelling: Array, points: list[DualPoint], ceiling: float, tried: set[bytes]
    ) -> Array | None:
        """Return the feasible neighbour with the lowest bound that is new, if that lies below ``ceiling``."""
        bounds = np.zeros(len(self.first))
        for point in points:
            np.maximum(bounds, point.bounds(self._squared_norms(labelling, point.gram)), out=bounds)
        bounds[~self._feasible(labelling)] = np.inf
        for index in np.argsort(bounds, kind="stable"):
            if bounds[index] >= ceiling:
                break
            candidate = labelling.copy()
            candidate[[self.first[index], self.second[index]]] *= -1.0
            candidate = canonical(candidate)
            if candidate.tobytes() not in tried:
                return candidate
        return None

    def _squared_norms(self, labelling: Array, gram: Array) -> Array:
        product = gram @ labelling
        change = 4.0 * (gram.diagonal() - labelling * product)
        first, second = self.first, self.second
        swapped = change[first] + change[second] + 8.0 * labelling[first] * labelling[second] * gram[first, second]
        return np.asarray(labelling @ product + np.where(self.is_flip, change[first], swapped))

    def _feasible(self, labelling: Array) -> npt.NDArray[np.bool_]:
        weights = labelling * self.node.sizes
        moved = weights[self.first] + np.where(self.is_flip, 0.0, weights[self.second])
        sides_differ = self.is_flip | (labelling[self.first] != labelling[self.second])
        return np.asarray((np.abs(weights.sum() - 2.0 * moved) <= self.node.beta) & sides_differ)
