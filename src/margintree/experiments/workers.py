"""Processes that do jobs, one at a time each.

A worker that dies takes only its own job with it, and another takes its place; workers end when the process that
started them does, however that ends.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Self

from margintree.experiments.job import Job, failure, perform
from margintree.experiments.protocol import Protocol

# Jobs are single-threaded, so that as many run as there are cores and timings mean the same everywhere.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# A worker that is told to end between two jobs does so at once.
SECONDS_TO_END = 5.0


@dataclass(frozen=True)
class Outcome:
    """What became of a job: what it measured, or the error that ended it."""

    job: Job
    measured: dict[str, Any] | None
    error: str | None
    seconds: float


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    pipe: Connection
    job: Job | None = None


class Workers:
    """A number of worker processes. Use it in a ``with`` statement.

    Parameters
    ----------
    n_workers : int
    protocol : Protocol
    """

    def __init__(self, n_workers: int, protocol: Protocol) -> None:
        self.n_workers = n_workers
        self.protocol = protocol
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.pipe.close()
            if worker.job is not None:
                worker.process.terminate()
        for worker in self._workers:
            worker.process.join(SECONDS_TO_END)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self._workers = []

    @property
    def running(self) -> list[Job]:
        """The jobs that are running."""
        return [worker.job for worker in self._workers if worker.job is not None]

    @property
    def n_busy(self) -> int:
        """Number of jobs that are running."""
        return len(self.running)

    def start(self, job: Job) -> None:
        """Give a job to an idle worker; there must be fewer jobs running than workers."""
        if self.n_busy >= self.n_workers:
            raise RuntimeError(f"All {self.n_workers} workers are busy; wait for an outcome first.")
        idle = [worker for worker in self._workers if worker.job is None]
        worker = idle[0] if idle else self._new_worker()
        worker.job = job
        worker.pipe.send(job)

    def outcomes(self) -> Iterator[Outcome]:
        """Wait until at least one job has ended; yield what became of it."""
        busy = {worker.pipe: worker for worker in self._workers if worker.job is not None}
        for pipe in connection.wait(list(busy)):
            assert isinstance(pipe, Connection)
            worker = busy[pipe]
            job, worker.job = worker.job, None
            assert job is not None
            try:
                measured, error, seconds = pipe.recv()
            except (EOFError, ConnectionResetError):
                self._workers.remove(worker)
                worker.process.join()
                measured, seconds = None, 0.0
                error = f"its process ended with exit code {worker.process.exitcode} (a negative one is a signal)"
            yield Outcome(job, measured, error, seconds)

    def _new_worker(self) -> _Worker:
        # A fresh interpreter: forking a process that has threads is not safe.
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, self.protocol), daemon=True)
        before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
        try:
            process.start()
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        theirs.close()
        self._workers.append(_Worker(process, ours))
        return self._workers[-1]


def _work(pipe: Connection, protocol: Protocol) -> None:
    """Do jobs until the other end of the pipe is closed."""
    # Ctrl-C reaches the whole group; the parent decides what becomes of the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        began = time.perf_counter()
        measured, error = None, None
        try:
            measured = perform(job, protocol)
        except Exception as problem:
            # Whatever went wrong is the result of this job; the others go on.
            error = failure(problem)
        try:
            pipe.send((measured, error, time.perf_counter() - began))
        except BrokenPipeError:
            return


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
