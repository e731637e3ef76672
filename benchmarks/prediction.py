"""Prediction: the paper's claims about its time, the walks, pruning, and how far probabilities can be trusted.

    python benchmarks/prediction.py [SECTION ...]

Sections: gaussian, linear, walks, pruning, calibration. Without a name all are run. Results of a section are kept in
results/prediction.json until it is run again. One thread, after compilation; a time is the best of several passes.
"""

import pickle
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import scipy.sparse as sp
import support_vectors
from accuracy import TRAINING_ROWS, splits
from data_sets import source_split
from peer_process import keep, read_kept
from report import RESULTS, heading, table, write
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from margintree import DecisionDAGClassifier, MarginTreeClassifier, OneVsOneSVC, OneVsRestSVC
from margintree.experiments.timing import FEWEST_PASSES, arguments, seconds_per_call

KEPT = RESULTS / "prediction.json"
ONE_ROWS = 200
# A pass takes milliseconds: among many there are some that nothing interrupted.
REPEATS = 10
GAUSSIAN_SETS = list(TRAINING_ROWS)
LINEAR_SETS = ["usps", "letter", "news20_bydate", "wordnet_hypernyms"]
MOST_CLASSES_OF_1VS1 = 30
WALK_SETS = ["wordnet_hypernyms", "udhr_char3", "news20_bydate", "letter", "caltech101_bow1000"]
PRUNE_SETS = ["wordnet_hypernyms", "udhr_char3", "news20_bydate"]
PRUNE = [0.0, 0.05, 0.1, 0.2, 0.3]
CALIBRATION_SETS = ["letter", "news20_bydate", "usps", "caltech101_bow1000"]
BINS = 15
# Table 3 of the paper, as its text sums it up: how many times faster a tree is, from and to.
CLAIMED = {"1vs1": (2.0, 200.0), "1vsR": (1.3, 50.0)}

Rows = list[list[object]]
Split = tuple[Any, np.ndarray, Any, np.ndarray]


def rows_of(name: str) -> Split:
    return splits(name)[0] if name == "caltech101_bow1000" else source_split(name)


def one_row_us(model: Any, X: Any) -> float:
    """Return the microseconds of one prediction, by single_instance() if the model has it, else by predict."""
    chosen = np.linspace(0, X.shape[0] - 1, min(ONE_ROWS, X.shape[0])).astype(int)
    way = "compiled" if hasattr(model, "single_instance") else "predict"
    predict = model.single_instance().predict if way == "compiled" else model.predict
    rows = [arguments(X, i, way) for i in chosen]
    return 1e6 * min(seconds_per_call(predict, rows) for _ in range(REPEATS))


def batch_us(model: Any, X: Any) -> tuple[float, np.ndarray]:
    """Return the microseconds per row of predicting all rows at once, and the labels."""
    times = []
    for _ in range(FEWEST_PASSES):
        began = time.perf_counter()
        labels = model.predict(X)
        times.append(time.perf_counter() - began)
    return 1e6 * min(times) / X.shape[0], labels


def verdict(times: dict[str, float], tree: str, other: str) -> list[str]:
    """Return how many times faster the tree is, and whether that is what the paper claims."""
    if other not in times:
        return ["—", "—"]
    ratio, (least, most) = times[other] / times[tree], CLAIMED[other]
    word = "confirmed" if least <= ratio <= most else ("refuted" if ratio < least else "more than claimed")
    return [f"{ratio:.1f}", word]


