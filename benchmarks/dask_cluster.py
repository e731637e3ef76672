"""Fits on a Dask cluster of two processes against two threads: time, bytes over the wire, memory, accuracy.

    python benchmarks/dask_cluster.py [--only CASE] [--classes N] [--rows-per-class N]

``wordnet_hypernyms`` and ``generated`` (500,000 rows of 5,000 classes, see ``hierarchy``) fit with two threads and on
two workers of one thread each, which have fitted before, and compare the models. ``stages`` measures the steps of a fit
of the generated rows. ``memory`` fits 2 million generated rows of 10,000 classes on two workers of 2 GB each with
``max_rows_per_node``, and a quarter of the rows in memory. ``sampling`` fits three sets with several values of
``max_rows_per_node``. Cases are kept in results/dask_cluster.json; one that runs anew takes the place of what was kept.
The bytes of other programs on the loopback interface are not counted in a network namespace of its own:
``unshare -rn sh -c "ip link set lo up; python benchmarks/dask_cluster.py"``.
"""

import argparse
import json
import os
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dask.array as da
import hierarchy
import numpy as np
import scipy.sparse as sp
from dask import delayed
from data_sets import source_split
from distributed import Client, LocalCluster
from report import RESULTS, commit, heading, table, write

from margintree import MarginTreeClassifier
from margintree.dask import DaskMarginTreeClassifier
from margintree.dask.cluster import Batch
from margintree.model_file.files import as_contents

KEPT = RESULTS / "dask_cluster.json"
ROWS_PER_BLOCK = 50_000
MEGABYTE = 2**20
MEMORY_LIMIT, MAX_ROWS_PER_NODE = "2GB", 100_000
CASES = ("wordnet_hypernyms", "generated", "stages", "memory", "sampling")
# Bounds of ``sampling``; none comes first.
BOUNDS = (None, 50_000, 10_000, 2_000)


def load_block(path: str) -> sp.csr_array:
    return sp.csr_array(sp.load_npz(path))


def on_disk(X: Any, y: np.ndarray, directory: str) -> tuple[da.Array, da.Array]:
    """Return Dask arrays whose blocks are read from files."""
    blocks = []
    for first in range(0, len(y), ROWS_PER_BLOCK):
        path = str(Path(directory) / f"rows-{first}.npz")
        sp.save_npz(path, sp.csr_matrix(X[first : first + ROWS_PER_BLOCK]), compressed=False)
        shape = (min(ROWS_PER_BLOCK, len(y) - first), X.shape[1])
        meta = sp.csr_array((0, X.shape[1]))
        blocks.append(da.from_delayed(delayed(load_block)(path), shape, np.float64, meta=meta))
    return da.concatenate(blocks), da.from_array(y, chunks=ROWS_PER_BLOCK)


def same_model(one: MarginTreeClassifier, other: MarginTreeClassifier) -> bool:
    return as_contents(one)[1] == as_contents(other)[1]


def loopback_bytes() -> int:
    """Return what all processes of this machine have sent to each other over TCP so far, as Linux counts it."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.strip().startswith("lo:"))


def timed(fit: Any) -> tuple[Any, float]:
    began = time.perf_counter()
    model = fit()
    return model, time.perf_counter() - began


def cpu_seconds(client: Client | None = None) -> float:
    """Return the CPU time of this process and of the workers so far; other programs hardly change it."""
    return time.process_time() + (0.0 if client is None else sum(client.run(time.process_time).values()))


def generated(n_classes: int, rows_per_class: int) -> tuple[Any, ...]:
    hierarchy.ROWS_PER_CLASS = rows_per_class
    X, y, X_test, y_test = hierarchy.generated(n_classes)
    order = np.random.default_rng(1).permutation(len(y))
    return X[order], y[order], X_test, y_test


class Stages:
    """Listens to a fit: seconds during which tasks of a kind are under way, and the size of their results."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.results: dict[str, float] = {}

    def __enter__(self) -> "Stages":
        self._next_done = Batch.next_done

        def next_done(batch: Batch) -> Any:
            files = batch._cluster.files
            began, before = time.perf_counter(), files.n_bytes
            result = self._next_done(batch)
            self.seconds[batch.name] = self.seconds.get(batch.name, 0.0) + time.perf_counter() - began
            self.results[batch.name] = self.results.get(batch.name, 0.0) + (files.n_bytes - before) / MEGABYTE
            return result

        Batch.next_done = next_done  # type: ignore[method-assign]
        return self

    def __exit__(self, *error: Any) -> None:
        Batch.next_done = self._next_done  # type: ignore[method-assign]


