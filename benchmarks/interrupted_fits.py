"""Fits that end before their time: each leaves the earlier model as it was, bit for bit, or the later one, whole.

Every estimator that was fitted before is fitted again to other rows, with other classes and another width, and

- SIGINT, as Ctrl-C sends it, arrives at random times of the fit;
- the memory of the process is limited to a little more than it has;
- an error is raised at each call of a function of the package, one after the other.
"""

import argparse
import copy
import ctypes
import math
import os
import resource
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from fuzzing import memory_bytes
from sklearn.base import clone

import margintree as mt
from margintree import worker_threads
from margintree.model_file.container import digest_of
from margintree.model_file.files import as_contents

ESTIMATORS = [
    mt.MarginTreeClassifier(random_state=0),
    mt.MarginTreeClassifier("rbf", random_state=0),
    mt.MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0),
    mt.MarginTreeClassifier(n_jobs=2, random_state=0),
    mt.FilterTreeClassifier(random_state=0),
    mt.ConditionalProbabilityTreeClassifier(random_state=0),
    mt.ConditionalProbabilityTreeClassifier(node="svm", random_state=0),
    mt.LabelTreeClassifier(random_state=0),
    mt.OneVsRestSVC(random_state=0),
    mt.OneVsRestSVC("rbf", random_state=0),
    mt.OneVsOneSVC(n_jobs=2, random_state=0),
    mt.DecisionDAGClassifier(random_state=0),
    mt.OutputCodeSVC(random_state=0),
    mt.AllTogetherSVC(random_state=0),
]
# A fit may take longer than the one that was timed, and a signal after its end says nothing.
LATEST_SIGNAL = 0.95
# Python swallows an interrupt that meets a destructor or a callback of the garbage collector, and goes on.
SECONDS_TO_HEAR = 2.0
# A thread alone may take half of the most before it does anything.
EXTRA_BYTES = 2**20, 2**24
M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8
EARLIER, LATER = "earlier model", "later model"
PACKAGE = str(Path(mt.__file__).parent)


class InjectedError(Exception):
    """Raised in the middle of a fit."""


class Refit:
    """An estimator that was fitted to some rows, and is to learn from others by ``fit`` or ``partial_fit``."""

    def __init__(self, estimator: Any, n_rows: int, n_features: int, method: str = "fit", n_whole: int = 3) -> None:
        rng = np.random.default_rng(0)
        self.method = method
        self.name = f"{estimator!r}" + (", partial_fit" if method == "partial_fit" else "")
        self.rows = rng.random((60, n_features if method == "partial_fit" else 4))
        labels = rng.integers(3, 8, n_rows)
        self.arguments = rng.random((n_rows, n_features)) + np.eye(n_features)[labels], labels
        self.earlier = clone(estimator).fit(self.rows, np.arange(60) % 5)
        self.digests = {state_of(self.earlier): EARLIER}
        self.before = self.earlier.predict(self.rows)
        self.seconds = math.inf
        # Fits that nothing disturbs; the first one compiles.
        for _ in range(n_whole):
            later, began = copy.copy(self.earlier), time.perf_counter()
            self.learn(later)
            self.seconds = min(self.seconds, time.perf_counter() - began)
            self.digests[state_of(later)] = LATER

    def learn(self, model: Any) -> None:
        """Let a model learn from the other rows."""
        getattr(model, self.method)(*self.arguments)

    def outcome_of(self, model: Any) -> str:
        """Return which model it is; anything that is neither is a failure."""
        outcome = self.digests.get(state_of(model), "FAILED: neither the earlier model nor the later one")
        if outcome == EARLIER and not np.array_equal(model.predict(self.rows), self.before):
            return "FAILED: other predictions"
        return outcome


def all_refits(n_rows: int, n_features: int, n_whole: int = 3) -> Iterator[Refit]:
    """Yield all estimators, and the one that learns on, which is far quicker and gets more rows."""
    for estimator in ESTIMATORS:
        yield Refit(estimator, n_rows, n_features, n_whole=n_whole)
    learns_on = mt.ConditionalProbabilityTreeClassifier(random_state=0)
    yield Refit(learns_on, (10 if n_whole else 1) * n_rows, n_features, "partial_fit", n_whole)


def state_of(model: Any) -> str:
    """Return a digest of everything that a model file holds of a model, and of the names of its attributes."""
    arrays, metadata = as_contents(model)
    parts = [metadata["model"], *sorted(vars(model)), *(digest_of(array) for _, array in sorted(arrays.items()))]
    return sha256("\n".join(parts).encode()).hexdigest()


