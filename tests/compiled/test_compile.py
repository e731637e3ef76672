"""What is compiled in a process does what later processes load from the cache on disk."""

import os
import subprocess
import sys

PROGRAM = """
import numpy as np
import scipy.sparse as sp
from margintree.compiled import linear_dual, rows
from margintree.solvers.row_layout import layout

random = np.random.default_rng(0)
X = layout(sp.random(200, 300, density=0.05, format="csr", random_state=random))
planes = (X, np.repeat(np.arange(4), 50), np.where(random.random((4, 1)) < 0.5, -1.0, 1.0))
alpha, weights, decision = np.zeros(200), np.zeros((300, 1)), np.zeros(200)
signs = ridge = np.ones(200)
norms = rows.squared_norms(X, 200)
linear_dual.solve(planes, signs, ridge, norms, alpha, weights, decision, 1e-3, np.inf, 100, 1, np.zeros(1, dtype=bool))
print(sum(linear_dual.solve.stats.cache_hits.values()), alpha.tobytes().hex())
"""


def run(cache):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    n_from_cache, alpha = output.stdout.split()
    return int(n_from_cache), alpha


def test_the_process_that_compiles_has_the_last_bit_of_those_that_load_the_cache(tmp_path):
    # Functions that were called, not inlined, ran as compiled alone in the one and as part of the solver in the others.
    (n_before, compiled), (n_after, loaded) = run(tmp_path), run(tmp_path)
    assert (n_before, n_after) == (0, 1)
    assert compiled == loaded
