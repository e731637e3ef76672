"""The rows of one node, sorted by class, and the problems that can be solved on them.

Two kinds follow: ``LinearRows`` keeps explicit features, ``KernelRows`` reads kernel rows. A split
sees only what is declared here.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from margintree.solvers.solution import Array, DualSolution, SVMSolution

# A dense matrix or a csr_array; scipy's classes carry no types.
Matrix: TypeAlias = Any


def sample_of_classes(
    class_start: npt.NDArray[np.int64], n_rows: int, at_least: int = 1, *, from_front: bool = False
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return about so many rows, the same share of each class, and where each class then starts.

    They are spread over the rows of a class, or are its first rows.
    """
    counts = np.diff(class_start)
    kept = np.minimum(counts, np.maximum(at_least, counts * (n_rows / class_start[-1])).astype(np.int64))
    start = np.concatenate([[0], np.cumsum(kept)])
    number = np.arange(start[-1]) - np.repeat(start[:-1], kept)
    if not from_front:
        number = number * np.repeat(counts, kept) // np.repeat(kept, kept)
    return np.repeat(class_start[:-1], kept) + number, start


class NodeRows(ABC):
    """Rows phi(x_j) with their classes and their ridge r_j = 1 / (C s_j).

    Parameters
    ----------
    class_start : ndarray of shape (n_classes + 1,)
        The rows of class k are ``class_start[k] : class_start[k + 1]``.
    ridge : ndarray of shape (n_rows,)
    seed : int
        Controls the order of coordinate descent.
    """

    # A search for a labelling looks at no more rows than about this; the machine of the node learns from all.
    SEARCHED_ROWS: ClassVar[int]
    # Whether several threads may solve on these rows at once.
    can_be_shared = True

    def __init__(self, class_start: npt.NDArray[np.int64], ridge: Array, seed: int) -> None:
        self.class_start = class_start
        self.ridge = ridge
        self.seed = seed
        self.n_rows, self.n_classes = len(ridge), len(class_start) - 1
        self.classes = np.repeat(np.arange(self.n_classes), np.diff(class_start))

    @abstractmethod
    def solve(
        self, labelling: Array, *, tol: float, max_iter: int, cutoff: float = np.inf, start: SVMSolution | None = None
    ) -> SVMSolution:
        """Solve the SVM of a labelling: P(z), eq. 3 of the paper.

        ``start`` is the solution for another labelling; the run ends early once P(z) is known to lie
        above ``cutoff``.
        """

    @abstractmethod
    def part(self, row: npt.NDArray[np.int64], class_start: npt.NDArray[np.int64]) -> Self:
        """Return some of the rows, sorted by class."""

    def sampled(self) -> Self:
        """Return rows for a search: these or, if there are many, the same share of each class, at least one row."""
        if self.n_rows <= self.SEARCHED_ROWS:
            return self
        return self.part(*sample_of_classes(self.class_start, self.SEARCHED_ROWS))

    def reduced(self) -> Self:
        """Return rows for a search among many classes, in fewer coordinates if these carry most of the information."""
        return self.sampled()

    @abstractmethod
    def solve_planes(
        self, planes: Array, mu: Array, *, tol: float, max_iter: int, alpha: Array | None = None
    ) -> DualSolution:
        """Solve the SVM whose kernel is sum_m mu_m K * z^m z^m', problem (9) for fixed mu."""

    @abstractmethod
    def polish(self, solution: SVMSolution) -> SVMSolution:
        """Refine a solution to machine precision if that is cheap, else return it unchanged.

        A small node's machine then depends neither on the order of its rows nor on whether a row occurs twice or has
        weight 2.
        """

    def machine(self, labelling: Array, *, tol: float, max_iter: int, start: SVMSolution | None = None) -> SVMSolution:
        """Return the solution for the final classifier."""
        return self.polish(self.solve(labelling, tol=tol, max_iter=max_iter, start=start))

    @abstractmethod
    def class_gram(self, coefficients: Array) -> Array:
        """Return G_kl = V_k'V_l with V_k = sum_{j in class k} coefficients_j phi(x_j)."""

    @abstractmethod
    def class_vectors(self, coefficients: Array) -> Matrix:
        """Return V in explicit coordinates of phi, one row per class."""

    @abstractmethod
    def class_norms(self, coefficients: Array) -> Array:
        """Return |V_k| of every class."""

    @abstractmethod
    def class_means(self) -> Matrix:
        """Return the class means in coordinates that keep their inner products, one row per class."""

    def mean_coefficients(self) -> Array:
        """Return the weight of each row in its class mean; rows count by their weight in the loss."""
        weights = 1.0 / self.ridge
        return np.asarray(weights / np.add.reduceat(weights, self.class_start[:-1])[self.classes])

    def starting_alpha(self, labelling: Array, start: SVMSolution | None) -> Array:
        """Carry the dual variables over from another labelling; classes that changed side start at 0."""
        if start is None:
            return np.zeros(self.n_rows)
        same = labelling == start.labelling
        rows_same = np.repeat(same, np.diff(self.class_start))
        # z and -z are one split: keep the larger part.
        if 2 * np.count_nonzero(rows_same) < self.n_rows:
            rows_same = ~rows_same
        return np.where(rows_same, start.alpha, 0.0)
