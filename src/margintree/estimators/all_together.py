"""AllTogetherSVC: the weights of all classes from one problem."""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import StrOptions

from margintree.estimators.callbacks import FitProgress
from margintree.estimators.flat import FlatClassifier
from margintree.estimators.training_data import TrainingData, linear_set
from margintree.solvers.all_together import MulticlassLoss, solve_all_together
from margintree.training.machines import Machine
from margintree.worker_threads import apart


class AllTogetherSVC(FlatClassifier):
    """Linear support vector machines of all classes, trained jointly; the largest decision value wins.

    ``loss="crammer_singer"`` has one linear slack per row, for its worst rival::

        min_w  1/2 sum_k |w_k|^2 + C sum_j s_j max(0, max_{k != y_j} 1 - (w_{y_j} - w_k)'x_j)

    This is liblinear's problem, with liblinear's C: ``LinearSVC(multi_class="crammer_singer")`` has the same weights.

    ``loss="weston_watkins"`` has a squared slack for each rival::

        min_w  1/2 sum_k |w_k|^2 + C/4 sum_j s_j sum_{k != y_j} max(0, 1 - (w_{y_j} - w_k)'x_j)^2

    Weston and Watkins have linear slacks and a margin of 2. Here the hinge is squared, as in all other machines of this
    package, and the factor is C/4 because two classes then have the machine of ``OneVsRestSVC`` at the same C:
    w_1 - w_0 is its weight vector. Neither paper says how ties are broken; here the first class wins.

    Both are solved in the dual, one row at a time, with w_k = sum_j b_jk x_j. Training keeps n_samples x n_classes
    coefficients.

    Parameters
    ----------
    loss : {"crammer_singer", "weston_watkins"}, default="crammer_singer"
    C : float, default=1.0
        Weight of the loss in the formulas above.
    fit_intercept : bool, default=True
        Add a constant feature of 1, whose weight counts in ``|w_k|^2`` (liblinear's ``intercept_scaling=1``).
    tol : float, default=1e-3
        Relative duality gap at which training ends.
    max_iter : int, default=10000
        Maximum number of passes over the rows. Most passes are short, because settled pairs of row and class are
        skipped. Small problems are then solved to machine precision.
    class_weight, random_state, verbose
        As in ``MarginTreeClassifier``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_machines_ : int
        The number of classes; 1 for two classes, where only their difference matters.
    n_iter_ : int
        Passes over the rows.
    n_features_in_ : int

    References
    ----------
    K. Crammer and Y. Singer, On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines, 2001.

    J. Weston and C. Watkins, Support Vector Machines for Multi-Class Pattern Recognition, 1999.

    S. S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh and C.-J. Lin, A Sequential Dual Method for Large Scale
    Multi-Class Linear SVMs, 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import AllTogetherSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AllTogetherSVC("weston_watkins", random_state=0).fit(X, y)
    >>> model.decision_function(X[:2]).shape
    (2, 3)
    >>> model.n_evaluations(X[:2]).tolist()
    [3, 3]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **FlatClassifier.machine_constraints,
        "loss": [StrOptions({"crammer_singer", "weston_watkins"})],
    }

    def __init__(
        self,
        loss: MulticlassLoss = "crammer_singer",
        *,
        C: float = 1.0,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 10000,
        class_weight: dict[Any, float] | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.C = C
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    def _learn(self, data: TrainingData, X: Any, y: Any) -> None:
        """Train the machines."""
        training_set = linear_set(data, fit_intercept=self.fit_intercept)
        rows = training_set.select(*training_set.rows_of(np.arange(training_set.n_classes)), self._seed())
        self._progress = FitProgress(self, 1, X, y)
        solution = apart(solve_all_together, rows, self.loss, tol=self.tol, max_iter=self.max_iter)
        self._progress.machine_done(solution, "problem")
        # One machine per class, each with the record of the joint training; two classes need only their difference.
        weights, decision = solution.weights, solution.decision
        if training_set.n_classes == 2:
            weights, decision = np.diff(weights, axis=1), np.diff(decision, axis=1)
        record = float(solution.objective), float(solution.duality_gap), solution.n_iter
        classifiers = [training_set.linear_classifier(rows.columns, of_class) for of_class in weights.T]
        machines = [Machine(one, values, *record) for one, values in zip(classifiers, decision.T, strict=True)]
        self._store_machines(machines, None, data)

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Return w_k'x of every class.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or the value of the second class minus that of the first, of shape
        (n_samples,), for two classes
        """
        return self._machine_values(X)
