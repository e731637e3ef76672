"""Processes that do jobs, one at a time each.

A process that dies takes only its own job with it, and another takes its place; all of them end when the process that
started them does, however that ends.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from margintree.experiments.job import Job, perform
from margintree.experiments.protocol import Protocol

# Jobs are single-threaded, so that as many run as there are cores and timings mean the same everywhere.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Outcome:
    """What became of a job: what it measured, or the error that ended it."""

    job: Job
    measured: dict[str, Any] | None
    error: str | None
    seconds: float


class JobProcesses:
    """A number of processes. Use it in a ``with`` statement."""

    def __init__(self, n_processes: int, protocol: Protocol) -> None:
        self.protocol = protocol
        # One pool for each process: a pool whose process dies is lost, and only that one.
        self._idle = [_pool() for _ in range(n_processes)]
        self._busy: dict[Future[Any], tuple[Job, ProcessPoolExecutor]] = {}
        self._others = set(multiprocessing.active_children())

    def __enter__(self) -> Self:
        # Processes read it when they start, and one that takes another's place starts late.
        self._environment = dict(os.environ)
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in set(multiprocessing.active_children()) - self._others:
            process.terminate()
        for pool in [*self._idle, *(pool for _, pool in self._busy.values())]:
            pool.shutdown(cancel_futures=True)
        os.environ.clear()
        os.environ.update(self._environment)

    @property
    def running(self) -> list[Job]:
        """The jobs that are running."""
        return [job for job, _ in self._busy.values()]

    def start(self, job: Job) -> None:
        """Give a job to an idle process; there must be fewer jobs running than processes."""
        pool = self._idle.pop()
        self._busy[pool.submit(_timed, job, self.protocol)] = job, pool

    def outcomes(self) -> Iterator[Outcome]:
        """Wait until at least one job has ended; yield what became of it."""
        for future in wait(self._busy, return_when=FIRST_COMPLETED).done:
            job, pool = self._busy.pop(future)
            try:
                outcome = future.result()
            except BrokenProcessPool:
                pool.shutdown()
                pool = _pool()
                outcome = Outcome(job, None, "its process ended: killed, or out of memory", 0.0)
            self._idle.append(pool)
            yield outcome


def _pool() -> ProcessPoolExecutor:
    # A fresh interpreter: forking a process that has threads is not safe.
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_prepare)


def _prepare() -> None:
    # Ctrl-C reaches the whole group; the parent decides what becomes of its processes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _timed(job: Job, protocol: Protocol) -> Outcome:
    began = time.perf_counter()
    measured, error = None, None
    try:
        measured = perform(job, protocol)
    except Exception as problem:
        # Whatever went wrong is the result of this job; the others go on.
        error = f"{type(problem).__name__}: {problem}"
    return Outcome(job, measured, error, time.perf_counter() - began)