def interrupted(refit: Refit, n_times: int, seed: int) -> Counter[str]:
    """Send SIGINT at random times of a fit."""
    rng, outcomes = np.random.default_rng(seed), Counter[str]()
    # A process that a shell started in the background is told to ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for delay in rng.uniform(0.0, LATEST_SIGNAL * refit.seconds, n_times):
        model, heard = copy.copy(refit.earlier), False
        timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            refit.learn(model)
            time.sleep(SECONDS_TO_HEAR)
        except KeyboardInterrupt:
            heard = True
        timer.join()
        outcomes[refit.outcome_of(model) + ("" if heard else ", not heard")] += 1
    return outcomes


def calls_of(refit: Refit) -> list[tuple[Any, ...]]:
    """Return what a fit calls in the package, in order: each function with the line that calls it."""
    with error_at_call(-1) as calls:
        refit.learn(copy.copy(refit.earlier))
    return calls


def failed_at_calls(refit: Refit, numbers: Iterable[int]) -> Counter[str]:
    """Raise an error at calls of functions of the package, of which the first has the number 1."""
    outcomes = Counter[str]()
    for number in numbers:
        model = copy.copy(refit.earlier)
        learn = getattr(model, refit.method)
        with error_at_call(number), suppress(InjectedError, RuntimeError):
            # An error that meets a worker thread before it has a task ends the thread, which is a RuntimeError.
            learn(*refit.arguments)
        outcomes[refit.outcome_of(model)] += 1
    return outcomes


def failed_at_each_call(refit: Refit) -> Counter[str]:
    """Raise an error at each call of a function of the package."""
    return failed_at_calls(refit, range(1, len(calls_of(refit)) + 1))


@contextmanager
def error_at_call(number: int) -> Iterator[list[tuple[Any, ...]]]:
    """Raise an error at the given call of a function of the package; yield a list of all calls."""
    calls: list[tuple[Any, ...]] = []
    lock = threading.Lock()

    def at_each_call(frame: Any, event: str, _: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        with lock:
            calls.append((frame.f_code, frame.f_back and (frame.f_back.f_code, frame.f_back.f_lineno)))
            is_the_one = len(calls) == number
        if is_the_one:
            raise InjectedError

    threading.setprofile(at_each_call)
    sys.setprofile(at_each_call)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def short_of_memory(refit: Refit, n_limits: int) -> Counter[str]:
    """Limit the memory to a little more than the process has; the fit runs out of it or does not."""
    outcomes = Counter[str]()
    for extra in np.geomspace(*EXTRA_BYTES, n_limits):
        model, limits = copy.copy(refit.earlier), resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes("VmSize") + int(extra), limits[1]))
        try:
            # A thread that cannot be started, or ends for want of memory, is a RuntimeError.
            is_whole = False
            with suppress(MemoryError, RuntimeError):
                refit.learn(model)
                is_whole = True
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
        outcomes[LATER if is_whole else refit.outcome_of(model)] += 1
    return outcomes


def results_of(what: str, refits: Iterator[Refit], attempt: Callable[[Refit], Counter[str]]) -> list[list[object]]:
    """Return a row of a table per estimator."""
    rows: list[list[object]] = []
    for refit in refits:
        outcomes = attempt(refit)
        text = "; ".join(f"{outcome}: {count}" for outcome, count in sorted(outcomes.items()))
        rows.append([what, refit.name, sum(outcomes.values()), text])
        print(*rows[-1], sep=" | ", flush=True)
    return rows


def main() -> None:
    import report

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interrupts", type=int, default=500, help="for each estimator")
    parser.add_argument("--limits", type=int, default=4, help="for each estimator")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    # Arrays find no room in what the process or its threads have reserved already.
    for option, value in ((M_MMAP_THRESHOLD, 2**16), (M_ARENA_MAX, 1)):
        ctypes.CDLL(None).mallopt(option, value)
    # This machine starts threads quickly, and many will not start here.
    worker_threads.SECONDS_TO_BEGIN = 2.0
    # What Python says of errors that it swallows.
    sys.unraisablehook = threading.excepthook = lambda _: None
    rows = [
        *results_of("memory", all_refits(2000, 2000, n_whole=0), lambda refit: short_of_memory(refit, given.limits)),
        *results_of("SIGINT", all_refits(400, 30), lambda refit: interrupted(refit, given.interrupts, seed=0)),
        *results_of("error at each call", all_refits(60, 8), failed_at_each_call),
    ]
    failed = [row for row in rows if "FAILED" in str(row[-1])]
    n_fits = sum(int(str(row[2])) for row in rows)
    lines = [
        *report.heading("Fits that fail or are interrupted"),
        f"{n_fits} fits; {len(failed)} of {len(rows)} lines with a model that is neither the earlier nor the later. "
        "The later model is there where the interrupt came after the end, or where memory was enough.",
        "",
        *report.table(["what ended the fit", "estimator", "fits", "left behind"], rows),
    ]
    report.write("interrupted_fits", lines)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
