"""Twenty thousand classes: nothing of size rows x classes or classes x features may exist, in fit or in predict."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

MEGABYTE = 2**20
N_CLASSES, N_ROWS, N_FEATURES = 20_000, 40_000, 40_000

MEASURE = """
import json, sys
from pathlib import Path
import numpy as np, scipy.sparse as sp
from margintree import MarginTreeClassifier

def problem(n_classes, n_features):
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), 2)
    own = random.integers(0, n_features, size=(n_classes, 4))
    columns = np.hstack([own[y], random.integers(0, n_features, size=(len(y), 2))])
    X = sp.csr_array((np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, 6)), (len(y), n_features))
    X.sum_duplicates()
    return X, y

def use(X, y):
    # The structure is drawn, which is quick; all else is the default: folds, sigmoids, finalists, deciders.
    model = MarginTreeClassifier(split="random", random_state=0).fit(X, y)
    accuracy = float(np.mean(model.predict(X) == y))
    model.predict_top_k(X, 5)
    row = model.single_instance().predict(X.indices[: X.indptr[1]], X.data[: X.indptr[1]])
    return {"accuracy": accuracy, "row": int(row), "evaluations": float(model.n_evaluations(X).mean())}

def memory(name):
    lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[name].split()[0]) * 1024

n_classes, n_features = int(sys.argv[1]), int(sys.argv[2])
use(*problem(300, 2000))  # compiles
X, y = problem(n_classes, n_features)
before = memory("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
found = use(X, y)
print(json.dumps({**found, "n_rows": len(y), "bytes": memory("VmHWM") - before}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads the peak of memory from Linux's /proc")
def test_memory_stays_far_below_rows_times_classes_and_classes_times_features():
    command = [sys.executable, "-c", MEASURE, str(N_CLASSES), str(N_FEATURES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["n_rows"] == N_ROWS
    # Even with one byte per entry either matrix would take 762 MB; of numbers, eight times that.
    assert min(N_ROWS * N_CLASSES, N_CLASSES * N_FEATURES) > 760 * MEGABYTE
    assert found["bytes"] < 450 * MEGABYTE
    # What is measured has learned its classes, and asks few machines.
    assert found["accuracy"] > 0.95
    assert found["row"] == 0
    assert found["evaluations"] < 0.01 * N_CLASSES
