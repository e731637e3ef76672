"""The rows that all peers get, prepared once and written in every form that one of them reads."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from accuracy import splits
from data_sets import source_split
from sklearn.datasets import dump_svmlight_file

SETS = {
    "wordnet_hypernyms": "sublinear tf-idf fitted on the training rows, l2",
    "udhr_char3": "character 1- to 3-gram counts, sublinear tf-idf fitted on the training rows, l2",
    "news20_bydate": "sublinear tf-idf fitted on the training rows, l2",
    "letter": "scaled to [-1, 1] by the source",
    "caltech101_bow1000": "30 training images per class drawn with seed 0, the rest for testing; square root, l2",
}


def write_rows(name: str, directory: Path) -> str:
    """Write the rows of a data set, and return what they are in one line."""
    X, y, X_test, y_test = splits(name)[0] if name == "caltech101_bow1000" else source_split(name)
    classes, codes = np.unique(y, return_inverse=True)
    if not np.isin(y_test, classes).all():
        raise SystemExit(f"{name}: the test part has classes that the training part has not.")
    # Some sources are sorted by class, which those who learn row by row cannot bear.
    order = np.random.default_rng(0).permutation(len(y))
    X, codes = X[order], codes[order]
    for part, rows, labels in (("train", X, codes), ("test", X_test, np.searchsorted(classes, y_test))):
        _write_part(directory / part, rows, labels.astype(np.int64), len(classes))
    shape = f"{X.shape[0]} training and {X_test.shape[0]} test rows, {X.shape[1]} features, {len(classes)} classes"
    return f"{shape}; {SETS[name]}"


def write_arrays(stem: Path, X: Any, y: np.ndarray) -> None:
    """Write one part as the arrays that ``peer_runners.protocol.Rows`` reads; classes are 0, 1, 2, ..."""
    if sp.issparse(X):
        sp.save_npz(stem.with_suffix(".npz"), sp.csr_matrix(X), compressed=False)
    else:
        np.save(stem.with_suffix(".npy"), X)
    np.save(stem.with_suffix(".y.npy"), y)


def _write_part(stem: Path, X: Any, y: np.ndarray, n_classes: int) -> None:
    write_arrays(stem, X, y)
    dump_svmlight_file(X, y, str(stem.with_suffix(".svmlight")), zero_based=True)
    with (
        open(stem.with_suffix(".svmlight")) as lines,
        open(stem.with_suffix(".xmc"), "w") as xmc,
        open(stem.with_suffix(".vw"), "w") as vw,
    ):
        xmc.write(f"{X.shape[0]} {X.shape[1]} {n_classes}\n")
        for line in lines:
            label, _, features = line.partition(" ")
            xmc.write(line)
            vw.write(f"{int(label) + 1} | {features}")
