"""Files of a data set on disk: finding them, checking them, reading and writing them.

A directory holds ``STEM.bz2``, ``STEM.t.bz2`` and perhaps ``STEM.classes.txt``, which names the classes line by
line. If it also holds ``SHA256SUMS`` (lines of the form "digest  name"), every file named there is checked
against it.
"""

import bz2
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_files

from margintree.datasets.registry import DataSet, Form
from margintree.storage import replacing

Labels = npt.NDArray[np.int64]


class DataError(ValueError):
    """Files that exist but do not contain the expected data set."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Both parts of a data set, the training rows first."""

    data: Any
    target: Labels
    n_train: int
    class_names: list[str]


def paths(form: Form, directory: Path) -> list[Path]:
    """Return where the parts of a form are stored in a directory."""
    names = [f"{form.stem}.bz2"] + ([f"{form.stem}.t.bz2"] if form.n_test else [])
    return [directory / name for name in names]


def is_stored(form: Form, directory: Path) -> bool:
    """Return whether all parts of a form are in a directory."""
    return all(path.is_file() for path in paths(form, directory))


def read(data_set: DataSet, form: Form, directory: Path) -> Rows:
    """Return the rows of a form, checked against the registry."""
    files = paths(form, directory)
    names_file = directory / f"{form.stem}.classes.txt"
    check_sums([*files, names_file], directory / "SHA256SUMS")
    n_rows = [form.n_train, form.n_test]
    parts = [checked_part(data_set, form, n, path) for n, path in zip(n_rows, files, strict=False)]
    matrices = [X for X, _ in parts]
    if data_set.is_sparse:
        # Where the number of features is not known beforehand, a part ends with the last feature that it uses.
        n_features = max(X.shape[1] for X in matrices)
        for X in matrices:
            X.resize(X.shape[0], n_features)
    return Rows(
        sp.vstack(matrices, format="csr") if data_set.is_sparse else np.vstack(matrices),
        np.concatenate([y for _, y in parts]),
        form.n_train,
        _class_names(data_set, names_file),
    )


def checked_part(
    data_set: DataSet, form: Form, n_rows: int, path: Path, *, origin: str | None = None
) -> tuple[Any, Labels]:
    """Return the rows of one file, or raise a DataError that says how it differs from the expected part.

    ``origin`` is the address from which the file was downloaded, if it has not been stored yet.
    """
    what_to_do = _TRY_ANOTHER if origin else _PUT_RIGHT
    origin = origin or str(path)
    try:
        X, y = load_svmlight_files([str(path)], n_features=form.n_features, zero_based=False)
    except (ValueError, OSError, EOFError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError(
            f"{origin} does not contain rows of {form.stem} in LIBSVM format: {error}. {what_to_do}"
        ) from error
    if len(y) != n_rows:
        raise DataError(f"{origin} has {len(y)} rows; expected the {n_rows} of {form.stem}. {what_to_do}")
    labels, expected = np.unique(y), np.array(data_set.labels)
    # Sources that hold the same rows count their classes from 0 or from 1.
    if len(labels) != len(expected) or np.any(labels - labels[0] != expected - expected[0]):
        raise DataError(
            f"{origin} has {len(labels)} classes, {labels[0]:g} to {labels[-1]:g}; expected the {len(expected)} of "
            f"{data_set.name}, {expected[0]} to {expected[-1]}. {what_to_do}"
        )
    target = (y - labels[0]).astype(np.int64) + expected[0]
    return (X if data_set.is_sparse else X.toarray()), target


_PUT_RIGHT = "Delete the file and fetch it again, or put the right one in its place."
_TRY_ANOTHER = (
    "Nothing was stored. Open the address in a browser to see what it returns, or put the files into a directory "
    "and name it in MARGINTREE_DATA."
)


def _class_names(data_set: DataSet, names_file: Path) -> list[str]:
    if not names_file.is_file():
        return list(data_set.class_names) or [str(label) for label in data_set.labels]
    names = names_file.read_text(encoding="utf-8").splitlines()
    if len(names) != data_set.n_classes:
        raise DataError(f"{names_file} names {len(names)} classes; {data_set.name} has {data_set.n_classes}.")
    return names


def check_sums(files: list[Path], sums_file: Path) -> None:
    """Raise a DataError if a file differs from its line in SHA256SUMS."""
    if not sums_file.is_file():
        return
    # Names of files need not be UTF-8.
    lines = sums_file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    sums = [_sum_of(line, sums_file) for line in lines if line.strip()]
    for path in files:
        expected = {digest for name, digest in sums if name == path.name}
        if path.is_file() and expected:
            with path.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
            if expected != {found}:
                said = " and ".join(sorted(expected))
                raise DataError(f"{path} has SHA-256 {found}; {sums_file} says {said}. {_PUT_RIGHT}")


def _sum_of(line: str, sums_file: Path) -> tuple[str, str]:
    """Return file name and digest of a line, as written by sha256sum or BSD's sha256; directories are ignored."""
    if match := re.fullmatch(r"\\?([0-9a-fA-F]{64}) [ *](.+)", line):
        digest, name = match.groups()
    elif match := re.fullmatch(r"SHA256 \((.+)\) = ([0-9a-fA-F]{64})", line):
        name, digest = match.groups()
    else:
        raise DataError(f"{sums_file} has a line without a file name and its SHA-256: {line[:100]!r}. Correct it.")
    return Path(name).name, digest.lower()


def store_part(data_set: DataSet, form: Form, n_rows: int, X: Any, y: Any, path: Path, origin: str) -> None:
    """Write the rows of one part in LIBSVM format, after checking them."""
    with replacing(path) as unfinished:
        with bz2.open(unfinished, "wb") as stream:
            dump_svmlight_file(X.astype(np.float64), y, stream, zero_based=False)
        checked_part(data_set, form, n_rows, unfinished, origin=origin)


def store_class_names(form: Form, names: Iterable[str], directory: Path) -> None:
    """Write the names of the classes, line by line."""
    with replacing(directory / f"{form.stem}.classes.txt") as path:
        path.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
