"""The format of a file of rows: its kind, its label column, and how both are inferred if they are not given."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.model_file.errors import ModelFileError

STANDARD_INPUT = Path("-")
COMPRESSED = (".gz", ".bz2")
KIND_OF_ENDING = {
    ".csv": "csv",
    ".tsv": "csv",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".parquet": "parquet",
}
FORMATS = ("svmlight", "csv", "parquet")
# Rows rarely compress by more than a factor of fifty. A file that decompresses to more than this factor, and to more
# than so many bytes, is a decompression bomb.
LARGEST_EXPANSION, ALWAYS_UNPACKED = 200, 2**26
# A label this much longer than the others is not the name of a class. Labels of more characters in all, each as wide as
# the longest one, are stored as Python strings.
LABEL_CHARACTERS, LARGEST_LABEL_SHARE = 2**24, 16
# Without --label, integers with more different values than this are taken for a feature.
MOST_GUESSED_CLASSES = 50


class RowFileError(ValueError):
    """A file that does not contain rows."""


@dataclass(frozen=True)
class FittedFormat:
    """Format of the file that a model was fitted on; the model file stores it for later commands.

    Attributes
    ----------
    kind : {"svmlight", "csv", "parquet"}
    label : str or None
        Name of the label column, if it had one.
    column : int or None
        Index of the label column, from 0; None for svmlight files, which need none.
    one_based : bool
        Whether svmlight column indices started at 1.
    """

    kind: str
    label: str | None = None
    column: int | None = None
    one_based: bool = False

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "FittedFormat":
        """Return the format that a model file stores, if it is valid."""
        column = values.get("column")
        is_valid = (
            values.keys() == {field.name for field in fields(cls)}
            and values["kind"] in FORMATS
            and isinstance(values["one_based"], bool)
            and isinstance(values["label"], str | None)
            and (column is None or (type(column) is int and column >= 0))
        )
        if not is_valid:
            raise ModelFileError("the format of its training rows is damaged")
        return cls(**values)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a file; ``labels`` and the ``names`` of the columns are None if the file has none."""

    X: Any
    labels: npt.NDArray[Any] | None
    fitted: FittedFormat
    names: tuple[str, ...] | None = None

    @classmethod
    def of_table(
        cls, kind: str, X: Any, labels: npt.NDArray[Any] | None, place: int | None, columns: Sequence[str] | None
    ) -> "Rows":
        """Return the rows of a table with labels in column ``place`` and, if it has a header row, names of columns."""
        if columns is None:
            return cls(X, labels, FittedFormat(kind, None, place))
        names = tuple(name for j, name in enumerate(columns) if j != place)
        # Empty or repeated names cannot identify columns.
        is_named = all(names) and len(set(names)) == len(names)
        # A numeric name could be mistaken for a feature value in the next file.
        label = None if place is None or is_number(columns[place]) else columns[place]
        return cls(X, labels, FittedFormat(kind, label, place), names if is_named else None)

    def in_order_of(self, names: Sequence[str] | None, path: Path) -> "Rows":
        """Return the rows with their columns in the order of ``names``, if both have names."""
        if names is None or self.names is None or self.names == tuple(names):
            return self
        if missing := sorted(set(names) - set(self.names)):
            raise RowFileError(
                f"{path} has no column {missing[0]!r}, and {len(missing) - 1} more of the {len(names)} columns that "
                "the model was fitted with are missing. Columns are matched by name if there is a header row; rename "
                "them, or remove the header row."
            )
        place = {name: j for j, name in enumerate(self.names)}
        return replace(self, X=self.X[:, [place[name] for name in names]], names=tuple(names))


