"""The metric in which classes are spherical: that of their shared covariance, shrunk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, qr

from margintree.solvers.solution import Array
from margintree.solvers.training_set import LinearTrainingSet, Moments, pieces
from margintree.worker_threads import in_threads

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
        parts, n_threads = pieces(taken, X), training_set.n_threads

        def length_of(piece: Index) -> float:
            rows = training_set.take(piece)
            return float(weight[piece] @ np.einsum("ij,ij->i", rows, rows))

        def weighed(piece: Index) -> npt.NDArray[np.floating]:
            rows = training_set.take(piece) - centre.astype(X.dtype)
            return np.asarray(rows * weight[piece, None].astype(X.dtype))

        length = sum(in_threads(length_of, parts, n_threads))
        means = sums_by_class(weighed, parts, classes, n_classes, n_threads)
        means /= np.where(of_class > 0.0, of_class, 1.0)[:, None]

        def squares(piece: Index) -> Array:
            rows = training_set.take(piece) - (centre + means[classes[piece]]).astype(X.dtype)
            return np.asarray(np.square(rows, dtype=np.float64))

        def fourths_of(piece: Index) -> Array:
            return np.asarray(weight[piece] @ np.square(squares(piece)))

        def fourth_of(piece: Index) -> float:
            return float(weight[piece] @ (squares(piece) @ scale**2) ** 2)

        # Divided by the fourth root of its fourth moment, no feature dominates the estimate: neither one with large
        # values nor one that is mostly zero. One that only varies between classes has its variance there;
        # if all do, distances stay as they are. What is left of a constant is rounding.
        between = moments.of_features / total
        within = np.sqrt(np.sum(in_threads(fourths_of, parts, n_threads), axis=0) / total)
        rounding = LEAST_VARIANCE**2 * (between + centre**2)
        varies = within > np.maximum(LEAST_VARIANCE * between, rounding)
        squared = np.where(varies, within, between if varies.any() else 1.0)
        scale = np.where(squared > rounding, squared, 1.0) ** -0.5
        fourth = sum(in_threads(fourth_of, parts, n_threads))
        inside = moments.within(means.T)
        covariance = (moments.scatter - inside * of_class @ inside.T) / total
        # Of the drivers of eigh, the default one fails on some matrices of low rank.
        if moments.span is None:
            values, vectors = eigh(scale[:, None] * covariance * scale, driver="evd")
        else:
            # Beyond the span of the rows, all eigenvalues are 0, and no machine has weights.
            basis, back = qr(scale[:, None] * moments.span, mode="economic")
            values, vectors = eigh(back @ covariance @ back.T, driver="evd")
            vectors = basis @ vectors
        values = shrunk(values, len(centre), fourth / total, float(importance.sum()))
        least = LEAST_VARIANCE * float(np.mean(scale**2 * between))
        transform = scale[:, None] * vectors / np.sqrt(np.maximum(values, least if least > 0.0 else 1.0))
        inside = moments.within(transform)
        variance = float(np.sum(inside * (moments.scatter @ inside)))
        ratio = length / variance if 0.0 < variance < np.inf else 1.0
        return cls(centre, transform * np.sqrt(ratio), ratio if ratio > 0.0 else 1.0)

    def rows(self, training_set: LinearTrainingSet) -> Single:
        """Transform rows to the metric, in single precision."""
        X = training_set.X
        result = np.empty((training_set.n_rows, self.transform.shape[1]), dtype=np.float32)
        centre, transform = self.centre.astype(X.dtype), self.transform.astype(X.dtype)

        def fill(piece: Index) -> None:
            result[piece] = (training_set.take(piece) - centre) @ transform

        in_threads(fill, pieces(np.arange(len(result)), X), training_set.n_threads)
        return result


def shrunk(eigenvalues: Array, n_features: int, fourth: float, n_rows: float) -> Array:
    """Return the eigenvalues of a covariance that is shrunk towards a multiple of the identity.

    Those that are not given are 0. ``fourth`` is the mean of |x|^4 of its rows.
    """
    size = float(np.sum(eigenvalues)) / n_features
    away = float(np.sum((eigenvalues - size) ** 2)) + (n_features - len(eigenvalues)) * size**2
    noise = (fourth - float(np.sum(eigenvalues**2))) / n_rows
    shrinkage = min(1.0, max(0.0, noise / away)) if away > 0.0 else 1.0
    return np.asarray(eigenvalues + shrinkage * (size - eigenvalues))


def sums_by_class(
    rows: Callable[[Index], npt.NDArray[np.floating]],
    parts: Sequence[Index],
    classes: Index,
    n_classes: int,
    n_threads: int,
) -> Array:
    """Return the sum of the rows of each class; ``rows`` gives those of a part, and rows are sorted by class."""

    def sums_of(part: Index) -> tuple[Index, Array]:
        present, first = np.unique(classes[part], return_index=True)
        return present, np.add.reduceat(rows(part), first, axis=0, dtype=np.float64)

    found = in_threads(sums_of, parts, n_threads)
    result = np.zeros((n_classes, found[0][1].shape[1]))
    for present, sums in found:
        result[present] += sums
    return result
