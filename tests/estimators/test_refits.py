"""A fit that fails, at whatever point, leaves the earlier model, its attributes and its predictions as they were."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from interrupted_fits import (
    EARLIER,
    ESTIMATORS,
    LATER,
    Refit,
    calls_of,
    failed_at_calls,
    failed_at_each_call,
)
from sklearn.base import clone
from sklearn.datasets import load_iris

from margintree import ConditionalProbabilityTreeClassifier


# An error that meets a worker thread before it has a task ends the thread, which its caller tells by a RuntimeError.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_an_error_at_any_place_of_a_refit_leaves_the_model_as_it_was(estimator):
    """The first call from every line that calls a function; ``benchmarks/interrupted_fits.py`` takes every call."""
    refit = Refit(estimator, 60, 8, n_whole=1)
    calls = calls_of(refit)
    first_calls = sorted({call: number for number, call in reversed(list(enumerate(calls, 1)))}.values())
    outcomes = failed_at_calls(refit, first_calls)
    assert set(outcomes) <= {EARLIER, LATER}
    assert outcomes.total() > 50
    # Python swallows what meets the end of a generator.
    assert outcomes[LATER] <= 0.1 * outcomes.total()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_rows_of_a_refit_that_was_refused_are_refused_by_the_earlier_model(estimator):
    X, y = load_iris(return_X_y=True)
    model = clone(estimator).fit(X, y)
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
    refit = Refit(ConditionalProbabilityTreeClassifier(random_state=0), 60, 8, "partial_fit", n_whole=1)
    before = refit.earlier.predict_proba(refit.rows)
    outcomes = failed_at_each_call(refit)
    assert set(outcomes) <= {EARLIER, LATER}
    assert outcomes[EARLIER] > 40
    np.testing.assert_array_equal(refit.earlier.predict_proba(refit.rows), before)
    refit.learn(refit.earlier)
    assert refit.earlier.predict_proba(refit.rows).shape == (60, 8)
    assert len(refit.earlier.classes_) == 8


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
