"""Rows from CSV files, with or without a header row."""

import csv
import io
import itertools
import sys
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from margintree.cli.row_format import RowFileError, RowFormat, Rows, is_number

# Each cell is a Python object at first, so that a very long line would fill the memory.
MOST_CSV_COLUMNS, LONGEST_LINE = 2**20, 2**25
DELIMITERS = ",;\t"
# Numbers that are kept in memory if they are written to a file.
VALUES_IN_MEMORY = 2**20


def read_csv(stream: IO[bytes], path: Path, how: RowFormat, n_features: int | None) -> Rows:
    """Return the rows of a CSV file."""
    lines = _lines(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""), path)
    number, first = next(lines, (0, []))
    if not first:
        raise RowFileError(f"{path} contains no rows.")
    place = how.place_of_label(path, first, n_features)
    if len(first) == 1 and place is not None:
        raise RowFileError(f"{path} has a single column, the labels, and no features.")
    has_header = _is_header(path, how, first, place)
    if not has_header:
        lines = itertools.chain([(number, first)], lines)
    # Convert at once: cells of text take several times the memory of the file.
    values, labels, n_rows = array("d"), [], 0
    with nullcontext() if how.values_path is None else how.values_path.open("wb") as values_file:
        for number, cells in lines:
            if len(cells) != len(first):
                raise RowFileError(f"{path}, line {number}: {len(cells)} cells where the first line has {len(first)}.")
            if place is not None:
                # Equal labels share one string.
                labels.append(sys.intern(cells[place]))
                cells = cells[:place] + cells[place + 1 :]
            values.extend(_numbers(path, number, cells, place, is_guess=how.label is None and n_features is None))
            n_rows += 1
            if values_file is not None and len(values) >= VALUES_IN_MEMORY:
                values.tofile(values_file)
                del values[:]
        if values_file is not None:
            values.tofile(values_file)
    if n_rows == 0:
        raise RowFileError(f"{path} contains no rows.")
    numbers = np.frombuffer(values) if how.values_path is None else np.memmap(how.values_path, np.float64, "r")
    X = numbers.reshape(n_rows, -1)
    # The only label that is not a number is the name of the column.
    if len(labels) > 1 and not is_number(labels[0]) and all(map(is_number, labels[1:])):
        X, labels, has_header = X[1:], labels[1:], True
    found = None if place is None else how.labels(path, labels, n_features)
    return Rows.of_table("csv", X, found, place, first if has_header else None)


def _lines(stream: IO[str], path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each line that is not empty, and its number."""
    so_far = Counter[str]()
    physical = _short_lines(stream, path, so_far)
    start = next(physical, "")
    delimiter = max(DELIMITERS, key=start.count)
    reader = csv.reader(itertools.chain([start], physical), delimiter=delimiter, strict=True)
    for cells in reader:
        so_far.clear()
        if cells:
            yield reader.line_num, [cell.strip() for cell in cells]


def _short_lines(stream: IO[str], path: Path, so_far: Counter[str]) -> Iterator[str]:
    """Yield the lines of a file; refuse rows of too many characters or cells.

    A quoted cell may span several lines: ``so_far`` counts what the row has already, and is cleared after each row.
    """
    while line := stream.readline(LONGEST_LINE):
        so_far.update({"characters": len(line), "cells": max(map(line.count, DELIMITERS))})
        if so_far["characters"] >= LONGEST_LINE or so_far["cells"] >= MOST_CSV_COLUMNS:
            raise RowFileError(
                f"{path} has a line of more than {MOST_CSV_COLUMNS} cells or {LONGEST_LINE} characters. Use the "
                "svmlight format for rows that wide, which are mostly zero."
            )
        yield line


def _is_header(path: Path, how: RowFormat, first: Sequence[str], place: int | None) -> bool:
    """Return whether the first line is a header row; refuse to guess if it has both names and numbers."""
    are_numbers = [is_number(cell) for j, cell in enumerate(first) if j != place]
    if not any(are_numbers) or (place is not None and first[place] == how.label_name):
        return True
    if not all(are_numbers):
        column, name = next((j, cell) for j, cell in enumerate(first, 1) if j - 1 != place and not is_number(cell))
        raise RowFileError(
            f"{path}, line 1: {name[:40]!r} is not a number, but other cells are. If column {column} holds the labels, "
            f"use --label {column}; if this is a header row, give the name of the label column: --label NAME; if it is "
            "a row, put a number there, or drop the row or the column."
        )
    return False


def _numbers(
    path: Path, number: int, cells: Sequence[str], place: int | None, *, is_guess: bool
) -> npt.NDArray[np.float64]:
    """Return the numbers of a line; ``is_guess`` says that the label column was not given."""
    try:
        values = np.array([float(cell) for cell in cells])
        is_sound = bool(np.isfinite(values).all()) and "_" not in "".join(cells)
    except ValueError:
        is_sound = False
    if is_sound:
        return values
    j = next(j for j, cell in enumerate(cells) if not (is_number(cell) and np.isfinite(float(cell))))
    column = j + 1 if place is None or j < place else j + 2
    what = f"expected a finite number, got {cells[j][:40]!r}" if cells[j] else "the cell is empty"
    advice = "Put a number there, or drop the row or the column."
    if is_guess and not is_number(cells[j]) and cells[j]:
        advice = f"If this column holds the labels, use --label {column}; otherwise p{advice[1:]}"
    raise RowFileError(f"{path}, line {number}, column {column}: {what}. {advice}")
