"""Hostile model files: each is refused, or gives a model that predicts without a crash or an endless loop.

Workers are processes of their own: one that dies or stops is found out, and the seed that did it is reported. Each
array of a file is laid so that it ends where memory that nobody may read begins, which turns a read behind
its end into a crash.
"""

import argparse
import ctypes
import mmap
import multiprocessing
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from file_mutations import MUTATIONS, ModelFile, mutated
from sklearn.base import clone

import margintree as mt
from margintree import ModelFileError, load_model, save_model
from margintree.model_file import container
from margintree.splits import RandomSplit

OUTCOMES = ("not run", "refused", "predicts", "raises ValueError", "FAILED")
# A worker that needs longer for one file, kernels being compiled, hangs.
PATIENCE = 120.0
# Far more than any file here can ask for in earnest.
MEMORY = 8 * 2**30
PAGE = mmap.PAGESIZE
LARGEST_WIDTH = 10_000
# Of workers: beyond that something is wrong with all of them.
MOST_FAILURES = 20


def example_rows(n_rows: int, n_classes: int, n_features: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in which every class has columns of its own among many that it lacks."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    own = rng.permuted(np.tile(np.arange(n_features), (n_classes, 1)), axis=1)[:, :4]
    X = np.zeros((n_rows, n_features))
    X[np.arange(n_rows)[:, None], own[y]] = rng.random((n_rows, 4)) + 0.5
    X[rng.random(X.shape) < 0.3 / n_features] = 0.3
    return X, y


def base_models() -> list[Any]:
    """Return fitted models, small and of every kind that a file can hold."""
    X, y = example_rows(60, 5, 80, seed=0)
    names = np.array(["ant", "bee", "cat", "dog", "eel"])[y]
    kernel = (X @ X.T + 1.0) ** 2
    linear = [
        mt.MarginTreeClassifier(random_state=0),
        mt.MarginTreeClassifier(n_trees=2, beam_width=2, split=RandomSplit(), random_state=0),
        mt.MarginTreeClassifier(walk="all", random_state=0),
        mt.MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0),
        mt.LabelTreeClassifier(random_state=0),
        mt.FilterTreeClassifier(random_state=0),
        mt.ConditionalProbabilityTreeClassifier(random_state=0),
        mt.ConditionalProbabilityTreeClassifier(node="svm", random_state=0),
        mt.OneVsRestSVC(random_state=0),
        mt.OneVsOneSVC(random_state=0),
        mt.DecisionDAGClassifier(class_order=["eel", "dog", "cat", "bee", "ant"], random_state=0),
        mt.OutputCodeSVC(random_state=0),
        mt.AllTogetherSVC(class_weight={"ant": 2.0}, random_state=0),
    ]
    with_kernel = [
        cls(kernel=name, random_state=0)
        for name in ("rbf", "poly")
        for cls in (mt.MarginTreeClassifier, mt.OneVsOneSVC, mt.DecisionDAGClassifier)
    ]
    models = [model.fit(sp.csr_array(X), names) for model in linear]
    models += [clone(model).fit(X, y) for model in (linear[0], linear[6], linear[8])]
    # Few features, so that weights are not sparse.
    models += [clone(model).fit(X @ np.random.default_rng(1).random((80, 6)), y) for model in (linear[0], linear[3])]
    models += [model.fit(X, y) for model in with_kernel]
    models += [clone(model).fit(sp.csr_matrix(X), names.astype(object)) for model in with_kernel[:2]]
    models += [cls("precomputed", random_state=0).fit(kernel, y) for cls in (mt.MarginTreeClassifier, mt.OneVsRestSVC)]
    return models


