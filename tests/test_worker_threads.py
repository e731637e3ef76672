"""Threads that can be left: results in order, errors as they are, and nothing begun after one."""

import contextvars
import subprocess
import sys
import threading
import time

import pytest

from margintree import worker_threads
from margintree.compiled.giving_up import is_abandoned
from margintree.worker_threads import Abandoned, Workers, apart, give_up_if_abandoned, in_threads


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_results_come_in_the_order_of_the_tasks(n_threads):
    def work(n):
        time.sleep(0.001 * (n % 3))
        return n * n

    assert in_threads(work, range(20), n_threads) == [n * n for n in range(20)]
    assert in_threads(work, [], n_threads) == []


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_an_error_ends_the_work_and_no_further_task_begins(n_threads):
    begun = []

    def work(n):
        begun.append(n)
        if n == 3:
            raise ZeroDivisionError("three")
        time.sleep(0.005)

    with pytest.raises(ZeroDivisionError, match="three"):
        in_threads(work, range(200), n_threads)
    time.sleep(0.05)
    assert len(begun) <= 4 + 2 * n_threads


def test_the_callers_context_holds_in_the_threads():
    setting = contextvars.ContextVar("setting", default="none")
    setting.set("mine")
    assert in_threads(lambda _: setting.get(), range(3), 2) == ["mine"] * 3
    assert apart(setting.get) == "mine"


def test_long_work_leaves_the_main_thread_alone_and_stays_in_any_other():
    assert apart(threading.current_thread) is not threading.main_thread()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(apart(threading.current_thread)))
    thread.start()
    thread.join()
    assert seen == [thread]


def test_the_newest_task_comes_first_where_that_is_asked_for():
    workers = Workers(lambda n: n, 1, newest_first=True)
    started, go_on = threading.Event(), threading.Event()

    def wait(n):
        if n == 0:
            started.set()
            go_on.wait(5)
        return n

    workers = Workers(wait, 1, newest_first=True)
    workers.submit(0)
    started.wait(5)
    workers.submit(1)
    workers.submit(2)
    go_on.set()
    assert [workers.next_done()[1] for _ in range(3)] == [0, 2, 1]
    workers.close()


def test_an_abandoned_thread_gives_up_where_it_asks_in_python_and_in_compiled_code():
    is_abandoned()  # compiled before the clock runs
    outcome, at_work = [], threading.Event()

    def work(_):
        at_work.set()
        deadline = time.monotonic() + 10
        while not is_abandoned() and time.monotonic() < deadline:
            time.sleep(0.001)
        try:
            give_up_if_abandoned()
            outcome.append("went on")
        except Abandoned:
            outcome.append("gave up")
            raise

    workers = Workers(work, 1)
    workers.submit(None)
    at_work.wait(5)
    [thread] = workers._threads
    began = time.monotonic()
    workers.close()
    assert time.monotonic() - began < 0.5, "closing waited for the task"
    assert not is_abandoned(), "this thread was not abandoned"
    thread.join(5)
    assert outcome == ["gave up"]
    assert not any(worker_threads.ABANDONED_THREADS), "a thread that ended is still listed"


def test_a_thread_that_is_ended_inside_a_callback_says_nothing_and_others_do():
    """A compiler that calls back into Python is ended there; ctypes would print the exception that it cannot raise."""
    script = """
import ctypes, time
from margintree import worker_threads

callback = ctypes.CFUNCTYPE(None)(lambda: [time.sleep(0.01) for _ in range(1000)] and None)
broken = ctypes.CFUNCTYPE(None)(lambda: 1 / 0)
workers = worker_threads.Workers(lambda _: callback(), 1)
workers.submit(None)
time.sleep(0.3)
workers.close()
worker_threads._wait_for_abandoned()
broken()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert "ZeroDivisionError" in done.stderr
    assert "Abandoned" not in done.stderr


def test_a_thread_that_dies_before_it_begins_is_not_waited_for_without_end(monkeypatch):
    # As a thread does that finds no memory for its first step.
    monkeypatch.setattr(worker_threads._Worker, "_bootstrap", lambda thread: None)
    monkeypatch.setattr(worker_threads, "SECONDS_TO_BEGIN", 0.1)
    with pytest.raises(MemoryError, match="did not begin"):
        apart(lambda: 1)
    monkeypatch.undo()
    assert apart(lambda: 1) == 1
