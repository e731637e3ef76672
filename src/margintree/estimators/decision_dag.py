"""DecisionDAGClassifier: one-vs-one machines, evaluated one after the other."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from margintree.estimators.base import Kernel, MachineClassifier
from margintree.estimators.one_vs_one import OneVsOneSVC
from margintree.estimators.training_data import TrainingData
from margintree.prediction.single_instance import FlatInstancePredictor
from margintree.training.machines import all_pairs, train_pairs


class DecisionDAGClassifier(MachineClassifier):
    """The decision directed acyclic graph of Platt, Cristianini and Shawe-Taylor.

    Training is that of one-vs-one. A prediction starts with a list of all classes; the machine between the first and
    the last class of the list eliminates one of the two, until one is left. This takes n_classes - 1 decision
    functions.

    The paper does not prescribe the order of the list and finds that it matters little.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
    class_order : array-like of shape (n_classes,) or None, default=None
        All classes, in the order of the list. None sorts them.
    C, gamma, degree, coef0, fit_intercept, tol, max_iter, cache_size, class_weight, n_jobs, random_state, verbose
        As in ``MarginTreeClassifier``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    order_ : ndarray of shape (n_classes,)
        The order of the list, as indices into ``classes_``.
    n_iter_ : int
        Largest number of passes over the rows of any machine.
    n_features_in_ : int

    References
    ----------
    J. Platt, N. Cristianini and J. Shawe-Taylor, Large Margin DAGs for Multiclass Classification, 2000.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import DecisionDAGClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionDAGClassifier("rbf", C=10, random_state=0).fit(X, y)
    >>> model.n_evaluations(X[:2])
    array([2, 2])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MachineClassifier._parameter_constraints,
        "class_order": ["array-like", None],
    }

    def __init__(
        self,
        kernel: Kernel = "linear",
        *,
        class_order: Sequence[Any] | None = None,
        C: float = 1.0,
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        cache_size: float = 1000,
        class_weight: dict[Any, float] | str | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.class_order = class_order
        self.C = C
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_one_vs_one(cls, fitted: OneVsOneSVC, class_order: Sequence[Any] | None = None) -> Self:
        """Return a fitted graph that shares the machines of a fitted ``OneVsOneSVC``.

        Parameters
        ----------
        fitted : OneVsOneSVC
        class_order : array-like of shape (n_classes,) or None

        Returns
        -------
        DecisionDAGClassifier
        """
        check_is_fitted(fitted)
        graph = cls(**fitted.get_params(), class_order=class_order)
        graph._take(fitted)
        return graph

    def _learn(self, data: TrainingData, X: Any, y: Any) -> None:
        """Train the one-vs-one machines."""
        training_set, function = self._training_set(data)
        pairs = all_pairs(len(data.classes))
        trainer = self._trainer(training_set, self._seed(), len(pairs), X, y)
        self._store_machines(train_pairs(trainer, pairs, self._n_threads()), function, data)
        self._put_in_order(pairs)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class that remains on each row's list.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        rows = self._checked_rows(X)
        n_classes = len(self.classes_)
        # All lists have the same length at every step; they differ in where they begin.
        first = np.zeros(rows.shape[0], dtype=np.int64)
        for n_left in range(n_classes, 1, -1):
            # Rows that move on in this step are not evaluated again before the next.
            begins = first.copy()
            for begin in np.unique(begins):
                group = np.flatnonzero(begins == begin)
                one, other = self.order_[begin], self.order_[begin + n_left - 1]
                machine = self._machine_of[min(one, other), max(one, other)]
                values = self._machines.decisions(rows[group], np.array([machine]))[:, 0]
                # A positive value is a vote for the smaller index of the pair.
                keeps_first = (values > 0.0) == (one < other)
                first[group[~keeps_first]] += 1
        return np.asarray(self.classes_[self.order_[first]])

    def n_evaluations(self, X: Any) -> npt.NDArray[np.int64]:
        """Return how many decision functions the prediction of each row evaluates: n_classes - 1.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        rows = self._checked_rows(X)
        return np.full(rows.shape[0], len(self.classes_) - 1)

    def single_instance(self) -> FlatInstancePredictor:
        """Return a predictor for one row at a time; see ``OneVsRestSVC.single_instance``.

        Returns
        -------
        FlatInstancePredictor
        """
        self._check_fitted()
        return FlatInstancePredictor.by_elimination(
            self._machines, self.classes_, self._model_width(), self.order_, self._machine_of
        )

    def _take(self, fitted: OneVsOneSVC) -> None:
        for name in ("classes_", "n_iter_", "n_features_in_", "feature_names_in_", "_machines"):
            # Attributes of an earlier fit that this one lacks, such as feature names, are removed.
            self.__dict__.pop(name, None)
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))
        self._put_in_order(fitted.pairs_)

    def _put_in_order(self, pairs: npt.NDArray[np.int64]) -> None:
        """Look up the machine of each pair of classes and the order of the list."""
        n_classes = len(self.classes_)
        self._machine_of = np.zeros((n_classes, n_classes), dtype=np.int64)
        self._machine_of[tuple(pairs.T)] = np.arange(len(pairs))
        self.order_ = np.arange(n_classes)
        if self.class_order is not None:
            given = np.asarray(self.class_order)
            if sorted(given.tolist()) != sorted(self.classes_.tolist()):
                raise ValueError(
                    f"class_order must name each of the {n_classes} classes {self.classes_.tolist()} once. "
                    f"Got {given.tolist()}."
                )
            self.order_ = np.searchsorted(self.classes_, given)
