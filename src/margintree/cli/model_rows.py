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


def _names(path: Path | None, option: str, n_names: int) -> list[str] | None:
    """Return the lines of a file with one name for each class or feature, if one is given."""
    if path is None:
        return None
    names = path.read_text(encoding="utf-8").splitlines()
    if len(names) != n_names:
        raise RowFileError(f"{option} must have {n_names} lines, one per name. {path} has {len(names)}.")
    return names


class RowModel:
    """The estimator of a model file, and the names of its features and classes.

    Rows of files are plain arrays with their columns in the order of these names. The estimator itself must not know
    the names, or scikit-learn would warn that they are missing.
    """

    def __init__(self, path: Path, names: NameOptions, *, verify: bool = False) -> None:
        self._path = path
        self.estimator: Any = load_model(path, verify=verify)
        self._n_features = int(self.estimator.n_features_in_)
        self._names = self.estimator.__dict__.pop("feature_names_in_", None)
        self.class_names = _names(names.class_names, "--class-names", len(self.estimator.classes_))
        given = _names(names.feature_names, "--feature-names", self._n_features)
        self.feature_names: Sequence[str] | None = self._names if given is None else given

    def read(self, data: Path, how: RowFormat) -> Rows:
        """Return the rows of a file, as the estimator expects them."""
        # Model files that Python or older versions wrote do not store the format of their training rows.
        text = read_metadata(self._path).get(METADATA_KEY)
        try:
            fitted = None if text is None else FittedFormat.from_dict(parse_json(text, "format of rows"))
        except ModelFileError as error:
            raise ModelFileError(f"{self._path} cannot be loaded: {error}.") from error
        return read_rows(data, replace(how, fitted=fitted), self._n_features).in_order_of(self._names, data)
