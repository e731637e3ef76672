"""OneVsOneSVC: one machine per pair of classes."""

from typing import Any

import numpy as np
import numpy.typing as npt

from margintree import compiled
from margintree.estimators.flat import FlatClassifier
from margintree.estimators.training_data import TrainingData
from margintree.prediction.single_instance import FlatInstancePredictor
from margintree.solvers.row_layout import read_only
from margintree.training.machines import all_pairs, train_pairs


class OneVsOneSVC(FlatClassifier):
    """One L2-loss support vector machine per pair of classes; each has a vote.

    Machine (k, l) is trained on the rows of both classes; a positive value is a vote for k. The class with the most
    votes wins. Ties are broken by the sum of the decision values, then by the order of the classes; the paper does not
    say how.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
    C, gamma, degree, coef0, fit_intercept, tol, max_iter, cache_size, class_weight, n_jobs, random_state, verbose
        As in ``MarginTreeClassifier``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    pairs_ : ndarray of shape (n_machines, 2)
        The classes of each machine, as indices into ``classes_``.
    n_machines_ : int
    n_iter_ : int
        Largest number of passes over the rows of any machine.
    n_features_in_ : int

    References
    ----------
    C.-W. Hsu and C.-J. Lin, A comparison of methods for multiclass support vector machines, 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import OneVsOneSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> OneVsOneSVC("rbf", C=10, random_state=0).fit(X, y).pairs_.tolist()
    [[0, 1], [0, 2], [1, 2]]
    """

    def _learn(self, data: TrainingData, X: Any, y: Any) -> None:
        """Train the machines."""
        training_set, function = self._training_set(data)
        self.pairs_ = all_pairs(len(data.classes))
        trainer = self._trainer(training_set, self._seed(), len(self.pairs_), X, y)
        self._store_machines(train_pairs(trainer, self.pairs_, self._n_threads()), function, data)

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the votes plus a term below one half that breaks ties by the sum of the decision values.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or the machine's values, of shape (n_samples,), for two classes
        """
        rows = self._checked_rows(X)
        values = self._machines.decisions(rows)
        if len(self.classes_) == 2:
            return -values[:, 0]
        votes = np.empty((len(values), len(self.classes_)))
        compiled.flat.count_votes_of_rows(read_only(np.ascontiguousarray(values)), read_only(self.pairs_), votes)
        return votes

    def single_instance(self) -> FlatInstancePredictor:
        self._check_fitted()
        return FlatInstancePredictor.by_votes(self._machines, self.classes_, self._model_width(), self.pairs_)
