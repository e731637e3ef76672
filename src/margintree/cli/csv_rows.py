"""Rows from CSV files, with a line of names or without."""

import csv
import io
import itertools
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from margintree.cli.row_format import FittedFormat, RowFileError, RowFormat, Rows, is_number, labels_of

# Every cell of a line of text is an object of Python's for a while; far fewer make a line absurd.
MOST_CSV_COLUMNS, LONGEST_LINE = 2**20, 2**25
DELIMITERS = ",;\t"


def read_csv(stream: IO[bytes], path: Path, how: RowFormat, n_features: int | None) -> Rows:
    """Return the rows of a CSV file."""
    lines = _lines(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""), path)
    number, first = next(lines, (0, []))
    if not first:
        raise RowFileError(f"{path} holds no rows.")
    place = how.place_of_label(path, first, n_features)
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
        values.extend(_numbers(path, number, cells, place, asks=how.label is None and n_features is None))
        numbers.append(number)
    X = np.frombuffer(values).reshape(len(numbers), -1) if numbers else np.empty((0, 1))
    if not len(X):
        return Rows(X, None, FittedFormat("csv"))
    if place is not None and _names_the_labels(labels):
        X, labels, has_header = X[1:], labels[1:], True
    names = tuple(name for j, name in enumerate(first) if j != place)
    # Names that say nothing, or the same twice, cannot put columns in order.
    is_named = has_header and all(names) and len(set(names)) == len(names)
    if place is None:
        return Rows(X, None, FittedFormat("csv"), names if is_named else None)
    how.check_guess(path, labels, n_features)
    # A name that is a number could be taken for one of a row in the next file.
    label = first[place] if has_header and not is_number(first[place]) else None
    return Rows(X, labels_of(path, labels), FittedFormat("csv", label, place), names if is_named else None)


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


def _is_header(path: Path, how: RowFormat, first: Sequence[str], place: int | None) -> bool:
    """Tell whether the first line has names; where it has both names and numbers nobody can."""
    are_numbers = [is_number(cell) for j, cell in enumerate(first) if j != place]
    if not any(are_numbers) or (place is not None and first[place] in how.label_names):
        return True
    if not all(are_numbers):
        column, name = next((j, cell) for j, cell in enumerate(first, 1) if j - 1 != place and not is_number(cell))
        raise RowFileError(
            f"{path}, line 1: {name[:40]!r} stands among numbers. If column {column} holds the labels, say --label "
            f"{column}; if this is a line of names, give the name of the labels' column: --label NAME; if it is a row, "
            "fill in or drop such values."
        )
    return False


def _names_the_labels(labels: Sequence[str]) -> bool:
    """Tell whether the first cell is the column's name: the only one that is no number, above numbers for names."""
    return len(labels) > 1 and not is_number(labels[0]) and all(is_number(label) for label in labels[1:])


def _numbers(
    path: Path, number: int, cells: Sequence[str], place: int | None, *, asks: bool
) -> npt.NDArray[np.float64]:
    """Return the numbers of a line; with ``asks`` the label may be in another column."""
    try:
        values = np.array([float(cell) for cell in cells])
        is_sound = bool(np.isfinite(values).all()) and "_" not in "".join(cells)
    except ValueError:
        is_sound = False
    if is_sound:
        return values
    j = next(j for j, cell in enumerate(cells) if not (is_number(cell) and np.isfinite(float(cell))))
    column = j + 1 if place is None or j < place else j + 2
    what = f"{cells[j][:40]!r} where a finite number belongs" if cells[j] else "an empty cell"
    advice = "Fill in or drop such values."
    if asks and not is_number(cells[j]) and cells[j]:
        advice = f"If this column holds the labels, say --label {column}; otherwise fill in or drop such values."
    raise RowFileError(f"{path}, line {number}, column {column}: {what}. {advice}")
