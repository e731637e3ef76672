"""Training and prediction from 10 to 100,000 classes, on generated rows with a hierarchy behind them.

    python benchmarks/scaling.py [--up-to CLASSES] [--again NAME]

Ten training rows per class (see ``hierarchy``), so rows grow as the classes do: training should grow like
rows x log c, that is c log c, and prediction like log c. 1vsR goes as far as it gets within a time limit. Each point
runs in its own process, as the peers do. Finished points are kept in results/scaling.json and not run again;
``--again NAME`` runs the methods anew whose name begins so.
"""

import argparse
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hierarchy import FEATURES_PER_CLASS, NOISE_DRAWS, PATH_DRAWS, ROWS_PER_CLASS, TEST_ROWS, generated
from peer_process import Peer, formatted, keep, measured, read_kept
from peer_rows import write_arrays
from peers import PEERS
from report import RESULTS, heading, table, write

KEPT = RESULTS / "scaling.json"
CLASSES = [10, 100, 1000, 10_000, 100_000]
# Seconds for one point with all its measurements.
TIME_LIMIT = {"margintree": 3600, "PECOS XR-Linear": 3600}
TIME_LIMIT_OF_1VSR = 300
METHODS = {
    "margintree": PEERS["margintree"],
    "1vsR, OneVsRestSVC": Peer("margintree", {"estimator": "OneVsRestSVC"}),
    "1vsR, LinearSVC": PEERS["LinearSVC (1vsR)"],
    "PECOS XR-Linear": PEERS["PECOS XR-Linear"],
}
COLUMNS = {
    "train s": ("train_s", ".3g"),
    "training memory MB": ("memory_mb", ".0f"),
    "model MB": ("model_mb", ".3g"),
    "batch us/row": ("batch_us", ".3g"),
    "one row us": ("one_row_us", ".3g"),
    "evaluations": ("evaluations", ".1f"),
    "accuracy": ("accuracy", ".3f"),
}
# What each quantity should grow like.
EXPECTED: dict[str, tuple[str, Callable[[float], float]]] = {
    "train_s": ("c log c", lambda c: c * math.log(c)),
    "memory_mb": ("c log c", lambda c: c * math.log(c)),
    "model_mb": ("c log c", lambda c: c * math.log(c)),
    "batch_us": ("log c", math.log),
    "one_row_us": ("log c", math.log),
    "evaluations": ("log c", math.log),
}
# Below this many classes the cost of starting outweighs what grows.
FIT_FROM = 100


def run(kept: dict[str, Any], up_to: int, again: str | None) -> None:
    if again is not None:
        for method in (method for method in METHODS if method.startswith(again)):
            kept.pop(method, None)
    for c in (c for c in CLASSES if c <= up_to):
        todo = [method for method in METHODS if str(c) not in kept.get(method, {}) and not gave_up(kept, method)]
        if not todo:
            continue
        with TemporaryDirectory() as directory:
            X, y, X_test, y_test = generated(c)
            write_arrays(Path(directory) / "train", X, y)
            write_arrays(Path(directory) / "test", X_test, y_test)
            del X, X_test
            for method in todo:
                row = measured(METHODS[method], Path(directory), TIME_LIMIT.get(method, TIME_LIMIT_OF_1VSR))
                kept.setdefault(method, {})[str(c)] = row
                keep(kept, KEPT)
                print(f"{c} | {method} | {' | '.join(formatted(row, COLUMNS))}", flush=True)


def gave_up(kept: dict[str, Any], method: str) -> bool:
    """Tell whether a method failed with fewer classes; more will not help it."""
    return any("failed" in row for row in kept.get(method, {}).values())


