"""Do a plan's jobs, several at a time, and keep every result; run it again to go on where it stopped."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from margintree.experiments.job import ALONE, Job
from margintree.experiments.plan import Plan
from margintree.experiments.processes import JobProcesses, Outcome
from margintree.experiments.results import DONE, FAILED, Results, Row, opened_results

RESULTS_NAME = "results.jsonl"


@dataclass(frozen=True)
class Progress:
    """How far a run is: the job that ended last, with its error if it failed, and how many are done and left."""

    job: str
    n_done: int
    n_left: int
    error: str | None = None


def run(
    plan: Plan,
    directory: Path,
    *,
    n_workers: int = 1,
    on_progress: Callable[[Progress], None] | None = None,
    on_start: Callable[[set[str]], None] | None = None,
) -> Results:
    """Do all jobs of a plan that the results file in a directory lacks, and return all results.

    Jobs run side by side, timings one at a time when all others are done. A job that fails is written down with its
    error and the others go on; the next run tries it again. ``on_start`` is called with the names of the sets that are
    needed before the first job, ``on_progress`` after each job.
    """
    with opened_results(directory / RESULTS_NAME, plan.protocol) as file:
        failed: set[str] = set()
        waiting = plan.next_jobs(file.results.done)
        if on_start is not None:
            on_start({job.data_set for job in waiting})
        with JobProcesses(n_workers, plan.protocol) as processes:
            while waiting or processes.running:
                while job := next_job(waiting, processes.running, n_workers):
                    waiting.remove(job)
                    processes.start(job)
                for outcome in processes.outcomes():
                    file.add(_row(outcome))
                    if outcome.error is not None:
                        failed.add(outcome.job.key)
                    if on_progress is not None:
                        n_done = len(file.results.done)
                        n_left = max(plan.n_jobs - n_done, len(waiting) + len(processes.running))
                        on_progress(Progress(outcome.job.key, n_done, n_left, outcome.error))
                running = set(processes.running)
                waiting = [job for job in plan.next_jobs(file.results.done, failed) if job not in running]
        return file.results


def next_job(waiting: Sequence[Job], running: Sequence[Job], n_workers: int) -> Job | None:
    """Return the job to start now, if there is room for one.

    It is of another method and kernel than those that run if there is such a one: the first job of a method compiles
    what it needs, and one beside it would compile the same.
    """
    together = [job for job in waiting if job.kind not in ALONE]
    if not together and not running:
        return waiting[0] if waiting else None
    if len(running) == n_workers or any(job.kind in ALONE for job in running):
        return None
    beside = {(job.method, job.kernel) for job in running}
    others = [job for job in together if (job.method, job.kernel) not in beside]
    return next(iter(others or together), None)


def _row(outcome: Outcome) -> Row:
    ended = {"status": DONE, **(outcome.measured or {})}
    if outcome.error is not None:
        ended = {"status": FAILED, "error": outcome.error}
    return {**outcome.job.described(), **ended, "seconds": round(outcome.seconds, 4)}
