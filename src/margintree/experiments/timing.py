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

    ``predict`` spends most of its time on validation, which hides the differences between methods; the other skips it.
    """
    return {"predict": model.predict, "compiled": model.single_instance().predict}


def arguments(X: Any, i: int, way: str) -> tuple[Any, ...]:
    """Return row i as input: for "compiled" a dense row, or columns and values of a sparse one."""
    if way == "predict":
        return (X[[i]],)
    if sp.issparse(X):
        part = slice(X.indptr[i], X.indptr[i + 1])
        return X.indices[part], X.data[part]
    return (X[i],)


def seconds_per_row(model: Any, X: Any, n_rows: int) -> dict[str, float]:
    """Return the mean seconds of one prediction for each way, over so many rows of X, taken evenly."""
    chosen = np.unique(np.linspace(0, X.shape[0] - 1, min(n_rows, X.shape[0])).astype(int))
    ways = one_row_predictors(model)
    return {way: seconds_per_call(predict, [arguments(X, i, way) for i in chosen]) for way, predict in ways.items()}


def seconds_per_call(predict: Callable[..., Any], rows: list[tuple[Any, ...]]) -> float:
    """Return the mean seconds of a call, from the fastest of several passes over its arguments."""
    predict(*rows[0])  # compiles, or loads what was compiled
    passes: list[float] = []
    while len(passes) < FEWEST_PASSES or sum(passes) < SECONDS_PER_ROW * len(rows):
        began = time.perf_counter()
        for row in rows:
            predict(*row)
        passes.append(time.perf_counter() - began)
    return min(passes) / len(rows)
