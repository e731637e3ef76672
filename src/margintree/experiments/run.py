"""Run a plan's jobs in parallel and store every result; an interrupted run can be resumed.

If a process dies, only its own job fails, and another process replaces it; all processes end when the one that started
them does, for whatever reason.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

from threadpoolctl import threadpool_limits

from margintree.experiments.job import ALONE, Job, perform
from margintree.experiments.plan import Plan
from margintree.experiments.protocol import Protocol
from margintree.experiments.results import DONE, FAILED, Results, Row, opened_results

RESULTS_NAME = "results.jsonl"


def run(
    plan: Plan,
    directory: Path,
    *,
    n_workers: int = 1,
    on_result: Callable[[Row, int, int], None] = lambda row, n_done, n_left: None,
    on_start: Callable[[set[str]], None] = lambda names: None,
) -> Results:
    """Run all jobs of a plan that are missing in the results file of a directory, and return all results.

    Jobs run in parallel, timings one at a time after all others. A failed job is stored with its error and the others
    continue; the next run tries it again. ``on_start`` is called with the names of the sets that are needed before the
    first job, ``on_result`` after each job with its row and the numbers of jobs done and left.
    """
    with (
        opened_results(directory / RESULTS_NAME, plan.protocol) as file,
        job_processes(n_workers, plan.protocol) as jobs,
    ):
        failed: set[str] = set()
        waiting = plan.next_jobs(file.results.done)
        on_start({job.data_set for job in waiting})
        while waiting or jobs.running:
            while job := next_job(waiting, jobs.running, n_workers):
                waiting.remove(job)
                jobs.start(job)
            for row in jobs.ended():
                file.add(row)
                if row["status"] == FAILED:
                    failed.add(row["key"])
                n_done = len(file.results.done)
                on_result(row, n_done, max(plan.n_jobs - n_done, len(waiting) + len(jobs.running)))
            waiting = [job for job in plan.next_jobs(file.results.done, failed) if job not in jobs.running]
        return file.results


def next_job(waiting: Sequence[Job], running: Sequence[Job], n_workers: int) -> Job | None:
    """Return the job to start now, if a process is idle.

    If possible, its method and kernel differ from those of the running jobs: the first job of a method compiles what it
    needs, and a second one would compile the same code.
    """
    together = [job for job in waiting if job.kind not in ALONE]
    if not together and not running:
        return waiting[0] if waiting else None
    if len(running) == n_workers or any(job.kind in ALONE for job in running):
        return None
    beside = {(job.method, job.kernel) for job in running}
    others = [job for job in together if (job.method, job.kernel) not in beside]
    return next(iter(others or together), None)


class _Processes:
    """Processes that run jobs, one at a time each."""

    def __init__(self, n_processes: int, protocol: Protocol) -> None:
        self.protocol = protocol
        # One pool for each process: a pool whose process dies is lost, and only that one.
        self.idle = [_pool() for _ in range(n_processes)]
        self.busy: dict[Future[Row], tuple[Job, ProcessPoolExecutor]] = {}

    @property
    def running(self) -> list[Job]:
        return [job for job, _ in self.busy.values()]

    def start(self, job: Job) -> None:
        """Give a job to an idle process; there must be fewer jobs running than processes."""
        pool = self.idle.pop()
        self.busy[pool.submit(_row, job, self.protocol)] = job, pool

    def ended(self) -> Iterator[Row]:
        """Wait until at least one job has ended; yield the rows of those that have."""
        for future in wait(self.busy, return_when=FIRST_COMPLETED).done:
            job, pool = self.busy.pop(future)
            try:
                row = future.result()
            except BrokenProcessPool:
                pool.shutdown()
                pool = _pool()
                error = "its process ended: killed, or out of memory"
                row = {**job.described(), "status": FAILED, "error": error, "seconds": 0.0}
            self.idle.append(pool)
            yield row


@contextmanager
def job_processes(n_processes: int, protocol: Protocol) -> Iterator[_Processes]:
    """Start processes for jobs, and always end them."""
    others = set(multiprocessing.active_children())
    processes = _Processes(n_processes, protocol)
    try:
        yield processes
    finally:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        for pool in [*processes.idle, *(pool for _, pool in processes.busy.values())]:
            pool.shutdown(cancel_futures=True)


def _pool() -> ProcessPoolExecutor:
    # A fresh interpreter: forking a process that has threads is not safe.
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_prepare)


def _prepare() -> None:
    # Ctrl-C reaches the whole group; the parent decides what becomes of its processes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Jobs are single-threaded, so that as many run as there are cores and timings mean the same everywhere.
    threadpool_limits(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _row(job: Job, protocol: Protocol) -> Row:
    began = time.perf_counter()
    try:
        ended = {"status": DONE, **perform(job, protocol)}
    except Exception as problem:
        # Whatever went wrong is the result of this job; the others go on.
        ended = {"status": FAILED, "error": f"{type(problem).__name__}: {problem}"}
    return {**job.described(), **ended, "seconds": round(time.perf_counter() - began, 4)}
