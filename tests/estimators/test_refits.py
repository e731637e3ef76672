"""A fit that fails, at whatever point, leaves the earlier model, its attributes and its predictions as they were."""

import os
import signal
import subprocess
import sys
import threading
import time

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


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
from margintree import ConditionalProbabilityTreeClassifier
random = np.random.default_rng(0)
X, y = random.random((4000, 50)), random.integers(0, 400, 4000)
model = ConditionalProbabilityTreeClassifier(random_state=0).partial_fit(X[:400], y[:400] % 40)
began = time.perf_counter()
model_of_all = ConditionalProbabilityTreeClassifier(random_state=0).partial_fit(X[:400], y[:400] % 40).partial_fit(X, y)
seconds = time.perf_counter() - began
before, n_interrupted = model.predict_proba(X), 0
for part in np.linspace(0.0, 1.0, 25):
    timer = threading.Timer(part * seconds, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        model.partial_fit(X, y)
        timer.join()
        time.sleep(0.01)
    except KeyboardInterrupt:
        n_interrupted += 1
    timer.join()
    if len(model.classes_) == len(model_of_all.classes_):
        model = ConditionalProbabilityTreeClassifier(random_state=0).partial_fit(X[:400], y[:400] % 40)
    else:
        assert len(model.classes_) == 40, len(model.classes_)
    assert np.array_equal(model.predict_proba(X), before)
print(n_interrupted)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals to itself")
def test_ctrl_c_in_partial_fit_leaves_the_whole_batch_or_none_of_it():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5


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


REFITS_INTERRUPTED = """
import os, signal, threading, time
import numpy as np
from margintree import MarginTreeClassifier
random = np.random.default_rng(0)
X, y = random.random((600, 20)), random.integers(0, 8, 600)
model = MarginTreeClassifier(random_state=0).fit(X[:, :5], y)
MarginTreeClassifier(random_state=0).fit(X, y)
began = time.perf_counter()
MarginTreeClassifier(random_state=0).fit(X, y)
seconds, before, n_interrupted = time.perf_counter() - began, model.predict_proba(X[:, :5]), 0
for part in np.linspace(0.0, 0.95, 20):
    timer = threading.Timer(part * seconds, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        model.fit(X, y)
        timer.join()
        time.sleep(0.01)
    except KeyboardInterrupt:
        n_interrupted += 1
    timer.join()
    if model.n_features_in_ == 20:
        model = MarginTreeClassifier(random_state=0).fit(X[:, :5], y)
    assert np.array_equal(model.predict_proba(X[:, :5]), before)
print(n_interrupted)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals to itself")
def test_ctrl_c_in_a_refit_leaves_the_earlier_model():
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", REFITS_INTERRUPTED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr} after {time.perf_counter() - began:.0f} s, {signal.SIGINT}"
    assert int(done.stdout) > 5
