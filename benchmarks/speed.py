"""Speed against named peers in the same run, one thread each, after compilation.

Sections: the linear solver against liblinear, the rbf solver against SVC, whole fits against LinearSVC and
against one-against-the-rest problems with the same solver, and start-up.
"""

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from data_sets import parts, source_split
from report import heading, table, write
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from margintree import MarginTreeClassifier, OneVsOneSVC, OneVsRestSVC
from margintree.estimators.training_data import linear_set, prepare
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.kernel_rows import KernelRows
from margintree.solvers.kernel_source import KernelSource

REPEATS = 5


def best_time(work: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    """Return the shortest of several runs, and the last result."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - began)
    return min(times), result


def linear_solver() -> list[list[object]]:
    """One class against the rest: liblinear to its default tolerance, ours to the same objective."""
    rows = []
    for name in ("news20_bydate", "usps"):
        X, y, _, _ = source_split(name)
        for C in (1.0, 10.0):
            first = np.unique(y)[0]
            signs = np.where(y == first, 1, -1)
            data = prepare(X, np.where(y == first, 0, 1), None, C=C, class_weight=None, pairwise=False, in_place=False)
            node = linear_set(data, fit_intercept=False).node_rows(np.arange(2), 1)
            labelling = np.array([1.0, -1.0])

            def objective(w: np.ndarray, X: Any = X, signs: np.ndarray = signs, C: float = C) -> float:
                return float(0.5 * w @ w + 0.5 * C * np.sum(np.maximum(0.0, 1.0 - signs * (X @ w)) ** 2))

            # Half of our C is liblinear's. Tolerances run from loose to tight until both objectives are
            # within 1e-3 of the optimum.
            optimum = node.solve(labelling, tol=1e-7, max_iter=100_000).objective
            theirs = ours = (np.inf, np.inf, 0.0)
            for tol in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5):
                model = LinearSVC(C=C / 2, fit_intercept=False, dual=True, tol=tol, max_iter=100_000, random_state=0)
                seconds, fitted = best_time(lambda model=model: model.fit(X, signs))
                theirs = (seconds, objective(fitted.coef_.ravel()), tol)
                if theirs[1] <= optimum * 1.001:
                    break
            for tol in (1e-2, 3e-3, 1e-3, 3e-4):
                seconds, solution = best_time(lambda tol=tol: node.solve(labelling, tol=tol, max_iter=100_000))
                ours = (seconds, solution.objective, tol)
                if ours[1] <= optimum * 1.001:
                    break
            peer, own = [f"{1e3 * t:.1f}" for t in (theirs[0], ours[0])]
            ratio = f"{ours[0] / theirs[0]:.2f}"
            rows.append([name, C, peer, f"{theirs[1]:.4f}", own, f"{ours[1]:.4f}", ratio])
    return rows


def rbf_solver() -> list[list[object]]:
    """Each digit of usps (2007 rows) against the rest, on a precomputed matrix."""
    X, y = parts("usps")[1]
    gram = rbf_kernel(X, gamma=1.0 / (X.shape[1] * X.var()))
    rows = []
    for digit in np.unique(y):
        signs = np.where(y == digit, 1, -1)
        order = np.argsort(-signs, kind="stable")
        source = KernelSource(KernelFunction("precomputed"), gram[np.ix_(order, order)], 1000)
        start = np.array([0, np.sum(signs > 0), len(y)])
        node = KernelRows(source, np.arange(len(y)), start, np.full(len(y), 0.1), 1)
        peer, model = best_time(lambda signs=signs: SVC(kernel="precomputed", C=10, tol=1e-3).fit(gram, signs))
        labelling = np.array([1.0, -1.0])
        ours, solution = best_time(lambda node=node: node.solve(labelling, tol=1e-3, max_iter=1000))
        own = [f"{1e3 * ours:.1f}", int(np.sum(solution.alpha > 0)), f"{solution.duality_gap:.1e}"]
        rows.append([int(digit), f"{1e3 * peer:.1f}", int(model.n_support_.sum()), *own, f"{ours / peer:.2f}"])
    return rows


def in_new_process(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


FIT_WORDNET = """
import re, sys, time
import numpy as np
sys.path.insert(0, {here!r})
from data_sets import source_split
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits
from margintree import MarginTreeClassifier
X, y, X_test, y_test = source_split("wordnet_hypernyms")
if {shuffled}:
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
MarginTreeClassifier(random_state=0).fit(X[:300], y[:300])
model = {model}
with threadpool_limits(1):
    # The peak so far is that of loading; from here on it is that of the fit.
    open("/proc/self/clear_refs", "w").write("5")
    status = open("/proc/self/status").read()
    before = int(re.search("VmRSS: *\t *([0-9]+)", status).group(1))
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    after = int(re.search("VmHWM: *\t *([0-9]+)", open("/proc/self/status").read()).group(1))
print(seconds, (after - before) / 1024, model.score(X_test, y_test))
"""


# Without what the default walk needs beyond the tree: held-out machines, sigmoids, deciders.
TREE_ALONE = "walk='greedy', calibration_folds=0"


def wordnet() -> list[list[object]]:
    """1482 classes, each model in its own process so that memory can be told apart."""
    rows, times = [], {}
    # What someone has today, and the one whose machines have the same loss as ours.
    peers = ("LinearSVC()", "LinearSVC(C=0.5)")
    # The rows of the file are sorted by class, which spares liblinear a third of its time; users' rows rarely are.
    as_in_file = ", rows sorted by class"
    ours = "MarginTreeClassifier(random_state=0)"
    models = {
        **{peer: peer for peer in peers},
        f"LinearSVC(){as_in_file}": "LinearSVC()",
        "MarginTreeClassifier()": ours,
        f"MarginTreeClassifier(){as_in_file}": ours,
        **{
            f"the tree alone, split={split!r}": f"MarginTreeClassifier(split={split!r}, {TREE_ALONE}, random_state=0)"
            for split in ("best_first", "alternating", "random")
        },
    }
    here = os.path.dirname(os.path.abspath(__file__))
    for name, model in models.items():
        code = FIT_WORDNET.format(here=here, model=model, shuffled=not name.endswith(as_in_file))
        runs = [in_new_process(code) for _ in range(1 if "SVC" in name else 3)]
        seconds, memory, score = min((float(a), float(b), float(c)) for a, b, c in runs)
        times[name] = seconds
        ratios = [f"{100 * seconds / times[peer]:.1f} %" if peer in times else "" for peer in peers]
        rows.append([name, f"{seconds:.2f}", *ratios, f"{memory:.0f}", f"{score:.3f}"])
    return rows


def usps_fit() -> list[list[object]]:
    """Compare a whole rbf fit with ten one-against-the-rest problems with the same solver and the same matrix."""
    X, y = parts("usps")[1]

    def one_against_the_rest() -> None:
        data = prepare(X, y, None, C=10, class_weight=None, pairwise=False, in_place=False)
        function = KernelFunction("rbf", 1.0 / (X.shape[1] * X.var()), fit_intercept=True)
        source = KernelSource(function, data.X, 1000)
        node = KernelRows(source, np.arange(len(y)), data.class_start, 1.0 / data.cost, 1)
        for k in range(10):
            node.solve(np.where(np.arange(10) == k, 1.0, -1.0), tol=1e-3, max_iter=1000)

    base, _ = best_time(one_against_the_rest)
    rows: list[list[object]] = [["ten one-against-the-rest problems", f"{1e3 * base:.0f}", "1.00"]]
    for split in ("best_first", "alternating", "random", "relaxation", "paper"):
        model = MarginTreeClassifier("rbf", C=10, split=split, walk="greedy", calibration_folds=0, random_state=0)
        seconds, _ = best_time(lambda model=model: model.fit(X, y), 1 if split == "paper" else REPEATS)
        rows.append([f"the tree alone, split={split!r}", f"{1e3 * seconds:.0f}", f"{seconds / base:.2f}"])
    seconds, _ = best_time(lambda: MarginTreeClassifier("rbf", C=10, random_state=0).fit(X, y))
    return [*rows, ["fit with the defaults", f"{1e3 * seconds:.0f}", f"{seconds / base:.2f}"]]


def flat_methods() -> list[list[object]]:
    """1vsR and 1vs1 with our solvers against scikit-learn's; the objective is summed over the machines."""

    def summed(weights: np.ndarray, intercepts: np.ndarray) -> float:
        total = 0.0
        for w, b, k in zip(weights, intercepts, np.unique(y), strict=True):
            slack = np.maximum(0.0, 1.0 - np.where(y == k, 1, -1) * (X @ w + b))
            total += 0.5 * (w @ w + b * b) + 0.5 * slack @ slack
        return total

    X, y, _, _ = source_split("news20_bydate")
    peer, theirs = best_time(lambda: LinearSVC(C=0.5, random_state=0).fit(X, y))
    own, ours = best_time(lambda: OneVsRestSVC(C=1, random_state=0).fit(X, y))
    weights = ours._machines.weights
    weights = (weights.toarray() if hasattr(weights, "toarray") else weights).T
    values = summed(theirs.coef_, theirs.intercept_), summed(weights, ours._machines.intercepts)
    label = "1vsR, linear, news20_bydate, C=1"
    rows: list[list[object]] = [[label, f"LinearSVC {peer:.2f} ({values[0]:.1f})", f"{own:.2f} ({values[1]:.1f})"]]
    rows[-1].append(f"{own / peer:.2f}")
    X, y = parts("usps")[1]
    peer, _ = best_time(lambda: SVC(C=10).fit(X, y))
    own, _ = best_time(lambda: OneVsOneSVC("rbf", C=10, random_state=0).fit(X, y))
    rows.append(["1vs1, rbf, usps 2007 rows, C=10", f"SVC {peer:.2f}", f"{own:.2f}", f"{own / peer:.2f}"])
    return rows


def start_up() -> list[list[object]]:
    def seconds(code: str) -> float:
        began = "import time; t = time.perf_counter(); "
        return min(float(in_new_process(began + code + "; print(time.perf_counter() - t)")[0]) for _ in range(REPEATS))

    def command(*arguments: str) -> float:
        times = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-m", "margintree", *arguments], capture_output=True, check=True)
            times.append(time.perf_counter() - began)
        return min(times)

    sklearn = seconds("import sklearn.svm")
    ours = seconds("import sklearn.svm; from margintree import MarginTreeClassifier")
    fit = (
        "import numpy as np; from margintree import MarginTreeClassifier; t = time.perf_counter(); "
        "X = np.random.default_rng(0).random((60, 5)); y = np.repeat(np.arange(6), 10); "
        "MarginTreeClassifier(random_state=0).fit(X, y)"
    )
    return [
        ["import sklearn.svm", f"{sklearn:.2f}"],
        ["from margintree import MarginTreeClassifier, on top of that", f"{ours - sklearn:.2f}"],
        ["margintree --help", f"{command('--help'):.2f}"],
        ["first fit of a new process, warm numba cache (60 rows, numba's import included)", f"{seconds(fit):.2f}"],
    ]


def main() -> None:
    warnings.simplefilter("ignore")
    sections = [
        (
            "Linear solver, one class against the rest, until the objective is within 1e-3 of the optimum",
            ["set", "C", "liblinear ms", "its objective", "margintree ms", "its objective", "ratio"],
            linear_solver,
        ),
        (
            "rbf solver, one digit of usps (2007 rows) against the rest, C=10, precomputed matrix, tol=1e-3",
            ["digit", "SVC ms", "its SVs", "margintree ms", "its SVs", "relative gap", "ratio"],
            rbf_solver,
        ),
        (
            "wordnet_hypernyms, 1482 classes, 26643 rows in random order (memory: peak above that before the fit)",
            ["model", "fit s", "of LinearSVC()", "of LinearSVC(C=0.5)", "memory MB", "accuracy"],
            wordnet,
        ),
        ("usps, 2007 rows, rbf, C=10", ["work", "ms", "ratio"], usps_fit),
        (
            "Methods without a tree, fit (in brackets the summed objective)",
            ["work", "scikit-learn s", "margintree s", "ratio"],
            flat_methods,
        ),
        ("Start-up", ["what", "s"], start_up),
    ]
    lines = heading("Speed")
    wanted = sys.argv[1:]
    with threadpool_limits(1):
        for title, header, measure in sections:
            if not wanted or measure.__name__ in wanted:
                lines += [f"## {title}", "", *table(header, measure())]
                print("\n".join(lines[-30:]), flush=True)
    if not wanted:
        write("speed", lines)


if __name__ == "__main__":
    main()