def points(kept: dict[str, Any], method: str, key: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of classes and the values measured for them."""
    rows = {int(c): row.get(key) for c, row in kept.get(method, {}).items()}
    found = sorted((c, value) for c, value in rows.items() if value)
    return np.array([c for c, _ in found]), np.array([value for _, value in found])


def slope(c: np.ndarray, values: np.ndarray) -> float:
    """Return the exponent of c that fits best, by least squares on the logarithms."""
    return float(np.polyfit(np.log(c), np.log(values), 1)[0])


def growth(kept: dict[str, Any], key: str) -> list[str]:
    """Return what margintree's quantity grows by from decade to decade, with the expected growth in brackets."""
    form, expected = EXPECTED[key]
    c, values = points(kept, "margintree", key)
    found = dict(zip(c.tolist(), values.tolist(), strict=True))
    factors = [
        f"{found[large] / found[small]:.1f} ({expected(large) / expected(small):.1f})"
        if small in found and large in found
        else "—"
        for small, large in pairwise(CLASSES)
    ]
    return [form, *factors]


def exponents(kept: dict[str, Any], key: str) -> list[str]:
    """Return the exponents of c that fit each method's points, after that of the expected form."""
    _, expected = EXPECTED[key]
    large = np.array([c for c in CLASSES if c >= FIT_FROM])
    found = [f"{slope(large, np.array([expected(c) for c in large])):.2f}"]
    for method in METHODS:
        c, values = points(kept, method, key)
        fitted = c >= FIT_FROM
        found.append(f"{slope(c[fitted], values[fitted]):.2f}" if fitted.sum() >= 2 else "—")
    return found


def report(kept: dict[str, Any]) -> list[str]:
    lines = heading("Scaling with the number of classes", arguments="")
    lines += [
        f"Generated rows with a hierarchy behind the classes: {ROWS_PER_CLASS} training rows per class, {TEST_ROWS} "
        f"test rows, {PATH_DRAWS} draws of features on the path to the class and {NOISE_DRAWS} of noise per row, "
        f"{FEATURES_PER_CLASS} features per class, tf-idf. One thread and one core. 1vsR gets {TIME_LIMIT_OF_1VSR} s "
        "for a point. Memory is the peak of training above that before it; the model is its size on disk. Up to 128 "
        "classes margintree may ask one machine per class in place of a walk, as the evaluations tell.",
        "",
        "![time, memory and size against the number of classes](scaling.svg)",
        "",
    ]
    rows = [
        [c, method, *formatted(kept[method][str(c)], COLUMNS)]
        for method in kept
        for c in CLASSES
        if str(c) in kept[method]
    ]
    lines += table(["classes", "method", *COLUMNS], rows)
    names = {key: name for name, (key, _) in COLUMNS.items() if key in EXPECTED}
    decades = [f"{small:,} to {large:,}" for small, large in pairwise(CLASSES)]
    lines += ["## Growth of margintree from decade to decade, in brackets what the expected form gives", ""]
    lines += table(["quantity", "expected", *decades], [[names[key], *growth(kept, key)] for key in EXPECTED])
    lines += [f"## Exponents of c, fitted from {FIT_FROM} classes on", ""]
    lines += table(["quantity", "expected", *METHODS], [[names[key], *exponents(kept, key)] for key in EXPECTED])
    return lines


def plot(kept: dict[str, Any]) -> None:
    try:
        import matplotlib
    except ImportError as error:
        raise SystemExit("The figure needs matplotlib: pip install matplotlib") from error
    matplotlib.use("Agg")
    # The same figure from the same points, so that a commit shows what changed.
    matplotlib.rcParams.update({"svg.hashsalt": "margintree", "svg.fonttype": "none"})
    from matplotlib import pyplot

    panels = {name: key for name, (key, _) in COLUMNS.items() if key in EXPECTED}
    figure, axes = pyplot.subplots(2, 3, figsize=(13, 7.5), layout="constrained")
    for axis, (name, key) in zip(axes.flat, panels.items(), strict=True):
        form, expected = EXPECTED[key]
        for number, method in enumerate(METHODS):
            c, values = points(kept, method, key)
            if len(c):
                axis.loglog(c, values, marker="o", color=f"C{number}", label=method)
        c, values = points(kept, "margintree", key)
        if len(c):
            # Through the middle of margintree's points.
            middle = len(c) // 2
            curve = [values[middle] * expected(k) / expected(c[middle]) for k in CLASSES]
            axis.loglog(CLASSES, curve, linestyle="--", color="grey", label=form)
        axis.set(xlim=(CLASSES[0] / 1.5, CLASSES[-1] * 1.5), title=name, xlabel="classes")
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    figure.savefig(RESULTS / "scaling.svg", metadata={"Date": None})
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--up-to", type=int, default=CLASSES[-1], metavar="CLASSES", help="leave out larger points")
    parser.add_argument("--again", metavar="NAME", help="run the methods anew whose name begins with NAME")
    given = parser.parse_args()
    if given.again is not None and not any(method.startswith(given.again) for method in METHODS):
        parser.error(f"no method's name begins with {given.again!r}. There are: {'; '.join(METHODS)}.")
    kept = read_kept(KEPT)
    run(kept, given.up_to, given.again)
    plot(kept)
    write("scaling", report(kept))


if __name__ == "__main__":
    main()
