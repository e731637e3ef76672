"""Machines without a tree, one row at a time: what their predictor takes."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from margintree.prediction.machine_set import LinearMachines
from margintree.prediction.single_instance import FlatInstancePredictor

N_FEATURES, N_MACHINES, N_COLUMNS = 2**31 - 1, 6, 100


@pytest.fixture
def wide():
    """Return machines over more features than fit into memory, the columns that they use, and their weights."""
    random = np.random.default_rng(0)
    columns = np.sort(random.choice(N_FEATURES, N_COLUMNS, replace=False)).astype(np.int32)
    weights = np.round(random.normal(size=(N_MACHINES, N_COLUMNS)), 3)
    start = N_COLUMNS * np.arange(N_MACHINES + 1)
    matrix = sp.csc_array(
        (weights.ravel(), np.tile(columns, N_MACHINES), start),
        shape=(N_FEATURES, N_MACHINES),
    )
    return LinearMachines(matrix, np.zeros(N_MACHINES)), columns, weights


def peak_of(work):
    # Whatever is imported and compiled at first use is not counted.
    work()
    tracemalloc.start()
    try:
        result = work()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_goes_by_the_weights_however_many_features_a_file_claims(wide):
    machines, columns, weights = wide
    classes = np.arange(N_MACHINES)
    one, peak = peak_of(lambda: FlatInstancePredictor.by_largest_value(machines, classes, N_FEATURES))
    assert peak < 2**20
    random = np.random.default_rng(1)
    for _ in range(20):
        values = random.normal(size=N_COLUMNS)
        assert one.predict(columns, values) == np.argmax(weights @ values)


def test_a_batch_takes_memory_by_rows_and_weights_too(wide):
    machines, columns, weights = wide
    dense = np.random.default_rng(1).normal(size=(7, N_COLUMNS))
    dense[2, 30:60] = 0.0
    # Columns without a weight, before, between and behind those with one, change nothing.
    others = np.setdiff1d([0, columns[50] + 1, N_FEATURES - 1], columns)
    small = sp.coo_array(np.hstack([dense, np.ones((7, len(others)))]))
    every = np.concatenate([columns, others])
    X = sp.csr_array((small.data, (small.row, every[small.col])), shape=(7, N_FEATURES))
    values, peak = peak_of(lambda: machines.decisions(X))
    assert peak < 2**20
    np.testing.assert_allclose(values, dense @ weights.T, atol=1e-12)
    np.testing.assert_allclose(machines.decisions(X, np.array([4, 1])), (dense @ weights.T)[:, [4, 1]], atol=1e-12)
    assert not machines.decisions(sp.csr_array((3, N_FEATURES))).any()
