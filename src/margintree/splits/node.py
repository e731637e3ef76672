"""The problem of one node, which classes go left, and the result of a split.

A labelling is one sign per class. It is feasible when |sum_k n_k z_k| <= beta with
beta = max(balance * N, max_k n_k); a greedy assignment always meets that, and no side is ever empty.
"""

from copy import copy
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from margintree import compiled
from margintree.solvers.node_rows import NodeRows
from margintree.solvers.solution import Array, SVMSolution

# The table of the exact knapsack may have this many cells (about 10 ms); larger ones are repaired greedily.
MAX_KNAPSACK_CELLS = 4_000_000
# Rounding of sums of sample weights must not make a labelling infeasible.
BALANCE_SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class SplitResult:
    """A labelling, its SVM at the node's tolerance, and the bounds that the search proved.

    ``lower_bound`` lies below P(z) of every feasible z; it is exact when max_z z'Gz was enumerated.
    ``restricted_value`` is the value of the multiple kernel problem over the planes found (NaN without one): an upper
    estimate of the relaxation, not a bound on P.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import MarginTreeClassifier
    >>> from margintree.splits import BestFirstSplit
    >>> class Printing(BestFirstSplit):
    ...     def divide(self, node):
    ...         result = super().divide(node)
    ...         print(result.labelling, result.lower_bound <= result.solution.objective)
    ...         return result
    >>> model = MarginTreeClassifier(split=Printing(), walk="greedy", calibration_folds=0)
    >>> _ = model.fit(*load_iris(return_X_y=True))
    [ 1. -1. -1.] True
    [ 1. -1.] True
    """

    labelling: Array
    solution: SVMSolution
    lower_bound: float
    lower_bound_is_exact: bool
    restricted_value: float = np.nan
    n_planes: int = 0


class Split(Protocol):
    """How one node divides its classes.

    Examples
    --------
    >>> import numpy as np
    >>> from margintree import MarginTreeClassifier
    >>> from margintree.splits import conclude
    >>> class InOrder:
    ...     def divide(self, node):
    ...         return conclude(node, np.where(np.arange(node.n_classes) < node.n_classes / 2, 1.0, -1.0))
    >>> model = MarginTreeClassifier(split=InOrder(), walk="greedy", calibration_folds=0)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0]], ["a", "b", "c", "d"]).tree_.to_nested()
    ((0, 1), (2, 3))
    """

    def divide(self, node: "NodeProblem") -> SplitResult:
        """Return a labelling of the node's classes."""
        ...


class NodeProblem:
    """The classes and rows of one node, with the balance constraint.

    Parameters
    ----------
    rows : NodeRows
        The node's rows, sorted by class.
    sizes : ndarray of shape (n_classes,)
        Summed sample weight n_k of each class.
    balance : float
        Fraction of N by which the two sides may differ.
    tol : float
        Relative duality gap of the node's SVM.
    max_iter : int
    seed : int
        For splits that draw at random.
    share : float, default=1.0
        The node's share of all training rows. A split can scale its effort by it, so that every level of the tree costs
        the same, however many nodes it has.
    classes : ndarray of shape (n_classes,), default=None
        Numbers of the node's classes among those of the whole tree, ascending. Without them the node is the root.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import MarginTreeClassifier
    >>> from margintree.splits import conclude
    >>> class LastClassApart:
    ...     def divide(self, node):
    ...         costs = -node.sizes
    ...         costs[-1] *= -1.0
    ...         return conclude(node, node.cheapest_labelling(costs))
    >>> model = MarginTreeClassifier(split=LastClassApart(), walk="greedy", calibration_folds=0)
    >>> model.fit(*load_iris(return_X_y=True)).tree_.to_nested()
    ((0, 1), 2)
    """

    def __init__(
        self,
        rows: NodeRows,
        sizes: Array,
        *,
        balance: float,
        tol: float,
        max_iter: int,
        seed: int,
        share: float = 1.0,
        classes: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self.rows = rows
        self.sizes = sizes
        self.n_classes = len(sizes)
        self.classes = np.arange(len(sizes)) if classes is None else classes
        self.tol, self.max_iter, self.seed, self.share = tol, max_iter, seed, share
        total, largest = sizes.sum(), sizes.max()
        self.balance_was_widened = bool(largest > balance * total)
        widest = max(balance * total, largest) + BALANCE_SLACK * total
        # With all classes on one side the difference is the total weight, which must stay infeasible.
        self.beta = float(min(widest, total - 0.5 * sizes.min()))
        self._units = integer_units(sizes)
        self.n_iter = 0

    def solve(
        self, labelling: Array, *, tol: float | None = None, cutoff: float = np.inf, start: SVMSolution | None = None
    ) -> SVMSolution:
        """Return the SVM of a labelling, to the node's tolerance unless another is given."""
        tol = self.tol if tol is None else tol
        solution = self.rows.solve(labelling, tol=tol, max_iter=self.max_iter, cutoff=cutoff, start=start)
        self.n_iter += solution.n_iter
        return solution

    def for_search(self, *, all_coordinates: bool) -> "NodeProblem":
        """Return this problem or, if it is large, one with fewer rows and perhaps fewer coordinates."""
        rows = self.rows.sampled() if all_coordinates else self.rows.reduced()
        if rows is self.rows:
            return self
        search = copy(self)
        search.rows, search.n_iter = rows, 0
        return search

    def finish(self, labelling: Array, start: SVMSolution | None = None) -> SVMSolution:
        """Return the final machine of the node, to the node's tolerance, polished if that is cheap."""
        machine = self.rows.machine(labelling, tol=self.tol, max_iter=self.max_iter, start=start)
        self.n_iter += machine.n_iter
        return machine

    def imbalance(self, labelling: Array) -> float:
        """Return ``|sum_k n_k z_k| / N``."""
        return float(abs(self.sizes @ labelling) / self.sizes.sum())

    def is_feasible(self, labelling: Array) -> bool:
        """Return whether the labelling meets the balance constraint."""
        return bool(abs(self.sizes @ labelling) <= self.beta)

    def cheapest_labelling(self, costs: Array) -> Array:
        """Return the feasible labelling that minimises sum_k z_k costs_k."""
        labelling = compiled.knapsack.cheapest_labelling(costs, self.sizes, self._units, self.beta, MAX_KNAPSACK_CELLS)
        return np.asarray(labelling)

    def flip_costs(self, solution: SVMSolution) -> Array:
        """Return d_k: the loss of class k on the + side minus its loss on the - side, for this w."""
        return np.asarray(compiled.labellings.flip_costs(solution.decision, self.rows.ridge, self.rows.class_start))


def require_positive(split: object, *names: str) -> None:
    """Raise an error for parameters of a split that are below 1."""
    for name in names:
        given = getattr(split, name)
        if given < 1:
            kind = type(split).__name__
            raise ValueError(f"The {name!r} parameter of {kind} must be at least 1. Got {given} instead.")


def canonical(labelling: Array) -> Array:
    """Return z or -z, whichever puts the first class on the + side: both are the same split."""
    return labelling if labelling[0] > 0.0 else -labelling


def integer_units(sizes: Array) -> npt.NDArray[np.int64]:
    """Return the sizes as integers without a common divisor, or None if they are not integers."""
    rounded = np.rint(sizes)
    if np.any(rounded != sizes) or rounded.max() > 2**31:
        return np.empty(0, dtype=np.int64)
    integers = rounded.astype(np.int64)
    return np.asarray(integers // np.gcd.reduce(integers))
