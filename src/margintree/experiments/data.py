"""Rows of the experiment: the training rows of each split, with the preparation of their data set.

Training sizes are those of Table 1. For a substitute, the paper's ratio is used; for a part of a set, half of the rows
are training rows.
"""

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import Bunch

from margintree import datasets
from margintree.datasets import DATA_SETS
from margintree.experiments.methods import READINGS

Index = npt.NDArray[np.int64]

# "We randomly select 30 images from each class for training and test on the remainder."
IMAGES_PER_CLASS = {"caltech101": 30}
# Of the 1797 digits that ship with scikit-learn: about the paper's share for usps.
QUICK_TRAINING_ROWS = 500
# The sets whose rows are pictures: their height and width.
PICTURE_SHAPES = {"digits": (8, 8), "usps": (16, 16)}


class Split(NamedTuple):
    """Training and test rows of one split, with the preparation fitted on the training rows."""

    X_train: Any
    y_train: npt.NDArray[Any]
    X_test: Any
    y_test: npt.NDArray[Any]


@cache
def whole_set(name: str) -> Bunch:
    """Return all rows of a set. "digits" ships with scikit-learn, the others come from ``margintree.datasets``."""
    if name != "digits":
        # Several processes read a set at once; only ``download`` may write one.
        return datasets.fetch(name, download_if_missing=False)
    bunch = load_digits()
    return Bunch(name=name, data=bunch.data / 16.0, target=bunch.target, is_substitute=False, is_part=False)


def download(names: Iterable[str]) -> dict[str, str]:
    """Fetch sets that are not on this machine yet; return the reason for those that are not available."""
    problems: dict[str, str] = {}
    for name in {READINGS[name].data_set if name in READINGS else name for name in names} - {"digits"}:
        try:
            datasets.fetch(name)
        except (OSError, ValueError) as error:
            problems[name] = str(error)
    return problems


def n_training_rows(bunch: Bunch) -> int:
    """Return the number of training rows of a set."""
    n_rows = len(bunch.target)
    if bunch.name == "digits":
        return QUICK_TRAINING_ROWS
    if bunch.is_part:
        return n_rows // 2
    n_train, n_test = DATA_SETS[bunch.name].n_train_paper or 0, DATA_SETS[bunch.name].n_test_paper or 0
    return round(n_rows * n_train / (n_train + n_test)) if bunch.is_substitute else n_train


def split_rows(bunch: Bunch, number: int) -> tuple[Index, Index]:
    """Return training and test rows of a split, both sorted."""
    y = np.asarray(bunch.target)
    if bunch.name in IMAGES_PER_CLASS:
        order = np.random.default_rng(number).permutation(len(y))
        each = IMAGES_PER_CLASS[bunch.name]
        train = np.concatenate([order[y[order] == label][:each] for label in np.unique(y)])
    else:
        train = _stratified_rows(y, n_training_rows(bunch), number)
    return np.sort(train), np.setdiff1d(np.arange(len(y)), train)


def _stratified_rows(y: npt.NDArray[Any], n_rows: int, seed: int) -> Index:
    draws = StratifiedShuffleSplit(1, train_size=n_rows, random_state=seed).split(np.zeros(len(y)), y)
    return np.sort(next(draws)[0])


@lru_cache(maxsize=4)
def split(name: str, number: int) -> Split:
    """Return a split of a set, or of the set of a reading, by its number, which is also its seed."""
    reading = READINGS.get(name)
    bunch = whole_set(reading.data_set if reading else name)
    train, test = split_rows(bunch, number)
    if reading and reading.scaling:
        # On all rows: as in a file that was scaled once, before anybody split it.
        X = reading.scaling().fit_transform(bunch.data)
    else:
        X = bunch.data if name == "digits" else datasets.prepared(bunch, train)
    return Split(X[train], bunch.target[train], X[test], bunch.target[test])


@lru_cache(maxsize=4)
def tuning_rows(name: str, most: int) -> tuple[Any, npt.NDArray[Any]]:
    """Return the training rows of split 0, or a stratified draw of ``most`` of them."""
    X, y, *_ = split(name, 0)
    if len(y) <= most:
        return X, y
    draw = _stratified_rows(y, most, 0)
    return X[draw], y[draw]
