"""margintree and LinearSVC, both with what they do when nothing is set, over several draws of the training rows.

    python benchmarks/draws.py

The tables of peers.py and scaling.py show one split of each set, whose chance is as large as what tells good methods
apart. Here all rows of a set are drawn anew into a training part of the same size and a test part, or a set is
generated anew, and the difference of two models on the same draws comes with its standard error.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from data_sets import drawn_images, in_one, parts, prepared
from hierarchy import generated
from report import heading, table, write
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from margintree import MarginTreeClassifier

N_DRAWS = 7
IMAGES_PER_CLASS = 30
GENERATED = "generated, 1000 classes"
SETS = ("news20_bydate", "letter", "caltech101_bow1000", GENERATED)
PEER = "LinearSVC (1vsR)"


def models() -> dict[str, Any]:
    return {
        PEER: LinearSVC(random_state=0),
        "margintree": MarginTreeClassifier(random_state=0),
        "margintree, 1 tree": MarginTreeClassifier(n_trees=1, random_state=0),
        "margintree, 3 trees": MarginTreeClassifier(n_trees=3, random_state=0),
    }


def draws(name: str) -> Iterator[tuple[Any, np.ndarray, Any, np.ndarray]]:
    if name == GENERATED:
        yield from (generated(1000, seed) for seed in range(N_DRAWS))
        return
    X, y = in_one(name)
    for seed in range(N_DRAWS):
        if name == "caltech101_bow1000":
            train = drawn_images(y, seed, IMAGES_PER_CLASS)
        else:
            shuffle = StratifiedShuffleSplit(1, train_size=len(parts(name)[0][1]), random_state=seed)
            train, _ = next(shuffle.split(np.zeros(len(y)), y))
        test = np.setdiff1d(np.arange(len(y)), train)
        X_train, X_test = prepared(X[train], X[test], name)
        yield X_train, y[train], X_test, y[test]


def run_set(name: str) -> list[list[object]]:
    """Return a line per model: seconds of a fit, accuracy, mean per class, and the difference of that to the peer's."""
    seconds: dict[str, list[float]] = {model: [] for model in models()}
    scores: dict[str, list[tuple[float, float]]] = {model: [] for model in models()}
    for X, y, X_test, y_test in draws(name):
        for model, estimator in models().items():
            began = time.perf_counter()
            estimator.fit(X, y)
            seconds[model].append(time.perf_counter() - began)
            labels = estimator.predict(X_test)
            scores[model].append((float(np.mean(labels == y_test)), balanced_accuracy_score(y_test, labels)))
        print(name, *(f"{model} {100 * scores[model][-1][1]:.2f}" for model in scores), sep=" | ", flush=True)
    lines: list[list[object]] = []
    for model, both in scores.items():
        found = 100 * np.array(both)
        shown = [
            f"{mean:.2f} ± {sd:.2f}" for mean, sd in zip(found.mean(axis=0), found.std(axis=0, ddof=1), strict=True)
        ]
        gain = found - 100 * np.array(scores[PEER])
        error = gain.std(axis=0, ddof=1) / np.sqrt(N_DRAWS)
        against = [f"{mean:+.2f} ± {se:.2f}" for mean, se in zip(gain.mean(axis=0), error, strict=True)]
        lines.append([model, f"{np.median(seconds[model]):.1f}", *shown, *(["", ""] if model == PEER else against)])
    return lines


def main() -> None:
    lines = heading("Several draws of the training rows")
    lines += [
        f"{N_DRAWS} draws; mean and standard deviation in percent, and the mean difference to {PEER} on the same draws "
        f"with its standard error. {IMAGES_PER_CLASS} images per class of caltech101 train, as many rows of the other "
        "sets as in their source's training part; the rest are test rows. Generated rows are those of scaling.py, each "
        "draw with a hierarchy of its own. One thread.",
        "",
    ]
    header = ["model", "fit s", "accuracy", "mean per class", "accuracy, difference", "mean per class, difference"]
    with threadpool_limits(1):
        for name in SETS:
            MarginTreeClassifier(random_state=0).fit(*next(draws(name))[:2])  # compiles
            lines += [f"## {name}", "", *table(header, run_set(name))]
    write("draws", lines)


if __name__ == "__main__":
    main()
