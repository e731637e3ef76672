"""A job: one small, repeatable piece of the experiment, and how it is done."""

import base64
import time
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold

from margintree.experiments import data
from margintree.experiments.methods import METHODS
from margintree.experiments.protocol import Protocol
from margintree.experiments.timing import seconds_per_row

# Kinds of jobs, in the order in which a setting goes through them.
SCREEN = "screen"  # a point of the grid, first fold
VALIDATE = "validate"  # a point of the grid, the other folds
BALANCE = "balance"  # a point with another balance, all folds
SPLIT = "split"  # tuned, one of the random splits
TIME = "time"  # tuned, prediction time; runs alone
CURVE = "curve"  # tuned, prediction time with fewer classes; runs alone
PICTURES = "pictures"  # one picture of each class
ALONE = frozenset({TIME, CURVE})


@dataclass(frozen=True)
class Job:
    """A piece of the experiment. Equal jobs give equal results but for times.

    Parameters
    ----------
    kind : str
    method, data_set, kernel : str
    parameters : tuple of (name, value)
        The tuned ones: C, gamma (the paper's eta), balance.
    number : int or None
        Of the split, or of classes.
    """

    kind: str
    method: str
    data_set: str
    kernel: str
    parameters: tuple[tuple[str, float], ...] = field(default=())
    number: int | None = None

    @property
    def key(self) -> str:
        """The job's name in the results file.

        Examples
        --------
        >>> from margintree.experiments.job import Job
        >>> Job("split", "FT", "vowel", "rbf", (("C", 10.0), ("gamma", 1.0)), 0).key
        'split|FT|vowel|rbf|C=10,gamma=1|0'
        """
        parameters = ",".join(f"{name}={value:g}" for name, value in self.parameters)
        number = "" if self.number is None else str(self.number)
        return "|".join([self.kind, self.method, self.data_set, self.kernel, parameters, number])

    def described(self) -> dict[str, Any]:
        """Return the job as part of a row of the results file."""
        return {
            "key": self.key,
            "kind": self.kind,
            "method": self.method,
            "set": self.data_set,
            "kernel": self.kernel,
            "parameters": dict(self.parameters),
            "number": self.number,
        }


def perform(job: Job, protocol: Protocol) -> dict[str, Any]:
    """Do a job and return what it measured."""
    tasks = {
        SCREEN: lambda: _validated(job, protocol, folds=slice(0, 1)),
        VALIDATE: lambda: _validated(job, protocol, folds=slice(1, None)),
        BALANCE: lambda: _validated(job, protocol, folds=slice(0, None)),
        SPLIT: lambda: _on_split(job),
        TIME: lambda: _timed(job, protocol),
        CURVE: lambda: _timed_with_fewer_classes(job, protocol),
        PICTURES: lambda: _pictures(job),
    }
    return tasks[job.kind]()


def _fitted(job: Job, X: Any, y: npt.NDArray[Any]) -> tuple[Any, float, int]:
    """Return the fitted model, the seconds it took, and how many warnings it gave of open gaps."""
    model = METHODS[job.method].model(job.kernel, dict(job.parameters))
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    n_open = sum(issubclass(w.category, ConvergenceWarning) for w in caught)
    return model, time.perf_counter() - began, n_open


def _accuracy(y: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> float:
    """Return the mean accuracy over the classes, in %: the average of the confusion matrix's diagonal."""
    with warnings.catch_warnings():
        # A fold may lack a small class in its test part and still see it predicted.
        warnings.filterwarnings("ignore", message="y_pred contains classes not in y_true")
        return float(100.0 * balanced_accuracy_score(y, predicted))


def _validated(job: Job, protocol: Protocol, folds: slice) -> dict[str, Any]:
    X, y = data.tuning_rows(job.data_set, protocol.tuning_rows)
    n_folds = protocol.folds(job.data_set)
    with warnings.catch_warnings():
        # Sets with few rows per class have classes with fewer rows than folds; those folds do without them.
        warnings.filterwarnings("ignore", message="The least populated class in y")
        pairs = list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(np.zeros(len(y)), y))
    accuracies = []
    for train, test in pairs[folds]:
        model, _, _ = _fitted(job, X[train], y[train])
        accuracies.append(_accuracy(y[test], model.predict(X[test])))
    return {"fold_accuracies": accuracies}


def _on_split(job: Job) -> dict[str, Any]:
    assert job.number is not None
    rows = data.split(job.data_set, job.number)
    model, fit_seconds, n_open = _fitted(job, rows.X_train, rows.y_train)
    began = time.perf_counter()
    predicted = model.predict(rows.X_test)
    found: dict[str, Any] = {
        "accuracy": _accuracy(rows.y_test, predicted),
        "evaluations": float(np.mean(model.n_evaluations(rows.X_test))),
        "fit_seconds": fit_seconds,
        "batch_seconds": time.perf_counter() - began,
        "open_gaps": n_open,
        "n_train": len(rows.y_train),
        "n_test": len(rows.y_test),
        "n_features": int(rows.X_train.shape[1]),
        "n_classes": len(model.classes_),
    }
    if hasattr(model, "tree_"):
        found["tree"] = model.tree_.to_newick()
    return found


def _timed(job: Job, protocol: Protocol) -> dict[str, Any]:
    rows = data.split(job.data_set, 0)
    model, fit_seconds, _ = _fitted(job, rows.X_train, rows.y_train)
    return {"row_seconds": seconds_per_row(model, rows.X_test, protocol.timed_rows), "fit_seconds": fit_seconds}


def _timed_with_fewer_classes(job: Job, protocol: Protocol) -> dict[str, Any]:
    rows = data.split(job.data_set, 0)
    # One random order for all numbers of classes: each set of classes holds the smaller ones.
    chosen = np.random.default_rng(0).permutation(np.unique(rows.y_train))[: job.number]
    train, test = (np.flatnonzero(np.isin(y, chosen)) for y in (rows.y_train, rows.y_test))
    model, _, _ = _fitted(job, rows.X_train[train], rows.y_train[train])
    X = rows.X_test[test]
    return {
        "row_seconds": seconds_per_row(model, X, protocol.timed_rows),
        "evaluations": float(np.mean(model.n_evaluations(X))),
    }


def _pictures(job: Job) -> dict[str, Any]:
    """Return the most typical picture of each class, the one nearest to their mean, with grey values from 0 to 255."""
    bunch = data.whole_set(job.data_set)
    height, width = data.PICTURES[job.data_set]
    lowest, highest = float(bunch.data.min()), float(bunch.data.max())
    pictures = []
    for label in np.unique(bunch.target):
        members = bunch.data[bunch.target == label]
        picture = members[np.argmin(((members - members.mean(axis=0)) ** 2).sum(axis=1))]
        grey = np.round(255.0 * (highest - picture) / (highest - lowest)).astype(np.uint8)
        pictures.append(base64.b64encode(grey.tobytes()).decode())
    return {"height": height, "width": width, "pictures": pictures}


def failure(error: Exception) -> str:
    """Return what a row tells of a failed job: the error, and where in this package it came from.

    Examples
    --------
    >>> from margintree.experiments.job import failure
    >>> failure(ValueError("no rows"))
    'ValueError: no rows'
    """
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if "margintree" in Path(frame.filename).parts
    ]
    place = f" (in {Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
