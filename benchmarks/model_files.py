"""How long a large model takes to save and to load: the model file against joblib, at 1 GB."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import joblib
import numpy as np
import report

from margintree import MarginTreeClassifier, save_model
from margintree.prediction.linear_tree import LinearTree
from margintree.prediction.weight_table import DENSE, WeightTable

N_CLASSES, N_FEATURES = 257, 2**20
REPEATS = 5

LOADED = """
import sys, time
import numpy as np
import joblib
from margintree import MarginTreeClassifier, load_model
began = time.perf_counter()
model = eval(sys.argv[2])(sys.argv[1])
loaded = time.perf_counter()
row = np.array([3, 70_000]), np.array([1.0, 2.0])
model.single_instance().predict(*row)
print(loaded - began)
pages = [line.split() for line in open("/proc/self/smaps_rollup") if line.startswith("Anonymous:")]
print(int(pages[0][1]) / 1024)
"""


def large_model() -> MarginTreeClassifier:
    """Return a tree whose machines have random weights for a million features."""
    rng = np.random.default_rng(0)
    X, y = rng.random((2 * N_CLASSES, 3)), np.arange(2 * N_CLASSES) % N_CLASSES
    model = MarginTreeClassifier(walk="greedy", calibration_folds=0, split="random", random_state=0).fit(X, y)
    tree = model.tree_
    n_weights = np.where(tree.leaf_class < 0, DENSE, 0)
    start = np.concatenate([[0], np.cumsum(np.where(n_weights < 0, N_FEATURES, 0))]).astype(np.uint64)
    cells = rng.random(int(start[-1]), dtype=np.float32).view(np.uint32)
    plain = np.ones(tree.n_nodes)
    model._model = LinearTree((tree,), WeightTable(N_FEATURES, start, n_weights, cells, plain, 0.0 * plain))
    model.n_features_in_ = N_FEATURES
    return model


def in_new_process(path: Path, loader: str) -> tuple[float, float]:
    """Return the seconds to load and the megabytes of memory of its own that a process has then."""
    done = [
        subprocess.run([sys.executable, "-c", LOADED, path, loader], capture_output=True, text=True, check=True)
        for _ in range(REPEATS)
    ]
    numbers = np.array([[float(line) for line in one.stdout.split()] for one in done])
    return float(np.median(numbers[:, 0])), float(np.median(numbers[:, 1]))


def timed(action: object, *arguments: object) -> float:
    began = time.perf_counter()
    action(*arguments)  # type: ignore[operator]
    return time.perf_counter() - began


def main() -> None:
    model = large_model()
    with tempfile.TemporaryDirectory() as directory:
        ours, theirs = Path(directory) / "model.margintree", Path(directory) / "model.joblib"
        saved = {"model file": timed(save_model, model, ours), "joblib": timed(joblib.dump, model, theirs)}
        ways = [
            ("model file", ours, "load_model", "load_model"),
            ("model file", ours, "load_model, verify=True", "lambda p: load_model(p, verify=True)"),
            ("model file", ours, "load_model, mmap=False", "lambda p: load_model(p, mmap=False)"),
            ("joblib", theirs, "joblib.load", "joblib.load"),
            ("joblib", theirs, "joblib.load, mmap_mode='r'", "lambda p: joblib.load(p, mmap_mode='r')"),
        ]
        rows = []
        for name, path, way, loader in ways:
            seconds, megabytes = in_new_process(path, loader)
            size = f"{path.stat().st_size / 2**30:.2f} GB"
            rows.append([name, size, f"{saved[name]:.2f} s", way, f"{1000 * seconds:.1f} ms", f"{megabytes:.0f} MB"])
    header = ["file", "size", "saved in", "loaded by", "in", "own memory after one prediction"]
    lines = [
        *report.heading("Saving and loading 1 GB"),
        f"The median of {REPEATS} new processes; the file is in the system's cache. Own memory is what a process does "
        "not share with others that use the same file; libraries and compiled code take most of the least one.",
        "",
        *report.table(header, rows),
    ]
    report.write("model_files", lines)


if __name__ == "__main__":
    main()
