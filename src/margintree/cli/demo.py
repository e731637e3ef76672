"""``margintree demo``: a tree over the digits, and a comparison with other methods."""

import time
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Column, Table
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, LinearSVC

from margintree.estimators.margin_tree import MarginTreeClassifier

# A usual value for pixels scaled to [0, 1]; nothing is tuned.
C = 10.0


class Outcome(NamedTuple):
    """One row of the comparison."""

    method: str
    kernel: str
    accuracy: float
    evaluations: float
    fit_seconds: float


def compare(seed: int) -> tuple[list[Outcome], MarginTreeClassifier]:
    """Fit all methods on one split of digits; return the outcomes and the margin tree with the rbf kernel."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, test_size=0.5, random_state=seed, stratify=y)
    outcomes: list[Outcome] = []
    greedy: dict[str, Any] = {"walk": "greedy", "calibration_folds": 0}
    for kernel in ("linear", "rbf"):
        # liblinear's squared hinge loss has no factor 1/2: half of our C is the same problem.
        one_vs_rest: BaseEstimator = LinearSVC(C=C / 2, random_state=seed)
        if kernel == "rbf":
            one_vs_rest = OneVsRestClassifier(SVC(kernel="rbf", C=C))
        methods: dict[str, Any] = {
            "1vsR (scikit-learn)": one_vs_rest,
            # The walk of the paper: predictions depend on the structure alone.
            "random tree, greedy": MarginTreeClassifier(kernel, C=C, split="random", random_state=seed, **greedy),
            "margin tree, greedy": MarginTreeClassifier(kernel, C=C, random_state=seed, **greedy),
            "margin tree": MarginTreeClassifier(kernel, C=C, random_state=seed),
        }
        for method, model in methods.items():
            began = time.perf_counter()
            model.fit(X_train, y_train)
            seconds = time.perf_counter() - began
            is_tree = isinstance(model, MarginTreeClassifier)
            evaluations = model.n_evaluations(X_test).mean() if is_tree else len(np.unique(y))
            outcomes.append(Outcome(method, kernel, model.score(X_test, y_test), float(evaluations), seconds))
    return outcomes, model


def run_demo(seed: int) -> None:
    """Print the tree and the comparison."""
    console = Console()
    console.print("Fitting 898 digits (8 x 8 pixels, 10 classes); the first fit compiles, which may take a minute.")
    # Compile before anything is timed.
    X, y = load_digits(return_X_y=True)
    for kernel, split in product(("linear", "rbf"), ("best_first", "random")):
        MarginTreeClassifier(kernel, split=split, random_state=seed).fit(X[:200], y[:200]).predict(X[:10])
    outcomes, model = compare(seed)
    console.print("\n[bold]The class tree[/bold] (rbf kernel): similar digits are separated late.\n")
    console.print(model.tree_.to_text([f"digit {c}" for c in model.classes_]), highlight=False, markup=False)
    figures = [Column(name, justify="right") for name in ("accuracy %", "evaluations per prediction", "fit ms")]
    table = Table("method", "kernel", *figures, title="\n899 test digits", title_justify="left")
    for method, kernel, accuracy, evaluations, seconds in outcomes:
        table.add_row(method, kernel, f"{100 * accuracy:.1f}", f"{evaluations:.1f}", f"{1000 * seconds:.0f}")
    console.print(table)
