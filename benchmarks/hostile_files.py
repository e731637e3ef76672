"""Hostile model files: each is refused, or gives a model that predicts without a crash or an endless loop.

Each array of a file lies between pages that nobody may read, close to the one before it or to the one behind it by
turns, so that a read outside of it ends the process. Loading, and predicting in every way that the model offers, may
take memory in proportion to the file and a few seconds. Prediction raises nothing but the documented error of a kernel
function that has no finite value for a row.
"""

import argparse
import ctypes
import mmap
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from file_mutations import MUTATIONS, ModelFile, mutated
from fuzzing import PREDICTS, RAISES, REFUSED, Campaign, forget_peak, memory_bytes, quick_directory, run
from sklearn.base import clone

import margintree as mt
from margintree import ModelFileError, load_model, save_model
from margintree.model_file import container
from margintree.splits import RandomSplit

PAGE = mmap.PAGESIZE
LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
# Wider rows are tried sparse only.
LARGEST_WIDTH = 10_000
# What loading and prediction may take: so many times the size of the file, most of it for what Python makes of JSON,
# and something for the allocator and the blocks that rows are predicted in. Each array takes pages of its own here.
MEMORY_PER_BYTE, MEMORY_AT_LEAST = 20, 64 * 2**20
# Of the processor, which is not what others make of this machine.
MOST_SECONDS = 5.0
# What prediction says of a kernel that has no finite value for a row; see docs/security.md.
DOCUMENTED = "The kernel returned values that are not finite"


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
        mt.MarginTreeClassifier(decide="pairs", random_state=0),
        mt.MarginTreeClassifier(decide="rest", n_finalists=4, random_state=0),
        mt.MarginTreeClassifier(decide="pairs", walk="all", n_trees=2, split=RandomSplit(), random_state=0),
    ]
    with_kernel = [
        cls(kernel=name, random_state=0)
        for name in ("rbf", "poly")
        for cls in (mt.MarginTreeClassifier, mt.OneVsOneSVC, mt.DecisionDAGClassifier)
    ]
    with_kernel += [mt.MarginTreeClassifier("rbf", decide=decide, random_state=0) for decide in ("pairs", "rest")]
    models = [model.fit(sp.csr_array(X), names) for model in linear]
    models += [clone(model).fit(X, y) for model in (linear[0], linear[6], linear[8])]
    # Few features, so that weights are not sparse.
    models += [clone(model).fit(X @ np.random.default_rng(1).random((80, 6)), y) for model in (linear[0], linear[3])]
    models += [model.fit(X, y) for model in with_kernel]
    models += [clone(model).fit(sp.csr_matrix(X), names.astype(object)) for model in with_kernel[:2]]
    models += [cls("precomputed", random_state=0).fit(kernel, y) for cls in (mt.MarginTreeClassifier, mt.OneVsRestSVC)]
    models += [mt.MarginTreeClassifier("precomputed", decide="pairs", random_state=0).fit(kernel, y)]
    wide = sp.random_array((60, 2**20), density=500 / 2**20, format="csr", rng=np.random.default_rng(0))
    return models + [clone(linear[number]).fit(wide, names) for number in (0, 8, 10)]


