"""Faults in the middle of a fit: an error in one node, Ctrl-C, a cache that cannot be written."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

import margintree
from margintree import MarginTreeClassifier
from margintree.splits.bounds import conclude

LABELS = np.array(["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen"])


class NodeError(RuntimeError):
    pass


class FailsWithThree:
    """Halves the classes, and fails at the first node that holds gnu without ant."""

    def __init__(self):
        self.n_begun = 0

    def divide(self, node):
        self.n_begun += 1
        if node.n_classes == 4 and node.sizes[2] == 13:
            raise NodeError("no split")
        time.sleep(0.01)
        return conclude(node, np.where(np.arange(node.n_classes) < node.n_classes / 2, 1.0, -1.0))


def eight_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(LABELS, [10, 11, 10, 11, 10, 11, 13, 10])
    return rng.standard_normal((len(y), 6)), y


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_an_error_in_a_node_keeps_its_type_and_names_the_node(n_jobs):
    X, y = eight_classes()
    with pytest.raises(NodeError, match="no split") as caught:
        MarginTreeClassifier(split=FailsWithThree(), n_jobs=n_jobs).fit(X, y)
    [note] = caught.value.__notes__
    assert "4 classes (eel, fox, gnu, hen) with 44 rows" in note
    assert "at depth 1, path R from the root" in note


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_no_node_is_begun_after_an_error(n_jobs):
    X, y = eight_classes()
    split = FailsWithThree()
    with pytest.raises(NodeError):
        MarginTreeClassifier(split=split, n_jobs=n_jobs).fit(X, y)
    begun = split.n_begun
    time.sleep(0.1)
    # A node that another thread had taken already may have come as far as its split in the meantime.
    assert split.n_begun - begun <= n_jobs - 1
    assert split.n_begun < 7
    assert not [t for t in threading.enumerate() if t.name == "margintree"]


def test_a_failed_fit_leaves_the_earlier_model_as_it_was():
    X, y = eight_classes()
    model = MarginTreeClassifier(random_state=0).fit(X, y)
    before = model.predict_proba(X)
    model.set_params(split=FailsWithThree())
    with pytest.raises(NodeError):
        model.fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), before)


CHILD = """
import sys, threading
import numpy as np
from margintree import MarginTreeClassifier

n_jobs, catches = int(sys.argv[1]), sys.argv[2] == "catches"
rng = np.random.default_rng(0)
y = np.arange(20000) % 12
X = rng.standard_normal((len(y), 300)) + 0.02 * rng.standard_normal((12, 300))[y]
few = slice(0, 240)
small = MarginTreeClassifier("linear", n_jobs=n_jobs, tol=0.1, random_state=0)
expected = small.fit(X[few], y[few]).predict(X[few])
print("ready", flush=True)
try:
    MarginTreeClassifier("linear", C=100.0, n_jobs=n_jobs, tol=1e-6, max_iter=100000).fit(X, y)
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    if not catches:
        raise
    print("same", np.array_equal(small.fit(X[few], y[few]).predict(X[few]), expected), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(("n_jobs", "catches"), [(1, True), (4, True), (4, False)])
def test_ctrl_c_ends_a_fit_within_a_second_and_another_fit_works(n_jobs, catches):
    arguments = [str(n_jobs), "catches" if catches else "dies"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", CHILD, *arguments], **pipes) as child:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)
        began = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert time.monotonic() - began < 1.0
        output, errors = child.communicate(timeout=60)
    if catches:
        assert (output, errors, child.returncode) == ("same True\n", "", 0)
    else:
        assert time.monotonic() - began < 2.0
        assert child.returncode == -signal.SIGINT
        assert errors.count("Traceback") == 1
        assert errors.strip().endswith("KeyboardInterrupt")


FIT = """
from sklearn.datasets import load_iris
from margintree import MarginTreeClassifier, compiled
X, y = load_iris(return_X_y=True)
model = MarginTreeClassifier(split="random", walk="greedy", calibration_folds=0, random_state=0)
print(model.fit(X, y).predict(X).tolist(), type(compiled.linear_dual.solve._cache).__name__)
"""


def test_a_cache_that_cannot_be_written_only_costs_compilation(tmp_path):
    # Nothing can be made below a file, whoever asks. numba tries its own setting, the package and the home directory.
    blocked = tmp_path / "a file"
    blocked.touch()
    package = tmp_path / "site" / "margintree"
    shutil.copytree(Path(margintree.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "compiled" / "__pycache__").touch()
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(blocked / "cache"),
        "HOME": str(blocked),
        "XDG_CACHE_HOME": str(blocked),
        "PYTHONPATH": str(package.parent),
    }
    done = subprocess.run([sys.executable, "-c", FIT], env=environment, capture_output=True, text=True, check=False)
    X, y = load_iris(return_X_y=True)
    model = MarginTreeClassifier(split="random", walk="greedy", calibration_folds=0, random_state=0).fit(X, y)
    assert done.returncode == 0, done.stderr
    # Each process compiles anew, and says so.
    assert [line[:40] for line in done.stderr.splitlines()] == ["margintree compiles its loops for this m"]
    assert done.stdout == f"{model.predict(X).tolist()} NullCache\n"
