"""Real runs with real processes: killed, failed, restricted, resumed."""

import bz2
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from margintree.experiments.job import Job
from margintree.experiments.plan import chosen_plan
from margintree.experiments.results import read
from margintree.experiments.run import RESULTS_NAME, job_processes, next_job, run

METHODS = ("FT (no bias)", "1vsR", "DDAG")
# What two runs of the same jobs may differ in.
TIMES = {"seconds", "fit_seconds", "batch_seconds", "row_seconds", "run"}
RUN = """
import json, sys
from pathlib import Path
from margintree.experiments.plan import chosen_plan
from margintree.experiments.protocol import Protocol
from margintree.experiments.run import run

def deep_tuple(value):
    return tuple(deep_tuple(v) for v in value) if isinstance(value, list) else value

if __name__ == "__main__":
    protocol = Protocol(**{k: deep_tuple(v) for k, v in json.loads(sys.argv[2]).items()})
    run(chosen_plan(protocol, sys.argv[3].split("|")), Path(sys.argv[1]), n_workers=1)
"""


def facts(results):
    """Return all results without what depends on the clock."""
    return {key: {k: v for k, v in row.items() if k not in TIMES} for key, row in results.done.items()}


@pytest.fixture(scope="module")
def uninterrupted(tiny, tmp_path_factory):
    results = run(chosen_plan(tiny, METHODS), tmp_path_factory.mktemp("whole"), n_workers=1)
    assert not results.failed
    return results


def start(tmp_path, protocol):
    script = tmp_path / "start_run.py"
    script.write_text(RUN)
    arguments = [str(script), str(tmp_path), json.dumps(asdict(protocol)), "|".join(METHODS)]
    return subprocess.Popen([sys.executable, *arguments], start_new_session=True)


def n_done(tmp_path):
    path = tmp_path / RESULTS_NAME
    return len(read(path).done) if path.exists() else 0


def wait_for_results(process, tmp_path, n):
    """Return when the run has n results, or has ended."""
    while n_done(tmp_path) < n and process.poll() is None:
        time.sleep(0.01)


def assert_group_ends(process):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a process outlived the run")


@pytest.mark.skipif(sys.platform == "win32", reason="process groups of POSIX")
def test_killed_at_random_moments_and_resumed_a_run_ends_with_the_same_results(tmp_path, tiny, uninterrupted):
    chance = random.Random(0)
    kept = []
    for kill in (os.killpg, os.kill, os.killpg):
        process = start(tmp_path, tiny)
        wait_for_results(process, tmp_path, (kept[-1] if kept else 0) + 1)
        time.sleep(chance.uniform(0.0, 0.15))
        if process.poll() is not None:
            break
        # The whole group at once, or only the process that leads it: then the workers have to notice.
        kill(process.pid, signal.SIGKILL)
        process.wait()
        assert_group_ends(process)
        kept.append(n_done(tmp_path))
    assert kept == sorted(kept), "a resumed run lost results"
    assert kept, "the first run ended before it could be killed"
    assert 1 <= kept[0] < len(uninterrupted.done)
    assert start(tmp_path, tiny).wait(60) == 0
    results = read(tmp_path / RESULTS_NAME)
    assert facts(results) == facts(uninterrupted)
    assert not results.failed


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_keeps_what_is_done_and_leaves_no_process_behind(tmp_path, tiny, uninterrupted):
    process = start(tmp_path, tiny)
    wait_for_results(process, tmp_path, 2)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30) != 0
    assert_group_ends(process)
    kept = facts(read(tmp_path / RESULTS_NAME))
    assert 2 <= len(kept) < len(uninterrupted.done)
    assert all(uninterrupted.done[key].items() >= row.items() for key, row in kept.items())


def test_a_finished_run_has_nothing_left_to_do(tmp_path, tiny):
    plan = chosen_plan(tiny, ["FT (no bias)"])
    seen = []
    first = run(plan, tmp_path, on_result=lambda row, *counts: seen.append(counts))
    assert seen == [(n, len(seen) - n) for n in range(1, len(seen) + 1)]
    before = (tmp_path / RESULTS_NAME).read_bytes()
    again = run(plan, tmp_path, on_result=lambda row, *counts: pytest.fail(f"did {row['key']} again"))
    assert again.done == first.done
    assert (tmp_path / RESULTS_NAME).read_bytes() == before


