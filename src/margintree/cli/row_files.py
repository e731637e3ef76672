"""Rows with labels from a file that a user names: svmlight or CSV, plain or compressed."""

import bz2
import csv
import gzip
import io
import itertools
import stat
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

# Solvers have arrays as long as the rows are wide, so one absurd column number would take all memory.
MOST_COLUMNS = 2**24
# Every cell of a line of text is an object of Python's for a while; far fewer make a line absurd.
MOST_CSV_COLUMNS, LONGEST_LINE = 2**20, 2**25
# Labels are stored as wide as the longest; names of classes that are this much longer than the others are no names.
LABEL_CHARACTERS, LARGEST_LABEL_SHARE = 2**24, 16
# Sparse rows of which this part is stored are handled faster as dense ones.
DENSE_SHARE = 0.3
DELIMITERS = ",;\t"
COMPRESSED = {".gz": gzip.open, ".bz2": bz2.open}
# Rows are rarely packed by more than a factor of fifty. A file that unpacks to more than this, and to more than a few
# megabytes, is made to fill the memory.
LARGEST_EXPANSION = 200
ALWAYS_UNPACKED = 2**26
# What the readers of numbers and of compressed files raise for content that they cannot make sense of.
BAD_CONTENT = (ValueError, EOFError, OverflowError, zlib.error, gzip.BadGzipFile, csv.Error)
LONGEST_REASON = 200


class RowFileError(ValueError):
    """A file that does not hold rows."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a file; ``labels`` is None where the file has none, ``names`` of the columns likewise."""

    X: Any
    labels: npt.NDArray[Any] | None
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
    status = path.stat()
    if stat.S_ISREG(status.st_mode) and status.st_size == 0:
        raise RowFileError(f"{path} is empty.")
    _check_options(path, how)
    try:
        with _unpacked(path) as stream:
            read = _read_csv if how.is_csv(path) else _read_svmlight
            rows = read(stream, path, how, n_features)
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


def _check_options(path: Path, how: RowFormat) -> None:
    """Refuse an option that would be passed over in silence."""
    if how.label is not None and not how.is_csv(path):
        raise RowFileError(f"--label names a column of a CSV file, and {path} is read as svmlight. Say --format csv.")
    if how.one_based and how.is_csv(path):
        raise RowFileError(f"--one-based is for svmlight columns, and {path} is read as CSV. Leave it out.")


def _unreadable(path: Path, how: RowFormat, error: Exception) -> RowFileError:
    kind, other = ("CSV", "svmlight") if how.is_csv(path) else ("svmlight", "csv")
    return RowFileError(
        f"{path} could not be read as {kind}: {str(error)[:LONGEST_REASON] or type(error).__name__}. "
        f"If it is another kind of file, say so with --format {other}."
    )


