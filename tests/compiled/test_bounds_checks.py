"""Kernels index without looking; here some of their tests run once in code that does look.

The whole of it takes minutes, most of them to compile:

    NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=/tmp/checked python -m pytest tests/compiled tests/prediction
"""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]

# A child number beyond the end: without the checks this reads whatever lies there.
CANARY = """
import numpy as np
from margintree.class_tree import ClassTree
from margintree.compiled.walk import greedy
from margintree.prediction.linear_tree import LinearTree
from margintree.solvers.classifier import LinearClassifier
from margintree.solvers.row_layout import layout, read_only

tree = ClassTree([1, -1, -1], [2, -1, -1], [-1, 0, 1])
model = LinearTree.of_trees([(tree, [LinearClassifier(np.arange(2), np.ones(2), 0.0)])], 2)
forest = list(model.forest)
forest[1] = read_only(np.array([99, -1, -1]))
try:
    greedy(layout(np.ones((1, 2))), 0, 1, tuple(forest), np.empty(1, dtype=np.int32))
except IndexError:
    import sys, pytest
    sys.exit(pytest.main(sys.argv[1:]))
raise SystemExit("a wrong child number was followed")
"""


def test_no_kernel_reads_or_writes_outside_of_its_arrays(tmp_path):
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    selection = ["compiled/test_table_dot.py", "compiled/test_walk.py", "compiled/test_gather.py"]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *(str(TESTS / name) for name in selection)]
    done = subprocess.run(
        [sys.executable, "-c", CANARY, *options], env=environment, cwd=TESTS.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
