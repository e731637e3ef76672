"""Several machines over the same rows: the model of methods without a tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree.prediction.kernel_tree import BLOCK_ENTRIES
from margintree.solvers.classifier import KernelClassifier, LinearClassifier, NodeClassifier
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.node_rows import Matrix
from margintree.solvers.solution import Array
from margintree.solvers.used_columns import has_empty_columns, over_used_columns

# A weight matrix with fewer non-zeros than this share is kept sparse.
DENSE_WEIGHTS_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class LinearMachines:
    """Weights of all machines, one column each."""

    weights: Matrix
    intercepts: Array

    @classmethod
    def from_classifiers(cls, classifiers: Sequence[NodeClassifier], n_features: int) -> "LinearMachines":
        """Put the weights of the machines side by side."""
        linear = [c for c in classifiers if isinstance(c, LinearClassifier)]
        start = np.concatenate([[0], np.cumsum([len(c.columns) for c in linear])])
        columns = np.concatenate([c.columns for c in linear])
        values = np.concatenate([c.weights for c in linear])
        weights = sp.csc_array((values, columns, start), shape=(n_features, len(linear)))
        is_dense = len(values) >= DENSE_WEIGHTS_SHARE * n_features * len(linear)
        return cls(weights.toarray() if is_dense else weights, np.array([c.intercept for c in linear]))

    @property
    def n_features(self) -> int | None:
        """The width of a row."""
        return int(self.weights.shape[0])

    @property
    def has_empty_features(self) -> bool:
        """Whether nearly all features have no weight in any machine."""
        weights = self.weights
        return not isinstance(weights, np.ndarray) and has_empty_columns(weights.shape[0], weights.nnz)

    def decisions(self, X: Matrix, machines: npt.NDArray[np.int64] | None = None) -> Array:
        """Return the decision values of all machines, or of some, one column each."""
        weights = self.weights if machines is None else self.weights[:, machines]
        intercepts = self.intercepts if machines is None else self.intercepts[machines]
        rows, machine_rows = over_used_columns(X, weights.T)
        values = rows @ machine_rows.T
        return np.asarray(values.toarray() if sp.issparse(values) else values) + intercepts


@dataclass(frozen=True, eq=False)
class KernelMachines:
    """Coefficients of all machines, one column each; a support vector that several share is kept once.

    For a precomputed kernel ``vectors`` is None and ``support`` numbers the columns of the matrix that is given
    to predict.
    """

    function: KernelFunction
    vectors: Any
    support: npt.NDArray[np.int64]
    coefficients: sp.csc_array
    constants: Array

    @property
    def n_features(self) -> int | None:
        """Number of features of a row; None if rows are kernel values."""
        return None if self.vectors is None else int(self.vectors.shape[1])

    @classmethod
    def from_classifiers(
        cls,
        classifiers: Sequence[NodeClassifier],
        function: KernelFunction,
        X: Any,
        original_row: npt.NDArray[np.int64],
    ) -> "KernelMachines":
        """Put the coefficients of the machines side by side; see ``KernelTree`` for the arguments."""
        kernel = [c for c in classifiers if isinstance(c, KernelClassifier)]
        start = np.concatenate([[0], np.cumsum([len(c.row_index) for c in kernel])])
        used, rows = np.unique(np.concatenate([c.row_index for c in kernel]), return_inverse=True)
        values = np.concatenate([c.coefficients for c in kernel])
        coefficients = sp.csc_array((values, rows, start), shape=(len(used), len(kernel)))
        vectors = None if function.kernel == "precomputed" else X[used]
        return cls(function, vectors, original_row[used], coefficients, np.array([c.constant for c in kernel]))

    def decisions(self, X: Any, machines: npt.NDArray[np.int64] | None = None) -> Array:
        """Return the decision values of all machines, or of some, one column each."""
        coefficients = self.coefficients if machines is None else self.coefficients[:, machines]
        constants = self.constants if machines is None else self.constants[machines]
        support = np.arange(len(self.support))
        if machines is not None:
            # Kernel values are computed for the support vectors of these machines only.
            support = np.unique(coefficients.indices)
            coefficients = coefficients[support]
        result = np.zeros((X.shape[0], len(constants)))
        if len(support) == 0:
            return result + constants
        height = max(1, BLOCK_ENTRIES // max(1, len(support)))
        for first in range(0, X.shape[0], height):
            part = slice(first, first + height)
            if self.vectors is None:
                values = self.function.finish(X[part][:, self.support[support]])
            else:
                values = self.function(X[part], self.vectors[support])
            result[part] = values @ coefficients
        return result + constants


MachineSet = LinearMachines | KernelMachines
