"""The metric in which classes are spherical: that of their shared covariance, shrunk."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from margintree.solvers.solution import Array
from margintree.solvers.training_set import LinearTrainingSet, Moments, pieces

Index = npt.NDArray[np.int64]
Single = npt.NDArray[np.float32]

# Lower bound on the within-class variance of a direction, as a share of the variance of the rows.
LEAST_VARIANCE = 1e-6


@dataclass(frozen=True, eq=False)
class ClassMetric:
    """z = (x - centre) @ transform, so that the classes have the same variance in all directions."""

    centre: Array
    transform: Array
    # The variance of a class in each direction.
    variance: float = 1.0

    @classmethod
    def of(cls, training_set: LinearTrainingSet, classes: Index, importance: Array) -> "ClassMetric":
        """Shrink the within-class covariance as Ledoit and Wolf (2004), without rows of importance 0.

        The units of the features have no effect. Rows keep their length on average, so that C keeps its meaning.
        """
        X, n_classes, counted = training_set.X, training_set.n_classes, importance > 0.0
        weight = np.where(counted, training_set.sample_weight, 0.0)
        taken = np.flatnonzero(counted)
        moments = training_set.moments if counted.all() else Moments.of(training_set, taken)
        total, centre, of_class = moments.total, moments.centre, np.bincount(classes, weight, n_classes)
        means, length = np.zeros((n_classes, X.shape[1])), 0.0
        for piece in pieces(taken, X):
            rows = training_set.take(piece)
            length += float(weight[piece] @ np.einsum("ij,ij->i", rows, rows))
            add_by_class(means, classes[piece], (rows - centre.astype(X.dtype)) * weight[piece, None].astype(X.dtype))
        means /= np.where(of_class > 0.0, of_class, 1.0)[:, None]

        def squares() -> Iterator[tuple[Array, Array]]:
            for piece in pieces(taken, X):
                rows = training_set.take(piece) - (centre + means[classes[piece]]).astype(X.dtype)
                yield weight[piece], np.square(rows, dtype=np.float64)

        covariance = (moments.scatter - (means * of_class[:, None]).T @ means) / total
        # Divided by the fourth root of its fourth moment, no feature dominates the estimate: neither one with large
        # values nor one that is mostly zero.
        fourths = np.zeros(X.shape[1])
        for of_row, squared in squares():
            fourths += of_row @ np.square(squared)
        scale = np.where(fourths > 0.0, fourths / total, 1.0) ** -0.25
        fourth = sum(float(of_row @ (squared @ scale**2) ** 2) for of_row, squared in squares())
        # Of the drivers of eigh, the default one fails on some matrices of low rank.
        values, vectors = eigh(scale[:, None] * covariance * scale, driver="evd")
        values = shrunk(values, fourth / total, float(importance.sum()))
        least = LEAST_VARIANCE * float(np.sum(scale**2 * np.diagonal(moments.scatter))) / total / X.shape[1]
        transform = scale[:, None] * vectors / np.sqrt(np.maximum(values, least if least > 0.0 else 1.0))
        variance = float(np.sum(transform * (moments.scatter @ transform)))
        ratio = length / variance if 0.0 < variance < np.inf else 1.0
        return cls(centre, transform * np.sqrt(ratio), ratio if ratio > 0.0 else 1.0)

    def rows(self, training_set: LinearTrainingSet) -> Single:
        """Transform rows to the metric, in single precision."""
        X = training_set.X
        result = np.empty((training_set.n_rows, X.shape[1]), dtype=np.float32)
        centre, transform = self.centre.astype(X.dtype), self.transform.astype(X.dtype)
        for piece in pieces(np.arange(len(result)), X):
            result[piece] = (training_set.take(piece) - centre) @ transform
        return result


def shrunk(eigenvalues: Array, fourth: float, n_rows: float) -> Array:
    """Return the eigenvalues of a covariance that is shrunk towards a multiple of the identity.

    ``fourth`` is the mean of |x|^4 of its rows.
    """
    size = float(np.mean(eigenvalues))
    away = float(np.sum((eigenvalues - size) ** 2))
    noise = (fourth - float(np.sum(eigenvalues**2))) / n_rows
    shrinkage = min(1.0, max(0.0, noise / away)) if away > 0.0 else 1.0
    return np.asarray(eigenvalues + shrinkage * (size - eigenvalues))


def add_by_class(sums: Array, classes: Index, rows: npt.NDArray[np.floating]) -> None:
    """Add rows, which come sorted by class, to the sums of their classes."""
    present, first = np.unique(classes, return_index=True)
    sums[present] += np.add.reduceat(rows, first, axis=0, dtype=np.float64)
