"""What the ONNX form of a tree costs: the size of the file and the time of a row, against margintree's own.

Both get the same dense rows, 5,000 in one call and one at a time, with one thread. With ``--beam``: how many labels
of a model with ``walk="beam"`` are others in ONNX, where all paths are followed.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from data_sets import source_split
from report import heading, table, write

from margintree import MarginTreeClassifier, save_model, to_onnx

N_ROWS = 5000
N_SINGLE = 500
REPEATS = 5
SETS = ("letter", "pendigits", "satimage")


def microseconds(work: Callable[[], Any], n: int) -> float:
    """Return the least time of some runs, per row."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return 1e6 * min(times) / n


def session_of(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y, X_test, _ = source_split(name)
    rows = X_test.toarray() if hasattr(X_test, "toarray") else np.asarray(X_test)
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    return X[:4000], y[:4000], np.ascontiguousarray(np.resize(rows, (N_ROWS, rows.shape[1])))


def labels_of_a_beam(name: str, kernel: str, n_trees: int, directory: Path) -> list[object]:
    """Return how many labels differ, of test rows and of rows that are uniform between the extremes of each feature."""
    X, y, X_test = rows_of(name)
    model = MarginTreeClassifier(kernel, C=10.0, n_trees=n_trees, random_state=0).fit(X, y)
    to_onnx(model, directory / "model.onnx")
    session = session_of(directory / "model.onnx")
    noise = np.random.default_rng(0).uniform(X.min(axis=0), X.max(axis=0), X_test.shape)
    counts = [int(np.sum(session.run(["label"], {"X": rows})[0] != model.predict(rows))) for rows in (X_test, noise)]
    return [name, kernel, n_trees, model.decide_, *counts]


def measured(name: str, kernel: str, walk: str, directory: Path) -> list[object]:
    X, y, X_test = rows_of(name)
    model = MarginTreeClassifier(kernel, C=10.0, walk=walk, random_state=0).fit(X, y)
    ours, theirs = directory / "model.margintree", directory / "model.onnx"
    save_model(model, ours)
    to_onnx(model, theirs)
    session, one = session_of(theirs), model.single_instance()
    wanted = ["label"]
    label, probabilities = session.run(None, {"X": X_test})
    return [
        name,
        kernel,
        walk,
        f"{ours.stat().st_size / 1000:.0f}",
        f"{theirs.stat().st_size / 1000:.0f}",
        f"{microseconds(lambda: model.predict(X_test), N_ROWS):.2f}",
        f"{microseconds(lambda: session.run(wanted, {'X': X_test}), N_ROWS):.2f}",
        f"{microseconds(lambda: [one.predict(x) for x in X_test[:N_SINGLE]], N_SINGLE):.1f}",
        f"{microseconds(lambda: [session.run(wanted, {'X': x[None]}) for x in X_test[:N_SINGLE]], N_SINGLE):.1f}",
        int(np.sum(label != model.predict(X_test))),
        f"{np.abs(probabilities - model.predict_proba(X_test)).max():.0e}",
    ]


def write_beam() -> None:
    with tempfile.TemporaryDirectory() as directory:
        rows = [
            labels_of_a_beam(name, kernel, n_trees, Path(directory))
            for name in SETS
            for kernel in ("linear", "rbf")
            for n_trees in (1, 3)
        ]
    header = ["set", "kernel", "trees", "decides", "test rows", "random rows"]
    lines = [*heading("Labels of a beam in onnxruntime"), f"Labels that differ, of {N_ROWS:,} rows each.", ""]
    write("onnx_beam", [*lines, *table(header, rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beam", action="store_true", help="compare labels of a beam only")
    if parser.parse_args().beam:
        write_beam()
        return
    header = ["set", "kernel", "walk", "kB", "kB, ONNX", "us a row", "us, ONNX", "us single", "us single, ONNX"]
    header += ["labels that differ", "largest difference of probabilities"]
    with tempfile.TemporaryDirectory() as directory:
        rows = [
            measured(name, kernel, walk, Path(directory))
            for name in SETS
            for kernel in ("linear", "rbf")
            for walk in ("greedy", "all")
        ]
    lines = heading("Trees in onnxruntime")
    lines += [
        f"onnxruntime {onnxruntime.__version__}, one thread; 4,000 training rows, {N_ROWS:,} rows predicted: those of "
        f"the\ntest part, from the first one again where it has fewer. The least time of {REPEATS} runs.",
        "",
    ]
    write("onnx_cost", [*lines, *table(header, rows)])


if __name__ == "__main__":
    main()
