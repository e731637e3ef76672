"""The memory of workers is bounded by max_rows_per_node, and dask is imported by nobody else."""

import platform
import subprocess
import sys
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from margintree import MarginTreeClassifier
from margintree.dask import DaskMarginTreeClassifier
from margintree.dask.client_checks import worker_facts

MEGABYTE = 2**20
ROWS_PER_BLOCK, N_BLOCKS, STORED, WIDTH = 10_000, 20, 40, 500


def block_of_rows(labels, block_info=None):
    """Return CSR rows, most of whose columns have to do with their labels."""
    random = np.random.default_rng(block_info[0]["chunk-location"][0])
    labels = labels.reshape(-1)
    columns = (random.integers(WIDTH // 2, size=(len(labels), STORED)) + WIDTH // 8 * labels[:, None]) % WIDTH
    values, start = random.uniform(size=columns.size), np.arange(0, columns.size + 1, STORED)
    return sp.csr_array((values, columns.reshape(-1).astype(np.int32), start), shape=(len(labels), WIDTH))


def resident(name):
    """Return the memory of this process, or its peak, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


def begin():
    # The peak begins anew at what is in memory now.
    Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads the peak memory of Linux")
def test_max_rows_per_node_bounds_the_memory_of_workers(client):
    y = da.from_array(np.arange(ROWS_PER_BLOCK * N_BLOCKS) % 4, chunks=ROWS_PER_BLOCK)
    X = y[:, None].map_blocks(block_of_rows, chunks=(y.chunks[0], (WIDTH,)), meta=sp.csr_array((0, WIDTH)))
    options = {"walk": "greedy", "calibration_folds": 0, "max_iter": 10, "tol": 0.1, "client": client}
    # Loads what is loaded once.
    DaskMarginTreeClassifier(**options).fit(X.blocks[:2], y.blocks[:2])
    growth = {}
    for bound in (2000, None):
        before = client.run(begin)
        model = DaskMarginTreeClassifier(max_rows_per_node=bound, **options).fit(X, y)
        growth[bound] = max(peak - before[worker] for worker, peak in client.run(resident, "VmHWM").items())
        assert model.score(X.blocks[:1], y.blocks[:1]) > 0.9
    traffic = model.fit_traffic_
    assert traffic.n_bytes_of_rows > 80 * MEGABYTE
    # Rows are written twice, as blocks and in order, and nothing else is large.
    assert traffic.n_bytes_written < 2.3 * traffic.n_bytes_of_rows
    assert traffic.n_bytes_sent < 0.01 * traffic.n_bytes_of_rows
    assert growth[2000] < 80 * MEGABYTE < 2 * traffic.n_bytes_of_rows < growth[None] + 40 * MEGABYTE


def page_faults_of_small_arrays():
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        np.ones(MEGABYTE // 8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="sets options of glibc")
def test_workers_reuse_the_memory_of_small_arrays(client, dense_rows):
    X, y = (da.from_array(one, chunks=200) for one in dense_rows)
    DaskMarginTreeClassifier(walk="greedy", calibration_folds=0, client=client).fit(X, y)
    # An array has 256 pages.
    assert max(client.run(page_faults_of_small_arrays).values()) < 20 * 256


def size_for_dask(rows):
    from dask.sizeof import sizeof

    return sizeof(rows)


def test_dask_knows_the_size_of_sparse_blocks(client, sparse_rows):
    # Otherwise it sends them to their labels. Every fit begins with this function on all workers.
    X = sparse_rows[0]
    client.run(worker_facts, "/")
    assert min(client.run(size_for_dask, X).values()) > X.data.nbytes


def test_a_sample_in_every_node_keeps_most_of_the_accuracy(client, dense_rows):
    X, y = (da.from_array(one, chunks=200) for one in dense_rows)
    model = DaskMarginTreeClassifier(max_rows_per_node=150, client=client).fit(X, y)
    assert model.score(X, y) > MarginTreeClassifier().fit(*dense_rows).score(*dense_rows) - 0.05


def test_nothing_else_imports_dask():
    code = (
        "import sys; from margintree import MarginTreeClassifier; import margintree.cli.app; "
        "MarginTreeClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]); "
        "print([name for name in ('dask', 'distributed') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("use", "message"),
    [
        ("import margintree.dask", "margintree.dask needs Dask with its distributed scheduler:"),
        (
            "from margintree.cli.app import app; app(['fit', 'rows.svm', '--memory', '1GB', '-o', 'm'])",
            "--memory needs Dask:",
        ),
    ],
    ids=["import", "command line"],
)
def test_without_the_extra_an_error_names_it(use, message):
    code = f"import sys; sys.modules['dask'] = sys.modules['distributed'] = None; {use}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{message} pip install 'margintree[dask]'." in " ".join(done.stderr.split())
