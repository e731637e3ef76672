"""Machines without a tree, one row at a time: what their predictor takes."""

import tracemalloc

import numpy as np
import scipy.sparse as sp

from margintree.prediction.flat_instance import FlatInstancePredictor
from margintree.prediction.machine_set import LinearMachines


def test_memory_goes_by_the_weights_however_many_features_a_file_claims():
    n_features, n_machines = 2**31 - 1, 6
    random = np.random.default_rng(0)
    columns = np.sort(random.choice(n_features, 100, replace=False)).astype(np.int32)
    weights = np.round(random.normal(size=(n_machines, 100)), 3)
    machines = LinearMachines(
        sp.csc_array(
            (weights.ravel(), np.tile(columns, n_machines), 100 * np.arange(n_machines + 1)),
            shape=(n_features, n_machines),
        ),
        np.zeros(n_machines),
    )
    # Whatever is imported and compiled at first use is not counted.
    FlatInstancePredictor.by_largest_value(machines, np.arange(n_machines), n_features)
    tracemalloc.start()
    try:
        one = FlatInstancePredictor.by_largest_value(machines, np.arange(n_machines), n_features)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**20
    for _ in range(20):
        values = random.normal(size=100)
        assert one.predict(columns, values) == np.argmax(weights @ values)
