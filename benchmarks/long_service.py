"""Long service: single predictions from many threads while models are loaded and dropped.

Memory must not grow, and every answer must be the one that the first model gave.
"""

import argparse
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from hostile_files import example_rows

from margintree import MarginTreeClassifier, load_model, save_model

# Predictions between two loads of the model in each thread.
PER_MODEL = 2000
N_ROWS = 100
PAGE = 4096


@dataclass
class Service:
    """What was seen."""

    n_predictions: int
    n_loads: int
    n_wrong: int
    seconds: float
    # Resident memory after the first tenth, and at the end; the most that was seen between.
    early_bytes: int
    late_bytes: int
    most_bytes: int


def resident_bytes() -> int:
    """Return the memory of this process that is in use and not of a file."""
    resident, shared = (int(n) for n in Path("/proc/self/statm").read_text().split()[1:3])
    return (resident - shared) * PAGE


def serve(path: Path, rows: list[Any], expected: Any, n_predictions: int, counts: list[int], number: int) -> None:
    """Predict one row after the other, each time so often with a newly loaded model."""
    done = wrong = loads = 0
    while done < n_predictions:
        one = load_model(path, mmap=loads % 4 != 3).single_instance()
        loads += 1
        for j in range(min(PER_MODEL, n_predictions - done)):
            place = (done + j) % len(rows)
            wrong += one.predict(*rows[place]) != expected[place]
        done += min(PER_MODEL, n_predictions - done)
        counts[3 * number : 3 * number + 3] = [done, wrong, loads]


def run(n_predictions: int, n_threads: int = 8) -> Service:
    """Serve, and look at the memory now and then."""
    X, y = example_rows(600, 40, 400, seed=0)
    model = MarginTreeClassifier(random_state=0).fit(sp.csr_array(X), y.astype(str))
    one = model.single_instance()
    dense = [(row,) for row in X[: N_ROWS // 2]]
    sparse = [(np.flatnonzero(row).astype(np.int32), row[row != 0.0]) for row in X[N_ROWS // 2 : N_ROWS]]
    rows = dense + sparse
    expected = [one.predict(*row) for row in rows]
    counts = [0] * (3 * n_threads)
    memory: list[tuple[int, int]] = []
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.margintree"
        save_model(model, path)
        arguments = (path, rows, expected, n_predictions // n_threads, counts)
        threads = [threading.Thread(target=serve, args=(*arguments, number)) for number in range(n_threads)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            memory.append((sum(counts[::3]), resident_bytes()))
            time.sleep(0.05)
        for thread in threads:
            thread.join()
    memory.append((sum(counts[::3]), resident_bytes()))
    n_done = sum(counts[::3])
    early = max(n_bytes for done, n_bytes in memory if done <= max(n_done // 10, memory[0][0]))
    most = max(n_bytes for _, n_bytes in memory)
    seconds = time.perf_counter() - began
    return Service(n_done, sum(counts[2::3]), sum(counts[1::3]), seconds, early, memory[-1][1], most)


def main() -> None:
    import report

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--predictions", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=8)
    given = parser.parse_args()
    service = run(given.predictions, given.threads)
    megabytes = [f"{n / 2**20:.1f} MB" for n in (service.early_bytes, service.late_bytes, service.most_bytes)]
    header = [
        "predictions",
        "threads",
        "models loaded",
        "wrong answers",
        "memory early",
        "at the end",
        "at most",
        "time",
    ]
    row = [
        service.n_predictions,
        given.threads,
        service.n_loads,
        service.n_wrong,
        *megabytes,
        f"{service.seconds:.0f} s",
    ]
    lines = [
        *report.heading("Long service"),
        "Single predictions, dense and sparse rows in turn, while every thread loads the model anew for each "
        f"{PER_MODEL} of them, mapped three times of four. Memory is that which is not backed by a file; early is the "
        "most in the first tenth.",
        "",
        *report.table(header, [row]),
    ]
    report.write("long_service", lines)
    sys.exit(1 if service.n_wrong or service.late_bytes > service.early_bytes + 2**24 else 0)


if __name__ == "__main__":
    main()
