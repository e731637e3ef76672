"""``margintree fit``: from a file of rows to a model file."""

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import typer
from sklearn.utils._param_validation import InvalidParameterError

from margintree.cli.model_rows import metadata_of
from margintree.cli.reporting import reported, shown, terminal
from margintree.cli.row_files import read_rows
from margintree.cli.row_format import RowFormat
from margintree.estimators.margin_tree import MarginTreeClassifier
from margintree.model_file.files import save_model
from margintree.storage import check_writable


@dataclass(frozen=True)
class FitJob:
    """What to fit, and where the model goes."""

    train: Path
    test: Path | None
    model: Path
    how: RowFormat
    parameters: dict[str, Any]
    is_quiet: bool = False


def run_fit(job: FitJob) -> None:
    """Fit, save, and say how good the model is."""
    console = terminal()
    console.quiet = job.is_quiet
    errors = terminal()
    with reported(errors):
        check_writable(job.model)
        rows = read_rows(job.train, job.how)
        assert rows.labels is not None
        n_classes = len(np.unique(rows.labels))
        console.print(f"{shown(job.train)}: {rows.X.shape[0]} rows, {rows.X.shape[1]} columns, {n_classes} classes")
        if rows.fitted.one_based and job.how.one_based is None:
            console.print("No row has a column 0: columns are taken to count from 1. If they do not, say --zero-based.")
        estimator = MarginTreeClassifier(**job.parameters, verbose=int(console.is_terminal and not job.is_quiet))
        # Read before the fit: a wrong name should not cost one.
        test = None
        if job.test is not None:
            test = read_rows(job.test, replace(job.how, fitted=rows.fitted), rows.X.shape[1]).in_order_of(
                rows.names, job.test
            )
        began = time.perf_counter()
        try:
            estimator.fit(rows.X, rows.labels)
        except InvalidParameterError as error:
            # An option out of its range is a matter of the command line, not of the rows.
            raise typer.BadParameter(str(error)) from error
        seconds = time.perf_counter() - began
        save_model(named(estimator, rows.names), job.model, metadata=metadata_of(rows))
        size = job.model.stat().st_size
        console.print(
            f"{shown(job.model)}: depth {estimator.tree_.max_depth}, {size:,} bytes, fitted in {seconds:.1f} s"
        )
        if job.test is not None and test is not None:
            if test.labels is None:
                raise ValueError(f"{job.test} has no labels to compare with; the model is saved.")
            accuracy = share_right(estimator.predict(test.X), test.labels)
            # The one result of a fit that a script may want.
            print(f"accuracy {accuracy:.4f}", flush=True)


def named(estimator: Any, names: Sequence[str] | None) -> Any:
    """Return a copy of an estimator that knows the names of its columns, as one that was fitted on a frame does."""
    estimator = copy.copy(estimator)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return estimator


def share_right(predicted: npt.NDArray[Any], labels: npt.NDArray[Any]) -> float:
    """Return the part of the rows whose label was predicted; labels may be numbers here and text there."""
    return float(np.mean(predicted.astype(str) == labels.astype(str)))