class _Bounded(io.RawIOBase):
    """What a compressed file holds, as long as that is in proportion to the file."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream, self._path = stream, path
        self._left = max(ALWAYS_UNPACKED, LARGEST_EXPANSION * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._stream.read(len(buffer))
        self._left -= len(content)
        if self._left < 0:
            raise RowFileError(
                f"{self._path} unpacks to more than {LARGEST_EXPANSION} times its size, as a file does that is made "
                "to fill the memory. If you trust it, unpack it yourself."
            )
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _unpacked(path: Path) -> IO[bytes]:
    opener: Any = COMPRESSED.get(path.suffix.lower())
    return path.open("rb") if opener is None else io.BufferedReader(_Bounded(opener(path, "rb"), path))


def _read_svmlight(stream: IO[bytes], path: Path, how: RowFormat, n_features: int | None) -> Rows:
    X, y = load_svmlight_file(stream, zero_based=True)
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


def _read_csv(stream: IO[bytes], path: Path, how: RowFormat, n_features: int | None) -> Rows:
    lines = _lines(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""), path)
    number, first = next(lines, (0, []))
    if not first:
        raise RowFileError(f"{path} holds no rows.")
    place = _place_of_label(path, how, first, n_features)
    if len(first) == 1 and place is not None:
        raise RowFileError(f"{path} has one column, the label, and nothing to tell it from.")
    has_header = _is_header(path, how, first, place)
    if not has_header:
        lines = itertools.chain([(number, first)], lines)
    # Numbers as they are read: cells of text take several times the memory of the file.
    values, labels, numbers = array("d"), [], array("q")
    for number, cells in lines:
        if len(cells) != len(first):
            raise RowFileError(f"{path}, line {number}: {len(cells)} cells where the first line has {len(first)}.")
        if place is not None:
            labels.append(cells[place])
            cells = cells[:place] + cells[place + 1 :]
        values.extend(_numbers(path, number, cells, place))
        numbers.append(number)
    X = np.frombuffer(values).reshape(len(numbers), -1) if numbers else np.empty((0, 1))
    if not len(X):
        return Rows(X, None)
    if place is not None and _names_the_labels(labels):
        X, labels, has_header = X[1:], labels[1:], True
    names = tuple(name for j, name in enumerate(first) if j != place)
    # Names that say nothing, or the same twice, cannot put columns in order.
    is_named = has_header and all(names) and len(set(names)) == len(names)
    return Rows(X, None if place is None else _labels(path, labels), names if is_named else None)


def _lines(stream: IO[str], path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each line that is not empty, and its number."""
    physical = _short_lines(stream, path)
    start = next(physical, "")
    delimiter = max(DELIMITERS, key=start.count)
    reader = csv.reader(itertools.chain([start], physical), delimiter=delimiter, strict=True)
    for cells in reader:
        if cells:
            yield reader.line_num, [cell.strip() for cell in cells]


def _short_lines(stream: IO[str], path: Path) -> Iterator[str]:
    """Yield lines that are no longer, and have no more cells, than rows have."""
    while line := stream.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE or max(map(line.count, DELIMITERS)) >= MOST_CSV_COLUMNS:
            raise RowFileError(
                f"{path} has a line of more than {MOST_CSV_COLUMNS} cells or {LONGEST_LINE} characters. Rows that wide "
                "are mostly zero: write them in svmlight format."
            )
        yield line


def _place_of_label(path: Path, how: RowFormat, first: Sequence[str], n_features: int | None) -> int | None:
    """Return the column of the label; None where the file has none."""
    if how.label is not None and how.label in first:
        if first.count(how.label) > 1:
            raise RowFileError(f"{path} has {first.count(how.label)} columns {how.label!r}. Rename all but one.")
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


def _is_header(path: Path, how: RowFormat, first: Sequence[str], place: int | None) -> bool:
    """Tell whether the first line has names; where it has both names and numbers nobody can."""
    are_numbers = [_is_number(cell) for j, cell in enumerate(first) if j != place]
    if how.label is not None or not any(are_numbers):
        return True
    if not all(are_numbers):
        name = next(cell for j, cell in enumerate(first) if j != place and not _is_number(cell))
        raise RowFileError(
            f"{path}, line 1: {name[:40]!r} stands among numbers. If that is a line of names, name the column of the "
            "labels with --label; if it is a row, fill in or drop such values."
        )
    return False


def _names_the_labels(labels: Sequence[str]) -> bool:
    """Tell whether the first cell is the column's name: the only one that is no number, above numbers for names."""
    return len(labels) > 1 and not _is_number(labels[0]) and all(_is_number(label) for label in labels[1:])


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    # Python reads 1_000 as a number, and nobody else does.
    return "_" not in cell


def _numbers(path: Path, number: int, cells: Sequence[str], place: int | None) -> npt.NDArray[np.float64]:
    """Return the numbers of a line."""
    try:
        values = np.array([float(cell) for cell in cells])
        is_sound = bool(np.isfinite(values).all()) and "_" not in "".join(cells)
    except ValueError:
        is_sound = False
    if is_sound:
        return values
    j = next(j for j, cell in enumerate(cells) if not (_is_number(cell) and np.isfinite(float(cell))))
    column = j + 1 if place is None or j < place else j + 2
    what = f"{cells[j][:40]!r} where a finite number belongs" if cells[j] else "an empty cell"
    raise RowFileError(f"{path}, line {number}, column {column}: {what}. Fill in or drop such values.")


def _labels(path: Path, cells: Sequence[str]) -> npt.NDArray[Any]:
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
