"""OneVsRestSVC: one machine per class, against all others."""

from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.estimators.flat import FlatClassifier
from margintree.estimators.training_data import TrainingData
from margintree.training.machines import train_against_the_rest
from margintree.worker_threads import apart


class OneVsRestSVC(FlatClassifier):
    """One L2-loss support vector machine per class, against the rest; the largest decision value wins.

    Machine k minimises ``1/2 |w|^2 + C/2 sum_j s_j max(0, 1 - t_j f(x_j))^2`` with t_j = +1 for the rows of class k and
    -1 for all others. All machines share their kernel values. Of classes with equal values, the first one is predicted.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
    C, gamma, degree, coef0, fit_intercept, tol, max_iter, cache_size, class_weight, n_jobs, random_state, verbose
        As in ``MarginTreeClassifier``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_machines_ : int
    n_iter_ : int
        Largest number of passes over the rows of any machine.
    n_features_in_ : int

    References
    ----------
    R. Rifkin and A. Klautau, In Defense of One-Vs-All Classification, 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import OneVsRestSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsRestSVC("rbf", C=10, random_state=0).fit(X, y)
    >>> model.decision_function(X[:2]).shape
    (2, 3)
    """

    def _learn(self, data: TrainingData, X: Any, y: Any) -> None:
        """Train the machines."""
        training_set, function = self._training_set(data)
        n_classes = len(data.classes)
        seed = self._seed()
        rows = apart(training_set.node_rows, np.arange(n_classes), seed)
        # Two classes need one machine; the other is its mirror image.
        classes = range(n_classes) if n_classes > 2 else [1]
        trainer = self._trainer(training_set, seed, len(classes), X, y)
        machines = train_against_the_rest(trainer, rows, classes, self._n_threads())
        self._store_machines(machines, function, data)

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the machines' values.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        return self._machine_values(X)
