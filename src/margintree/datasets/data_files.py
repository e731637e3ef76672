"""Files of a data set on disk: finding them, checking them, and reading them.

A directory holds ``STEM.bz2``, ``STEM.t.bz2`` and perhaps ``STEM.classes.txt``, which names the classes line by
line. If it also holds ``SHA256SUMS`` (lines of the form "digest  name"), every file named there is checked
against it.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_files

from margintree.datasets.registry import DataSet, Form

Labels = npt.NDArray[np.int64]


class DataError(ValueError):
    """Files that are there but do not hold the data set that they should."""


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
    """Return the rows of a form, checked against what the registry knows of it."""
    files = paths(form, directory)
    names_file = directory / f"{form.stem}.classes.txt"
    check_sums([*files, names_file], directory / "SHA256SUMS")
    parts = [checked_part(data_set, form, path) for path in files]
    stack = sp.vstack if data_set.is_sparse else np.vstack
    data = stack([X for X, _ in parts])
    if names_file.is_file():
        class_names = names_file.read_text(encoding="utf-8").splitlines()
    else:
        class_names = list(data_set.class_names) or [str(label) for label in data_set.labels]
    return Rows(
        sp.csr_matrix(data) if data_set.is_sparse else data,
        np.concatenate([y for _, y in parts]),
        form.n_train,
        class_names,
    )


def checked_part(data_set: DataSet, form: Form, path: Path) -> tuple[Any, Labels]:
    """Return the rows of one file, or raise a DataError that says in what it is not the part that it should be."""
    try:
        X, y = load_svmlight_files([str(path)], n_features=form.n_features, zero_based=False)
    except (ValueError, OSError, EOFError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError(f"{path} is not a bz2 file of rows in LIBSVM format ({error}). {_WHAT_TO_DO}") from error
    n_rows = form.n_test if path.name.endswith(".t.bz2") else form.n_train
    if len(y) != n_rows:
        raise DataError(f"{path} has {len(y)} rows; {form.stem} has {n_rows}. {_WHAT_TO_DO}")
    labels = np.unique(y)
    expected = np.array(data_set.labels)
    # Sources that hold the same rows count their classes from 0 or from 1.
    if len(labels) != len(expected) or np.any(labels - labels[0] != expected - expected[0]):
        raise DataError(
            f"{path} has {len(labels)} classes from {labels[0]:g} to {labels[-1]:g}; {data_set.name} has "
            f"{len(expected)} from {expected[0]} to {expected[-1]}. {_WHAT_TO_DO}"
        )
    target = (y - labels[0]).astype(np.int64) + expected[0]
    return (X if data_set.is_sparse else X.toarray()), target


_WHAT_TO_DO = "Delete the file and fetch it again, or put the right one in its place."


def check_sums(files: list[Path], sums_file: Path) -> None:
    """Raise a DataError if a file differs from its line in SHA256SUMS."""
    if not sums_file.is_file():
        return
    lines = [line.split(maxsplit=1) for line in sums_file.read_text(encoding="utf-8").splitlines() if line.strip()]
    sums = {name.lstrip("*"): digest for digest, name in lines}
    for path in files:
        if path.is_file() and path.name in sums:
            with path.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
            if found != sums[path.name].lower():
                raise DataError(f"{path} has SHA-256 {found}; {sums_file} says {sums[path.name]}. {_WHAT_TO_DO}")
