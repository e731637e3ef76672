"""Prediction from a set of machines, for every estimator without a tree."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.estimators.base import MachineClassifier
from margintree.estimators.training_data import TrainingData
from margintree.prediction.single_instance import FlatInstancePredictor
from margintree.solvers.kernel_function import KernelFunction
from margintree.training.machines import Machine


class FlatClassifier(MachineClassifier):
    """A classifier that evaluates all of its machines for every row."""

    classes_: npt.NDArray[Any]
    n_machines_: int

    @abstractmethod
    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Return one value per class, or a single one for two classes; larger is better."""

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class with the largest decision value; ties go to the first class.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        values = self.decision_function(X)
        chosen = (values > 0.0).astype(int) if values.ndim == 1 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[chosen])

    def single_instance(self) -> FlatInstancePredictor:
        """Return a predictor for one row at a time, without the cost of validating a batch.

        Returns
        -------
        FlatInstancePredictor
            ``predict(x)`` for a dense row, ``predict(indices, values)`` for a sparse one. It is read-only and may be
            shared between threads.
        """
        self._check_fitted()
        return FlatInstancePredictor.by_largest_value(self._machines, self.classes_, self._model_width())

    def n_evaluations(self, X: Any) -> npt.NDArray[np.int64]:
        """Return how many decision functions the prediction of each row evaluates.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        rows = self._checked_rows(X)
        return np.full(rows.shape[0], self.n_machines_)

    def _machine_values(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the values of all machines, without the second dimension if there is only one."""
        rows = self._checked_rows(X)
        values = self._machines.decisions(rows)
        return values[:, 0] if values.shape[1] == 1 else values

    def _store_machines(self, machines: Sequence[Machine], function: KernelFunction | None, data: TrainingData) -> None:
        self.n_machines_ = len(machines)
        super()._store_machines(machines, function, data)
