"""Search the labellings best first, and leave out those that weak duality rules out.

Any dual point a bounds P of every labelling at once: with G its class Gram matrix,

    P(z) >= (1'a)^2 / (2 (z'Gz + sum_j r_j a_j^2)),

which costs c*^2 per labelling and no SVM. Each SVM that is solved therefore raises the bounds of all
other labellings. The next one to solve is always that with the lowest bound, started from the dual
point that gave the bound, and given up as soon as its dual value passes the best objective found.
When no bound lies below that objective the search has proved its optimum.

On the root nodes of six data sets the optimum was met within the first 30 SVMs; the rest is proof.
"""

from dataclasses import dataclass

import numpy as np

from margintree.solvers.solution import Array, SVMSolution
from margintree.splits.alternating import AlternatingSplit, mean_seeds
from margintree.splits.bounds import ROUNDING
from margintree.splits.exhaustive import gray_code_labellings
from margintree.splits.node import NodeProblem, SplitResult, canonical


@dataclass(frozen=True)
class BestFirstSplit:
    """Best-first search where the labellings can be listed, alternation where they cannot.

    Parameters
    ----------
    list_up_to : int, default=12
        Classes up to which all labellings of a node are listed.
    max_svms : int, default=40
        SVMs solved per node at most; None searches until the optimum is proved.
    n_directions : int, default=2
        Principal directions of the class means that give the first labellings.
    search_tol : float, default=5e-3
        Relative duality gap of the SVMs during the search.
    slack : float, default=2e-3
        A labelling is left out when its bound comes this near to the best objective, relatively.
    larger : AlternatingSplit
        The split of nodes with more classes.
    """

    list_up_to: int = 12
    max_svms: int | None = 40
    n_directions: int = 2
    search_tol: float = 5e-3
    slack: float = 2e-3
    larger: AlternatingSplit = AlternatingSplit()

    def split(self, node: NodeProblem) -> SplitResult:
        if node.n_classes > self.list_up_to:
            return self.larger.split(node)
        search = _Search(node, max(self.search_tol, node.tol))
        budget = len(search.labellings) if self.max_svms is None else self.max_svms
        if node.n_classes > 3:
            for seed in mean_seeds(node, self.n_directions):
                search.follow(seed)
        while search.n_svms < budget:
            index = search.lowest()
            if search.best is not None and search.bounds[index] >= (1.0 - self.slack) * search.best.objective:
                break
            search.solve(index)
        return search.result()


class _Search:
    """Bounds on all labellings, and the solutions they come from."""

    def __init__(self, node: NodeProblem, tol: float) -> None:
        self.node, self.tol = node, tol
        self.labellings = np.array([z for z in gray_code_labellings(node.n_classes) if node.is_feasible(z)])
        self.index = {z.tobytes(): i for i, z in enumerate(self.labellings)}
        self.bounds = np.zeros(len(self.labellings))
        self.source = np.full(len(self.labellings), -1)
        self.is_open = np.ones(len(self.labellings), dtype=bool)
        self.solutions: list[SVMSolution] = []
        self.best: SVMSolution | None = None

    @property
    def n_svms(self) -> int:
        return len(self.solutions)

    def lowest(self) -> int:
        """Return the labelling with the lowest bound among those not yet solved, else the lowest."""
        return int(np.argmin(np.where(self.is_open, self.bounds, np.inf)))

    def follow(self, seed: Array) -> None:
        """Alternate from a seed until it meets a labelling that was solved before."""
        index = self.index[canonical(seed).tobytes()]
        while self.is_open[index]:
            solution = self.solve(index)
            moved = self.node.cheapest_labelling(self.node.flip_costs(solution))
            index = self.index[canonical(moved).tobytes()]

    def solve(self, index: int) -> SVMSolution:
        cutoff = np.inf if self.best is None else self.best.objective
        start = self.solutions[self.source[index]] if self.source[index] >= 0 else None
        solution = self.node.solve(self.labellings[index], tol=self.tol, cutoff=cutoff, start=start)
        self.is_open[index] = False
        if self.best is None or solution.objective < self.best.objective:
            self.best = solution
        self._raise_bounds(solution.alpha)
        self.solutions.append(solution)
        return solution

    def _raise_bounds(self, alpha: Array) -> None:
        gram = self.node.rows.class_gram(alpha)
        squared_norms = np.einsum("mk,mk->m", self.labellings @ gram, self.labellings)
        ridge_term = (self.node.rows.ridge * alpha) @ alpha
        bounds = alpha.sum() ** 2 / (2.0 * (squared_norms * (1.0 + ROUNDING) + ridge_term))
        raised = bounds > self.bounds
        self.bounds[raised] = bounds[raised]
        self.source[raised] = len(self.solutions)

    def result(self) -> SplitResult:
        assert self.best is not None and self.best.labelling is not None
        final = self.node.solve(self.best.labelling, start=self.best)
        self._raise_bounds(final.alpha)
        assert final.labelling is not None
        return SplitResult(final.labelling, final, float(self.bounds.min()), True)
