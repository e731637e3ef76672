"""``margintree fit``: from a file of rows to a model file."""

import copy
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import typer
from sklearn.utils._param_validation import InvalidParameterError

from margintree.cli.model_rows import metadata_of
from margintree.cli.out_of_core import bounded
from margintree.cli.reporting import reported, shown, terminal
from margintree.cli.row_files import read_rows
from margintree.cli.row_format import RowFormat
from margintree.estimators.margin_tree import MarginTreeClassifier
from margintree.model_file.files import save_model
from margintree.storage import check_writable


def run_fit(
    train: Path,
    test: Path | None,
    model: Path,
    *,
    how: RowFormat,
    parameters: dict[str, Any],
    memory: str | None,
    quiet: bool,
) -> None:
    """Fit, save, and print the accuracy on the test rows; with ``memory``, in pieces."""
    console = terminal()
    console.quiet = quiet
    with reported(), nullcontext() if memory is None else bounded(memory, parameters["n_jobs"]) as pieces:
        check_writable(model)
        rows = read_rows(train, how) if pieces is None else pieces.read(train, how)
        assert rows.labels is not None
        if pieces is None:
            n_classes = len(np.unique(rows.labels))
            console.print(f"{shown(train)}: {rows.X.shape[0]} rows, {rows.X.shape[1]} columns, {n_classes} classes")
        else:
            console.print(f"{shown(train)}: {rows.X.shape[1]} columns, read in pieces")
        if rows.fitted.one_based and how.one_based is None:
            console.print("No row has a column 0, so column indices are taken to start at 1. If not, use --zero-based.")
        # Read before the fit, so that a misspelt file name is reported before the time is spent.
        test_rows = None
        if test is not None:
            test_rows = read_rows(test, replace(how, fitted=rows.fitted), rows.X.shape[1]).in_order_of(rows.names, test)
        verbose = int(console.is_terminal and not quiet)
        began = time.perf_counter()
        try:
            if pieces is None:
                estimator = MarginTreeClassifier(**parameters, verbose=verbose).fit(rows.X, rows.labels)
            else:
                estimator = pieces.fit(rows, parameters, verbose)
        except InvalidParameterError as error:
            # A value out of range is an error in the command line, not in the rows.
            raise typer.BadParameter(str(error)) from error
        seconds = time.perf_counter() - began
        # Stored with the names of its columns; without them, it predicts plain arrays and does not warn.
        named = copy.copy(estimator)
        if rows.names is not None:
            named.feature_names_in_ = np.array(rows.names, dtype=object)
        save_model(named, model, metadata=metadata_of(rows))
        size = f"depth {estimator.tree_.max_depth}, {model.stat().st_size:,} bytes"
        console.print(f"{shown(model)}: {size}, fitted in {seconds:.1f} s")
        if test_rows is None:
            return
        if test_rows.labels is None:
            raise ValueError(f"{test} has no labels, so there is no accuracy. The model is saved.")
        # Standard output, for scripts.
        print(f"accuracy {share_right(estimator.predict(test_rows.X), test_rows.labels):.4f}")


def share_right(predicted: npt.NDArray[Any], labels: npt.NDArray[Any]) -> float:
    """Return the accuracy; labels may be numbers in one array and strings in the other."""
    return float(np.mean(predicted.astype(str) == labels.astype(str)))
