"""Rows with many empty columns: the same products, in memory that goes by the entries."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.used_columns import over_used_columns

N_COLUMNS = 2**31 - 1


def spread_out(rows, columns):
    small = sp.coo_array(rows)
    return sp.csr_array((small.data, (small.row, columns[small.col])), shape=(len(rows), N_COLUMNS))


@pytest.fixture
def pair():
    """Return two dense matrices, and the same ones spread over columns that would not fit into memory."""
    random = np.random.default_rng(0)
    dense = [np.where(random.random((n, 50)) < 0.3, random.normal(size=(n, 50)), 0.0) for n in (4, 6)]
    columns = np.sort(random.choice(N_COLUMNS, 50, replace=False))
    return dense, [spread_out(rows, columns) for rows in dense]


def test_inner_products_stay_the_same_bit_for_bit(pair):
    dense, wide = pair
    A, B = over_used_columns(*wide)
    assert A.shape[1] == B.shape[1] <= 50
    expected = sp.csr_array(dense[0]) @ sp.csr_array(dense[1]).T
    np.testing.assert_array_equal((A @ B.T).toarray(), expected.toarray())


def test_rows_of_usual_width_and_dense_ones_are_left_alone(pair):
    dense, wide = pair
    for A, B in (dense, [sp.csr_array(rows) for rows in dense], [wide[0].tocoo(), wide[1]]):
        found = over_used_columns(A, B)
        assert found[0] is A
        assert found[1] is B


def test_empty_rows_keep_their_number():
    A, B = over_used_columns(sp.csr_array((3, N_COLUMNS)), sp.csr_array((2, N_COLUMNS)))
    assert (A.shape[0], B.shape[0]) == (3, 2)
    assert not (A @ B.T).toarray().any()


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_kernel_values_take_memory_by_the_entries(pair, kernel):
    dense, wide = pair
    function = KernelFunction(kernel, gamma=0.1)
    tracemalloc.start()
    try:
        values = function(*wide)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**22
    np.testing.assert_allclose(values, function(*dense), rtol=1e-12)
