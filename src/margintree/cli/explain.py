"""``margintree explain``: why a row of a file is given its class."""

import json
from pathlib import Path
from typing import Any

from margintree.cli.model_rows import RowModel
from margintree.cli.options import NameOptions
from margintree.cli.reporting import reported
from margintree.cli.row_format import RowFileError, RowFormat
from margintree.inspection import explain
from margintree.storage import check_writable, replacing


def run_explain(
    model: Path,
    data: Path,
    row: int,
    *,
    how: RowFormat,
    names: NameOptions,
    n_features: int,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Print the explanation of a row, numbered from 1, and draw it if ``plot`` is given."""
    with reported():
        if plot is not None:
            check_writable(plot)
        fitted = RowModel(model, names)
        rows = fitted.read(data, how)
        if row > rows.X.shape[0]:
            raise RowFileError(f"{data} has {rows.X.shape[0]} rows, numbered from 1. Got --row {row}.")
        explanation = explain(
            fitted.estimator,
            rows.X[[row - 1]],
            feature_names=fitted.feature_names,
            class_names=fitted.class_names,
            n_features=n_features,
        )
        print(json.dumps(explanation.to_dict(), ensure_ascii=True, indent=2) if as_json else explanation)
        if plot is not None:
            _write_picture(explanation, plot)


def _write_picture(explanation: Any, path: Path) -> None:
    figure = explanation.plot()
    kind = path.suffix.removeprefix(".").lower() or "png"
    if kind not in figure.canvas.get_supported_filetypes():
        raise ValueError(f"--plot cannot write the format of {path}. Use .png, .svg or .pdf.")
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format=kind)
