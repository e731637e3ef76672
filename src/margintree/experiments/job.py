"""A job: one small, repeatable piece of the experiment, and how it is run."""

import base64
import time
import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import recall_score
from sklearn.model_selection import StratifiedKFold

from margintree.experiments import data
from margintree.experiments.methods import METHODS, READINGS, FreeBiasKernel
from margintree.experiments.protocol import Protocol
from margintree.experiments.timing import seconds_per_row
from margintree.experiments.tuning import Parameters, tune

# Kinds of jobs, in the order in which a setting goes through them.
TUNE = "tune"
SPLIT = "split"  # tuned, one of the random splits
TIME = "time"  # tuned, prediction time; runs alone
CURVE = "curve"  # tuned, prediction time with fewer classes; runs alone
PICTURES = "pictures"  # one picture of each class
ALONE = frozenset({TIME, CURVE})


@dataclass(frozen=True)
class Job:
    """A piece of the experiment. Equal jobs give equal results, except for times.

    Every split and every fold has its own seed, for every method that draws.
    """

    kind: str
    method: str
    data_set: str
    kernel: str
    parameters: Parameters = ()  # the tuned ones: C, gamma (the paper's eta), balance
    number: int | None = None  # of the split, or of classes

    @property
    def key(self) -> str:
        """The job's name in the results file."""
        parameters = ",".join(f"{name}={value:g}" for name, value in self.parameters)
        number = "" if self.number is None else str(self.number)
        return "|".join([self.kind, self.method, self.data_set, self.kernel, parameters, number])

    def described(self) -> dict[str, Any]:
        """Return the job as part of a row of the results file."""
        facts = asdict(self) | {"parameters": dict(self.parameters)}
        return {"key": self.key, "set": facts.pop("data_set"), **facts}


def perform(job: Job, protocol: Protocol) -> dict[str, Any]:
    """Run a job and return what it measured."""
    tasks = {TUNE: _tuned, SPLIT: _on_split, TIME: _timed, CURVE: _timed, PICTURES: _pictures}
    return tasks[job.kind](job, protocol)


def _fitted(job: Job, X: Any, y: npt.NDArray[Any], seed: int) -> tuple[Any, float, int]:
    """Return the fitted model, its fit time in seconds, and its number of convergence warnings."""
    parameters, kernel = dict(job.parameters), job.kernel  # type: Any, Any
    if job.data_set in READINGS and READINGS[job.data_set].has_free_bias:
        kernel = FreeBiasKernel(parameters.pop("gamma"))
    model = METHODS[job.method].model(kernel, parameters, seed)
    if job.kind in ALONE:
        # Nothing runs beside it, and trees do not depend on the number of threads.
        model.set_params(n_jobs=-1)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    seconds, n_open = time.perf_counter() - began, sum(issubclass(w.category, ConvergenceWarning) for w in caught)
    return model.set_params(n_jobs=None), seconds, n_open


def _accuracy(y: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> float:
    """Return the mean accuracy over the classes that have rows, in %."""
    return float(100.0 * recall_score(y, predicted, labels=np.unique(y), average="macro"))


def _tuned(job: Job, protocol: Protocol) -> dict[str, Any]:
    X, y = data.tuning_rows(job.data_set, protocol.tuning_rows)
    with warnings.catch_warnings():
        # Sets with few rows per class have classes with fewer rows than folds; those folds do without them.
        warnings.filterwarnings("ignore", message="The least populated class in y")
        folds = StratifiedKFold(protocol.folds(job.data_set), shuffle=True, random_state=0)
        pairs = list(folds.split(np.zeros(len(y)), y))

    def validate(point: Parameters, numbers: range) -> list[float]:
        found = []
        for number in numbers:
            train, test = pairs[number]
            model, *_ = _fitted(replace(job, parameters=point), X[train], y[train], seed=number)
            found.append(_accuracy(y[test], model.predict(X[test])))
        return found

    accuracies = tune(job.method, job.data_set, job.kernel, protocol, validate)
    points = [[dict(point), accuracy] for point, accuracy in accuracies.items()]
    return {"best": points[0][0], "validated": points}


def _on_split(job: Job, protocol: Protocol) -> dict[str, Any]:
    assert job.number is not None
    rows = data.split(job.data_set, job.number)
    model, fit_seconds, n_open = _fitted(job, rows.X_train, rows.y_train, job.number)
    found: dict[str, Any] = {
        "accuracy": _accuracy(rows.y_test, model.predict(rows.X_test)),
        "evaluations": float(np.mean(model.n_evaluations(rows.X_test))),
        "fit_seconds": fit_seconds,
        "open_gaps": n_open,
        "n_train": len(rows.y_train),
        "n_test": len(rows.y_test),
        "n_features": int(rows.X_train.shape[1]),
        "n_classes": len(model.classes_),
    }
    return found | ({"tree": model.tree_.to_newick()} if hasattr(model, "tree_") else {})


def _timed(job: Job, protocol: Protocol) -> dict[str, Any]:
    """Measure what predictions cost, with all classes or with some of them."""
    rows = data.split(job.data_set, 0)
    # One random order for all numbers of classes: each set of classes holds the smaller ones.
    chosen = np.random.default_rng(0).permutation(np.unique(rows.y_train))[: job.number]
    train, test = (np.flatnonzero(np.isin(y, chosen)) for y in (rows.y_train, rows.y_test))
    model, fit_seconds, _ = _fitted(job, rows.X_train[train], rows.y_train[train], 0)
    X = rows.X_test[test]
    return {
        "row_seconds": seconds_per_row(model, X, protocol.timed_rows),
        "evaluations": float(np.mean(model.n_evaluations(X))),
        "fit_seconds": fit_seconds,
    }


def _pictures(job: Job, protocol: Protocol) -> dict[str, Any]:
    """Return the most typical picture of each class, the one nearest to their mean, with grey values from 0 to 255."""
    bunch = data.whole_set(job.data_set)
    height, width = data.PICTURE_SHAPES[job.data_set]
    lowest, highest = float(bunch.data.min()), float(bunch.data.max())
    pictures = []
    for label in np.unique(bunch.target):
        members = bunch.data[bunch.target == label]
        picture = members[np.argmin(((members - members.mean(axis=0)) ** 2).sum(axis=1))]
        grey = np.round(255.0 * (highest - picture) / (highest - lowest)).astype(np.uint8)
        pictures.append(base64.b64encode(grey.tobytes()).decode())
    return {"height": height, "width": width, "pictures": pictures}
