"""From validated user data to a training set: weights, order by class, kernel parameters."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.kernel_rows import KernelRows
from margintree.solvers.kernel_source import KernelSource
from margintree.solvers.row_keys import row_keys
from margintree.solvers.solution import Array
from margintree.solvers.training_set import KernelTrainingSet, LinearTrainingSet, TrainingSet

# A class of a smaller part of the whole weight vanishes in sums of weights.
LEAST_SHARE = 1e-14


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Rows with positive weight, sorted by class.

    ``original_row`` is the position of each row in the user's data; with ``in_place``, X keeps that order.
    """

    X: Any
    classes: npt.NDArray[Any]
    class_start: npt.NDArray[np.int64]
    sample_weight: Array
    cost: Array
    original_row: npt.NDArray[np.int64]
    in_place: bool = False


def prepare(
    X: Any, y: npt.NDArray[Any], sample_weight: Any, *, C: float, class_weight: Any, pairwise: bool, in_place: bool
) -> TrainingData:
    """Drop rows of weight zero, sort the others by class and content, and give each its cost.

    A row of weight zero counts as absent: a class that has no other rows is not learned. ``in_place`` leaves X alone.
    """
    classes, codes = np.unique(y, return_inverse=True)
    weight, keys = checked_weight(sample_weight, X), row_keys(X, pairwise=pairwise)
    data = sorted_rows(classes, codes, weight, keys, C=C, class_weight=class_weight)
    if not in_place:
        rows = data.original_row
        X = X[np.ix_(rows, rows)] if pairwise else X[rows]
    return replace(data, X=X, in_place=in_place)


def checked_weight(sample_weight: Any, X: Any) -> Array:
    """Return a weight for each row of X."""
    weight: Array = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return weight


def sorted_rows(
    classes: npt.NDArray[Any],
    codes: npt.NDArray[np.int64],
    weight: Array,
    keys: npt.NDArray[np.uint64],
    *,
    C: float,
    class_weight: Any,
) -> TrainingData:
    """Return all of the training data but X, which is None: the order of the rows follows from what is given here.

    ``codes`` numbers the classes of the rows, ``keys`` their content.
    """
    kept = np.flatnonzero(weight > 0.0)
    present, codes = np.unique(codes[kept], return_inverse=True)
    classes = classes[present]
    if len(classes) < 2:
        raise ValueError(
            f"A classifier needs at least 2 classes with rows of positive weight; got {len(classes)} class"
            f"{'' if len(classes) == 1 else 'es'}: {classes.tolist()}."
        )
    # The position of a row in the data has no effect.
    order = np.lexsort((weight[kept], keys[kept], codes))
    rows = kept[order]
    codes, weight = codes[order], weight[rows]
    class_start = np.searchsorted(codes, np.arange(len(classes) + 1))
    factors = np.ones(len(classes))
    if class_weight is not None:
        # With sample weights "balanced" counts weight, so that weight 2 stays a duplicated row.
        factors = compute_class_weight(class_weight, classes=classes, y=classes[codes], sample_weight=weight)
        for name, factor in zip(classes, factors, strict=True):
            if not (np.isfinite(factor) and factor > 0.0):
                raise ValueError(
                    f"class_weight must be positive and finite. Got {factor} for class {name!r}. "
                    "To leave a class out, give its rows a sample_weight of 0."
                )
    cost = C * weight * factors[codes]
    sizes = np.add.reduceat(weight, class_start[:-1])
    if sizes.min() < LEAST_SHARE * sizes.sum() or not np.isfinite(1.0 / cost).all():
        raise ValueError(
            f"The rows of class {classes[np.argmin(sizes)]!r} have a weight of {sizes.min():.3g} of {sizes.sum():.3g}, "
            "too little to tell from rounding errors. Raise their sample_weight, or set it to 0 to drop the class."
        )
    return TrainingData(None, classes, class_start, weight, cost, rows)


def linear_set(data: TrainingData, *, fit_intercept: bool) -> LinearTrainingSet:
    """Return the training set of a linear model."""
    X = sp.csr_array(data.X) if sp.issparse(data.X) else data.X
    weight, cost, order = data.sample_weight, data.cost, data.original_row if data.in_place else None
    return LinearTrainingSet(X, data.class_start, weight, cost, fit_intercept=fit_intercept, order=order)


def kernel_set(
    data: TrainingData, function: KernelFunction, *, cache_size: float, tol: float, learns_from_all: bool = True
) -> TrainingSet:
    """Return the training set of a kernel model, whose nodes may learn from samples."""
    source = KernelSource(function, data.X, cache_size, tol, hold_all=learns_from_all)
    most_rows = None if learns_from_all else KernelRows.SEARCHED_ROWS
    return KernelTrainingSet(source, data.class_start, data.sample_weight, data.cost, most_rows=most_rows)


def gamma_value(gamma: float | str, data: TrainingData) -> float:
    """Return gamma as a number: "scale" is 1 / (n_features * variance of X), "auto" 1 / n_features.

    The variance counts rows by their weight, so that weight 2 stays a duplicated row.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    n_features = int(data.X.shape[1])
    if gamma == "auto":
        return 1.0 / n_features
    weight = data.sample_weight
    total = weight.sum() * n_features
    mean = float(np.sum(weight @ data.X)) / total
    # The mean is taken off before squaring: it may be far larger than what the entries differ by.
    if sp.issparse(data.X):
        stored = np.repeat(weight, np.diff(data.X.indptr))
        squares = float(stored @ (data.X.data - mean) ** 2) + (total - float(stored.sum())) * mean**2
    else:
        squares = float(np.sum(weight @ (data.X - mean) ** 2))
    variance = squares / total
    # A matrix of one repeated value has no scale; rounding may leave a trace of variance behind.
    return 1.0 / (n_features * variance) if variance > 1e-24 * mean**2 else 1.0
