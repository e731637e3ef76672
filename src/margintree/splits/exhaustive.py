"""MSM0 and MSM1 by enumeration: the reference for every other split."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from margintree.solvers.solution import Array, SVMSolution
from margintree.splits.bounds import ENUMERATE_UP_TO, conclude
from margintree.splits.node import NodeProblem, SplitResult


@dataclass(frozen=True)
class ExhaustiveSplit:
    """Solve the SVM of every labelling and keep the best.

    Read more in the :doc:`user guide </splits/exhaustive>`.

    Parameters
    ----------
    criterion : {"objective", "margin"}, default="objective"
        "objective" minimises P(z) over the feasible labellings (MSM1, eq. 3). "margin" maximises
        ``2 / |w|^2`` over all of them, without balance, as eq. 1 is written (MSM0).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import MarginTreeClassifier
    >>> from margintree.splits import ExhaustiveSplit
    >>> X, y = load_iris(return_X_y=True)
    >>> MarginTreeClassifier(split=ExhaustiveSplit(criterion="margin"), random_state=0).fit(X, y).tree_.to_nested()
    (0, (1, 2))
    """

    criterion: str = "objective"

    def __post_init__(self) -> None:
        if self.criterion not in ("objective", "margin"):
            raise ValueError(
                "The 'criterion' parameter of ExhaustiveSplit must be 'objective' or 'margin'. "
                f"Got {self.criterion!r} instead."
            )

    def divide(self, node: NodeProblem) -> SplitResult:
        """Return the best of all labellings."""
        if node.n_classes > ENUMERATE_UP_TO:
            raise ValueError(
                f"ExhaustiveSplit solves one SVM for each way to divide the classes of a node and takes at most "
                f"{ENUMERATE_UP_TO} classes; this node has {node.n_classes}. Use split='best_first', which comes "
                "within 1 % of the optimum at most nodes."
            )
        by_margin = self.criterion == "margin"
        best: SVMSolution | None = None
        previous: SVMSolution | None = None
        for labelling in all_labellings(node.n_classes):
            if not by_margin and not node.is_feasible(labelling):
                continue
            # A labelling whose dual value passes the best primal value cannot win on P. On the margin it can.
            cutoff = np.inf if by_margin or best is None else best.objective
            previous = node.solve(labelling, cutoff=cutoff, start=previous)
            if best is None or self._score(previous) < self._score(best):
                best = previous
        assert best is not None
        return conclude(node, best.labelling, start=best)

    def _score(self, solution: SVMSolution) -> float:
        return solution.squared_norm if self.criterion == "margin" else solution.objective


@cache
def all_labellings(n_classes: int) -> Array:
    """Return every split of the classes once, one per row, with the first class on the + side.

    From each row to the next one class changes side (Gray code), so that a solver can start from the previous solution.

    Examples
    --------
    >>> all_labellings(3)
    array([[ 1., -1.,  1.],
           [ 1., -1., -1.],
           [ 1.,  1., -1.]])
    """
    codes = np.arange(1, 2 ** (n_classes - 1))
    bits = ((codes ^ (codes >> 1))[:, None] >> np.arange(n_classes - 1)) & 1
    labellings = np.hstack([np.ones((len(codes), 1)), 1.0 - 2.0 * bits])
    labellings.flags.writeable = False
    return labellings
