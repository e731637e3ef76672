"""Prediction time, one instance at a time, as in section 4.2 of the paper."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

# The rows are predicted again and again, at least so many times and for so many seconds a row; the fastest pass counts,
# since a busy machine only ever adds time. A few milliseconds could fall into one bad moment whole.
FEWEST_PASSES, SECONDS_PER_ROW = 3, 0.001


def one_row_predictors(model: Any) -> dict[str, Callable[..., Any]]:
    """Return the ways in which a fitted model predicts one row: "predict", and "compiled", by ``single_instance()``.

    ``predict`` spends most of its time on validation, which is the same for all methods and hides what they differ
    in. ``single_instance()`` skips that, for every method of the comparison.
    """
    return {"predict": model.predict, "compiled": model.single_instance().predict}


def arguments(X: Any, i: int, way: str) -> tuple[Any, ...]:
    """Return row i as a way of predicting takes it: "compiled" a dense row, or columns and values of a sparse one."""
    if way == "predict":
        return (X[[i]],)
    if sp.issparse(X):
        part = slice(X.indptr[i], X.indptr[i + 1])
        return X.indices[part], X.data[part]
    return (X[i],)


def seconds_per_row(model: Any, X: Any, n_rows: int) -> dict[str, float]:
    """Return the mean seconds of one prediction, for each of the model's ways to predict one row.

    Parameters
    ----------
    model : fitted estimator
    X : array or CSR matrix of shape (n_samples, n_features)
    n_rows : int
        How many rows of X are predicted, taken evenly.
    """
    chosen = np.unique(np.linspace(0, X.shape[0] - 1, min(n_rows, X.shape[0])).astype(int))
    found: dict[str, float] = {}
    for way, predict in one_row_predictors(model).items():
        rows = [arguments(X, i, way) for i in chosen]
        found[way] = seconds_per_call(predict, rows)
    return found


def seconds_per_call(predict: Callable[..., Any], rows: list[tuple[Any, ...]]) -> float:
    """Return the mean seconds of a call, from the fastest of several passes over the rows.

    Parameters
    ----------
    predict : callable
    rows : list of tuple
        The arguments of each call.
    """
    predict(*rows[0])  # compiles, or loads what was compiled
    passes: list[float] = []
    while len(passes) < FEWEST_PASSES or sum(passes) < SECONDS_PER_ROW * len(rows):
        passes.append(_pass(predict, rows))
    return min(passes) / len(rows)


def _pass(predict: Callable[..., Any], rows: list[tuple[Any, ...]]) -> float:
    began = time.perf_counter()
    for row in rows:
        predict(*row)
    return time.perf_counter() - began
