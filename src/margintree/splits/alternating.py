"""Alternate between the SVM and the labelling, from several seeds.

For a fixed w the objective of eq. 3 is linear in the labelling, sum_k z_k d_k / 2 + constant, with d_k the loss of
class k on the + side minus its loss on the - side: the best labelling is a knapsack under the balance constraint. For a
fixed labelling, w is an SVM. Each step lowers the primal value or ends the run, so P never rises.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from margintree.solvers.solution import Array, SVMSolution
from margintree.splits.bounds import conclude
from margintree.splits.node import NodeProblem, SplitResult, canonical, require_positive
from margintree.splits.relaxation import RelaxationSplit
from margintree.splits.seeds import mean_seeds


@dataclass(frozen=True)
class AlternatingSplit:
    """Alternation from several seeds; the one with the lowest objective wins.

    Read more in the :doc:`user guide </splits/alternating>`.

    Parameters
    ----------
    n_directions : int, default=4
        Principal directions of the class means to start from; balanced 2-means is always added.
    relaxation : RelaxationSplit or None, default=None
        Also start from the planes of this relaxation.
    search_tol : float, default=1e-2
        Relative duality gap of the SVMs during the search.
    max_rounds : int, default=20
        Alternations per seed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import MarginTreeClassifier
    >>> from margintree.splits import AlternatingSplit
    >>> X, y = load_iris(return_X_y=True)
    >>> MarginTreeClassifier(split=AlternatingSplit(n_directions=2), random_state=0).fit(X, y).tree_.to_nested()
    (0, (1, 2))
    """

    n_directions: int = 4
    relaxation: RelaxationSplit | None = None
    search_tol: float = 1e-2
    max_rounds: int = 20

    def __post_init__(self) -> None:
        require_positive(self, "n_directions", "max_rounds")

    def divide(self, node: NodeProblem) -> SplitResult:
        """Return the labelling that the best seed reaches."""
        relaxation = None if self.relaxation is None else self.relaxation.relax(node)
        planes = [] if relaxation is None else list(relaxation.planes[relaxation.mu > 0.0])
        best = self.best_end(node, planes)
        result = conclude(node, best.labelling, start=best)
        return result if relaxation is None else relaxation.added_to(result)

    def best_end(self, node: NodeProblem, more_seeds: Sequence[Array] = ()) -> SVMSolution:
        """Return the lowest solution that alternation reaches from any seed."""
        seeds = [*mean_seeds(node, self.n_directions), *more_seeds]
        distinct = {z.tobytes(): z for z in map(canonical, seeds)}
        ends = [self.descend(node, seed)[-1] for seed in distinct.values()]
        return min(ends, key=lambda solution: solution.objective)

    def descend(self, node: NodeProblem, labelling: Array) -> list[SVMSolution]:
        """Alternate from a labelling; return the solutions on the way, each lower than the one before."""
        tol = max(self.search_tol, node.tol)
        path = [node.solve(labelling, tol=tol)]
        for _ in range(self.max_rounds):
            moved = canonical(node.cheapest_labelling(node.flip_costs(path[-1])))
            if np.array_equal(moved, path[-1].labelling):
                break
            candidate = node.solve(moved, tol=tol, start=path[-1], cutoff=path[-1].objective)
            if candidate.objective >= path[-1].objective:
                break
            path.append(candidate)
        return path
