"""Results do not depend on where arrays lie in memory: neighbours must not keep a sum out of vector registers."""

import ctypes

import numpy as np
import pytest

from margintree.compiled import softmax_dual
from margintree.worker_threads import stop_flag

N_TRIALS = 400


def in_changing_places(function, random):
    """Call a function while free memory comes in changing pieces, and return the different results."""
    library, taken, found = ctypes.CDLL(None), [], set()
    library.malloc.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    for _ in range(N_TRIALS):
        taken += [library.malloc(int(size)) for size in random.integers(40, 300, size=20)]
        random.shuffle(taken)
        for place in taken[100:]:
            library.free(place)
        del taken[100:]
        found.add(function())
    for place in taken:
        library.free(place)
    return found


def test_logistic_regression():
    random = np.random.default_rng(0)
    n_classes, n_rows = 7, 60
    own = np.arange(n_rows) % n_classes
    Z = (random.normal(size=(n_classes, 5))[own] + random.normal(size=(n_rows, 5))).astype(np.float32)
    listed = np.array([np.roll(np.arange(n_classes), -k) for k in own], dtype=np.int32)
    offsets = random.normal(size=listed.shape).astype(np.float32)

    def intercepts():
        weights, found = np.zeros((n_classes, 5), dtype=np.float32), np.zeros(n_classes)
        softmax_dual.solve(
            Z, np.arange(n_rows), listed.copy(), offsets.copy(), np.ones(n_rows), weights, found, 1e-3, 5, stop_flag()
        )
        return found.tobytes()

    assert len(in_changing_places(intercepts, random)) == 1


@pytest.mark.parametrize("rows_per_class", [2, 6])
def test_a_kernel_machine(rows_per_class, compact_problem):
    rows = compact_problem(n_classes=2, rows_per_class=rows_per_class).kernel_rows()

    def solution():
        found = rows.solve(np.array([1.0, -1.0]), tol=1e-4, max_iter=1000)
        return np.concatenate([found.alpha, found.decision, [found.objective, found.dual_objective]]).tobytes()

    assert len(in_changing_places(solution, np.random.default_rng(0))) == 1