def speed(name: str, rows: tuple[Any, ...], client: Client) -> dict[str, Any]:
    X, y, X_test, y_test = rows
    with TemporaryDirectory() as directory:
        lazy = on_disk(X, y, directory)
        # Workers that have just started load compiled code.
        few = min(len(y), 5000)
        DaskMarginTreeClassifier(client=client).fit(da.from_array(X[:few].toarray()[:, :50]), da.from_array(y[:few]))
        if name == "wordnet_hypernyms":
            DaskMarginTreeClassifier(client=client).fit(*lazy)
            MarginTreeClassifier(n_jobs=2).fit(X, y)
        cpu, before = -cpu_seconds(client), loopback_bytes()
        far, seconds = timed(lambda: DaskMarginTreeClassifier(client=client).fit(*lazy))
        over_the_wire, cpu = loopback_bytes() - before, cpu + cpu_seconds(client)
    cpu_of_threads = -cpu_seconds()
    near, of_threads = timed(lambda: MarginTreeClassifier(n_jobs=2).fit(X, y))
    cpu_of_threads += cpu_seconds()
    traffic = far.fit_traffic_
    return {
        "rows": len(y),
        "classes": len(near.classes_),
        "threads_s": of_threads,
        "dask_s": seconds,
        "cpu_ratio": cpu / cpu_of_threads,
        "same": same_model(far.to_local(), near),
        "rows_mb": traffic.n_bytes_of_rows / MEGABYTE,
        "wire_mb": over_the_wire / MEGABYTE,
        "tasks_mb": traffic.n_bytes_sent / MEGABYTE,
        "written_mb": traffic.n_bytes_written / MEGABYTE,
        "accuracy": float(near.score(X_test, y_test)),
        "commit": commit(),
    }


def stages(rows: tuple[Any, ...], client: Client) -> dict[str, Any]:
    """Fit on one core, so that the seconds of a stage are those of a core, whoever works."""
    X, y, _, _ = rows
    with TemporaryDirectory() as directory, Stages() as heard:
        lazy = on_disk(X, y, directory)
        model, seconds = timed(lambda: DaskMarginTreeClassifier(client=client).fit(*lazy))
    return {
        "rows": len(y),
        "classes": len(model.classes_),
        "dask_s": seconds,
        "stages_s": heard.seconds,
        "stages_mb": heard.results,
        "model_mb": sum(array.nbytes for array in as_contents(model.to_local())[0].values()) / MEGABYTE,
        "commit": commit(),
    }


