"""The defaults on few rows, repeated rows, noisy labels and Gaussian classes.

    python benchmarks/hard_sets.py [--draws 5] [PART_OF_A_NAME ...]

Real data are often like that, and benchmarks seldom. Every set is drawn anew several times. The default is compared
with its own greedy walk and with its peers at the same C, on the same draws, with the standard error of the difference.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from data_sets import everything, scaled
from report import RESULTS, heading, table, write
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from margintree import MarginTreeClassifier

TEST_ROWS = 4000
C_OF = {"linear": 1.0, "rbf": 10.0}
Draw = tuple[Any, np.ndarray, Any, np.ndarray]


def drawn(name: str, n_rows: int, seed: int) -> Draw:
    X, y = everything(name)
    shuffle = StratifiedShuffleSplit(1, train_size=n_rows, random_state=seed)
    train, test = next(shuffle.split(np.zeros(len(y)), y))
    X_train, X_test = scaled(X[train], X[test[:TEST_ROWS]], name)
    return X_train, y[train], X_test, y[test[:TEST_ROWS]]


def few_rows(name: str, per_class: int) -> Callable[[int], Draw]:
    def draw(seed: int) -> Draw:
        X, y = everything(name)
        order = np.random.default_rng(seed).permutation(len(y))
        train = np.concatenate([order[y[order] == c][:per_class] for c in np.unique(y)])
        test = order[~np.isin(order, train)][:TEST_ROWS]
        X_train, X_test = scaled(X[train], X[test], name)
        return X_train, y[train], X_test, y[test]

    return draw


def noisy_labels(name: str, n_rows: int, share: float) -> Callable[[int], Draw]:
    def draw(seed: int) -> Draw:
        X, y, X_test, y_test = drawn(name, n_rows, seed)
        random = np.random.default_rng(seed)
        return X, np.where(random.random(len(y)) < share, random.permutation(y), y), X_test, y_test

    return draw


def repeated_rows(name: str, n_rows: int) -> Callable[[int], Draw]:
    def draw(seed: int) -> Draw:
        X, y, X_test, y_test = drawn(name, n_rows, seed)
        random = np.random.default_rng(seed)
        rows = random.permutation(np.repeat(np.arange(len(y)), random.integers(1, 6, size=len(y))))
        return X[rows], y[rows], X_test, y_test

    return draw


def rounded(name: str, n_rows: int, step: float) -> Callable[[int], Draw]:
    def draw(seed: int) -> Draw:
        X, y, X_test, y_test = drawn(name, n_rows, seed)
        return np.round(X[:, :8] / step) * step, y, np.round(X_test[:, :8] / step) * step, y_test

    return draw


def gaussian_classes(n_classes: int, per_class: int, n_features: int, apart: float) -> Callable[[int], Draw]:
    def draw(seed: int) -> Draw:
        random = np.random.default_rng(seed)
        means = apart * random.normal(size=(n_classes, n_features))
        y, y_test = np.repeat(np.arange(n_classes), per_class), np.repeat(np.arange(n_classes), 10)
        X, X_test = (means[z] + random.normal(size=(len(z), n_features)) for z in (y, y_test))
        return X, y, X_test, y_test

    return draw


def each_row_a_class(seed: int) -> Draw:
    X, y = everything("digits")
    rows = np.random.default_rng(seed).permutation(len(y))[:500]
    return X[rows] / 16.0, np.arange(500), X[rows] / 16.0, np.arange(500)


SETS: dict[str, Callable[[int], Draw]] = {
    "vowel, 20 % noisy labels": noisy_labels("vowel", 528, 0.2),
    "digits, 20 % noisy labels": noisy_labels("digits", 600, 0.2),
    "segment, 30 % noisy labels": noisy_labels("segment", 500, 0.3),
    "vehicle, 20 % noisy labels": noisy_labels("vehicle", 423, 0.2),
    "svmguide4, 20 % noisy labels": noisy_labels("svmguide4", 300, 0.2),
    "led7digit": lambda seed: drawn("led7digit", 250, seed),
    "digits, repeated rows": repeated_rows("digits", 300),
    "vowel, repeated rows": repeated_rows("vowel", 300),
    "vowel, rounded": rounded("vowel", 528, 1.0),
    "pendigits, rounded": rounded("pendigits", 600, 1.0),
    "segment, rounded": rounded("segment", 500, 2.0),
    "digits, 1 row per class": few_rows("digits", 1),
    "digits, 2 rows per class": few_rows("digits", 2),
    "digits, 5 rows per class": few_rows("digits", 5),
    "letter, 1 row per class": few_rows("letter", 1),
    "letter, 2 rows per class": few_rows("letter", 2),
    "letter, 10 rows per class": few_rows("letter", 10),
    "vowel, 2 rows per class": few_rows("vowel", 2),
    "banking77, 1 row per class": few_rows("banking77", 1),
    "banking77, 3 rows per class": few_rows("banking77", 3),
    "sector_part, 2 rows per class": few_rows("sector_part", 2),
    "udhr_char3, 1 row per class": few_rows("udhr_char3", 1),
    "500 digits, each a class, on the training rows": each_row_a_class,
    "Gaussian classes: 100 x 1 rows, 30 features": gaussian_classes(100, 1, 30, 0.8),
    "Gaussian classes: 50 x 20 rows, 10 features": gaussian_classes(50, 20, 10, 1.0),
    "Gaussian classes: 400 x 8 rows, 27 features": gaussian_classes(400, 8, 27, 1.0),
    "Gaussian classes: 12 x 100 rows, 100 features": gaussian_classes(12, 100, 100, 0.2),
}


def models(kernel: str, is_dense: bool) -> dict[str, Any]:
    C = C_OF[kernel]
    found: dict[str, Any] = {
        "margintree": MarginTreeClassifier(kernel, C=C, random_state=0),
        "greedy": MarginTreeClassifier(kernel, C=C, walk="greedy", calibration_folds=0, random_state=0),
    }
    if kernel == "rbf":
        return found | {"SVC": SVC(C=C)}
    found |= {"LinearSVC": LinearSVC(C=C, random_state=0), "LogisticRegression": LogisticRegression(C=C, max_iter=100)}
    if is_dense:
        found["LDA, shrunk"] = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    return found


def run(name: str, kernel: str, n_draws: int) -> dict[str, list[float]]:
    """Return the accuracy of each model on each draw; discriminant analysis has none with one row per class."""
    found: dict[str, list[float]] = {}
    for X, y, X_test, y_test in (SETS[name](seed) for seed in range(n_draws)):
        for model, estimator in models(kernel, isinstance(X, np.ndarray)).items():
            if model != "LDA, shrunk" or len(y) > len(np.unique(y)):
                found.setdefault(model, []).append(100 * float(estimator.fit(X, y).score(X_test, y_test)))
    return found


def line_of(key: str, found: dict[str, list[float]]) -> list[str]:
    ours = np.array(found["margintree"])
    cells = [key, f"{ours.mean():.2f}"]
    for model in ("greedy", "LinearSVC", "SVC", "LogisticRegression", "LDA, shrunk"):
        if model not in found:
            cells.append("")
            continue
        gain = ours - found[model]
        cells.append(f"{np.mean(found[model]):.2f} ({gain.mean():+.2f} ± {gain.std(ddof=1) / np.sqrt(len(gain)):.2f})")
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART_OF_A_NAME", help="sets to run; others keep their figures")
    parser.add_argument("--draws", type=int, default=5)
    asked = parser.parse_args()
    store = Path(RESULTS) / "hard_sets.json"
    results = json.loads(store.read_text()) if store.exists() else {}
    with threadpool_limits(1):
        for name in SETS:
            if asked.parts and not any(part in name for part in asked.parts):
                continue
            is_text = name.startswith(("banking77", "sector_part", "udhr_char3"))
            for kernel in ("linear",) if is_text else ("linear", "rbf"):
                results[f"{name}; {kernel}"] = run(name, kernel, asked.draws)
                print(*line_of(f"{name}; {kernel}", results[f"{name}; {kernel}"]), sep=" | ", flush=True)
                store.write_text(json.dumps(results, indent=1) + "\n")
    lines = heading("Few rows, repeated rows, noisy labels", f"--draws {asked.draws}")
    lines += [
        f"Accuracy in percent, mean over draws, all models at C = {C_OF['linear']:g} (linear) or {C_OF['rbf']:g} "
        "(rbf, gamma='scale'); in brackets by how much margintree is ahead on the same draws, with the standard error. "
        "Dense features are standardised, texts are tf-idf.",
        "",
        *table(
            ["set; kernel", "margintree", "greedy walk", "LinearSVC", "SVC", "LogisticRegression", "LDA, shrunk"],
            [
                line_of(key, results[key])
                for key in (f"{n}; {k}" for n in SETS for k in ("linear", "rbf"))
                if key in results
            ],
        ),
    ]
    write("hard_sets", lines)


if __name__ == "__main__":
    main()
