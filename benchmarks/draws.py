"""margintree against its peers at the same C, over several draws of the training rows and several seeds.

    python benchmarks/draws.py [--draws 7] [NAME ...]

One split of a set has a chance as large as what tells good methods apart. Here the rows of every set are drawn anew
into a training and a test part, and the difference of two models on the same draws comes with its standard error.
Another column is the range of margintree's own accuracy over five values of ``random_state`` on the first draw.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from data_sets import drawn_images, everything, scaled
from report import RESULTS, heading, table, write
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from margintree import MarginTreeClassifier, OneVsOneSVC, OneVsRestSVC

IMAGES_PER_CLASS = 30
# Training rows of each set, and whether it is run with the Gaussian kernel, too. Where the source has a training part
# of thousands of rows, fewer are drawn: with all of them good methods are too close to be told apart.
SETS = {
    "svmguide4": (300, True),
    "vowel": (528, True),
    "segment": (500, True),
    "satimage": (2000, True),
    "usps": (2007, True),
    "letter": (3000, True),
    "pendigits": (1000, True),
    "led7digit": (250, True),
    "vehicle": (423, True),
    "marketing": (2000, True),
    "digits": (600, True),
    "caltech101_bow1000": (3030, False),
    "sector_part": (865, False),
    "news20_bydate": (11314, False),
    "banking77": (10003, False),
    "udhr_char3": (10000, False),
    "wordnet_hypernyms": (26643, False),
}
# One-vs-one and logistic regression over hundreds of classes would take hours.
FEW_CLASSES = 200
C_OF = {"linear": 1.0, "rbf": 10.0}
N_SEEDS = 5
OURS = "margintree"


def models(kernel: str, n_classes: int, seed: int) -> dict[str, Any]:
    C = C_OF[kernel]
    ours: dict[str, Any] = {
        OURS: MarginTreeClassifier(kernel, C=C, random_state=seed),
        "greedy": MarginTreeClassifier(kernel, C=C, walk="greedy", random_state=seed),
    }
    peers: dict[str, Any] = (
        {"LinearSVC": LinearSVC(C=C, random_state=seed)} if kernel == "linear" else {"SVC": SVC(C=C)}
    )
    if n_classes <= FEW_CLASSES:
        if kernel == "linear":
            peers["LogisticRegression"] = LogisticRegression(C=C, max_iter=200)
        ours["1vs1"] = OneVsOneSVC(kernel, C=C, random_state=seed)
        ours["1vsR"] = OneVsRestSVC(kernel, C=C, random_state=seed)
    return ours | peers


def draws(name: str, n_draws: int) -> Iterator[tuple[Any, np.ndarray, Any, np.ndarray]]:
    X, y = everything(name)
    for seed in range(n_draws):
        if name == "caltech101_bow1000":
            train = drawn_images(y, seed, IMAGES_PER_CLASS)
        else:
            shuffle = StratifiedShuffleSplit(1, train_size=SETS[name][0], random_state=seed)
            train, _ = next(shuffle.split(np.zeros(len(y)), y))
        test = np.setdiff1d(np.arange(len(y)), train)
        X_train, X_test = scaled(X[train], X[test], name)
        yield X_train, y[train], X_test, y[test]


def run(name: str, kernel: str, n_draws: int) -> dict[str, Any]:
    """Return what every model made of every draw: seconds, accuracy, mean per class, decision functions."""
    found: dict[str, list[dict[str, float]]] = {}
    chosen: list[str] = []
    spread: list[float] = []
    for number, (X, y, X_test, y_test) in enumerate(draws(name, n_draws)):
        for model, estimator in models(kernel, len(np.unique(y)), number).items():
            began = time.perf_counter()
            estimator.fit(X, y)
            seconds = time.perf_counter() - began
            labels = estimator.predict(X_test)
            line = {"seconds": seconds, "accuracy": float(np.mean(labels == y_test))}
            line["mean"] = float(balanced_accuracy_score(y_test, labels))
            if hasattr(estimator, "n_evaluations"):
                line["evaluations"] = float(estimator.n_evaluations(X_test).mean())
            found.setdefault(model, []).append(line)
            if model == OURS:
                chosen.append(estimator.decide_)
        if number == 0:
            seeds = [MarginTreeClassifier(kernel, C=C_OF[kernel], random_state=s).fit(X, y) for s in range(N_SEEDS)]
            spread = [float(np.mean(model.predict(X_test) == y_test)) for model in seeds]
        print(
            name, kernel, *(f"{m} {100 * lines[-1]['mean']:.2f}" for m, lines in found.items()), sep=" | ", flush=True
        )
    return {"models": found, "chosen": chosen, "spread": spread}


def lines_of(key: str, result: dict[str, Any]) -> list[list[object]]:
    """Return a line per model: its figures, and by how much margintree is ahead of it."""
    lines: list[list[object]] = []
    ours = 100 * np.array([line["mean"] for line in result["models"][OURS]])
    for model, found in result["models"].items():
        mean = 100 * np.array([line["mean"] for line in found])
        accuracy = 100 * np.mean([line["accuracy"] for line in found])
        evaluations = np.mean([line.get("evaluations", np.nan) for line in found])
        gain = ours - mean
        error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
        ahead = "" if model == OURS else f"{gain.mean():+.2f} ± {error:.2f}"
        spread = f"{100 * np.ptp(result['spread']):.2f}" if model == OURS else ""
        decides = ", ".join(sorted(set(result["chosen"]))) if model == OURS else ""
        asked = "" if np.isnan(evaluations) else f"{evaluations:.1f}"
        seconds = f"{np.median([line['seconds'] for line in found]):.2f}"
        shown = [
            f"{mean.mean():.2f} ± {mean.std(ddof=1):.2f}",
            f"{accuracy:.2f}",
            ahead,
            asked,
            decides,
            spread,
            seconds,
        ]
        lines.append([key if model == OURS else "", model, *shown])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="sets to run; others keep their figures")
    parser.add_argument("--draws", type=int, default=7)
    asked = parser.parse_args()
    store = Path(RESULTS) / "draws.json"
    results = json.loads(store.read_text()) if store.exists() else {}
    with threadpool_limits(1):
        for name in asked.names or SETS:
            for kernel in ("linear", "rbf") if SETS[name][1] else ("linear",):
                results[f"{name}, {kernel}"] = run(name, kernel, asked.draws)
                store.write_text(json.dumps(results, indent=1) + "\n")
    header = ["set, kernel", "model", "mean per class", "accuracy", "margintree ahead by", "decision functions"]
    lines = heading("Several draws of the training rows")
    lines += [
        f"Mean and standard deviation over the draws in percent, all models at C = {C_OF['linear']:g} (linear) or "
        f"{C_OF['rbf']:g} (Gaussian, gamma='scale'); by how much margintree's mean per class is ahead on the same "
        f"draws, with the standard error; who decides in margintree; the range of its accuracy over {N_SEEDS} seeds. "
        "One thread. LogisticRegression stops after 200 iterations.",
        "",
        *table(
            [*header, "decides", "seeds", "fit s"],
            [
                line
                for name in SETS
                for kernel in ("linear", "rbf")
                if f"{name}, {kernel}" in results
                for line in lines_of(f"{name}, {kernel}", results[f"{name}, {kernel}"])
            ],
        ),
    ]
    write("draws", lines)


if __name__ == "__main__":
    main()
