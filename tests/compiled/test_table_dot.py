"""Inner products with tables of weights: every weight is found, nothing else is, and nothing outside is read."""

import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from margintree import compiled
from margintree.prediction.decider import Decider
from margintree.prediction.weight_table import WeightTable
from margintree.solvers.classifier import LinearClassifier
from margintree.solvers.row_layout import layout

WIDEST = 2**31 - 1
# A decider with a table of its own reads nothing of the forest.
NO_FOREST = (None,) * 11
GOLDEN = 0x9E3779B1


def values(table, X):
    """Return the value of every machine for every row, by the compiled loop."""
    n_rows, n_machines = X.shape[0], len(table.scale)
    row, machine = np.repeat(np.arange(n_rows), n_machines), np.tile(np.arange(n_machines), n_rows)
    result = np.empty(n_rows * n_machines)
    compiled.ranking.machine_values(layout(X), row, machine, Decider("rest", table).arrays(NO_FOREST), result)
    return result.reshape(n_rows, n_machines)


def random_machines(random, n_features, shares):
    """Return the weights of machines that use the given shares of the features, and the machines."""
    weights = np.zeros((len(shares), n_features))
    machines = []
    for row, share in zip(weights, shares, strict=True):
        columns = random.permutation(n_features)[: round(share * n_features)]
        row[columns] = random.normal(size=len(columns))
        machines.append(LinearClassifier(columns, row[columns], random.normal()))
    return weights, machines


@pytest.mark.parametrize("make", [np.ascontiguousarray, sp.csr_array], ids=["dense", "csr"])
@given(
    seed=st.integers(0, 10**6),
    n_features=st.sampled_from([1, 2, 3, 7, 64, 700]),
    shares=st.lists(st.sampled_from([0.0, 0.01, 0.1, 0.3, 0.4, 1.0]), min_size=1, max_size=6),
)
@settings(max_examples=60)
def test_values_are_those_of_a_matrix_product(make, seed, n_features, shares):
    random = np.random.default_rng(seed)
    weights, machines = random_machines(random, n_features, shares)
    X = random.normal(size=(5, n_features)) * (random.random((5, n_features)) < 0.5)
    X[0] = 0.0
    table = WeightTable.from_classifiers(machines, n_features)
    expected = X @ weights.T + [machine.intercept for machine in machines]
    room = 1e-6 * (1.0 + np.abs(X) @ np.abs(weights).T)
    assert (np.abs(values(table, make(X)) - expected) <= room).all()


def test_tables_have_dense_and_hashed_machines_side_by_side():
    _, machines = random_machines(np.random.default_rng(0), 60, [0.0, 0.1, 0.9])
    assert WeightTable.from_classifiers(machines, 60).n_weights.tolist() == [0, 6, -1]


def unit_rows(columns):
    columns = np.asarray(columns, dtype=np.int32)
    return sp.csr_array((np.ones(len(columns)), columns, np.arange(len(columns) + 1)), shape=(len(columns), WIDEST))


def weights_found(columns, asked):
    """Return what a machine with the weights 1, 2, 3... at some columns says for unit vectors."""
    weights = np.arange(1.0, len(columns) + 1.0)
    # A machine on either side: what is read of a neighbour would show.
    other = LinearClassifier(np.array([5, 6]), np.array([1e3, 1e3]), 0.0)
    machine = LinearClassifier(np.array(columns, dtype=np.int64), weights, 0.0)
    table = WeightTable.from_classifiers([other, machine, other], WIDEST)
    return values(table, unit_rows(asked))[:, 1]


columns_anywhere = st.one_of(
    st.integers(0, WIDEST - 1), st.integers(0, 40), st.integers(WIDEST - 40, WIDEST - 1), st.integers(2**30, 2**30 + 40)
)