def gaussian() -> Iterable[tuple[str, list[str], Rows]]:
    """Time every method with C=10 and gamma="scale" on the paper's training sizes."""
    names = ["tree, greedy", "tree, beam", "1vs1", "1vsR", "DDAG", "SVC.predict"]
    times_rows, claims, vectors, by_itself = [], [], [], []
    for name in GAUSSIAN_SETS:
        X, y, X_test, _ = splits(name)[0]
        pairs = OneVsOneSVC("rbf", C=10, random_state=0).fit(X, y)
        greedy = MarginTreeClassifier("rbf", C=10, walk="greedy", calibration_folds=0, random_state=0)
        ours = [
            greedy.fit(X, y),
            MarginTreeClassifier("rbf", C=10, random_state=0).fit(X, y),
            pairs,
            OneVsRestSVC("rbf", C=10, random_state=0).fit(X, y),
            DecisionDAGClassifier.from_one_vs_one(pairs),
        ]
        models = dict(zip(names, [*ours, SVC(C=10).fit(X, y)], strict=True))
        times = {method: one_row_us(model, X_test) for method, model in models.items()}
        times_rows.append([name, len(np.unique(y)), X.shape[1], *(f"{times[method]:.1f}" for method in names)])
        for tree in names[:2]:
            claims.append([name, tree, *verdict(times, tree, "1vs1"), *verdict(times, tree, "1vsR")])
        some = X_test[:: max(1, len(X_test) // 500)]
        counts = [f"{support_vectors.of_model(models[method], some):.0f}" for method in names[:-1]]
        vectors.append([name, X.shape[0], *counts])
        once_each = support_vectors.of_path_by_itself(models["tree, greedy"], some)
        repeated = [len(models[method]._machines.coefficients.data) for method in ("1vs1", "1vsR")]
        ratios = [f"{count / once_each:.1f}" for count in repeated]
        by_itself.append([name, f"{once_each:.0f}", *repeated, *ratios])
    yield "Gaussian kernel: microseconds to predict one row", ["set", "classes", "features", *names], times_rows
    header = ["set", "walk", "1vs1 / tree", "2 to 200", "1vsR / tree", "1.3 to 50"]
    yield "Gaussian kernel: times faster, against the paper's claims", header, claims
    header = ["set", "training rows", *names[:-1]]
    yield "Gaussian kernel: different support vectors evaluated for one row", header, vectors
    header = ["set", "tree, greedy", "1vs1", "1vsR", "1vs1 / tree", "1vsR / tree"]
    yield "Gaussian kernel: kernel values for one row if each machine computed its own", header, by_itself


def as_linear_svc(model: OneVsRestSVC) -> LinearSVC:
    """Return scikit-learn's estimator with the weights of ours, so that its prediction can be timed."""
    weights = model._machines.weights
    peer = LinearSVC()
    # liblinear leaves its weights in this order, in which a product with a sparse row copies nothing.
    peer.coef_ = np.asfortranarray((weights.toarray() if sp.issparse(weights) else weights).T)
    peer.intercept_, peer.classes_, peer.n_features_in_ = model._machines.intercepts, model.classes_, weights.shape[0]
    return peer


def linear() -> Iterable[tuple[str, list[str], Rows]]:
    """Time every method with C=1 on the split of the source; LinearSVC.predict has the machines of our 1vsR."""
    names = ["tree, greedy", "tree, beam", "1vs1", "1vsR", "DDAG", "LinearSVC.predict"]
    times_rows, claims = [], []
    for name in LINEAR_SETS:
        X, y, X_test, _ = source_split(name)
        n_classes = len(np.unique(y))
        greedy = MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0)
        rest = OneVsRestSVC(random_state=0).fit(X, y)
        models: dict[str, Any] = {
            "tree, greedy": greedy.fit(X, y),
            "tree, beam": MarginTreeClassifier(random_state=0).fit(X, y),
            "1vsR": rest,
            "LinearSVC.predict": as_linear_svc(rest),
        }
        if n_classes <= MOST_CLASSES_OF_1VS1:
            pairs = OneVsOneSVC(random_state=0).fit(X, y)
            models |= {"1vs1": pairs, "DDAG": DecisionDAGClassifier.from_one_vs_one(pairs)}
        times = {method: one_row_us(model, X_test) for method, model in models.items()}
        cells = [f"{times[method]:.1f}" if method in times else "—" for method in names]
        times_rows.append([name, n_classes, X.shape[1], *cells])
        for tree in names[:2]:
            claims.append([name, tree, *verdict(times, tree, "1vs1"), *verdict(times, tree, "1vsR")])
    yield "Linear kernel: microseconds to predict one row", ["set", "classes", "features", *names], times_rows
    header = ["set", "walk", "1vs1 / tree", "2 to 200", "1vsR / tree", "1.3 to 50"]
    yield "Linear kernel: times faster, against the paper's claims", header, claims


WALKS: dict[str, dict[str, Any]] = {
    "all": {"walk": "all"},
    "beam (default)": {},
    "beam, n_trees=3": {"n_trees": 3},
    "greedy": {"walk": "greedy"},
    "decide='paths'": {"decide": "paths"},
    "decide='pairs'": {"decide": "pairs"},
    "decide='rest'": {"decide": "rest"},
}


def walks() -> Iterable[tuple[str, list[str], Rows]]:
    """Fit each walk with default parameters and the same seed, hence the same first tree."""
    found = []
    for name in WALK_SETS:
        X, y, X_test, y_test = rows_of(name)
        labels: dict[str, np.ndarray] = {}
        for walk, parameters in WALKS.items():
            model = MarginTreeClassifier(random_state=0, **parameters).fit(X, y)
            batch, labels[walk] = batch_us(model, X_test)
            accuracy = [np.mean(labels[walk] == y_test), balanced_accuracy_score(y_test, labels[walk])]
            times = [f"{batch:.1f}", f"{one_row_us(model, X_test):.1f}"]
            evaluations = f"{model.n_evaluations(X_test).mean():.1f}"
            found.append([name, walk, *(f"{a:.4f}" for a in accuracy), evaluations, *times])
        for row, own in zip(found[-len(WALKS) :], labels.values(), strict=True):
            row += [f"{100 * np.mean(own != labels[other]):.2f} %" for other in ("all",)]
    header = ["set", "walk", "accuracy", "mean per class", "evaluations", "batch us/row", "one row us"]
    yield "Walks, default parameters", [*header, "differs from all"], found


def pruning() -> Iterable[tuple[str, list[str], Rows]]:
    found = []
    for name in PRUNE_SETS:
        X, y, X_test, y_test = rows_of(name)
        for prune in PRUNE:
            model = MarginTreeClassifier(prune=prune, random_state=0).fit(X, y)
            batch, labels = batch_us(model, X_test)
            accuracy = [np.mean(labels == y_test), balanced_accuracy_score(y_test, labels)]
            size = len(pickle.dumps(model)) / 1e6
            found.append([name, prune, *(f"{a:.4f}" for a in accuracy), f"{size:.2f}", f"{batch:.1f}"])
    header = ["set", "prune", "accuracy", "mean per class", "model MB", "batch us/row"]
    yield "Pruning of small weights, other parameters at their defaults", header, found


CALIBRATED: dict[str, Callable[[], Any]] = {
    "MarginTreeClassifier()": lambda: MarginTreeClassifier(random_state=0),
    "MarginTreeClassifier(decide='paths')": lambda: MarginTreeClassifier(decide="paths", random_state=0),
    "CalibratedClassifierCV(LinearSVC())": lambda: CalibratedClassifierCV(LinearSVC(random_state=0)),
    "LogisticRegression()": lambda: LogisticRegression(),
}


def expected_calibration_error(probabilities: np.ndarray, right: np.ndarray) -> float:
    """Return the mean distance between the probability of the top label and its accuracy, over equal bins."""
    top = probabilities.max(axis=1)
    bins = np.minimum((top * BINS).astype(int), BINS - 1)
    gaps = [abs(top[bins == b].mean() - right[bins == b].mean()) * np.mean(bins == b) for b in np.unique(bins)]
    return float(sum(gaps))


def calibration() -> Iterable[tuple[str, list[str], Rows]]:
    found = []
    for name in CALIBRATION_SETS:
        X, y, X_test, y_test = rows_of(name)
        classes, codes = np.unique(y_test, return_inverse=True)
        for label, make in CALIBRATED.items():
            began = time.perf_counter()
            model = make().fit(X, y)
            seconds = time.perf_counter() - began
            probabilities = model.predict_proba(X_test)
            number = np.searchsorted(model.classes_, classes)[codes]
            own = probabilities[np.arange(len(number)), number]
            # sum_k (p_k - [k is the label])^2 without a second matrix.
            brier = np.mean((probabilities**2).sum(axis=1) - 2.0 * own + 1.0)
            right = probabilities.argmax(axis=1) == number
            error = expected_calibration_error(probabilities, right)
            loss = log_loss(number, probabilities, labels=np.arange(len(model.classes_)))
            scores = [f"{value:.4f}" for value in (right.mean(), brier, loss, error)]
            found.append([name, f"`{label}`", *scores, f"{seconds:.1f}"])
    header = ["set", "model", "accuracy", "Brier score", "log loss", "expected calibration error", "fit s"]
    yield "Calibration of predict_proba on test rows", header, found


SECTIONS = {section.__name__: section for section in (gaussian, linear, walks, pruning, calibration)}
NOTES = {
    "gaussian": "Training sizes of the paper, first random split, C=10, gamma='scale'. All but SVC run through "
    "`single_instance()`; 1vs1 and 1vsR compute the kernel once for each of their support vectors, however many "
    "machines share it. The last table is for code in which machines share nothing, as the paper's may have been.",
    "linear": "C=1, split of the source. 1vs1 only up to 30 classes. `LinearSVC.predict` is timed with the machines of "
    "our 1vsR, on one row, validation included. 1vsR and 1vs1 read their weights by features, which for them is the "
    "fastest order.",
    "walks": "The first tree is the same in all rows of a set. Evaluations count the machines of nodes and those that "
    "decide between finalists.",
    "pruning": "Model size is that of the pickle.",
    "calibration": "Multi-class Brier score sum_k (p_k - [k is the label])^2; expected calibration error of the top "
    "label in 15 bins. Smaller is better.",
}


def run(name: str, kept: dict[str, Any]) -> None:
    began = time.perf_counter()
    tables = [{"title": title, "header": header, "rows": rows} for title, header, rows in SECTIONS[name]()]
    seconds = round(time.perf_counter() - began)
    kept[name] = {"date": f"{datetime.now(UTC):%Y-%m-%d %H:%M}", "seconds": seconds, "tables": tables}
    keep(kept, KEPT)


def main() -> None:
    warnings.simplefilter("ignore")
    wanted = sys.argv[1:] or list(SECTIONS)
    unknown = [name for name in wanted if name not in SECTIONS]
    if unknown:
        raise SystemExit(f"No section {', '.join(unknown)}. There are: {', '.join(SECTIONS)}.")
    kept = read_kept(KEPT)
    with threadpool_limits(1):
        for name in wanted:
            run(name, kept)
    lines = heading("Prediction", "")
    for name in SECTIONS:
        if name in kept:
            section = kept[name]
            for part in section["tables"]:
                lines += [f"## {part['title']}", "", *table(part["header"], part["rows"])]
            lines += [f"{NOTES[name]} Section `{name}`, {section['date']}, {section['seconds']} s.", ""]
    write("prediction", lines)


if __name__ == "__main__":
    main()
