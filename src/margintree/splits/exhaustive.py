"""MSM0 and MSM1 by enumeration: the yardstick for every other split."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from margintree.solvers.solution import Array, SVMSolution
from margintree.splits.bounds import ENUMERATE_UP_TO, conclude
from margintree.splits.node import NodeProblem, SplitResult


@dataclass(frozen=True)
class ExhaustiveSplit:
    """Solve the SVM of every labelling and keep the best.

    Parameters
    ----------
    criterion : {"objective", "margin"}, default="objective"
        "objective" minimises P(z) over the feasible labellings (MSM1, eq. 3). "margin" maximises
        2 / |w|^2 over all of them, without balance, as eq. 1 is written (MSM0).
    """

    criterion: str = "objective"

    def __post_init__(self) -> None:
        if self.criterion not in ("objective", "margin"):
            raise ValueError(
                "The 'criterion' parameter of ExhaustiveSplit must be 'objective' or 'margin'. "
                f"Got {self.criterion!r} instead."
            )

    def split(self, node: NodeProblem) -> SplitResult:
        if node.n_classes > ENUMERATE_UP_TO:
            raise ValueError(
                f"ExhaustiveSplit solves one SVM for each way to divide the classes of a node and takes at most "
                f"{ENUMERATE_UP_TO} classes; this node has {node.n_classes}. Use split='alternating', which comes "
                "within 1 % of the optimum at most nodes."
            )
        by_margin = self.criterion == "margin"
        best: SVMSolution | None = None
        previous: SVMSolution | None = None
        for labelling in gray_code_labellings(node.n_classes):
            if not by_margin and not node.is_feasible(labelling):
                continue
            # A labelling whose dual value passes the best primal value cannot win on P. On the margin it can.
            cutoff = np.inf if by_margin or best is None else best.objective
            previous = node.solve(labelling, cutoff=cutoff, start=previous)
            if best is None or self._score(previous) < self._score(best):
                best = previous
        assert best is not None and best.labelling is not None
        return conclude(node, best.labelling, start=best)

    def _score(self, solution: SVMSolution) -> float:
        return solution.squared_norm if self.criterion == "margin" else solution.objective


def gray_code_labellings(n_classes: int) -> Iterator[Array]:
    """Yield every split of the classes once, the first class on the + side, one class moving at a time."""
    labelling = np.ones(n_classes)
    for code in range(1, 2 ** (n_classes - 1)):
        k = 1 + ((code & -code).bit_length() - 1)
        labelling[k] = -labelling[k]
        yield labelling.copy()
