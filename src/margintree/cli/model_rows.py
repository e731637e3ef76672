"""A model and rows for it: the model file stores the format of its training rows."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from margintree.cli.options import NameOptions
from margintree.cli.row_files import read_rows
from margintree.cli.row_format import FittedFormat, RowFileError, RowFormat, Rows
from margintree.model_file.container import parse_json
from margintree.model_file.errors import ModelFileError
from margintree.model_file.files import load_model, read_metadata

METADATA_KEY = "fitted_on"


def metadata_of(rows: Rows) -> dict[str, str]:
    """Return the metadata that a model file stores about its training rows."""
    return {METADATA_KEY: json.dumps(asdict(rows.fitted), sort_keys=True)}


def fitted_format(model: Path) -> FittedFormat | None:
    """Return the format of a model's training rows; None in files that Python or older versions wrote."""
    text = read_metadata(model).get(METADATA_KEY)
    try:
        return None if text is None else FittedFormat.from_dict(parse_json(text, "format of rows"))
    except ModelFileError as error:
        raise ModelFileError(f"{model} cannot be loaded: {error}.") from error


def read_names(path: Path, option: str, n_names: int) -> list[str]:
    """Return the lines of a file with one name for each class or feature."""
    names = path.read_text(encoding="utf-8").splitlines()
    if len(names) != n_names:
        raise RowFileError(f"{option} must have {n_names} lines, one per name. {path} has {len(names)}.")
    return names


class RowModel:
    """The estimator of a model file, and the names of its features.

    Rows of files are plain arrays with their columns in the order of these names. The estimator itself must not know
    the names, or scikit-learn would warn that they are missing.
    """

    def __init__(self, path: Path, *, verify: bool = False, names: NameOptions | None = None) -> None:
        self.estimator: Any = load_model(path, verify=verify)
        self.names = self.estimator.__dict__.pop("feature_names_in_", None)
        self._fitted = fitted_format(path)
        self.class_names: list[str] | None = None
        self.feature_names: Sequence[str] | None = self.names
        if names is not None and names.class_names is not None:
            self.class_names = read_names(names.class_names, "--class-names", len(self.estimator.classes_))
        if names is not None and names.feature_names is not None:
            self.feature_names = read_names(names.feature_names, "--feature-names", int(self.estimator.n_features_in_))

    def read(self, data: Path, how: RowFormat) -> Rows:
        """Return the rows of a file, as the estimator expects them."""
        how = replace(how, fitted=self._fitted)
        return read_rows(data, how, int(self.estimator.n_features_in_)).in_order_of(self.names, data)
