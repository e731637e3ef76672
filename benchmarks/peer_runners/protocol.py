"""How every peer is measured: the same prepared rows, the same clock, one process.

A runner script defines one ``Peer`` and ends with ``run(ItsPeer)``. It is started as

    python run_NAME.py DIRECTORY PARAMETERS RESULT

with the directory of the prepared rows, the peer's parameters as JSON, and the file that gets the result. This module
needs numpy and scipy alone, because it runs in the environment of each peer.
"""

import json
import re
import statistics
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp

BATCH_REPEATS = 3
ONE_ROW_CALLS = 1000
ONE_ROW_WARM_UP = 50


class Rows:
    """The prepared rows of one data set; classes are 0, 1, 2, ... and all of them are in the training part.

    Next to the arrays the directory holds the same rows as text: ``train.xmc`` in the format of the Extreme
    Classification Repository, ``train.vw`` and ``test.vw`` in that of Vowpal Wabbit (labels from 1).
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.X, self.X_test = read_matrix(directory / "train"), read_matrix(directory / "test")
        self.y, self.y_test = np.load(directory / "train.y.npy"), np.load(directory / "test.y.npy")
        self.n_classes = int(self.y.max()) + 1

    def sparse(self, dtype: type = np.float32) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        """Return both parts for a peer that takes CSR matrices alone."""
        return sp.csr_matrix(self.X, dtype=dtype), sp.csr_matrix(self.X_test, dtype=dtype)


def read_matrix(stem: Path) -> Any:
    dense = stem.with_suffix(".npy")
    return np.load(dense) if dense.exists() else sp.csr_matrix(sp.load_npz(stem.with_suffix(".npz")))


class Peer(ABC):
    """One library with one set of parameters. What ``prepare`` does is not timed."""

    package: str

    def __init__(self, rows: Rows, parameters: dict[str, Any], directory: Path) -> None:
        self.rows, self.parameters, self.directory = rows, parameters, directory

    def version(self) -> str:
        return f"{self.package} {version(self.package)}"

    @abstractmethod
    def prepare(self) -> None:
        """Bring the rows into the form that the library takes, and load or compile its code."""

    @abstractmethod
    def fit(self) -> None:
        """Train on the training rows."""

    @abstractmethod
    def save(self) -> Path:
        """Write the model and return its file or directory."""

    def ready(self) -> None:  # noqa: B027 - most need no such step
        """Make the model ready to predict, where that is a step of its own."""

    @abstractmethod
    def predict(self) -> Any:
        """Return the classes of all test rows, by the library's way for many rows."""

    @abstractmethod
    def one_row(self) -> Callable[[int], Any] | None:
        """Return a function that classifies the test row of a number, or None where there is no such way."""

    def evaluations(self) -> float | None:
        """Return the decision functions evaluated per row, where the library tells."""
        return None


def run(kind: type[Peer]) -> None:
    rows = Rows(Path(sys.argv[1]))
    with TemporaryDirectory() as directory:
        peer = kind(rows, json.loads(sys.argv[2]), Path(directory))
        peer.prepare()
        Path(sys.argv[3]).write_text(json.dumps(measured(peer)))


def measured(peer: Peer) -> dict[str, Any]:
    result: dict[str, Any] = {"version": peer.version()}
    memory = PeakMemory()
    began, began_cpu = time.perf_counter(), time.process_time()
    peer.fit()
    result["train_s"] = time.perf_counter() - began
    # Where this is far below the time on the clock, something else was running.
    result["train_cpu_s"] = time.process_time() - began_cpu
    result["memory_mb"] = memory.megabytes()
    result["model_mb"] = size_on_disk(peer.save()) / 1e6
    peer.ready()
    times = []
    for _ in range(BATCH_REPEATS):
        began = time.perf_counter()
        labels = peer.predict()
        times.append(time.perf_counter() - began)
    labels, truth = np.asarray(labels).astype(np.int64), peer.rows.y_test
    result["batch_us"] = 1e6 * min(times) / len(truth)
    result["accuracy"] = float(np.mean(labels == truth))
    result["mean_per_class"] = float(np.mean([np.mean(labels[truth == k] == k) for k in np.unique(truth)]))
    result["one_row_us"], result["one_row_differs"] = one_row_time(peer, labels)
    result["evaluations"] = peer.evaluations()
    return result


def one_row_time(peer: Peer, labels: np.ndarray) -> tuple[float | None, int | None]:
    """Return the median time of one row, and how many rows got another class than in the batch."""
    classify = peer.one_row()
    if classify is None:
        return None, None
    chosen = np.random.default_rng(0).integers(len(labels), size=ONE_ROW_CALLS).tolist()
    for i in chosen[:ONE_ROW_WARM_UP]:
        classify(i)
    times, differs = [], 0
    for i in chosen:
        began = time.perf_counter()
        label = classify(i)
        times.append(time.perf_counter() - began)
        differs += int(label) != int(labels[i])
    return 1e6 * statistics.median(times), differs


class PeakMemory:
    """The peak of the resident memory above that at the start; Linux alone keeps it in a form that can be reset."""

    def __init__(self) -> None:
        self.known = Path("/proc/self/clear_refs").exists()
        if self.known:
            Path("/proc/self/clear_refs").write_text("5")
            self.before = _status("VmRSS")

    def megabytes(self) -> float | None:
        return (_status("VmHWM") - self.before) / 1024 if self.known else None


def _status(field: str) -> int:
    found = re.search(rf"{field}:\s*([0-9]+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found.group(1))


def size_on_disk(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)
