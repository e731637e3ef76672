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
from margintree.cli.row_format import KINDS, STANDARD_INPUT, FittedFormat, RowFileError, RowFormat, Rows

# Solvers have arrays as long as the rows are wide, so one absurd column number would take all memory.
MOST_COLUMNS = 2**24
# Sparse rows of which this part is stored are handled faster as dense ones.
DENSE_SHARE = 0.3
OPENERS = {".gz": gzip.open, ".bz2": bz2.open}
# Rows are rarely packed by more than a factor of fifty. A file that unpacks to more than this, and to more than a few
# megabytes, is made to fill the memory.
LARGEST_EXPANSION = 200
ALWAYS_UNPACKED = 2**26
# What the readers of numbers and of compressed files raise for content that they cannot make sense of.
BAD_CONTENT = (ValueError, EOFError, OverflowError, zlib.error, gzip.BadGzipFile, csv.Error)
LONGEST_REASON = 200


def read_rows(path: Path, how: RowFormat, n_features: int | None = None) -> Rows:
    """Return the rows of a file, as wide as ``n_features`` where that is given.

    Sparse rows may be narrower or wider: what they leave out is zero, and columns that a model does not know are left
    out. A CSV file may then do without labels.
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
            rows = READERS[how.name](stream, path, how, n_features)
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
    if how.label is not None and how.name == "svmlight":
        raise RowFileError(
            f"--label names a column of a CSV or Parquet file, and {path} is read as svmlight. Say --format csv."
        )
    if how.one_based is not None and how.name != "svmlight":
        option = "--one-based" if how.one_based else "--zero-based"
        raise RowFileError(f"{option} is for svmlight columns, and {path} is read as {how.name}. Leave it out.")


def _unreadable(path: Path, how: RowFormat, error: Exception) -> RowFileError:
    others = " or ".join(f"--format {kind}" for kind in KINDS if kind != how.name)
    return RowFileError(
        f"{path} could not be read as {how.name}: {str(error)[:LONGEST_REASON] or type(error).__name__}. "
        f"If it is another kind of file, say so with {others}."
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
            f"{path} has a column {X.shape[1] - 1}; up to {MOST_COLUMNS} columns are taken. Number the columns anew."
        )
    if X.nnz >= DENSE_SHARE * X.shape[0] * X.shape[1]:
        X = X.toarray()
    whole = np.isfinite(y).all() and bool((np.rint(y) == y).all()) and bool((np.abs(y) < 2.0**53).all())
    return Rows(X, y.astype(np.int64) if whole else y, FittedFormat("svmlight", one_based=one_based))


def _counts_from_one(X: Any, path: Path, how: RowFormat, n_features: int | None) -> bool:
    """Tell whether columns count from 1: as the user says, as in the fit, or as the file itself looks."""
    has_column_0 = X.nnz > 0 and X.indices.min() == 0
    if how.one_based is None and (how.fitted is None or how.fitted.kind != "svmlight"):
        # Of the rows for a model only those that just fit are known to be so: others may leave column 0 out.
        return X.nnz > 0 and not has_column_0 and n_features in (None, X.shape[1] - 1)
    if how.one_based is not None:
        one_based, advice = how.one_based, "Leave --one-based out."
    else:
        assert how.fitted is not None
        one_based = how.fitted.one_based
        advice = "Those of the model were fitted to columns that do: number them in the same way, or say --zero-based."
    if one_based and has_column_0:
        raise RowFileError(f"{path} has a column 0, so its columns do not count from 1. {advice}")
    return one_based


READERS = {"svmlight": _read_svmlight, "csv": read_csv, "parquet": read_parquet}