def peak_of_process() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def memory(n_classes: int, rows_per_class: int) -> dict[str, Any]:
    X, y, X_test, y_test = generated(n_classes, rows_per_class)
    quarter = len(y) // 4
    near, of_threads = timed(lambda: MarginTreeClassifier(n_jobs=2).fit(X[:quarter], y[:quarter]))
    accuracy_of_quarter = float(near.score(X_test, y_test))
    print(f"a quarter in memory: {of_threads:.0f} s, accuracy {accuracy_of_quarter:.4f}", flush=True)
    del near
    options = {"threads_per_worker": 1, "memory_limit": MEMORY_LIMIT, "dashboard_address": None}
    with TemporaryDirectory() as directory, LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as client:
        lazy = on_disk(X, y, directory)
        pids = set(client.nthreads())
        model = DaskMarginTreeClassifier(max_rows_per_node=MAX_ROWS_PER_NODE, client=client)
        before = loopback_bytes()
        model, seconds = timed(lambda: model.fit(*lazy))
        over_the_wire = loopback_bytes() - before
        peaks = client.run(peak_of_process)
        assert set(client.nthreads()) == pids, "a worker was ended for its memory"
        traffic = model.fit_traffic_
    return {
        "rows": len(y),
        "classes": n_classes,
        "dask_s": seconds,
        "threads_s": of_threads,
        "worker_mb": max(peaks.values()) / MEGABYTE,
        "client_mb": peak_of_process() / MEGABYTE,
        "rows_mb": traffic.n_bytes_of_rows / MEGABYTE,
        "wire_mb": over_the_wire / MEGABYTE,
        "written_mb": traffic.n_bytes_written / MEGABYTE,
        "accuracy": float(model.to_local().score(X_test, y_test)),
        "accuracy_of_quarter": accuracy_of_quarter,
        "cores": len(os.sched_getaffinity(0)),
        "commit": commit(),
    }


def sampling(client: Client) -> dict[str, Any]:
    """Fit with bounds on the rows of a node that are below the number of rows."""
    sets = {name: source_split(name) for name in ("udhr_char3", "wordnet_hypernyms")}
    sets["generated"] = generated(1000, 200)
    found = []
    for name, (X, y, X_test, y_test) in sets.items():
        with TemporaryDirectory() as directory:
            lazy = on_disk(X, y, directory)
            # Loads compiled code.
            DaskMarginTreeClassifier(max_rows_per_node=10_000, client=client).fit(*lazy)
            for bound in BOUNDS:
                if bound is not None and bound >= len(y):
                    continue
                model = DaskMarginTreeClassifier(max_rows_per_node=bound, client=client)
                cpu = -cpu_seconds(client)
                model, seconds = timed(partial(model.fit, *lazy))
                cpu += cpu_seconds(client)
                accuracy = float(model.to_local().score(X_test, y_test))
                row = {
                    "data": name,
                    "rows": len(y),
                    "classes": len(model.classes_),
                    "bound": bound,
                    "rows_of_root": model.node_records_[0].n_rows,
                    "seconds": seconds,
                    "cpu_seconds": cpu,
                    "accuracy": accuracy,
                    "standard_error": float(np.sqrt(accuracy * (1 - accuracy) / len(y_test))),
                }
                print(row, flush=True)
                found.append(row)
    return {"fits": found, "commit": commit()}


