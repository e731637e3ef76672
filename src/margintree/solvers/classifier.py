"""The trained binary classifier of one node."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from margintree.solvers.solution import Array


@dataclass(frozen=True, eq=False)
class LinearClassifier:
    """w over the columns in use, and the intercept; a positive value means left."""

    columns: npt.NDArray[np.int64]
    weights: Array
    intercept: float


@dataclass(frozen=True, eq=False)
class KernelClassifier:
    """Coefficients a_j t_j of the support vectors, by training row; a positive value means left.

    The machines' own intercept is part of the kernel. ``constant`` is for a node that always gives the same answer.

    During training, ``left_out`` may hold the leave-one-out decision values of the rows ``trained_on``.
    """

    row_index: npt.NDArray[np.int64]
    coefficients: Array
    constant: float = 0.0
    trained_on: npt.NDArray[np.int64] | None = None
    left_out: Array | None = None


NodeClassifier = LinearClassifier | KernelClassifier