@given(st.lists(columns_anywhere, max_size=60, unique=True), st.lists(columns_anywhere, max_size=20))
@settings(max_examples=150)
def test_every_stored_weight_is_found_and_no_other(columns, others):
    asked = columns + [column for column in others if column not in columns]
    expected = np.concatenate([np.arange(1.0, len(columns) + 1.0), np.zeros(len(asked) - len(columns))])
    np.testing.assert_allclose(weights_found(columns, asked), expected, rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("highest", [False, True], ids=["in the middle", "around the end"])
@pytest.mark.parametrize("n_weights", [2, 3, 8, 33])
def test_columns_with_the_same_place_are_all_found(n_weights, highest):
    inverse = pow(GOLDEN, -1, 2**32)
    around = range(2**32 - 1, 0, -1) if highest else range(2**31, 2**32)
    columns = []
    for product in around:
        column = product * inverse % 2**32
        if column < WIDEST:
            columns.append(column)
        if len(columns) == n_weights + 5:
            break
    places = {column * GOLDEN % 2**32 * (4 * n_weights // 3) >> 32 for column in columns}
    assert len(places) == 1
    expected = np.concatenate([np.arange(1.0, n_weights + 1.0), np.zeros(5)])
    np.testing.assert_allclose(weights_found(columns[:n_weights], columns), expected, rtol=1e-6)


AT_THE_EDGE = """
import ctypes, mmap, sys
from dataclasses import replace
import numpy as np, scipy.sparse as sp
from margintree import compiled
from margintree.prediction.decider import Decider
from margintree.prediction.weight_table import WeightTable
from margintree.solvers.classifier import LinearClassifier
from margintree.solvers.row_layout import layout

NO_FOREST = (None,) * 11
n_features = 400
page = mmap.PAGESIZE
pages = mmap.mmap(-1, 2 * page)
address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mprotect(ctypes.c_void_p(address + page), ctypes.c_size_t(page), 0) == 0
for case in sys.argv[1:]:
    sizes = [int(size) for size in case.split()]
    machines = [LinearClassifier(np.arange(size), np.ones(size), 7.0) for size in sizes]
    table = WeightTable.from_classifiers(machines, n_features)
    n_cells = len(table.cells)
    cells = np.frombuffer(pages, dtype=np.uint32, count=n_cells, offset=page - 4 * n_cells)
    cells[:] = table.cells
    table = replace(table, cells=cells)
    row, machine = np.zeros(len(sizes), dtype=np.int64), np.arange(len(sizes))
    for X in (np.ones((1, n_features)), sp.csr_array(np.ones((1, n_features)))):
        result = np.empty(len(sizes))
        compiled.ranking.machine_values(layout(X), row, machine, Decider("rest", table).arrays(NO_FOREST), result)
        print(*result.astype(int), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="protects a page with mprotect")
def test_nothing_behind_the_cells_is_read():
    # The cells end where a page begins that the process may not touch: one read too many ends the process.
    cases = ["3", "400", "0", "3 0", "0 0", "50 400 0"]
    done = subprocess.run([sys.executable, "-c", AT_THE_EDGE, *cases], capture_output=True, text=True, check=False)
    expected = [" ".join(str(int(size) + 7) for size in case.split()) for case in cases for _ in ("dense", "sparse")]
    assert done.stdout.splitlines() == expected, done.stderr
    assert done.returncode == 0, done.stderr


def test_columns_that_were_chosen_to_collide_take_no_longer_than_others():
    # All of them have their bits in few words of the filter; each of many would be compared with all others.
    n_columns = 100_000
    products = np.arange(2**31, 2**31 + 3 * n_columns, dtype=np.uint64)
    columns = products * np.uint64(pow(GOLDEN, -1, 2**32)) % np.uint64(2**32)
    columns = columns[columns < WIDEST][:n_columns].astype(np.int64)
    # Compiles.
    weights_found(columns[:100], columns[:100])
    began = time.perf_counter()
    found = weights_found(columns, columns[:1000])
    assert time.perf_counter() - began < 5.0
    np.testing.assert_allclose(found, np.arange(1.0, 1001.0), rtol=1e-6)