def report(kept: dict[str, Any]) -> list[str]:
    lines = heading("Fits on a Dask cluster", arguments="")
    lines += [
        "Two workers of one thread each, on one machine, against `n_jobs=2`. Workers have fitted before. Rows are read "
        "from files. Over the wire is what all processes of the machine sent over the loopback interface during the "
        "fit, as Linux counts it; files are those through which client and workers share rows and results.",
        "",
    ]
    speeds = {name: kept[name] for name in CASES[:2] if "cpu_ratio" in kept.get(name, {})}
    lines += table(
        [
            "data",
            "rows",
            "classes",
            "2 threads, s",
            "Dask, s",
            "ratio",
            "ratio of CPU times",
            "same model",
            "rows, MB",
            "over the wire, MB",
            "files, MB",
        ],
        [
            [
                name,
                row["rows"],
                row["classes"],
                f"{row['threads_s']:.1f}",
                f"{row['dask_s']:.1f}",
                f"{row['dask_s'] / row['threads_s']:.2f}",
                f"{row['cpu_ratio']:.2f}",
                "yes" if row["same"] else "no",
                *(f"{row[key]:.1f}" for key in ("rows_mb", "wire_mb", "written_mb")),
            ]
            for name, row in speeds.items()
        ],
    )
    if "stages" in kept:
        row = kept["stages"]
        in_client = row["dask_s"] - sum(row["stages_s"].values())
        lines += [
            f"## Where the time goes: {row['rows']} rows of {row['classes']} classes",
            "",
            "Two workers and the client share one core: seconds during which the client waits for tasks of a kind, and "
            "megabytes of their results. The rest is work of the client itself. Workers had not fitted before. The "
            f"model has {row['model_mb']:.0f} MB.",
            "",
            *table(
                ["tasks", "s", "results, MB"],
                [
                    *([name, f"{s:.1f}", f"{row['stages_mb'][name]:.1f}"] for name, s in row["stages_s"].items()),
                    ["client", f"{in_client:.1f}", "—"],
                ],
            ),
        ]
    if "memory" in kept:
        row = kept["memory"]
        # Earlier runs did not count what went over the wire.
        over_the_wire = f"; {row['wire_mb']:.0f} MB went over the wire" if "wire_mb" in row else ""
        lines += [
            f"## Bounded memory: {row['rows']} rows of {row['classes']} classes",
            "",
            f'Two workers with `memory_limit="{MEMORY_LIMIT}"` and `max_rows_per_node={MAX_ROWS_PER_NODE}`; in memory, '
            "a quarter of the rows with `n_jobs=2`. Memory is the peak of the largest worker. "
            f"All of it on {row['cores']} of the cores.",
            "",
            *table(
                ["fit", "s", "worker, MB", "accuracy"],
                [
                    ["Dask, all rows", f"{row['dask_s']:.0f}", f"{row['worker_mb']:.0f}", f"{row['accuracy']:.4f}"],
                    ["in memory, a quarter", f"{row['threads_s']:.0f}", "—", f"{row['accuracy_of_quarter']:.4f}"],
                ],
            ),
            f"The rows take {row['rows_mb']:.0f} MB, files {row['written_mb']:.0f} MB{over_the_wire}. The client, "
            f"which also made the rows, took {row['client_mb']:.0f} MB.",
            "",
        ]
    if "sampling" in kept:
        lines += [
            "## Accuracy with samples in large nodes",
            "",
            "Fits with and without `max_rows_per_node`: rows that the root learned from (at least eight of each class, "
            "or all of it), times on two workers, and accuracy on test rows with its standard error.",
            "",
            *table(
                ["data", "rows", "classes", "max_rows_per_node", "rows of the root", "s", "CPU s", "accuracy"],
                [
                    [
                        row["data"],
                        row["rows"],
                        row["classes"],
                        row["bound"] or "None",
                        row["rows_of_root"],
                        *(f"{row[key]:.1f}" for key in ("seconds", "cpu_seconds")),
                        f"{row['accuracy']:.4f} ± {row['standard_error']:.4f}",
                    ]
                    for row in kept["sampling"]["fits"]
                ],
            ),
        ]
    commits = ", ".join(f"{name} {row['commit']}" for name, row in kept.items())
    return [*lines, "", f"Commits: {commits}."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--classes", type=int)
    parser.add_argument("--rows-per-class", type=int)
    given = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for case in [given.only] if given.only else CASES:
        if case == "memory":
            kept[case] = memory(given.classes or 10_000, given.rows_per_class or 200)
        else:
            cores = os.sched_getaffinity(0)
            os.sched_setaffinity(0, {min(cores)} if case == "stages" else cores)
            options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
            with LocalCluster(**options) as cluster, Client(cluster) as client:
                if case == "sampling":
                    kept[case] = sampling(client)
                elif case == "wordnet_hypernyms":
                    kept[case] = speed(case, source_split(case), client)
                else:
                    rows = generated(given.classes or 5000, given.rows_per_class or 100)
                    kept[case] = (stages if case == "stages" else partial(speed, case))(rows, client)
            os.sched_setaffinity(0, cores)
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
        print(case, kept[case], flush=True)
    write("dask_cluster", report(kept))


if __name__ == "__main__":
    main()
