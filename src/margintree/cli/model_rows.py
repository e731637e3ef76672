"""A model and rows for it: the model file remembers what the file of its fit was."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from margintree.cli.row_files import read_rows
from margintree.cli.row_format import FittedFormat, RowFileError, RowFormat, Rows
from margintree.model_file.container import parse_json
from margintree.model_file.errors import ModelFileError
from margintree.model_file.files import load_model, read_metadata

METADATA_KEY = "fitted_on"


def metadata_of(rows: Rows) -> dict[str, str]:
    """Return what a model file keeps of the rows that it was fitted on."""
    return {METADATA_KEY: json.dumps(rows.fitted.to_dict(), sort_keys=True)}


def fitted_format(model: Path) -> FittedFormat | None:
    """Return what a model file has kept of the rows of its fit; None in files that Python or older versions wrote."""
    text = read_metadata(model).get(METADATA_KEY)
    try:
        return None if text is None else FittedFormat.from_dict(parse_json(text, "description of rows"))
    except ModelFileError as error:
        raise ModelFileError(f"{model} cannot be loaded: {error}.") from error


@dataclass(frozen=True)
class NameFiles:
    """Text files with the names of classes and features, one per line."""

    classes: Path | None = None
    features: Path | None = None


def read_names(path: Path, option: str, n_names: int) -> list[str]:
    """Return the lines of a file with a name for each of so many classes or features."""
    names = path.read_text(encoding="utf-8").splitlines()
    if len(names) != n_names:
        raise RowFileError(f"{option} needs a line for each of the model's {n_names}. {path} has {len(names)}.")
    return names


class RowModel:
    """An estimator of a file, and the names of its features apart from it.

    Rows of files come as plain arrays, in the order of these names; scikit-learn would miss the names.
    """

    def __init__(self, path: Path, *, verify: bool = False, names: NameFiles = NameFiles()) -> None:
        self.estimator: Any = load_model(path, verify=verify)
        self.names = self.estimator.__dict__.pop("feature_names_in_", None)
        self._fitted = fitted_format(path)
        self.class_names: list[str] | None = None
        if names.classes is not None:
            self.class_names = read_names(names.classes, "--class-names", len(self.estimator.classes_))
        self.feature_names: Sequence[str] | None = self.names
        if names.features is not None:
            self.feature_names = read_names(names.features, "--feature-names", int(self.estimator.n_features_in_))

    def read(self, data: Path, how: RowFormat) -> Rows:
        """Return the rows of a file as the estimator takes them."""
        how = replace(how, fitted=self._fitted)
        return read_rows(data, how, int(self.estimator.n_features_in_)).in_order_of(self.names, data)
