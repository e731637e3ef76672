"""Gaussian kernels: margintree's defaults and all pairs of classes against SVC at the same C and gamma.

    python benchmarks/kernel_fits.py

Fit: the shortest of three, after one on fewer rows that compiles. One thread each, in turn.
"""

import time
from typing import Any

import numpy as np
from data_sets import source_split
from embeddings import embedded
from report import heading, table, write
from sklearn.metrics import balanced_accuracy_score
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from margintree import MarginTreeClassifier, OneVsOneSVC

# C and gamma.
SETS = {"letter": (10.0, 1.0), "usps": (10.0, 0.01), "banking77 by wordllama": (10.0, 1.0)}
REPEATS = 3


def rows_of(name: str) -> tuple[Any, ...]:
    """Return training rows and labels, test rows and labels."""
    return embedded("banking77") if name.startswith("banking77") else source_split(name)


def seconds(work: Any) -> float:
    """Return the shortest time of several."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def lines_of(name: str) -> list[list[object]]:
    """Return a line for each model of a set."""
    C, gamma = SETS[name]
    X, y, X_test, y_test = rows_of(name)
    models = {
        "margintree": MarginTreeClassifier("rbf", C=C, gamma=gamma, random_state=0),
        "margintree, 1vs1": OneVsOneSVC("rbf", C=C, gamma=gamma, random_state=0),
        "SVC": SVC(C=C, gamma=gamma),
    }
    lines: list[list[object]] = []
    for model, estimator in models.items():
        estimator.fit(X[::8], y[::8])
        fit = seconds(lambda estimator=estimator: estimator.fit(X, y))
        labels = estimator.predict(X_test)
        predict = seconds(lambda estimator=estimator: estimator.predict(X_test)) / len(y_test)
        asked = f"{estimator.n_evaluations(X_test).mean():.1f}" if hasattr(estimator, "n_evaluations") else ""
        mean = balanced_accuracy_score(y_test, labels)
        shown = [f"{fit:.2f}", f"{1e6 * predict:.1f}", f"{np.mean(labels == y_test):.4f}", f"{mean:.4f}", asked]
        lines.append([f"{name}, {len(y)} rows, C={C:g}, gamma={gamma:g}" if not lines else "", model, *shown])
    return lines


def main() -> None:
    header = ["set", "model", "fit s", "predict us/row", "accuracy", "mean per class", "decision functions"]
    with threadpool_limits(1):
        lines = [line for name in SETS for line in lines_of(name)]
    write("kernel_fits", [*heading("Fits with a Gaussian kernel"), *table(header, lines)])


if __name__ == "__main__":
    main()