@dataclass(frozen=True)
class RowFormat:
    """How to read a file.

    Attributes
    ----------
    name : {"auto", "svmlight", "csv", "parquet"}
        "auto" infers the kind from the file name, else from the file that the model was fitted on; otherwise it is
        svmlight.
    label : str or None
        Label column: its name, or its number from 1, or from -1 backwards. None is as in the fit, or the first
        column.
    one_based : bool or None
        Whether svmlight column indices start at 1. None is as in the fit; in a fit, whether there is no column 0.
    fitted : FittedFormat or None
        Format of the file that the model was fitted on, if there is a model that stores it.
    values_path : Path or None
        Where to write the numbers of a CSV file as float64, instead of keeping them in memory; X is mapped from there.
    """

    name: str = "auto"
    label: str | None = None
    one_based: bool | None = None
    fitted: FittedFormat | None = None
    values_path: Path | None = None

    def kind(self, path: Path) -> str:
        """Return the kind of the file."""
        if self.name != "auto":
            return self.name
        name = path.name.lower()
        for ending in COMPRESSED:
            name = name.removesuffix(ending)
        kind = KIND_OF_ENDING.get(Path(name).suffix)
        if kind is not None:
            return kind
        if self.fitted is not None:
            return self.fitted.kind
        if path == STANDARD_INPUT:
            options = " or ".join(f"--format {kind}" for kind in FORMATS)
            raise RowFileError(f"The format of standard input cannot be inferred from a name. Use {options}.")
        return "svmlight"

    @property
    def label_name(self) -> str | None:
        """The name of the label column: as given, unless that is a number, or as in the fit."""
        if self.label is not None:
            return None if _is_integer(self.label) else self.label
        return None if self.fitted is None else self.fitted.label

    def place_of_label(self, path: Path, first: Sequence[str], n_features: int | None) -> int | None:
        """Return the index of the label column, given the cells of the first line; None if the file has none."""
        name = self.label_name
        if not first:
            raise RowFileError(f"{path} has no columns.")
        if name is not None and name in first:
            if first.count(name) > 1:
                raise RowFileError(f"{path} has {first.count(name)} columns named {name!r}. Rename all but one.")
            return first.index(name)
        if n_features is not None and len(first) == n_features:
            return None
        if self.label is not None and name is None:
            number = int(self.label)
            if number == 0 or abs(number) > len(first):
                raise RowFileError(
                    f"{path} has {len(first)} columns. Got --label {number}; columns are numbered from 1, or from -1 "
                    "backwards."
                )
            return number - 1 if number > 0 else len(first) + number
        if self.label is not None:
            raise RowFileError(
                f"{path} has no column {self.label!r} in its first line: {', '.join(first[:20])}. If there is no "
                "header row, use --label 1 for the first column or --label -1 for the last one."
            )
        if n_features is None:
            return 0
        if len(first) == n_features + 1:
            return 0 if self.fitted is None or self.fitted.column is None else min(self.fitted.column, n_features)
        raise RowFileError(
            f"{path} has {len(first)} columns. The model expects {n_features}, with or without a label column."
        )

    def labels(self, path: Path, cells: Sequence[str], n_features: int | None) -> npt.NDArray[Any]:
        """Return the labels in a column that was given or, if it does not look like a feature, only guessed."""
        if self.label is None and n_features is None and all(map(is_number, cells)):
            values = {float(cell) for cell in cells}
            if len(values) > MOST_GUESSED_CLASSES or not all(value.is_integer() for value in values):
                raise RowFileError(
                    f"{path}: which column holds the labels? The first one, which is the default, has {len(values)} "
                    f"different numbers, such as {cells[0]}, and looks like a feature. Use --label -1 for the last "
                    "column, --label 1 for the first one, or the number or name of another."
                )
        return labels_of(path, cells)


def _is_integer(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


def is_number(cell: str) -> bool:
    """Return whether a cell is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    # Only Python reads 1_000 as a number.
    return "_" not in cell


def labels_of(path: Path, cells: Sequence[str]) -> npt.NDArray[Any]:
    """Return the labels as integers if all are written as such, else as strings: 01 and 1 are two labels."""
    if "" in cells:
        raise RowFileError(f"{path} has a row without a label.")
    if any("\0" in cell for cell in cells):
        raise RowFileError(f"{path} has a label with a NUL character. Is it a text file?")
    lengths = [len(cell) for cell in cells]
    characters = len(cells) * max(lengths)
    if characters > max(LABEL_CHARACTERS, LARGEST_LABEL_SHARE * sum(lengths)):
        raise RowFileError(
            f"{path} has a label of {max(lengths)} characters, {cells[int(np.argmax(lengths))][:40]!r}..., where the "
            f"{len(cells)} labels have {sum(lengths) / len(cells):.0f} on average. Give the label column with --label, "
            "or shorten the labels."
        )
    text = np.array(cells, dtype=object if characters > LABEL_CHARACTERS else str)
    try:
        numbers = np.array([int(cell) for cell in cells], dtype=np.int64)
    except (ValueError, OverflowError):
        return text
    return numbers if numbers.astype(str).tolist() == list(cells) else text