def fenced(buffer: Any, offset: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Return a read-only copy of an array right before memory that may not be read."""
    n_bytes = int(np.prod(shape)) * dtype.itemsize
    n_pages = -(-n_bytes // PAGE)
    region = mmap.mmap(-1, (n_pages + 1) * PAGE)
    region[n_pages * PAGE - n_bytes : n_pages * PAGE] = buffer[offset : offset + n_bytes]
    address = ctypes.addressof(ctypes.c_char.from_buffer(region))
    libc = ctypes.CDLL(None, use_errno=True)
    for begin, length, protection in ((0, n_pages * PAGE, 1), (n_pages * PAGE, PAGE, 0)):
        if length and libc.mprotect(ctypes.c_void_p(address + begin), ctypes.c_size_t(length), protection):
            raise OSError(ctypes.get_errno(), "mprotect")
    array = np.ndarray(shape, dtype, buffer=region, offset=n_pages * PAGE - n_bytes)
    array.flags.writeable = False
    return array


def exercise(model: Any, rng: np.random.Generator) -> None:
    """Predict in every way that the model offers."""
    width = min(int(model.n_features_in_), LARGEST_WIDTH)
    X = rng.random((3, width)) * (rng.random((3, width)) < 0.3)
    repr(model)
    clone(model)
    forms = [X] if model._is_pairwise else [X, sp.csr_array(X)]
    for rows in forms:
        model.predict(rows)
        for name in ("predict_proba", "decision_function", "n_evaluations", "decision_path"):
            if hasattr(model, name) and rng.random() < 0.5:
                getattr(model, name)(rows)
        if hasattr(model, "predict_top_k"):
            model.predict_top_k(rows, int(rng.integers(1, len(model.classes_) + 1)))
    if hasattr(model, "single_instance") and not isinstance(model, mt.ConditionalProbabilityTreeClassifier):
        one_by_one(model, X, rng)
    if getattr(model, "_stream_tree", None) is not None:
        model.partial_fit(forms[-1], model.classes_[rng.integers(len(model.classes_), size=len(X))])
        model.predict(X)


def one_by_one(model: Any, X: np.ndarray, rng: np.random.Generator) -> None:
    """Predict one row at a time."""
    one = model.single_instance()
    columns = np.flatnonzero(X[0])
    for row in ((X[0],), (columns, X[0, columns])):
        one.predict(*row)
        if getattr(model, "_ranker", None) is not None:
            one.predict_proba(*row)
            one.predict_top_k(*row, k=int(rng.integers(1, len(model.classes_) + 1)))


def outcome_of(path: Path, sealed: bool, seed: int) -> int:
    """Return what became of a file, as an index into ``OUTCOMES``."""
    try:
        model = load_model(path, mmap=seed % 2 == 0)
    except ModelFileError:
        return 1
    if not sealed:
        check_verification(path)
    try:
        exercise(model, np.random.default_rng(seed))
    except ValueError:
        return 3
    return 2


def check_verification(path: Path) -> None:
    """Require that with ``verify`` only a file that says the same as before can be loaded."""
    try:
        load_model(path, verify=True)
    except ModelFileError:
        return
    again = ModelFile(path.read_bytes())
    # Headers and data swapped between files with the same weights make another whole file.
    if not any(again.says_the_same_as(original) for original in ORIGINALS):
        raise AssertionError("a changed file passed verification")


ORIGINALS: list[ModelFile] = []


def work(directory: str, seeds: range, done: Any, kinds: Any, outcomes: Any, current: Any) -> None:
    """Try one seed after the other; what became of each stands in shared memory."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    container.as_array = fenced if sys.platform == "linux" else container.as_array
    ORIGINALS[:] = [ModelFile(path.read_bytes()) for path in sorted(Path(directory).glob("*.margintree"))]
    path = Path(directory) / f"{multiprocessing.current_process().pid}.mutated"
    for seed in seeds:
        place = seed - done.value
        current.value = seed
        _, kind, sealed, raw = mutated(ORIGINALS, seed)
        kinds[place] = 2 * kind + sealed
        path.write_bytes(raw)
        try:
            outcomes[place] = outcome_of(path, sealed, seed)
        except BaseException as error:
            outcomes[place] = 4
            print(f"seed {seed}, {MUTATIONS[kind].__name__}, sealed {sealed}: {error!r:.300}", file=sys.stderr)
    current.value = seeds.stop


@dataclass
class Campaign:
    """What became of all files."""

    counts: Counter[tuple[str, bool, str]]
    failures: list[str]
    seconds: float
    peak_bytes: int

    @property
    def n_files(self) -> int:
        return sum(self.counts.values())


def run(n_files: int, first_seed: int, n_workers: int = 1) -> Campaign:
    """Try ``n_files`` mutations, and go on behind a seed that kills a worker."""
    began = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    failures: list[str] = []
    kinds, outcomes = context.Array("b", n_files, lock=False), context.Array("b", n_files, lock=False)
    origin = context.Value("q", first_seed, lock=False)
    with tempfile.TemporaryDirectory() as directory:
        for number, model in enumerate(base_models()):
            save_model(model, Path(directory) / f"{number:02}.margintree")
        bounds = [first_seed + n_files * w // n_workers for w in range(n_workers + 1)]
        parts = [range(bounds[w], bounds[w + 1]) for w in range(n_workers)]
        workers = [Worker(context, directory, part, origin, kinds, outcomes) for part in parts]
        while any(worker.is_busy(failures) for worker in workers):
            time.sleep(0.05)
    counts: Counter[tuple[str, bool, str]] = Counter(
        (MUTATIONS[kind // 2].__name__, bool(kind % 2), OUTCOMES[outcome])
        for kind, outcome in zip(kinds, outcomes, strict=True)
    )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return Campaign(counts, failures, time.perf_counter() - began, peak)


class Worker:
    """A process that is started again behind each seed that it dies of."""

    def __init__(self, context: Any, directory: str, seeds: range, *shared: Any) -> None:
        self.context, self.directory, self.shared, self.stop = context, directory, shared, seeds.stop
        self.current = context.Value("q", seeds.start, lock=False)
        self.start(seeds.start)

    def start(self, first: int) -> None:
        """Begin at a seed."""
        self.current.value = first
        arguments = (self.directory, range(first, self.stop), *self.shared, self.current)
        self.process = self.context.Process(target=work, args=arguments)
        self.process.start()
        self.seen, self.since = -1, time.monotonic()

    def is_busy(self, failures: list[str]) -> bool:
        """Tell whether there is more to do; report and pass over what killed or stopped the process."""
        seed = self.current.value
        if seed != self.seen:
            self.seen, self.since = seed, time.monotonic()
        if self.process.is_alive() and time.monotonic() - self.since < PATIENCE:
            return True
        if seed >= self.stop and self.process.exitcode == 0:
            return False
        reason = f"killed after {PATIENCE:.0f} s" if self.process.is_alive() else f"exit code {self.process.exitcode}"
        self.process.kill()
        self.process.join()
        failures.append(f"seed {seed}: {reason}")
        self.shared[2][seed - self.shared[0].value] = 4
        if seed + 1 >= self.stop or len(failures) >= MOST_FAILURES:
            return False
        self.start(seed + 1)
        return True


def main() -> None:
    import report

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    campaign = run(given.files, given.first_seed, given.workers)
    rows = []
    for mutation in MUTATIONS:
        for sealed in (False, True):
            found = [campaign.counts[mutation.__name__, sealed, outcome] for outcome in OUTCOMES]
            if sum(found):
                rows.append([mutation.__name__, "yes" if sealed else "no", *found])
    n_failed = sum(count for (_, _, outcome), count in campaign.counts.items() if outcome in ("FAILED", "not run"))
    lines = [
        *report.heading("Hostile model files"),
        f"{campaign.n_files} files in {campaign.seconds:.0f} s; {n_failed} failed; a worker took at most "
        f"{campaign.peak_bytes / 2**20:.0f} MB of memory, compiled code included.",
        "",
        *report.table(["mutation", "sealed again", *OUTCOMES], rows),
        *(f"- {failure}" for failure in campaign.failures),
    ]
    report.write("hostile_files", lines)
    sys.exit(1 if n_failed else 0)


if __name__ == "__main__":
    main()
