"""A trial of many seeds in processes of their own: one that dies or stops is found out, and reported by its seed."""

import multiprocessing
import os
import resource
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

OUTCOMES = ("not run", "refused", "predicts", "raises ValueError", "FAILED")
NOT_RUN, REFUSED, PREDICTS, RAISES, FAILED = range(5)
# A worker that needs longer for one file hangs; before its first one it may have to compile everything.
PATIENCE, PATIENCE_AT_FIRST = 120.0, 900.0
# What a worker may take beyond the libraries: compiling kernels needs some of it, no file does.
MEMORY = 2 * 2**30
# Of workers: beyond that something is wrong with all of them.
MOST_FAILURES = 20


class Trial(Protocol):
    """What is tried; made anew in every worker from a directory with files."""

    kinds: tuple[str, ...]

    def __init__(self, directory: Path) -> None: ...

    def file_of(self, seed: int) -> tuple[int, bytes]:
        """Return which kind of file belongs to a seed, and the file."""

    def outcome_of(self, kind: int, raw: bytes, seed: int) -> int:
        """Return what becomes of it, as an index into ``OUTCOMES``; an error is a failure."""


@dataclass
class Campaign:
    """What became of all files."""

    counts: Counter[tuple[str, str]]
    failures: list[str]
    seconds: float
    peak_bytes: int

    @property
    def n_files(self) -> int:
        return sum(self.counts.values())

    @property
    def n_failed(self) -> int:
        return sum(count for (_, outcome), count in self.counts.items() if outcome in ("FAILED", "not run"))

    def rows(self) -> list[list[object]]:
        """Return a row of a table per kind."""
        kinds = sorted({kind for kind, _ in self.counts})
        return [[kind, *(self.counts[kind, outcome] for outcome in OUTCOMES)] for kind in kinds]


def memory_bytes(name: str) -> int:
    """Return a figure of /proc/self/status: VmRSS is now in use, VmHWM has been at most, VmSize is reserved."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"this system does not tell {name}")


def forget_peak() -> None:
    """Let VmHWM begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


def quick_directory() -> str | None:
    """Return where files are in memory: a disk would be waited for each time that one is overwritten."""
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def work(trial_class: type[Trial], directory: str, seeds: range, first_seed: int, *shared: Any) -> None:
    """Try one seed after the other; what became of each stands in shared memory."""
    kinds, outcomes, current = shared
    if sys.platform == "linux":
        limit = memory_bytes("VmSize") + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    trial = trial_class(Path(directory))
    for seed in seeds:
        current.value = seed
        kind, raw = trial.file_of(seed)
        kinds[seed - first_seed] = kind
        try:
            outcomes[seed - first_seed] = trial.outcome_of(kind, raw, seed)
        except BaseException as error:
            outcomes[seed - first_seed] = FAILED
            print(f"seed {seed}, {trial.kinds[kind]}: {error!r:.300}", file=sys.stderr)
    current.value = seeds.stop


def run(trial_class: type[Trial], directory: Path, n_files: int, first_seed: int, n_workers: int) -> Campaign:
    """Try ``n_files`` seeds, and go on behind one that kills a worker."""
    began = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    failures: list[str] = []
    kinds, outcomes = context.Array("b", n_files, lock=False), context.Array("b", n_files, lock=False)
    bounds = [first_seed + n_files * w // n_workers for w in range(n_workers + 1)]
    parts = [range(bounds[w], bounds[w + 1]) for w in range(n_workers)]
    workers = [Worker(context, trial_class, directory, part, first_seed, kinds, outcomes) for part in parts]
    while sum(worker.is_busy(failures) for worker in workers):
        time.sleep(0.05)
    names = trial_class.kinds
    counts: Counter[tuple[str, str]] = Counter(
        (names[kind], OUTCOMES[outcome]) for kind, outcome in zip(kinds, outcomes, strict=True)
    )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return Campaign(counts, failures, time.perf_counter() - began, peak)


class Worker:
    """A process that is started again behind each seed that it dies of."""

    def __init__(
        self, context: Any, trial_class: type[Trial], directory: Path, seeds: range, first_seed: int, *arrays: Any
    ) -> None:
        self.context, self.stop, self.first_seed, self.outcomes = context, seeds.stop, first_seed, arrays[1]
        self.trial_class, self.directory, self.arrays = trial_class, os.fspath(directory), arrays
        self.current = context.Value("q", seeds.start, lock=False)
        self.is_done = False
        self.start(seeds.start)

    def start(self, first: int) -> None:
        """Begin at a seed."""
        self.current.value = self.first = first
        seeds = range(first, self.stop)
        arguments = (self.trial_class, self.directory, seeds, self.first_seed, *self.arrays, self.current)
        self.process = self.context.Process(target=work, args=arguments)
        self.process.start()
        self.seen, self.since = -1, time.monotonic()

    def is_busy(self, failures: list[str]) -> bool:
        """Tell whether there is more to do; report and pass over what killed or stopped the process."""
        if self.is_done:
            return False
        seed = self.current.value
        if seed != self.seen:
            self.seen, self.since = seed, time.monotonic()
        patience = PATIENCE_AT_FIRST if seed == self.first else PATIENCE
        if self.process.is_alive() and time.monotonic() - self.since < patience:
            return True
        if seed >= self.stop and self.process.exitcode == 0:
            return False
        reason = f"killed after {patience:.0f} s" if self.process.is_alive() else f"exit code {self.process.exitcode}"
        self.process.kill()
        self.process.join()
        failures.append(f"seed {seed}: {reason}")
        if seed < self.stop:
            self.outcomes[seed - self.first_seed] = FAILED
        if seed + 1 >= self.stop or len(failures) >= MOST_FAILURES:
            self.is_done = True
            return False
        self.start(seed + 1)
        return True
