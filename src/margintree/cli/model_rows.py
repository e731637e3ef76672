"""A model and rows for it: the model file remembers what the file of its fit was."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from margintree.cli.row_files import read_rows
from margintree.cli.row_format import FittedFormat, RowFormat, Rows
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


class RowModel:
    """An estimator of a file, and the names of its features apart from it.

    Rows of files come as plain arrays, in the order of these names; scikit-learn would miss the names.
    """

    def __init__(self, path: Path, *, verify: bool = False) -> None:
        self.estimator: Any = load_model(path, verify=verify)
        self.names = self.estimator.__dict__.pop("feature_names_in_", None)
        self._fitted = fitted_format(path)

    def read(self, data: Path, how: RowFormat) -> Rows:
        """Return the rows of a file as the estimator takes them."""
        how = replace(how, fitted=self._fitted)
        return read_rows(data, how, int(self.estimator.n_features_in_)).in_order_of(self.names, data)