def test_two_workers_add_other_methods_to_what_is_there(tmp_path, tiny, uninterrupted):
    run(chosen_plan(tiny, ["FT (no bias)"]), tmp_path, n_workers=1)
    results = run(chosen_plan(tiny, METHODS), tmp_path, n_workers=2)
    assert facts(results) == facts(uninterrupted)


def test_a_split_row_tells_what_the_tables_need(uninterrupted):
    row = next(uninterrupted.of_kind("split"))
    assert 50.0 < row["accuracy"] <= 100.0
    assert {"evaluations", "fit_seconds", "n_train", "n_test", "n_classes", "parameters", "run"} <= set(row)
    assert all(row["row_seconds"]["predict"] > 0.0 for row in uninterrupted.of_kind("time", "curve"))


def write_vowel(directory, n_train=528, n_test=462):
    random_rows = np.random.default_rng(0)
    for name, n_rows in (("vowel.bz2", n_train), ("vowel.t.bz2", n_test)):
        y = np.arange(n_rows) % 11
        with bz2.open(directory / name, "wb") as file:
            dump_svmlight_file(random_rows.normal(size=(n_rows, 10)) + y[:, None], y, file, zero_based=False)


def test_a_failed_job_is_written_down_the_rest_goes_on_and_the_next_run_tries_it_again(tmp_path, tiny, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("MARGINTREE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    both = replace(tiny, settings=(("vowel", "linear"), ("digits", "linear")))
    plan = chosen_plan(both, ["FT (no bias)"])
    results = run(plan, tmp_path)
    assert {row["set"] for row in results.of_kind("split")} == {"digits"}
    assert {row["set"] for row in results.failed.values()} == {"vowel"}
    assert all("vowel" in row["error"] for row in results.failed.values())
    write_vowel(tmp_path / "data")
    results = run(plan, tmp_path)
    assert {row["set"] for row in results.of_kind("split")} == {"digits", "vowel"}
    assert not results.failed


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_worker_that_is_killed_fails_its_job_and_is_replaced(tiny):
    before = set(multiprocessing.active_children())
    with job_processes(1, tiny) as processes:
        processes.start(Job("split", "MSM (paper)", "digits", "linear", (("C", 1000.0), ("balance", 0.3)), 0))
        (worker,) = set(multiprocessing.active_children()) - before
        os.kill(worker.pid, signal.SIGKILL)
        (row,) = processes.ended()
        assert row["status"] == "failed"
        assert "its process ended" in row["error"]
        processes.start(Job("split", "FT (no bias)", "digits", "linear", (("C", 1.0),), 0))
        (row,) = processes.ended()
        assert row["status"] == "done"
        assert row["accuracy"] > 50.0
    assert set(multiprocessing.active_children()) <= before


def test_every_split_has_its_own_tree_and_its_own_seed(uninterrupted):
    trees = [row["tree"] for row in uninterrupted.of_kind("split") if row["method"] == "FT (no bias)"]
    assert len(set(trees)) == len(trees) == 2


def test_a_job_is_taken_beside_one_of_another_method_while_there_is_any(tiny):
    waiting = chosen_plan(tiny, ["FT (no bias)", "1vsR"]).next_jobs({})
    running = next(job for job in waiting if job.method == "1vsR")
    assert next_job(waiting, [running], 2).method == ""
    others = [job for job in waiting if job.method]
    assert next_job(others, [running], 2).method == "FT (no bias)"
    # Of one method only: the first.
    assert next_job([running], [running], 2) == running
    assert next_job(waiting, [running], 1) is None


def test_timings_wait_until_nothing_else_runs_and_nothing_starts_beside_them(tiny):
    split, time_ = (Job(kind, "FT (no bias)", "digits", "linear", (("C", 1.0),), 0) for kind in ("split", "time"))
    assert next_job([time_, split], [], 2) == split
    assert next_job([time_], [split], 2) is None
    assert next_job([time_], [], 2) == time_
    assert next_job([split], [time_], 2) is None
