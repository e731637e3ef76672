"""How weights are stored: relative to the largest, pruned within a bound, read-only."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margintree.prediction.weight_table import WeightTable, n_cells
from margintree.solvers.classifier import LinearClassifier


def machine(weights, intercept=0.0):
    columns = np.flatnonzero(weights)
    return LinearClassifier(columns, weights[columns], intercept)


def sparse_weights(seed, n_weights, n_features=400, heavy_tail=2.0):
    random = np.random.default_rng(seed)
    weights = np.zeros(n_features)
    columns = random.permutation(n_features)[:n_weights]
    weights[columns] = random.normal(size=n_weights) * np.exp(heavy_tail * random.normal(size=n_weights))
    return weights


@given(seed=st.integers(0, 10**6), n_weights=st.integers(0, 120), prune=st.sampled_from([0.0, 0.01, 0.1, 0.5, 0.9]))
def test_pruning_drops_the_smallest_weights_as_far_as_it_may(weights_of, seed, n_weights, prune):
    weights = sparse_weights(seed, n_weights)
    stored = weights_of(WeightTable.from_classifiers([machine(weights)], 400, prune=prune))[0]
    kept = stored != 0.0
    np.testing.assert_allclose(stored[kept], weights[kept], rtol=1e-6)
    dropped = weights[~kept]
    length = np.linalg.norm(weights)
    assert np.linalg.norm(dropped) <= prune * length * (1 + 1e-12)
    if n_weights:
        smallest = np.abs(weights[kept]).min()
        assert np.abs(dropped).max(initial=0.0) <= smallest
        assert np.hypot(np.linalg.norm(dropped), smallest) > prune * length


def test_machines_that_stay_dense_are_not_pruned(weights_of):
    weights = sparse_weights(0, 30, n_features=60)
    table = WeightTable.from_classifiers([machine(weights)], 60, prune=0.5)
    assert table.n_weights[0] == -1
    np.testing.assert_allclose(weights_of(table)[0], weights, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-300, 1e-60, 1.0, 1e60, 1e300])
@pytest.mark.parametrize("n_weights", [20, 300], ids=["hashed", "dense"])
def test_weights_of_any_scale_keep_their_precision(weights_of, scale, n_weights):
    weights = sparse_weights(1, n_weights, heavy_tail=0.0)
    table = WeightTable.from_classifiers([machine(scale * weights), machine(weights)], 400)
    np.testing.assert_allclose(weights_of(table), [scale * weights, weights], rtol=1e-6, atol=0.0)


def test_places_without_a_machine_take_no_cells():
    weights = sparse_weights(2, 10)
    table = WeightTable.from_classifiers([None, machine(weights, 3.0), None], 400)
    np.testing.assert_array_equal(table.n_weights, [0, 10, 0])
    np.testing.assert_array_equal(np.diff(table.start), [0, n_cells(np.array(10), 400), 0])
    np.testing.assert_array_equal(table.intercept, [0.0, 3.0, 0.0])


def test_weights_that_are_zero_are_not_stored():
    with_zeros = LinearClassifier(np.arange(300), np.where(np.arange(300) < 4, 1.0, 0.0), 0.0)
    assert WeightTable.from_classifiers([with_zeros], 300).n_weights[0] == 4


def test_two_fifths_of_the_columns_make_a_dense_row():
    sizes = [1, 119, 120, 300]
    table = WeightTable.from_classifiers([machine(sparse_weights(0, size, 300)) for size in sizes], 300)
    np.testing.assert_array_equal(table.n_weights, [1, 119, -1, -1])


def test_a_sparse_weight_takes_two_and_a_half_cells():
    n_weights = np.arange(1, 10_000)
    assert (n_cells(n_weights, 10**6) <= 2.5 * n_weights + 2).all()


def test_equal_machines_give_equal_tables_and_none_can_be_written():
    weights = sparse_weights(3, 50)
    tables = [WeightTable.from_classifiers([machine(weights)], 400, prune=0.1) for _ in range(2)]
    np.testing.assert_array_equal(tables[0].cells, tables[1].cells)
    for array in tables[0].arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[:1] = 0


@given(seed=st.integers(0, 10**6), n_weights=st.lists(st.integers(0, 60), min_size=1, max_size=5))
def test_by_feature_the_weights_are_the_same(seed, n_weights):
    machines = [machine(sparse_weights(seed + m, n, n_features=60)) for m, n in enumerate(n_weights)]
    table = WeightTable.from_classifiers(machines, 60)
    expected = table.relative_weights(np.arange(len(machines)))
    arrays = table.by_feature()
    # A dense machine has a place for each feature.
    n_places = sum(60 if n >= 24 else n for n in n_weights)
    if n_places < 30:
        assert arrays is None
        return
    is_dense = n_places >= 0.4 * 60 * len(n_weights)
    assert len(arrays) == (1 if is_dense else 3)
    if is_dense:
        np.testing.assert_array_equal(arrays[0], expected)
        return
    start, number, weights = arrays
    found = np.zeros((60, len(machines)), dtype=np.float32)
    found[np.repeat(np.arange(60), np.diff(start.astype(np.int64))), number] = weights
    np.testing.assert_array_equal(found, expected)
    assert len(weights) == sum(n_weights)


def test_columns_that_do_not_exist_are_left_out():
    """They can only come from a file that was tampered with."""
    table = WeightTable.from_classifiers([machine(sparse_weights(0, 150)) for _ in range(2)], 400)
    cells = table.cells.copy()
    cells[2 * 38 :: 2] = 400
    start, number, weights = replace(table, cells=cells).by_feature()
    assert start[-1] == len(number) == len(weights) < 300
