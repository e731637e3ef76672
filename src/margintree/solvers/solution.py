"""The result of a solver, with its duality gap."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DualSolution:
    """An approximate solution of an L2-loss SVM, with its primal and dual values.

    Attributes
    ----------
    alpha : ndarray of shape (n_rows,)
        Dual variables.
    decision : ndarray of shape (n_rows,)
        The values w'phi(x_j) of a labelling; for several planes the signed values w'psi(x_j).
    objective, dual_objective : float
        Primal and dual value. The optimum lies between them.
    squared_norm : float
        |w|^2.
    n_iter : int
        Passes over the rows.
    """

    alpha: Array
    decision: Array
    objective: float
    dual_objective: float
    squared_norm: float
    n_iter: int

    @property
    def duality_gap(self) -> float:
        """Relative duality gap, |primal - dual| / primal.

        If the function is not a kernel, the dual may exceed the primal; that counts as a gap, too.
        """
        return abs(self.objective - self.dual_objective) / max(abs(self.objective), np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class SVMSolution(DualSolution):
    """The solution for one labelling.

    Attributes
    ----------
    labelling : ndarray of shape (n_classes,)
        The sign of each class.
    weights : ndarray of shape (n_features,) or None
        w, where the features are explicit.
    """

    labelling: Array
    weights: Array | None = None
