"""Rows with labels from a file or from standard input: svmlight, CSV or Parquet, plain or compressed."""

import bz2
import csv
import gzip
import io
import stat
import sys
import zlib
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from margintree.cli.csv_rows import read_csv
from margintree.cli.parquet_rows import read_parquet
from margintree.cli.row_format import (
    ALWAYS_UNPACKED,
    FORMATS,
    LARGEST_EXPANSION,
    STANDARD_INPUT,
    FittedFormat,
    RowFileError,
    RowFormat,
    Rows,
)

# Solvers have arrays with one element per feature, so that a single huge column number would fill the memory.
MOST_COLUMNS = 2**24
# Sparse rows with at least this share of nonzeros are faster as dense ones.
DENSE_FILE_SHARE = 0.3
OPENERS = {".gz": gzip.open, ".bz2": bz2.open}
# What the parsers and decompressors raise for invalid content.
BAD_CONTENT = (ValueError, EOFError, OverflowError, zlib.error, gzip.BadGzipFile, csv.Error)
LONGEST_REASON = 200


def read_rows(path: Path, how: RowFormat, n_features: int | None = None) -> Rows:
    """Return the rows of a file, as wide as ``n_features`` where that is given.

    Sparse rows may then be narrower or wider: missing columns are zero, and columns that the model does not know are
    ignored. A CSV file may then have no labels.
    """
    how = replace(how, name=how.kind(path))
    if path == STANDARD_INPUT:
        content: Any = nullcontext(sys.stdin.buffer)
        path = Path("standard input")
    else:
        status = path.stat()
        if stat.S_ISREG(status.st_mode) and status.st_size == 0:
            raise RowFileError(f"{path} is empty.")
        content = _unpacked(path)
    _check_options(path, how)
    try:
        with content as stream:
            rows = ROW_READERS[how.name](stream, path, how, n_features)
    except RowFileError:
        raise
    except OSError as error:
        # gzip and bz2 raise an OSError without a number for damaged content.
        if error.errno is not None:
            raise
        raise _unreadable(path, how, error) from error
    except BAD_CONTENT as error:
        raise _unreadable(path, how, error) from error
    if rows.X.shape[0] == 0:
        raise RowFileError(f"{path} contains no rows.")
    return rows


def _check_options(path: Path, how: RowFormat) -> None:
    """Refuse an option that would be ignored."""
    if how.label is not None and how.name == "svmlight":
        raise RowFileError(
            f"--label is for CSV and Parquet files, but {path} is read as svmlight. Use --format csv if it is CSV."
        )
    if how.one_based is not None and how.name != "svmlight":
        option = "--one-based" if how.one_based else "--zero-based"
        raise RowFileError(f"{option} is for svmlight files, but {path} is read as {how.name}. Leave the option out.")


def _unreadable(path: Path, how: RowFormat, error: Exception) -> RowFileError:
    others = " or ".join(f"--format {kind}" for kind in FORMATS if kind != how.name)
    reason = str(error)[:LONGEST_REASON].rstrip(".") or type(error).__name__
    return RowFileError(f"{path} could not be read as {how.name}: {reason}. If it has another format, use {others}.")


class _Bounded(io.RawIOBase):
    """The content of a compressed file, up to a size in proportion to the file."""

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
                f"{self._path} decompresses to more than {LARGEST_EXPANSION} times its size, like a decompression "
                "bomb. If you trust it, decompress it first."
            )
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _unpacked(path: Path) -> IO[bytes]:
    opener: Any = OPENERS.get(path.suffix.lower())
    return path.open("rb") if opener is None else io.BufferedReader(_Bounded(opener(path, "rb"), path))


def _read_svmlight(stream: IO[bytes], path: Path, how: RowFormat, n_features: int | None) -> Rows:
    X, y = load_svmlight_file(stream, zero_based=True)
    one_based = _counts_from_one(X, path, how, n_features)
    if one_based:
        X = sp.csr_array((X.data, X.indices - 1, X.indptr), shape=(X.shape[0], max(1, X.shape[1] - 1)))
    if n_features is not None:
        X = X[:, :n_features] if X.shape[1] > n_features else X
        X.resize((X.shape[0], n_features))
    elif X.shape[1] > MOST_COLUMNS:
        raise RowFileError(
            f"{path} has a column {X.shape[1] - 1}; at most {MOST_COLUMNS} columns are supported. Renumber the columns."
        )
    if X.nnz >= DENSE_FILE_SHARE * X.shape[0] * X.shape[1]:
        X = X.toarray()
    are_whole = bool(((np.rint(y) == y) & (np.abs(y) < 2.0**53)).all())
    return Rows(X, y.astype(np.int64) if are_whole else y, FittedFormat("svmlight", one_based=one_based))


def _counts_from_one(X: Any, path: Path, how: RowFormat, n_features: int | None) -> bool:
    """Return whether column indices start at 1: as given, as in the fit, or as the file suggests."""
    has_column_0 = X.nnz > 0 and X.indices.min() == 0
    if how.one_based is not None:
        one_based, advice = how.one_based, "Leave --one-based out."
    elif how.fitted is not None and how.fitted.kind == "svmlight":
        one_based = how.fitted.one_based
        advice = "The model was fitted on indices that do: number the columns in the same way, or use --zero-based."
    else:
        # Rows for a model start at 1 only if that gives the right width: others may just have no value in column 0.
        return X.nnz > 0 and not has_column_0 and n_features in (None, X.shape[1] - 1)
    if one_based and has_column_0:
        raise RowFileError(f"{path} has a column 0, so its column indices do not start at 1. {advice}")
    return one_based


ROW_READERS = {"svmlight": _read_svmlight, "csv": read_csv, "parquet": read_parquet}
