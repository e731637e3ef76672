"""Workers and schedulers that die, input that is refused, and Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading
import time

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask import delayed
from distributed import Client, Future

from margintree import MarginTreeClassifier
from margintree.dask import ClusterLostError, DaskMarginTreeClassifier, client_checks
from margintree.dask.cluster import Batch


@pytest.fixture
def blocks(dense_rows):
    X, y = dense_rows
    return da.from_array(X, chunks=(200, -1)), da.from_array(y, chunks=200)


@pytest.fixture
def at_stage(monkeypatch):
    """Call something when the tasks of a stage are under way, once per stage."""

    def arrange(stages, act):
        wait = Batch.next_done

        def next_done(batch):
            if batch.name in stages:
                stages.remove(batch.name)
                act()
            return wait(batch)

        monkeypatch.setattr(Batch, "next_done", next_done)

    return arrange


def kill_a_worker(client):
    """Kill a worker that has something to do, if there is one."""
    pids, tasks = client.run(os.getpid), client.processing()
    os.kill(pids[max(pids, key=lambda worker: len(tasks.get(worker, ())))], signal.SIGKILL)


def test_workers_killed_at_four_stages_change_nothing(new_client, sparse_rows, at_stage, same_model):
    X, y = sparse_rows
    rows = da.from_array(X.toarray(), chunks=(200, -1)).map_blocks(sp.csr_array)
    stages = ["read rows", "order rows", "divide nodes", "pair machines"]
    at_stage(stages, lambda: kill_a_worker(new_client))
    model = DaskMarginTreeClassifier(client=new_client).fit(rows, da.from_array(y, chunks=200))
    assert stages == []
    assert same_model(model.to_local(), MarginTreeClassifier().fit(X, y))


def test_a_worker_killed_after_its_tasks_are_done_changes_nothing(new_client, blocks, dense_rows, at_stage, same_model):
    # What a finished task returned is lost with its worker, but its result is in a file.
    lost = []

    def kill_when_done():
        futures = [future for future in new_client.futures.values() if future.key.startswith("margintree")]
        while {future.status for future in futures} != {"finished"}:
            time.sleep(0.05)
        os.kill(next(iter(new_client.run(os.getpid).values())), signal.SIGKILL)
        while not lost:
            lost.extend(future.key for future in futures if future.status == "lost")
            time.sleep(0.01)

    at_stage(["node machines of a fold"], kill_when_done)
    model = DaskMarginTreeClassifier(client=new_client).fit(*blocks)
    assert lost
    assert same_model(model.to_local(), MarginTreeClassifier().fit(*dense_rows))


def allow_no_failures(dask_scheduler):
    dask_scheduler.allowed_failures = 0


def test_a_task_that_kills_its_workers_ends_the_fit(new_client, blocks):
    class Kills:
        def divide(self, node):
            os.kill(os.getpid(), signal.SIGKILL)

    new_client.run_on_scheduler(allow_no_failures)
    with pytest.raises(ClusterLostError, match=r"A task of the fit \(margintree-divide-nodes-.* killed 1 workers"):
        DaskMarginTreeClassifier(split=Kills(), client=new_client).fit(*blocks)


def test_a_scheduler_that_is_gone_is_an_error_within_seconds(blocks, at_stage, tmp_path):
    file = tmp_path / "scheduler.json"
    processes = []

    def start(module, *options):
        command = [sys.executable, "-m", f"distributed.cli.{module}", "--no-dashboard", "--scheduler-file", str(file)]
        processes.append(subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL))

    try:
        start("dask_scheduler", "--port", "0")
        start("dask_worker", "--nthreads", "1", "--no-nanny")
        while not file.exists():
            time.sleep(0.05)
        with Client(scheduler_file=str(file)) as client:
            killed = []

            def kill():
                processes[0].kill()
                killed.append(time.monotonic())

            at_stage(["divide nodes"], kill)
            model = DaskMarginTreeClassifier(client=client)
            with pytest.raises(ClusterLostError, match=r"scheduler at tcp://.* cannot be reached"):
                model.fit(*blocks)
            assert time.monotonic() - killed[0] < 15.0
            assert not hasattr(model, "tree_")
    finally:
        for process in processes:
            process.kill()
            process.wait()


def known_tasks(dask_scheduler):
    return list(dask_scheduler.tasks)


def test_ctrl_c_cancels_the_tasks_of_the_fit_and_nothing_else(client, blocks, at_stage, tmp_path):
    other = client.submit(time.sleep, 3.0, key="of somebody else")
    pressed = []

    def press():
        pressed.append(time.monotonic())
        signal.raise_signal(signal.SIGINT)

    at_stage(["divide nodes"], lambda: threading.Timer(0.1, press).start())

    class Slow:
        def divide(self, node):
            time.sleep(2.0)
            raise AssertionError("no worker comes so far")

    with pytest.raises(KeyboardInterrupt):
        DaskMarginTreeClassifier(split=Slow(), client=client, directory=tmp_path).fit(*blocks)
    assert time.monotonic() - pressed[0] < 1.0
    time.sleep(0.2)
    assert client.run_on_scheduler(known_tasks) == ["of somebody else"]
    assert other.result() is None
    assert list(tmp_path.iterdir()) == []


def test_tasks_that_somebody_else_cancels_end_the_fit(client, blocks, at_stage, tmp_path):
    may_end = tmp_path / "may end"

    class Waits:
        def divide(self, node):
            while not may_end.exists():
                time.sleep(0.05)
            raise AssertionError("the fit has ended before")

    def keys_of_fit():
        return [key for key in client.futures if key.startswith("margintree-divide-nodes")]

    with Client(client.scheduler.address, set_as_default=False) as other:

        def cancel():
            # What the scheduler has not heard of yet cannot be cancelled.
            while not set(keys_of_fit()) <= set(client.run_on_scheduler(known_tasks)):
                time.sleep(0.05)
            other.cancel([Future(key, other) for key in keys_of_fit()], force=True)

        at_stage(["divide nodes"], cancel)
        model = DaskMarginTreeClassifier(split=Waits(), client=client)
        try:
            with pytest.raises(ClusterLostError, match=r"A task of the fit \(margintree-divide-nodes-.*was cancelled"):
                model.fit(*blocks)
        finally:
            may_end.touch()
    assert not hasattr(model, "tree_")


def test_an_error_in_a_node_says_which_one(client, blocks):
    class Fails:
        def divide(self, node):
            raise RuntimeError("no labelling")

    with pytest.raises(RuntimeError, match="no labelling") as raised:
        DaskMarginTreeClassifier(split=Fails(), client=client).fit(*blocks)
    assert "divided a node of 12 classes" in "".join(raised.value.__notes__)


class NotForWorkers:
    def __init__(self):
        self.lock = threading.Lock()

    def divide(self, node):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"split": NotForWorkers()}, TypeError, "split=.* cannot be sent to workers: cannot pickle '_thread.lock'"),
        ({"kernel": "precomputed"}, ValueError, "kernel='precomputed' needs the kernel values of all pairs"),
        ({"directory": "/no/such/directory"}, ValueError, "directory must be an existing directory"),
        ({"client": "tcp://somewhere"}, TypeError, "client must be a distributed.Client or None. Got str"),
        ({"max_rows_per_node": 0}, ValueError, "'max_rows_per_node' parameter of DaskMarginTreeClassifier must be"),
    ],
    ids=["pickle", "precomputed", "directory", "client", "max_rows_per_node"],
)
def test_parameters_are_refused_before_work_starts(client, blocks, parameters, error, message, monkeypatch):
    monkeypatch.setattr(Batch, "submit_lazy", lambda *given: pytest.fail("work has started"))
    with pytest.raises(error, match=message):
        DaskMarginTreeClassifier(**{"client": client, **parameters}).fit(*blocks)


def test_other_versions_are_refused_before_work_starts(client, blocks, monkeypatch):
    own = client_checks.versions()
    monkeypatch.setattr(client_checks, "versions", lambda: own | {"margintree": "0.0.1", "numpy": "1.0"})
    monkeypatch.setattr(Batch, "submit_lazy", lambda *given: pytest.fail("work has started"))
    with pytest.raises(RuntimeError, match=r"worker tcp://.* has margintree .* instead of 0.0.1, numpy .* instead"):
        DaskMarginTreeClassifier(client=client).fit(*blocks)


def test_no_client_at_all_is_refused(blocks):
    with pytest.raises(ValueError, match="There is no Dask client"):
        DaskMarginTreeClassifier().fit(*blocks)


def test_a_closed_client_is_refused(client, blocks):
    closed = Client(client.scheduler.address, set_as_default=False)
    closed.close()
    with pytest.raises(ValueError, match="The Dask client is 'closed'"):
        DaskMarginTreeClassifier(client=closed).fit(*blocks)


def test_rows_in_memory_are_refused_by_fit(client, dense_rows):
    with pytest.raises(TypeError, match=r"X must be a Dask array, data frame or series. Got ndarray"):
        DaskMarginTreeClassifier(client=client).fit(*dense_rows)
    with pytest.raises(TypeError, match=r"X must be a Dask array, data frame or series. Got Delayed"):
        DaskMarginTreeClassifier(client=client).fit(delayed(dense_rows[0]), da.from_array(dense_rows[1]))
    with pytest.raises(TypeError, match=r"y must be a Dask array, data frame or series. Got Series"):
        DaskMarginTreeClassifier(client=client).fit(da.from_array(dense_rows[0]), pd.Series(dense_rows[1]))


def with_nan(X):
    X = X.copy()
    X[0, 0] = np.nan
    return X


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X.map_blocks(with_nan), y), "Input X contains NaN"),
        (lambda X, y: (X, y[:500]), "X and y must have the same number of rows. Got 600 and 500"),
        (lambda X, y: (X, y.rechunk(300)[y.rechunk(300) >= 0]), "X and y must be divided into the same blocks"),
        (lambda X, y: (X, y[y >= 6]), "inconsistent numbers of samples"),
        (lambda X, y: (X[:0], y[:0]), "X has no rows"),
        (lambda X, y: (y, y), "X must have two dimensions, rows and columns. Got 1"),
        (lambda X, y: (X, y + X[:, 0]), "Unknown label type: continuous"),
        (lambda X, y: (X, 0 * y), "at least 2 classes"),
    ],
    ids=["nan", "lengths", "blocks", "lengths of blocks", "no rows", "dimensions", "continuous", "one class"],
)
def test_rows_that_are_refused(client, blocks, change, message):
    with pytest.raises(ValueError, match=message):
        DaskMarginTreeClassifier(client=client).fit(*change(*blocks))


def test_an_earlier_model_stays_when_a_fit_fails(client, blocks):
    X, y = blocks
    model = DaskMarginTreeClassifier(client=client, calibration_folds=0, walk="greedy").fit(X, y)
    tree = model.tree_
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X.map_blocks(with_nan), y)
    assert model.tree_ is tree
