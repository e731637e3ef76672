"""The data sets of the benchmarks, read from the directory that MARGINTREE_DATA names."""

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_files
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import MinMaxScaler, normalize

TEXT = {"news20_bydate", "udhr_char3", "wordnet_hypernyms"}
DENSE = {"svmguide4", "vowel", "segment", "satimage", "usps", "letter", "pendigits", "caltech101_bow1000"}


def directory() -> Path:
    if "MARGINTREE_DATA" not in os.environ:
        raise SystemExit("Set MARGINTREE_DATA to the directory that holds the data sets (NAME.bz2, NAME.t.bz2).")
    return Path(os.environ["MARGINTREE_DATA"])


@cache
def parts(name: str) -> list[tuple[Any, np.ndarray]]:
    """Return the raw parts of a data set: training, and test where the source has one."""
    files = [directory() / f"{name}.bz2", directory() / f"{name}.t.bz2"]
    # Read together, so that both parts have the columns that either uses.
    found = load_svmlight_files([str(file) for file in files if file.exists()])
    pairs = zip(found[::2], found[1::2], strict=True)
    return [(X.toarray() if name in DENSE else X, y) for X, y in pairs]


def prepared(X_train: Any, X_test: Any, name: str) -> tuple[Any, Any]:
    """Return both parts with the usual scaling of the data set, fitted on the training part."""
    if name in TEXT:
        scaling = TfidfTransformer(sublinear_tf=True).fit(X_train)
        return scaling.transform(X_train), scaling.transform(X_test)
    if name == "svmguide4":
        scaling = MinMaxScaler((-1, 1)).fit(X_train)
        return scaling.transform(X_train), scaling.transform(X_test)
    if name == "caltech101_bow1000":
        return normalize(np.sqrt(X_train)), normalize(np.sqrt(X_test))
    return X_train, X_test


def source_split(name: str) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Return the split of the source, prepared."""
    (X_train, y_train), (X_test, y_test) = parts(name)
    X_train, X_test = prepared(X_train, X_test, name)
    return X_train, y_train, X_test, y_test
