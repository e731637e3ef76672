"""The data sets of the benchmarks by the names of their files, read from the directory that MARGINTREE_DATA names."""

import bz2
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_svmlight_file
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler

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


@cache
def everything(name: str) -> tuple[Any, np.ndarray]:
    """Return all raw rows of a set, also of one that the package does not know: digits, or a file of the directory."""
    if name == "digits":
        return load_digits(return_X_y=True)
    if any(name in (form.stem for form in data_set.forms) for data_set in DATA_SETS.values()):
        return in_one(name)
    directory = Path(os.environ["MARGINTREE_DATA"])
    if (directory / f"{name}.bz2").exists():
        X, y = load_svmlight_file(str(directory / f"{name}.bz2"))
        return X.toarray(), y
    files = [directory / f"{name}.{part}.tsv.bz2" for part in ("train", "test")]
    texts = [bz2.decompress(path.read_bytes()).decode() for path in files]
    labels, rows = zip(*(line.split("\t", 1) for text in texts for line in text.splitlines()), strict=True)
    return np.array(rows, dtype=object), np.unique(labels, return_inverse=True)[1]


def scaled(X_train: Any, X_test: Any, name: str) -> tuple[Any, Any]:
    """Return both parts, texts as tf-idf of words and pairs of words, dense features standardised."""
    scaling: Any = StandardScaler()
    if X_train.dtype.kind == "O":
        scaling = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
    elif sp.issparse(X_train) or name == "caltech101_bow1000":
        return prepared(X_train, X_test, name)
    return scaling.fit_transform(X_train), scaling.transform(X_test)


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
