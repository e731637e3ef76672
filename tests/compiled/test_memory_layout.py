"""Results do not depend on where arrays lie in memory: neighbours must not keep a sum out of vector registers."""

import numpy as np
import pytest

from margintree.compiled import kernel_dual, softmax_dual
from margintree.worker_threads import stop_flag

N_ROWS, N_TRIALS = 14, 200


def placed(arrays, gap):
    """Copy arrays of floats into one piece of memory, with so many numbers between them."""
    room = np.zeros(sum(array.size + gap for array in arrays))
    result, first = [], 0
    for array in arrays:
        result.append(room[first : first + array.size])
        result[-1][:] = array
        first += array.size + gap
    return result


@pytest.mark.parametrize("gap", range(6))
def test_values_of_a_kernel_machine(gap):
    random = np.random.default_rng(0)
    for _ in range(N_TRIALS):
        alpha = random.random(N_ROWS) * (random.random(N_ROWS) < 0.5)
        arrays = [alpha, random.normal(size=N_ROWS), *random.random((3, N_ROWS)), np.empty(N_ROWS)]
        # The gains are what is stored, here just behind each of the other arrays in turn.
        arrays = [arrays[i] for i in random.permutation(5)] + arrays[5:]
        near, far = placed(arrays, gap), placed(arrays, 100)
        assert kernel_dual.weigh(*near) == kernel_dual.weigh(*far)
        np.testing.assert_array_equal(near[-1], far[-1])


def in_changing_places(function, random):
    """Call a function while the heap changes, and return the different results."""
    kept, found = [], set()
    for _ in range(2 * N_TRIALS):
        kept.append(np.empty(random.integers(1, 24)))
        if random.random() < 0.5:
            kept.pop(random.integers(len(kept)))
        found.add(function())
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
