"""Run a plan on all cores and write every result down; run it again to go on where it stopped."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from margintree.experiments.job import ALONE, Job
from margintree.experiments.plan import Cell, Plan, weight
from margintree.experiments.results import DONE, FAILED, Results, ResultsFile, Row
from margintree.experiments.workers import Outcome, Workers

RESULTS_NAME = "results.jsonl"
# Seconds per guessed second, and the guess.
_Pace = tuple[float, float]


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Parameters
    ----------
    job : str
        The job that ended last.
    n_done, n_left, n_failed : int
        Jobs; ``n_left`` is an upper bound until all cells are tuned.
    share : float
        Part of the work that is done, from 0 to 1, by a rough guess of what each job takes.
    error : str or None
        Why the job failed, if it did.
    """

    job: str
    n_done: int
    n_left: int
    n_failed: int
    share: float
    error: str | None = None


@dataclass
class _Queue:
    """Jobs that wait, those that run, and what is known of the rest."""

    plan: Plan
    results: Results
    failed: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)
    waiting: list[Job] = field(default_factory=list)
    alone: list[Job] = field(default_factory=list)

    def fill(self, cells: Iterable[Cell]) -> None:
        """Put the jobs that can be done now into the queue."""
        found = [job for cell in cells for job in self.plan.next_jobs(cell, self.results.done, self.failed)]
        for job in [*found, *self.plan.other_jobs(self.results.done)]:
            if job.key not in self.taken and job.key not in self.failed:
                self.taken.add(job.key)
                (self.alone if job.kind in ALONE else self.waiting).append(job)
        # The quickest first: an interrupted run has the more to show.
        self.waiting.sort(key=lambda job: -weight(job, self.plan.protocol))

    def take(self, running: Iterable[Job]) -> Job:
        """Take the next job, of another method and kernel than those that run if there is one.

        The first job of a method compiles what it needs, and one beside it would compile the same.
        """
        beside = {(job.method, job.kernel) for job in running}
        numbers = range(len(self.waiting) - 1, -1, -1)
        other = (n for n in numbers if (self.waiting[n].method, self.waiting[n].kernel) not in beside)
        return self.waiting.pop(next(other, -1))


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
    error and the others go on; the next run tries it again.

    Parameters
    ----------
    plan : Plan
    directory : Path
    n_workers : int
    on_progress : callable or None
        Called with a ``Progress`` after each job.
    on_start : callable or None
        Called with the names of the sets that are needed, before the first job.

    Returns
    -------
    Results
    """
    with ResultsFile(directory / RESULTS_NAME, plan.protocol) as file:
        queue = _Queue(plan, file.results)
        queue.fill(plan.cells)
        if on_start is not None:
            on_start({job.data_set for job in [*queue.waiting, *queue.alone]})
        with Workers(n_workers, plan.protocol) as workers:
            while queue.waiting or queue.alone or workers.n_busy:
                while queue.waiting and workers.n_busy < n_workers:
                    workers.start(queue.take(workers.running))
                if not queue.waiting and not workers.n_busy:
                    workers.start(queue.alone.pop(0))
                for outcome in workers.outcomes():
                    file.add(_row(outcome))
                    if outcome.error is not None:
                        queue.failed.add(outcome.job.key)
                    queue.fill(_touched(plan, outcome.job))
                    if on_progress is not None:
                        on_progress(_progress(plan, queue, outcome))
        return file.results


def _row(outcome: Outcome) -> Row:
    ended = {"status": DONE, **(outcome.measured or {})}
    if outcome.error is not None:
        ended = {"status": FAILED, "error": outcome.error}
    return {**outcome.job.described(), **ended, "seconds": round(outcome.seconds, 4)}


def _touched(plan: Plan, job: Job) -> list[Cell]:
    """Return the cells that wait for a job: its own, and those that tune with it."""
    return [cell for cell in plan.cells if (cell.data_set, cell.kernel) == (job.data_set, job.kernel)]


def _progress(plan: Plan, queue: _Queue, outcome: Outcome) -> Progress:
    """Tell how far a run is; what a cell or its method has taken so far corrects the guess of its other jobs."""
    rows = [row for row in queue.results.done.values() if row["method"]]
    of_cell, of_method = defaultdict[Cell, list[_Pace]](list), defaultdict[tuple[str, str], list[_Pace]](list)
    cells, done = set(plan.cells), 0.0
    for row in rows:
        cell = Cell(row["method"], row["set"], row["kernel"])
        if cell in cells:
            guess = weight(cell.job(row["kind"], ()), plan.protocol)
            pace = row["seconds"] / guess, guess
            of_cell[cell].append(pace)
            of_method[cell.method, cell.kernel].append(pace)
            done += row["seconds"]
    usual = [pace for paces in of_cell.values() for pace in paces]
    left, n_left = 0.0, 0
    for cell in plan.cells:
        waiting = plan.next_jobs(cell, queue.results.done, queue.failed)
        n_cell = max(len(waiting), plan.n_jobs(cell) - len(of_cell[cell])) if waiting else 0
        n_left += n_cell
        paces = of_cell[cell] or of_method[cell.method, cell.kernel] or usual
        left += n_cell * _typical(paces) * weight(cell.job("split", ()), plan.protocol)
    error = outcome.error
    return Progress(outcome.job.key, len(rows), n_left, len(queue.failed), done / max(done + left, 1e-9), error)


def _typical(paces: list[_Pace]) -> float:
    """Return the median of paces, each counted by the guess of its job: a job that compiled does not move it."""
    paces = sorted(paces)
    half, below = 0.5 * sum(guess for _, guess in paces), 0.0
    for pace, guess in paces:
        below += guess
        if below >= half:
            return pace
    return 1.0
