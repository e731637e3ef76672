"""What gathering promises: the rows of a node as scipy would slice them, over the columns in use."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from margintree.compiled import gather
from margintree.solvers.row_layout import layout

NARROW, WIDE = 30, 100_000

widths = pytest.mark.parametrize("n_columns", [NARROW, WIDE], ids=["few columns", "very many columns"])
constants = pytest.mark.parametrize("constant", [False, True])


def random_matrix(seed: int, n_rows: int, n_columns: int) -> sp.csr_array:
    """Return rows with 0 to 5 values, the columns of each row in any order."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 6, size=n_rows)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    columns = [random.choice(n_columns, size=length, replace=False) for length in lengths]
    indices = np.concatenate([*columns, np.empty(0, dtype=np.int64)])
    return sp.csr_array((random.normal(size=indptr[-1]), indices, indptr), shape=(n_rows, n_columns))


def gathered(X: sp.csr_array, rows: npt.NDArray[np.int64], constant: bool) -> tuple[Any, Any, sp.csr_array]:
    indptr, indices, values = layout(X)
    columns, stored = gather.used_columns(indptr, indices, rows, X.shape[1])
    arrays = gather.gather(indptr, indices, values, rows, columns, stored, X.shape[1], constant)
    matrix = sp.csr_array((arrays[2], arrays[1], arrays[0]), shape=(len(rows), len(columns) + constant))
    return columns, stored, matrix


def takes_the_table(n_columns: int, stored: int) -> bool:
    return n_columns <= 8 * stored


@widths
@constants
@given(seed=st.integers(0, 100_000), n_rows=st.integers(15, 40), n_chosen=st.integers(10, 40))
@settings(max_examples=40)
def test_gathered_rows_equal_scipy_slicing(
    n_columns: int, constant: bool, seed: int, n_rows: int, n_chosen: int
) -> None:
    X = random_matrix(seed, n_rows, n_columns)
    rows = np.random.default_rng(seed).permutation(n_rows)[:n_chosen]
    columns, stored, matrix = gathered(X, rows, constant)
    sliced = sp.csr_array(X[rows])
    expected_columns = np.unique(sliced.indices)
    np.testing.assert_array_equal(columns, expected_columns)
    assert stored == sliced.nnz
    expected = sliced[:, expected_columns].toarray()
    np.testing.assert_array_equal(matrix.toarray()[:, : len(columns)], expected)
    if constant:
        np.testing.assert_array_equal(matrix.toarray()[:, -1], 1.0)


@widths
def test_each_width_takes_its_own_branch(n_columns: int) -> None:
    X = random_matrix(0, 30, n_columns)
    _, stored, _ = gathered(X, np.arange(30), False)
    assert takes_the_table(n_columns, stored) == (n_columns == NARROW)


@constants
def test_both_branches_give_the_same_rows(constant: bool) -> None:
    narrow = random_matrix(1, 30, NARROW)
    wide = sp.csr_array((narrow.data, narrow.indices, narrow.indptr), shape=(30, WIDE))
    rows = np.arange(29, -1, -1)
    first, second = gathered(narrow, rows, constant), gathered(wide, rows, constant)
    np.testing.assert_array_equal(first[0], second[0])
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(first[2], name), getattr(second[2], name))


@widths
@constants
def test_rows_without_values_are_kept(n_columns: int, constant: bool) -> None:
    X = sp.csr_array((4, n_columns))
    columns, stored, matrix = gathered(X, np.array([2, 0, 3]), constant)
    assert (len(columns), stored) == (0, 0)
    assert matrix.shape == (3, int(constant))
    np.testing.assert_array_equal(matrix.toarray(), np.ones((3, int(constant))))


@widths
def test_stored_zeros_keep_their_column(n_columns: int) -> None:
    X = sp.csr_array((np.array([0.0, 2.0]), np.array([3, 5]), np.array([0, 1, 2])), shape=(2, n_columns))
    columns, stored, matrix = gathered(X, np.array([0, 1]), False)
    np.testing.assert_array_equal(columns, [3, 5])
    assert stored == 2
    np.testing.assert_array_equal(matrix.toarray(), [[0.0, 0.0], [0.0, 2.0]])


def test_index_types_of_the_matrix_do_not_matter() -> None:
    X = random_matrix(2, 20, NARROW)
    rows = np.arange(0, 20, 2)
    expected = gathered(X, rows, True)[2].toarray()
    for dtype in (np.int32, np.int64):
        X.indptr, X.indices = X.indptr.astype(dtype), X.indices.astype(dtype)
        np.testing.assert_array_equal(gathered(X, rows, True)[2].toarray(), expected)
