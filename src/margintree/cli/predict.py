"""``margintree predict``: from a model file and a file of rows to labels."""

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np

from margintree.cli.fit import share_right
from margintree.cli.model_rows import RowModel
from margintree.cli.options import NameOptions
from margintree.cli.reporting import reported
from margintree.cli.row_format import RowFormat
from margintree.storage import check_writable, replacing


def run_predict(
    model: Path, data: Path, output: Path | None, *, how: RowFormat, top_k: int | None, proba: bool, jobs: int | None
) -> None:
    """Write one line per row: its label, its most probable labels, or the probabilities of all classes."""
    with reported() as console:
        if output == Path("-"):
            output = None
        if output is not None:
            check_writable(output)
        fitted = RowModel(model, NameOptions())
        estimator = fitted.estimator
        if "n_jobs" in estimator.get_params():
            estimator.set_params(n_jobs=jobs)
        rows = fitted.read(data, how)
        lines = _lines(estimator, rows.X, top_k, proba)
        if output is None:
            csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
        else:
            with replacing(output) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as stream:
                csv.writer(stream, lineterminator="\n").writerows(lines)
        if rows.labels is not None and top_k is None and not proba:
            known = np.isin(rows.labels.astype(str), estimator.classes_.astype(str))
            if known.any():
                right = share_right(np.array([line[0] for line in lines]), rows.labels)
                console.print(f"accuracy {right:.4f} on {len(lines)} rows")


def _lines(estimator: Any, X: Any, top_k: int | None, proba: bool) -> list[list[Any]]:
    """Return the cells of each line; rankings and probabilities have a header row."""
    if top_k is None and not proba:
        return [[label] for label in estimator.predict(X).tolist()]
    wanted = "predict_proba" if proba else "predict_top_k"
    if not hasattr(estimator, wanted):
        raise ValueError(
            f"{type(estimator).__name__} has no method {wanted}. Leave {'--proba' if proba else '--top-k'} out, or fit "
            "a model with probabilities: margintree fit."
        )
    if proba:
        return [estimator.classes_.tolist(), *_rounded(estimator.predict_proba(X))]
    assert top_k is not None
    classes, probabilities = estimator.predict_top_k(X, top_k)
    header = [name for k in range(1, top_k + 1) for name in (f"label_{k}", f"probability_{k}")]
    pairs = zip(classes.tolist(), _rounded(probabilities), strict=True)
    return [header, *([cell for pair in zip(*both, strict=True) for cell in pair] for both in pairs)]


def _rounded(probabilities: Any) -> list[list[str]]:
    return [[f"{value:.6g}" for value in row] for row in probabilities.tolist()]
