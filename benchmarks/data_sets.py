"""The data sets of the benchmarks by the names of their files, read from the directory that MARGINTREE_DATA names."""

import os
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from margintree.datasets import DATA_SETS, fetch, usual_preparation


def _set_of(stem: str) -> str:
    """Return the name of the data set whose files are called so."""
    found = [name for name, data_set in DATA_SETS.items() if stem in (form.stem for form in data_set.forms)]
    if not found:
        raise SystemExit(f"Unknown data set {stem!r}.")
    return found[0]


@cache
def parts(name: str) -> list[tuple[Any, np.ndarray]]:
    """Return the raw parts of a data set: training, and test where the source has one."""
    if "MARGINTREE_DATA" not in os.environ:
        raise SystemExit("Set MARGINTREE_DATA to the directory that holds the data sets (NAME.bz2, NAME.t.bz2).")
    bunch = fetch(_set_of(name), download_if_missing=False)
    rows = [slice(bunch.n_train), slice(bunch.n_train, None)]
    return [(bunch.data[part], bunch.target[part]) for part in rows if len(bunch.target[part])]


def in_one(name: str) -> tuple[Any, np.ndarray]:
    """Return all raw rows of a data set."""
    everything = parts(name)
    stack = sp.vstack if sp.issparse(everything[0][0]) else np.vstack
    X, y = stack([X for X, _ in everything]), np.concatenate([y for _, y in everything])
    return sp.csr_matrix(X) if sp.issparse(X) else X, y


def drawn_images(y: np.ndarray, seed: int, per_class: int = 30) -> np.ndarray:
    """Return so many rows of each class."""
    order = np.random.default_rng(seed).permutation(len(y))
    return np.concatenate([order[y[order] == c][:per_class] for c in np.unique(y)])


def prepared(X_train: Any, X_test: Any, name: str) -> tuple[Any, Any]:
    """Return both parts with the usual scaling of the data set, fitted on the training part."""
    scaling = usual_preparation(_set_of(name)).fit(X_train)
    return scaling.transform(X_train), scaling.transform(X_test)


def source_split(name: str) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Return the split of the source, prepared."""
    (X_train, y_train), (X_test, y_test) = parts(name)
    X_train, X_test = prepared(X_train, X_test, name)
    return X_train, y_train, X_test, y_test
