"""Threads that can be left: results in order, errors as they are, and nothing begun after one."""

import contextvars
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from sklearn.datasets import load_iris

import margintree.compiled.compile  # noqa: F401  (listens to the compiler)
from margintree import MarginTreeClassifier, compiled, worker_threads
from margintree.worker_threads import (
    Abandoned,
    Threads,
    apart,
    give_up_if_abandoned,
    in_any_order,
    in_threads,
    stop_flag,
    stoppable,
)


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


def test_one_thread_takes_the_newest_task_first_and_several_the_oldest():
    assert begun(n_threads=1) == [0, 2, 4, 3, 1]
    assert apart(lambda: begun(n_threads=1)) == [0, 2, 4, 3, 1]
    assert begun(n_threads=2)[:3] in ([0, 1, 2], [0, 2, 1])


def begun(n_threads):
    """Return tasks in the order in which they begin; task 0 adds 1 and 2, task 2 adds 3 and 4."""
    tasks, order = [0], []

    def work(n):
        order.append(n)
        return 10 * n

    for task, result in in_any_order(work, tasks, n_threads):
        assert result == 10 * task
        tasks += {0: [1, 2], 2: [3, 4]}.get(task, [])
    assert sorted(order) == [0, 1, 2, 3, 4]
    return order


@pytest.mark.parametrize("is_compiled", [False, True])
def test_stopped_work_gives_up_where_it_asks_in_python_and_in_compiled_code(is_compiled):
    outcome, at_work = [], threading.Event()
    spin(np.ones(1, dtype=bool), np.zeros(1))  # compiled before the clock runs

    def work():
        at_work.set()
        try:
            if is_compiled:
                with stoppable() as stop:
                    spin(stop, np.zeros(1))
            while not stop_flag()[0]:
                time.sleep(0.001)
            give_up_if_abandoned()
            outcome.append("went on")
        except Abandoned:
            outcome.append("gave up")
            raise

    threads = Threads(1)
    threads.submit(work)
    at_work.wait(5)
    began = time.monotonic()
    interrupt(threads)
    assert time.monotonic() - began < 0.5, "leaving waited for the task"
    assert not stop_flag()[0], "this thread was not stopped"
    [thread] = threads._threads
    thread.join(5)
    assert outcome == ["gave up"]


def interrupt(threads):
    with pytest.raises(KeyboardInterrupt), threads:
        raise KeyboardInterrupt


@numba.njit(nogil=True)
def spin(stop, count):
    while not stop[0]:
        count[0] += 1.0


def test_nested_threads_share_one_flag_and_the_first_error_is_the_one_that_is_raised():
    def fails(n):
        if n == 0:
            time.sleep(0.02)
            raise ZeroDivisionError("zero")
        while True:
            give_up_if_abandoned()
            time.sleep(0.001)

    with pytest.raises(ZeroDivisionError, match="zero"):
        in_threads(lambda pair: in_threads(fails, pair, 2), [(1, 2), (0, 3)], 2)
    assert in_threads(abs, [-1, 2], 2) == [1, 2], "later work has a flag of its own"


def test_a_compiler_that_nobody_waits_for_ends_between_two_functions():
    @numba.njit
    def new(x):
        return x + 1.0

    threads, begun, go_on = Threads(1), threading.Event(), threading.Event()
    future = threads.submit(lambda: (begun.set(), go_on.wait(5), new(1.0)))
    begun.wait(5)
    interrupt(threads)
    go_on.set()
    assert isinstance(future.exception(5), Abandoned)
    assert new(1.0) == 2.0


def test_a_thread_that_dies_before_it_begins_is_not_waited_for_without_end(monkeypatch):
    # As a thread does that finds no memory for its first step.
    monkeypatch.setattr(worker_threads._Thread, "_bootstrap", lambda thread: None)
    monkeypatch.setattr(worker_threads, "SECONDS_TO_BEGIN", 0.1)
    with pytest.raises(MemoryError, match="did not start"):
        apart(lambda: 1)
    # Python lists it for ever as about to begin.
    threading._limbo.clear()
    monkeypatch.undo()
    assert apart(lambda: 1) == 1


@pytest.mark.parametrize(
    ("module", "loop", "n_results", "model"),
    [
        ("linear_dual", "solve", 3, MarginTreeClassifier()),
        ("kernel_dual", "sweeps", 4, MarginTreeClassifier("rbf")),
    ],
)
def test_nobody_reads_what_a_stopped_solver_left_unfinished(module, loop, n_results, model, monkeypatch):
    # Dual variables that were all zero gave bounds of 0 / 0, and a warning after an interrupted command's last word.
    work = worker_threads._Work()

    def stopped(*_):
        work.stop(KeyboardInterrupt())
        return ("unfinished",) * n_results

    monkeypatch.setattr(getattr(compiled, module), loop, stopped)
    context = contextvars.copy_context()
    context.run(worker_threads._current.set, work)
    # Outside the main thread a fit on one thread starts no others, so that its own error arrives.
    with ThreadPoolExecutor(1) as thread, pytest.raises(Abandoned):
        thread.submit(context.run, model.fit, *load_iris(return_X_y=True)).result()
