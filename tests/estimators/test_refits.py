"""A fit that fails, at whatever point, leaves the earlier model, its attributes and its predictions as they were."""

import ast
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris

from margintree import (
    AllTogetherSVC,
    ConditionalProbabilityTreeClassifier,
    DecisionDAGClassifier,
    FilterTreeClassifier,
    LabelTreeClassifier,
    MarginTreeClassifier,
    OneVsOneSVC,
    OneVsRestSVC,
    OutputCodeSVC,
)

ESTIMATORS = [
    MarginTreeClassifier(random_state=0),
    MarginTreeClassifier("rbf", random_state=0),
    MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0),
    FilterTreeClassifier(random_state=0),
    ConditionalProbabilityTreeClassifier(random_state=0),
    ConditionalProbabilityTreeClassifier(node="svm", random_state=0),
    LabelTreeClassifier(random_state=0),
    OneVsRestSVC(random_state=0),
    OneVsOneSVC(random_state=0),
    DecisionDAGClassifier(random_state=0),
    OutputCodeSVC(random_state=0),
    AllTogetherSVC(random_state=0),
]
N_INJECTIONS = 12


class InjectedError(Exception):
    """Raised in the middle of a fit."""


def call_with_error_at(number, work):
    """Call ``work``, and raise an error at the given call of a function of the package; return the calls counted."""
    count, lock = [0], threading.Lock()

    def at_each_call(frame, event, _):
        if event != "call" or "margintree" not in frame.f_code.co_filename or "tests" in frame.f_code.co_filename:
            return
        with lock:
            count[0] += 1
            is_the_one = count[0] == number
        if is_the_one:
            raise InjectedError

    threading.setprofile(at_each_call)
    sys.setprofile(at_each_call)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return count[0]


def facts(model, X):
    return set(vars(model)), model.n_features_in_, model.classes_.tolist(), model.predict(X).tolist()


# An error that meets a worker thread before it has a task ends the thread, which its caller tells by a RuntimeError.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_an_error_at_any_call_of_a_refit_leaves_the_model_as_it_was(estimator):
    X, y = load_iris(return_X_y=True)
    other_X, other_y = np.hstack([X, X])[::2], np.where(y == 2, 7, y)[::2]
    model = estimator.fit(X, y)
    before, machines = facts(model, X), model.__dict__.get("_model", model.__dict__.get("_machines"))
    other = clone(estimator).fit(X, y)
    n_calls = call_with_error_at(-1, lambda: other.fit(other_X, other_y))
    n_failed = 0
    for number in np.unique(np.linspace(1, n_calls, N_INJECTIONS).astype(int)):
        try:
            call_with_error_at(number, lambda: model.fit(other_X, other_y))
        except (InjectedError, RuntimeError):
            n_failed += 1
        else:
            # Python swallows what meets the end of a generator.
            model.fit(X, y)
            machines = model.__dict__.get("_model", model.__dict__.get("_machines"))
        assert model.__dict__.get("_model", model.__dict__.get("_machines")) is machines
        assert facts(model, X) == before
    assert n_failed >= N_INJECTIONS - 3


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_rows_of_a_refit_that_was_refused_are_refused_by_the_earlier_model(estimator):
    X, y = load_iris(return_X_y=True)
    model = estimator.fit(X, y)
    wide = sp.csr_array(([1.0], ([0], [10**9 - 1])), shape=(1, 10**9))
    with pytest.raises(ValueError, match="2 classes"):
        model.fit(wide, [0])
    with pytest.raises(ValueError, match="is expecting 4 features"):
        model.predict(wide)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_machines_are_never_asked_about_rows_of_another_width_than_theirs(estimator):
    X, y = load_iris(return_X_y=True)
    model = clone(estimator).fit(X, y)
    model.n_features_in_ = 200_000
    with pytest.raises(ValueError, match="were trained on 4"):
        model.predict(np.zeros((1, 200_000)))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_at_any_call_of_partial_fit_learns_nothing_of_the_batch():
    X, y = load_iris(return_X_y=True)
    model = ConditionalProbabilityTreeClassifier(random_state=0).partial_fit(X[:60], y[:60])
    before, probabilities = facts(model, X), model.predict_proba(X)
    n_calls = call_with_error_at(
        -1,
        lambda: ConditionalProbabilityTreeClassifier(random_state=0).partial_fit(X[:60], y[:60]).partial_fit(X, y + 1),
    )
    n_failed = 0
    for number in range(1, n_calls):
        learn = model.partial_fit
        try:
            call_with_error_at(number, lambda learn=learn: learn(X, y + 1))
        except (InjectedError, RuntimeError):
            n_failed += 1
            assert facts(model, X) == before
            np.testing.assert_array_equal(model.predict_proba(X), probabilities)
        else:
            break
    assert n_failed > 5
    assert set(model.classes_) == {0, 1, 2, 3}
    assert model.predict_proba(X).shape == (150, 4)


OUT_OF_MEMORY = """
import resource, sys
import numpy as np
from margintree import MarginTreeClassifier, OneVsRestSVC
random = np.random.default_rng(0)
X, y = random.random((300, 20)), random.integers(0, 5, 300)
big, labels = random.random((2000, 2000)), random.integers(0, 30, 2000)
for model in (MarginTreeClassifier(random_state=0), OneVsRestSVC("rbf", random_state=0)):
    before = model.fit(X, y).predict(X)
    pages = int(open("/proc/self/statm").read().split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 20 * 2**20, limits[1]))
    try:
        model.fit(big, labels)
    except MemoryError:
        print("out of memory")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    assert model.n_features_in_ == 20
    assert np.array_equal(model.predict(X), before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bounds the memory of a process as Linux does")
def test_a_refit_that_runs_out_of_memory_leaves_the_earlier_model():
    done = subprocess.run([sys.executable, "-c", OUT_OF_MEMORY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["out of memory"] * 2


INTERRUPTED = f"""
import sys, threading, warnings
sys.path.insert(0, {str(Path(__file__).parents[2] / "benchmarks")!r})
import interrupted_fits
warnings.simplefilter("ignore")
# Python swallows interrupts that meet a destructor.
sys.unraisablehook = lambda _: None
for refit in interrupted_fits.all_refits(400, 30):
    print(refit.name, dict(interrupted_fits.interrupted(refit, 5, seed=1)), sep=" | ")
"""


@pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals to itself")
def test_ctrl_c_leaves_the_earlier_model_or_the_later_one_whole():
    """A few of the interrupts of ``benchmarks/interrupted_fits.py``, which sends five hundred to each estimator."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    outcomes = [ast.literal_eval(line.split(" | ")[1]) for line in done.stdout.splitlines()]
    assert len(outcomes) > len(ESTIMATORS)
    assert "FAILED" not in done.stdout
    # Most interrupts come in time, or they would say nothing.
    assert sum(outcome.get("earlier model", 0) for outcome in outcomes) > len(outcomes)
