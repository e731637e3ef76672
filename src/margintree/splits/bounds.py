"""A lower bound on P(z) of every feasible labelling, from any dual point.

Weak duality gives P(z) >= 1'a - 1/2 z'Gz - 1/2 sum_j r_j a_j^2 for every a >= 0, so with any
U >= max_z z'Gz the value 1'a - 1/2 U - 1/2 sum_j r_j a_j^2 lies below all of them. Scaling a by the
best factor turns it into (1'a)^2 / (2 (U + sum_j r_j a_j^2)), which is never worse.
"""

import numpy as np

from margintree import compiled
from margintree.solvers.solution import Array, SVMSolution
from margintree.splits.node import NodeProblem, SplitResult

ENUMERATE_UP_TO = 16
# An eigenvalue of a matrix of this size takes some milliseconds; larger nodes use the norms alone.
EIGENVALUE_UP_TO = 200
# z'Gz is a sum of terms that may cancel; its rounding error is at most this share of the sum of their absolute values.
# The bound is lowered by it, so that it stays a bound.
ROUNDING = 1e-12


def conclude(node: NodeProblem, labelling: Array, start: SVMSolution | None = None) -> SplitResult:
    """Solve the chosen labelling to the node's tolerance, and bound all others with its dual point.

    The last step of most splits.

    Parameters
    ----------
    node : NodeProblem
    labelling : ndarray of shape (n_classes,)
        +1 for the classes that go left, -1 for those that go right.
    start : SVMSolution, default=None
        A solution to start from.

    Returns
    -------
    SplitResult

    Examples
    --------
    >>> import numpy as np
    >>> from margintree import MarginTreeClassifier
    >>> from margintree.splits import conclude
    >>> class FirstAgainstTheRest:
    ...     def divide(self, node):
    ...         return conclude(node, np.where(np.arange(node.n_classes) == 0, 1.0, -1.0))
    >>> model = MarginTreeClassifier(split=FirstAgainstTheRest(), walk="greedy", calibration_folds=0)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0]], ["a", "b", "c", "d"]).tree_.depth.max()
    np.int32(3)
    """
    labelling = np.asarray(labelling, dtype=np.float64)
    solution = node.finish(labelling, start)
    bound, exact = lower_bound(node, solution.alpha)
    return SplitResult(labelling, solution, bound, exact)


class DualPoint:
    """A dual point of a node, and the bounds that it gives.

    Parameters
    ----------
    node : NodeProblem
    alpha : ndarray of shape (n_rows,)
    gram : ndarray of shape (n_classes, n_classes)
        G for these dual variables.
    """

    def __init__(self, node: NodeProblem, alpha: Array, gram: Array) -> None:
        self.gram = gram
        self._error = ROUNDING * float(np.sqrt(np.maximum(gram.diagonal(), 0.0)).sum()) ** 2
        self._total = float(alpha.sum())
        self._ridge_term = float((node.rows.ridge * alpha) @ alpha)

    def bounds(self, squared_norms: Array) -> Array:
        """Return the lower bounds on P of labellings with the given values of z'Gz."""
        largest = np.maximum(squared_norms, 0.0) + self._error
        return np.asarray((1.0 - ROUNDING) * self._total**2 / (2.0 * (largest + self._ridge_term)))


def lower_bound(node: NodeProblem, alpha: Array, gram: Array | None = None) -> tuple[float, bool]:
    """Return the bound on all feasible labellings for a dual point, and whether max_z z'Gz is exact."""
    if gram is None and node.n_classes <= EIGENVALUE_UP_TO:
        gram = node.rows.class_gram(alpha)
    if gram is None:
        largest, exact = float(node.rows.class_norms(alpha).sum()) ** 2, False
        gram = np.empty((0, 0))
    else:
        largest, exact = largest_squared_norm(node, gram)
    return float(DualPoint(node, alpha, gram).bounds(np.array(largest))), exact


def largest_squared_norm(node: NodeProblem, gram: Array) -> tuple[float, bool]:
    """Return U >= max_z z'Gz over the feasible z, and whether it is the maximum itself."""
    if node.n_classes <= ENUMERATE_UP_TO:
        labelling = compiled.labellings.largest_quadratic(gram, node.sizes, node.beta)
        return float(labelling @ gram @ labelling), True
    by_norms = float(np.sqrt(np.maximum(gram.diagonal(), 0.0)).sum()) ** 2
    if node.n_classes > EIGENVALUE_UP_TO:
        return by_norms, False
    return min(by_norms, node.n_classes * float(np.linalg.eigvalsh(gram)[-1])), False