def fenced(buffer: Any, offset: int, dtype: np.dtype, shape: tuple[int, ...], *, at_front: bool = False) -> np.ndarray:
    """Return a read-only copy of an array between two pages that may not be read, next to the first or to the last."""
    n_bytes = int(np.prod(shape)) * dtype.itemsize
    n_pages = -(-n_bytes // PAGE)
    region = mmap.mmap(-1, (n_pages + 2) * PAGE)
    begin = PAGE if at_front else (n_pages + 1) * PAGE - n_bytes
    region[begin : begin + n_bytes] = buffer[offset : offset + n_bytes]
    address = ctypes.addressof(ctypes.c_char.from_buffer(region))
    parts = ((0, PAGE, 0), (PAGE, n_pages * PAGE, 1), ((n_pages + 1) * PAGE, PAGE, 0))
    for first, length, protection in parts:
        if length and LIBC.mprotect(ctypes.c_void_p(address + first), ctypes.c_size_t(length), protection):
            raise OSError(ctypes.get_errno(), "mprotect")
    array = np.ndarray(shape, dtype, buffer=region, offset=begin)
    array.flags.writeable = False
    return array


@contextmanager
def bounded(what: str, n_bytes: int) -> Iterator[None]:
    """Require that something, ended by an error or not, takes memory in proportion to a file and little time."""
    if sys.platform != "linux":
        yield
        return
    forget_peak()
    before, began = memory_bytes("VmRSS"), time.process_time()
    try:
        yield
    finally:
        taken, seconds = memory_bytes("VmHWM") - before, time.process_time() - began
        if taken > MEMORY_AT_LEAST + MEMORY_PER_BYTE * n_bytes:
            raise AssertionError(f"{what} {n_bytes} bytes took {taken} bytes of memory")
        if seconds > MOST_SECONDS:
            raise AssertionError(f"{what} {n_bytes} bytes took {seconds:.1f} s")


def exercise(model: Any, rng: np.random.Generator) -> None:
    """Predict in every way that the model offers."""
    width = int(model.n_features_in_)
    columns = np.unique(rng.integers(width, size=3 * min(width, 25 if width <= LARGEST_WIDTH else 500)))
    rows = sp.csr_array(
        (rng.random(3 * len(columns)), np.tile(columns, 3), len(columns) * np.arange(4)), shape=(3, width)
    )
    repr(model)
    clone(model)
    forms = [rows.toarray()] if width <= LARGEST_WIDTH else []
    forms += [] if model._is_pairwise else [rows]
    for given in forms:
        model.predict(given)
        for name in ("predict_proba", "decision_function", "n_evaluations", "decision_path"):
            if hasattr(model, name) and rng.random() < 0.5:
                getattr(model, name)(given)
        if hasattr(model, "predict_top_k"):
            model.predict_top_k(given, int(rng.integers(1, len(model.classes_) + 1)))
    if hasattr(model, "single_instance") and not isinstance(model, mt.ConditionalProbabilityTreeClassifier):
        one_by_one(model, columns, rows.data[: len(columns)], rng)
    if getattr(model, "_stream_tree", None) is not None:
        model.partial_fit(rows, model.classes_[rng.integers(len(model.classes_), size=3)])
        model.predict(rows)


def one_by_one(model: Any, columns: np.ndarray, values: np.ndarray, rng: np.random.Generator) -> None:
    """Predict one row at a time."""
    one = model.single_instance()
    forms: list[tuple[np.ndarray, ...]] = [(columns, values)]
    if model.n_features_in_ <= LARGEST_WIDTH:
        forms.append(
            (sp.csr_array((values, columns, [0, len(columns)]), shape=(1, model.n_features_in_)).toarray()[0],)
        )
    for row in forms:
        one.predict(*row)
        if getattr(model, "_ranker", None) is not None:
            one.predict_proba(*row)
            one.predict_top_k(*row, k=int(rng.integers(1, len(model.classes_) + 1)))


class ModelTrial:
    """Mutations of the model files of a directory."""

    kinds = tuple(f"{mutation.__name__}{end}" for mutation in MUTATIONS for end in ("", ", sealed again"))

    def __init__(self, directory: Path) -> None:
        np.seterr(all="ignore")
        self.originals = [ModelFile(path.read_bytes()) for path in sorted(directory.glob("*.margintree"))]
        self.scratch = tempfile.TemporaryDirectory(dir=quick_directory())
        self.path = Path(self.scratch.name) / "mutated"
        self.compile()

    def compile(self) -> None:
        """Use every model once in every way, so that no file is measured while loops are compiled."""
        for original in self.originals:
            self.path.write_bytes(original.raw)
            for seed in range(6):
                exercise(load_model(self.path, mmap=False), np.random.default_rng(seed))

    def file_of(self, seed: int) -> tuple[int, bytes]:
        """Return the kind of mutation of a seed, and the file."""
        _, kind, sealed, raw = mutated(self.originals, seed)
        return 2 * kind + sealed, raw

    def outcome_of(self, kind: int, raw: bytes, seed: int) -> int:
        """Return what becomes of a file."""
        self.path.write_bytes(raw)
        if sys.platform == "linux":
            container.as_array = partial(fenced, at_front=seed // 2 % 2 == 0)
        try:
            with bounded("loading", len(raw)):
                model = load_model(self.path, mmap=seed % 2 == 0)
        except ModelFileError:
            return REFUSED
        is_sealed_again = kind % 2
        if not is_sealed_again:
            self.check_verification()
        try:
            with bounded("predicting with", len(raw)):
                exercise(model, np.random.default_rng(seed))
        except ValueError as error:
            if DOCUMENTED not in str(error):
                raise
            return RAISES
        return PREDICTS

    def check_verification(self) -> None:
        """Require that with ``verify`` only a file that says the same as before can be loaded."""
        try:
            load_model(self.path, verify=True)
        except ModelFileError:
            return
        again = ModelFile(self.path.read_bytes())
        # Headers and data swapped between files with the same weights make another whole file.
        if not any(again.says_the_same_as(original) for original in self.originals):
            raise AssertionError("a changed file passed verification")


def try_files(n_files: int, first_seed: int, n_workers: int = 1) -> Campaign:
    """Try mutations of models of every kind."""
    with tempfile.TemporaryDirectory() as directory:
        for number, model in enumerate(base_models()):
            save_model(model, Path(directory) / f"{number:02}.margintree")
        return run(ModelTrial, Path(directory), n_files, first_seed, n_workers)


def main() -> None:
    import report

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    campaign = try_files(given.files, given.first_seed, given.workers)
    report.write_campaign("Hostile model files", "hostile_files", "mutation", campaign)


if __name__ == "__main__":
    main()
