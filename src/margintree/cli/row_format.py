"""What a file of rows is: its kind, the column of its labels, and how these are told where nobody says."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
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
KINDS = ("svmlight", "csv", "parquet")
# Labels are stored as wide as the longest; names of classes that are this much longer than the others are no names.
LABEL_CHARACTERS, LARGEST_LABEL_SHARE = 2**24, 16
# Whole numbers that nobody has called labels are taken for a feature if they have more values than this.
MOST_GUESSED_CLASSES = 50


class RowFileError(ValueError):
    """A file that does not hold rows."""


@dataclass(frozen=True)
class FittedFormat:
    """What the file that a model was fitted on was; the model file keeps it for the files that come later.

    Attributes
    ----------
    kind : {"svmlight", "csv", "parquet"}
    label : str or None
        The name of the label's column, where it had one.
    column : int or None
        The place of the label's column, from 0; None in svmlight files, where labels have a place of their own.
    one_based : bool
        Whether svmlight columns counted from 1.
    """

    kind: str
    label: str | None = None
    column: int | None = None
    one_based: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return what a model file keeps."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "FittedFormat":
        """Return what a model file has kept, if it is sound."""
        is_sound = values.keys() == cls("csv").to_dict().keys()
        is_sound = is_sound and values["kind"] in KINDS and isinstance(values["one_based"], bool)
        is_sound = is_sound and isinstance(values["label"], str | None)
        if not is_sound or not (values["column"] is None or (type(values["column"]) is int and values["column"] >= 0)):
            raise ModelFileError("what it says of the rows it was fitted on is damaged")
        return cls(**values)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a file; ``labels`` is None where the file has none, ``names`` of the columns likewise."""

    X: Any
    labels: npt.NDArray[Any] | None
    fitted: FittedFormat
    names: tuple[str, ...] | None = None

    def in_order_of(self, names: Sequence[str] | None, path: Path) -> "Rows":
        """Return the rows with their columns in the order of names that are known, where both have names."""
        if names is None or self.names is None or self.names == tuple(names):
            return self
        if missing := sorted(set(names) - set(self.names)):
            raise RowFileError(
                f"{path} has no column {missing[0]!r}, and {len(missing) - 1} more are missing of the {len(names)} "
                "that the model was fitted with. Columns go by their names where the files have them; rename them, or "
                "leave the line of names out."
            )
        place = {name: j for j, name in enumerate(self.names)}
        return replace(self, X=self.X[:, [place[name] for name in names]], names=tuple(names))


@dataclass(frozen=True)
class RowFormat:
    """How to read a file.

    Attributes
    ----------
    name : {"auto", "svmlight", "csv", "parquet"}
        "auto" goes by the name of the file; where that says nothing, by the file that the model was fitted on, and
        without one it is svmlight.
    label : str or None
        The label's column: its name, or its number from 1, or from -1 backwards. None is where it was in the fit, or
        the first one.
    one_based : bool or None
        Whether svmlight columns count from 1, and become columns that count from 0. None is as in the fit; in a fit,
        whether there is no column 0.
    fitted : FittedFormat or None
        The file that the model was fitted on, where there is a model that knows.
    """

    name: str = "auto"
    label: str | None = None
    one_based: bool | None = None
    fitted: FittedFormat | None = None

    def kind(self, path: Path) -> str:
        """Return the kind of a file."""
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
            options = " or ".join(f"--format {kind}" for kind in KINDS)
            raise RowFileError(f"Standard input has no name that tells what it holds. Say {options}.")
        return "svmlight"

    @property
    def label_names(self) -> list[str]:
        """The names that the label's column may have, those that the user gives first."""
        if self.label is not None:
            return [] if self._label_number is not None else [self.label]
        return [] if self.fitted is None or self.fitted.label is None else [self.fitted.label]

    @property
    def _label_number(self) -> int | None:
        try:
            return None if self.label is None else int(self.label)
        except ValueError:
            return None

    def place_of_label(self, path: Path, first: Sequence[str], n_features: int | None) -> int | None:
        """Return the column of the label, given the cells of the first line; None where the file has none."""
        for name in self.label_names:
            if first.count(name) > 1:
                raise RowFileError(f"{path} has {first.count(name)} columns {name!r}. Rename all but one.")
            if name in first:
                return first.index(name)
        if n_features is not None and len(first) == n_features:
            return None
        if self._label_number is not None:
            return _place_of_number(path, self._label_number, len(first))
        if self.label is not None:
            raise RowFileError(
                f"{path} has no column {self.label!r} in its first line: {', '.join(first[:20])}. Without a line of "
                "names, say --label 1 for the first column or --label -1 for the last one."
            )
        if n_features is None:
            return 0
        if len(first) == n_features + 1:
            return 0 if self.fitted is None or self.fitted.column is None else min(self.fitted.column, n_features)
        raise RowFileError(
            f"{path} has {len(first)} columns. The model wants {n_features}, and a column of labels or none."
        )

    def check_guess(self, path: Path, labels: Sequence[str], n_features: int | None) -> None:
        """Ask where the labels are if nobody has said it and the first column looks like a feature."""
        if self.label is not None or n_features is not None or not all(map(is_number, labels)):
            return
        values = {float(label) for label in labels}
        if len(values) > MOST_GUESSED_CLASSES or not all(value.is_integer() for value in values):
            raise RowFileError(
                f"{path}: which column holds the labels? The first one, which is the default, has {len(values)} "
                f"different numbers, such as {labels[0]}, and looks like a feature. Say --label -1 for the last one, "
                "--label 1 for the first one, or give another number or the name of a column."
            )


def _place_of_number(path: Path, number: int, n_columns: int) -> int:
    if number == 0 or abs(number) > n_columns:
        raise RowFileError(
            f"{path} has {n_columns} columns. Got --label {number}; columns count from 1, and from -1 backwards."
        )
    return number - 1 if number > 0 else n_columns + number


def is_number(cell: str) -> bool:
    """Tell whether a cell of text is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    # Python reads 1_000 as a number, and nobody else does.
    return "_" not in cell


def labels_of(path: Path, cells: Sequence[str]) -> npt.NDArray[Any]:
    """Return the labels as integers if all are written as such, else as text: 01 and 1 are two labels."""
    if "" in cells:
        raise RowFileError(f"{path} has a row without a label.")
    if any("\0" in cell for cell in cells):
        raise RowFileError(f"{path} has a label with a NUL character, as files have that are no text.")
    lengths = [len(cell) for cell in cells]
    characters = len(cells) * max(lengths)
    if characters > max(LABEL_CHARACTERS, LARGEST_LABEL_SHARE * sum(lengths)):
        raise RowFileError(
            f"{path} has a label of {max(lengths)} characters, {cells[int(np.argmax(lengths))][:40]!r}..., where the "
            f"{len(cells)} labels have {sum(lengths) / len(cells):.0f} on average. Name the column of the labels with "
            "--label, or shorten them."
        )
    try:
        numbers = np.array([int(cell) for cell in cells], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(cells)
    return numbers if numbers.astype(str).tolist() == list(cells) else np.array(cells)
