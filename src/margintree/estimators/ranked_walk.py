"""Ranked classes and probabilities from a tree with calibrated sigmoids."""

from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.estimators.available import available_if
from margintree.estimators.tree_walk import TreeWalker
from margintree.prediction.ranker import Ranker, checked_k


def _is_calibrated(estimator: "RankedWalker") -> bool:
    # Parameters may be set after a fit, and those in a file may be anything.
    if estimator.calibration_folds == 0 or (hasattr(estimator, "_model") and estimator._ranker is None):
        raise AttributeError(
            "predict_proba, predict_top_k and decision_function need calibrated sigmoids, which calibration_folds=0 "
            "skips. Set calibration_folds='auto' and fit again."
        )
    return True


def _gives_scores(estimator: "RankedWalker") -> bool:
    # scikit-learn's checks compare decision_function with predict_proba on rows of features, which a kernel matrix does
    # not have; the probabilities contain the same information.
    if estimator._is_pairwise:
        raise AttributeError("decision_function is not available with kernel='precomputed'. Use predict_proba.")
    return _is_calibrated(estimator)


class RankedWalker(TreeWalker):
    """A tree whose nodes give probabilities, walked greedily, with a beam, or along all paths."""

    walk: str
    calibration_folds: int | str

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernel="precomputed"`` the kernel values between the rows and all training rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if self._walks_greedily():
            return super().predict(X)
        return np.asarray(self.classes_[self._winners(X)[0]])

    @available_if(_is_calibrated)
    def predict_top_k(self, X: Any, k: int | None = None) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
        """Return the k most probable classes of each row and their probabilities, the best first.

        They are the largest probabilities of ``predict_proba``. With ``walk="beam"`` and one tree, only the paths to
        these classes are followed, not those to all.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        k : int, default=None
            Number of classes to return. None means 5, or all classes if there are fewer.

        Returns
        -------
        classes : ndarray of shape (n_samples, k)
        probabilities : ndarray of shape (n_samples, k)
        """
        rows = self._checked_rows(X)
        k = checked_k(k, len(self.classes_))
        classes, scores = self._fitted_ranker().top(rows, k, self._n_threads())
        return np.asarray(self.classes_[classes]), scores

    @available_if(_is_calibrated)
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the probability of every class; rows sum to 1.

        ``predict`` returns the class with the highest one, unless the walk is greedy.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        rows = self._checked_rows(X)
        return self._fitted_ranker().probabilities(rows, self._n_threads())

    @available_if(_gives_scores)
    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the logarithms of the probabilities; with two classes the log odds of the second.

        Not available with ``kernel="precomputed"``; use ``predict_proba``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) with two classes
        """
        # The smallest positive number stands for a probability that rounds to zero.
        scores = np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny))
        return np.asarray(scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores)

    def n_evaluations(self, X: Any) -> npt.NDArray[np.int64]:
        """Return how many decision functions the prediction of each row evaluates: nodes and deciders.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if self._walks_greedily():
            return super().n_evaluations(X)
        return self._winners(X)[1]

    def _leaves(self, X: Any) -> npt.NDArray[np.int32]:
        if self._walks_greedily():
            return super()._leaves(X)
        return np.asarray(self.tree_.leaf_of_class[self._winners(X)[0]])

    def _walks_greedily(self) -> bool:
        return self.walk == "greedy"

    def _winners(self, X: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        return self._fitted_ranker().winners(self._checked_rows(X), self._n_threads())

    def _fitted_ranker(self) -> Ranker:
        if self._ranker is None:
            raise AttributeError("Fitted with calibration_folds=0. Set calibration_folds='auto' and fit again.")
        return self._ranker
