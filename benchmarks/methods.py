"""Every method of the paper's Table 2, and those of its related work, on the five small data sets.

Mean per-class accuracy over 3 random splits with the training sizes of Table 1. Each method is tuned once per set
and kernel by 3-fold cross-validation on the training rows of the first split (C, and eta for the Gaussian kernel).
All methods use the solvers of this project. An interrupted run is taken up again where it stopped.
"""

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from accuracy import FOLDS, splits
from joblib import Parallel, delayed
from report import DEVIATION, RESULTS, heading, mean_and_deviation, table, write
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold

from margintree import (
    AllTogetherSVC,
    ConditionalProbabilityTreeClassifier,
    DecisionDAGClassifier,
    FilterTreeClassifier,
    LabelTreeClassifier,
    MarginTreeClassifier,
    OneVsOneSVC,
    OneVsRestSVC,
    OutputCodeSVC,
)
from margintree.experiments import paper

SETS = ["svmguide4", "vowel", "segment", "satimage", "usps"]
METHODS: dict[str, tuple[type, dict[str, Any]]] = {
    "MSM": (MarginTreeClassifier, {}),
    "MSM, greedy": (MarginTreeClassifier, {"walk": "greedy"}),
    "I-BWG": (LabelTreeClassifier, {"joint": False}),
    "J-BWG": (LabelTreeClassifier, {"joint": True}),
    "FT": (FilterTreeClassifier, {}),
    "CPT": (ConditionalProbabilityTreeClassifier, {"node": "svm"}),
    "1vs1": (OneVsOneSVC, {}),
    "1vsR": (OneVsRestSVC, {}),
    "DDAG": (DecisionDAGClassifier, {}),
    "ECOC": (OutputCodeSVC, {}),
    "Crammer-Singer": (AllTogetherSVC, {"max_iter": 1000}),
    "Weston-Watkins": (AllTogetherSVC, {"loss": "weston_watkins", "max_iter": 1000}),
    "random tree": (MarginTreeClassifier, {"split": "random"}),
}
# Finished rows of a run that was interrupted; the next run goes on from there.
CACHE = RESULTS / "methods.unfinished.jsonl"
COSTS = [0.1, 1.0, 10.0, 100.0, 1000.0]
ETAS = [0.01, 0.1, 1.0]
LINEAR_ONLY = {"J-BWG", "Crammer-Singer", "Weston-Watkins"}


@dataclass(frozen=True)
class Setting:
    method: str
    kernel: str
    C: float
    eta: float

    def model(self, seed: int) -> Any:
        estimator, parameters = METHODS[self.method]
        kernel = {} if estimator is AllTogetherSVC else {"kernel": self.kernel, "gamma": self.eta}
        return estimator(C=self.C, random_state=seed, **kernel, **parameters)


def score(setting: Setting, seed: int, X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray) -> tuple[float, float]:
    warnings.simplefilter("ignore")
    model = setting.model(seed).fit(X, y)
    accuracy = 100.0 * balanced_accuracy_score(y_test, model.predict(X_test))
    return accuracy, float(model.n_evaluations(X_test).mean())


def tuned(method: str, kernel: str, X: Any, y: np.ndarray, workers: Callable[..., Any]) -> Setting:
    etas = ETAS if kernel == "rbf" else [1.0]
    settings = [Setting(method, kernel, C, eta) for C, eta in product(COSTS, etas)]
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(np.zeros(len(y)), y))
    jobs = [(s, seed, *fold) for s in settings for seed, fold in enumerate(folds)]
    scores = workers(delayed(score)(s, seed, X[a], y[a], X[b], y[b]) for s, seed, a, b in jobs)
    means = np.array([s for s, _ in scores]).reshape(len(settings), FOLDS).mean(axis=1)
    return settings[int(np.argmax(means))]


def measured(method: str, kernel: str, name: str, workers: Callable[..., Any]) -> dict[str, Any]:
    """Return the row of one method, set and kernel: from the cache, or tuned and run, and then kept there."""
    key = f"{method} {kernel} {name}"
    kept = [json.loads(line) for line in CACHE.read_text().splitlines()] if CACHE.exists() else []
    for row in kept:
        if row["key"] == key:
            return row
    data = splits(name)
    setting = tuned(method, kernel, *data[0][:2], workers)
    # Every split has its own seed: a random tree is drawn anew.
    values, asked = np.array(workers(delayed(score)(setting, seed, *split) for seed, split in enumerate(data))).T
    chosen = f"{setting.C:g}" + (f" / {setting.eta:g}" if kernel == "rbf" else "")
    row = {
        "key": key,
        "accuracy": mean_and_deviation(values.tolist()),
        "evaluations": f"{asked.mean():.1f}",
        "parameters": chosen,
    }
    with CACHE.open("a") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(*row.values(), sep=" | ", flush=True)
    return row


def in_the_paper(method: str, name: str, kernel: str) -> str:
    """Return the accuracy of Table 2, or a dash where it has none; nothing for methods that it lacks."""
    found = paper.accuracy(method, name, kernel)
    return f"{found[0]:.2f}" if found else "—" if method in paper.PAPER_METHODS else ""


def main() -> None:
    warnings.simplefilter("ignore")
    nothing = {"accuracy": "—", "evaluations": "—", "parameters": "—"}
    accuracies, evaluations, parameters = [], [], []
    with Parallel(n_jobs=2) as workers:
        for kernel, name in product(("linear", "rbf"), SETS):
            label = [name, "Gaussian" if kernel == "rbf" else kernel]
            rows = [
                nothing if kernel == "rbf" and method in LINEAR_ONLY else measured(method, kernel, name, workers)
                for method in METHODS
            ]
            theirs = [in_the_paper(method, name, kernel) for method in METHODS]
            accuracies += [[*label, *(row["accuracy"] for row in rows)], ["", "paper", *theirs]]
            evaluations.append([*label, *(row["evaluations"] for row in rows)])
            parameters.append([*label, *(row["parameters"] for row in rows)])
    header = ["set", "kernel", *METHODS]
    lines = [*heading("Every method: mean per-class accuracy in %, 3 splits, tuned"), DEVIATION, ""]
    lines += table(header, accuracies)
    lines += ["## Decision functions evaluated per prediction", "", *table(header, evaluations)]
    lines += ["## C (and eta) that were chosen", "", *table(header, parameters)]
    write("methods", lines)
    CACHE.unlink()


if __name__ == "__main__":
    main()
