"""Rows with labels from a file that a user names: svmlight or CSV, plain or compressed."""

import bz2
import csv
import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

# Solvers have arrays as long as the rows are wide, so one absurd column number would take all memory.
MOST_COLUMNS = 2**24
# Sparse rows of which this part is stored are handled faster as dense ones.
DENSE_SHARE = 0.3
DELIMITERS = ",;\t"
COMPRESSED = {".gz": gzip.open, ".bz2": bz2.open}
# What the readers of numbers and of compressed files raise for content that they cannot make sense of.
BAD_CONTENT = (ValueError, EOFError, OverflowError, zlib.error, gzip.BadGzipFile, csv.Error)


class RowFileError(ValueError):
    """A file that does not hold rows."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a file; ``labels`` is None where the file has none."""

    X: Any
    labels: npt.NDArray[Any] | None


@dataclass(frozen=True)
class RowFormat:
    """How to read a file.

    Attributes
    ----------
    name : {"auto", "svmlight", "csv"}
        "auto" goes by the name of the file: .csv and .tsv are CSV, anything else is svmlight.
    label : str or None
        The name of the label's column in a CSV file; None is the first one.
    one_based : bool
        Whether svmlight columns count from 1, and become columns that count from 0.
    """

    name: str = "auto"
    label: str | None = None
    one_based: bool = False

    def is_csv(self, path: Path) -> bool:
        """Tell whether a file is to be read as CSV."""
        if self.name != "auto":
            return self.name == "csv"
        name = path.name.lower()
        for ending in COMPRESSED:
            name = name.removesuffix(ending)
        return name.endswith((".csv", ".tsv"))


def read_rows(path: Path, how: RowFormat, n_features: int | None = None) -> Rows:
    """Return the rows of a file, as wide as ``n_features`` where that is given.

    Sparse rows may be narrower or wider: what they leave out is zero, and columns that a model does not know are left
    out. A CSV file may then do without labels.
    """
    with path.open("rb") as stream:
        if not stream.read(1):
            raise RowFileError(f"{path} is empty.")
    try:
        rows = _read_csv(path, how, n_features) if how.is_csv(path) else _read_svmlight(path, how, n_features)
    except RowFileError:
        raise
    except OSError as error:
        # gzip and bz2 complain of damaged content without a number.
        if error.errno is not None:
            raise
        raise _unreadable(path, how, error) from error
    except BAD_CONTENT as error:
        raise _unreadable(path, how, error) from error
    if rows.X.shape[0] == 0:
        raise RowFileError(f"{path} holds no rows.")
    return rows


def _unreadable(path: Path, how: RowFormat, error: Exception) -> RowFileError:
    kind, other = ("CSV", "svmlight") if how.is_csv(path) else ("svmlight", "csv")
    return RowFileError(
        f"{path} could not be read as {kind}: {str(error) or type(error).__name__}. "
        f"If it is another kind of file, say so with --format {other.lower()}."
    )


def _read_svmlight(path: Path, how: RowFormat, n_features: int | None) -> Rows:
    X, y = load_svmlight_file(str(path), zero_based=True)
    if how.one_based:
        if X.nnz and X.indices.min() == 0:
            raise RowFileError(f"{path} has a column 0, so its columns do not count from 1. Leave --one-based out.")
        X = sp.csr_array((X.data, X.indices - 1, X.indptr), shape=(X.shape[0], max(1, X.shape[1] - 1)))
    if n_features is not None:
        X = X[:, :n_features] if X.shape[1] > n_features else X
        X.resize((X.shape[0], n_features))
    elif X.shape[1] > MOST_COLUMNS:
        raise RowFileError(
            f"{path} has a column {X.shape[1] - 1}; up to {MOST_COLUMNS} columns are taken. Number the columns anew."
        )
    if X.nnz >= DENSE_SHARE * X.shape[0] * X.shape[1]:
        X = X.toarray()
    whole = np.isfinite(y).all() and bool((np.rint(y) == y).all()) and bool((np.abs(y) < 2.0**53).all())
    return Rows(X, y.astype(np.int64) if whole else y)


def _read_csv(path: Path, how: RowFormat, n_features: int | None) -> Rows:
    with _text(path) as stream:
        start = stream.readline()
        delimiter = max(DELIMITERS, key=start.count)
        stream.seek(0)
        lines = [(number, cells) for number, cells in _numbered(stream, delimiter) if cells]
    if not lines:
        raise RowFileError(f"{path} holds no rows.")
    width = len(lines[0][1])
    for number, cells in lines:
        if len(cells) != width:
            raise RowFileError(f"{path}, line {number}: {len(cells)} cells where the first line has {width}.")
    place = _place_of_label(path, how, lines[0][1], n_features)
    names = [j for j in range(width) if j != place]
    has_header = how.label is not None or not all(_is_number(lines[0][1][j]) for j in names)
    body = lines[1:] if has_header else lines
    if not names:
        raise RowFileError(f"{path} has one column, the label, and nothing to tell it from.")
    X = np.empty((len(body), len(names)))
    for column, j in enumerate(names):
        X[:, column] = _numbers(path, body, j)
    labels = None if place is None else _labels(path, [cells[place] for _, cells in body])
    return Rows(X, labels)


def _text(path: Path) -> IO[str]:
    opener: Any = COMPRESSED.get(path.suffix.lower(), open)
    stream: IO[str] = opener(path, "rt", encoding="utf-8-sig", newline="")
    return stream


def _numbered(stream: IO[str], delimiter: str) -> Any:
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    for cells in reader:
        yield reader.line_num, [cell.strip() for cell in cells]


def _place_of_label(path: Path, how: RowFormat, first: Sequence[str], n_features: int | None) -> int | None:
    """Return the column of the label; None where the file has none."""
    if how.label is not None and how.label in first:
        return first.index(how.label)
    if n_features is None:
        if how.label is not None:
            raise RowFileError(f"{path} has no column {how.label!r} in its first line: {', '.join(first[:20])}.")
        return 0
    if len(first) == n_features + 1 and how.label is None:
        return 0
    if len(first) == n_features:
        return None
    raise RowFileError(
        f"{path} has {len(first)} columns. The model wants {n_features}, after a column of labels or without one."
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(path: Path, body: Sequence[tuple[int, Sequence[str]]], j: int) -> npt.NDArray[np.float64]:
    try:
        values = np.array([float(cells[j]) for _, cells in body])
    except ValueError:
        values = np.full(1, np.nan)
    if np.isfinite(values).all():
        return values
    for number, cells in body:
        if not (_is_number(cells[j]) and np.isfinite(float(cells[j]))):
            what = f"{cells[j][:40]!r} where a finite number belongs" if cells[j] else "an empty cell"
            raise RowFileError(f"{path}, line {number}, column {j + 1}: {what}. Fill in or drop such values.")
    raise AssertionError("a value was not finite, and all are")


def _labels(path: Path, cells: Sequence[str]) -> npt.NDArray[Any]:
    if "" in cells:
        raise RowFileError(f"{path} has a row without a label.")
    if any("\0" in cell for cell in cells):
        raise RowFileError(f"{path} has a label with a NUL character, as files have that are no text.")
    try:
        return np.array([int(cell) for cell in cells], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(cells)
