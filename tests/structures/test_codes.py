"""Code matrices: columns that differ, rows that differ, and errors for matrices that do not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margintree.estimators.training_data import linear_set, prepare
from margintree.structures import codes
from margintree.training.code_machines import train_columns, training_accuracy
from margintree.training.machines import Trainer

MAKERS = {
    "dense": lambda n_classes, seed: codes.dense_code(n_classes, seed=seed, n_draws=3),
    "sparse": lambda n_classes, seed: codes.sparse_code(n_classes, seed=seed, n_draws=3),
    "one_vs_one": lambda n_classes, seed: codes.one_vs_one_code(n_classes),
    "one_vs_rest": lambda n_classes, seed: codes.one_vs_rest_code(n_classes),
}


@pytest.mark.parametrize("name", MAKERS)
@given(n_classes=st.integers(2, 40), seed=st.integers(0, 2**31 - 1))
@settings(max_examples=40)
def test_no_column_is_constant_or_repeated_and_no_two_rows_are_equal(name, n_classes, seed):
    code = MAKERS[name](n_classes, seed)
    assert code.dtype == np.int8
    assert set(np.unique(code)) <= {-1, 0, 1}
    columns = [tuple(column) for column in code.T.tolist()]
    for column in columns:
        assert 1 in column
        assert -1 in column
    assert len({*columns, *(tuple(-entry for entry in column) for column in columns)}) == 2 * len(columns)
    rows = [tuple(row) for row in code.tolist()]
    assert len(set(rows)) == n_classes
    assert all(any(row) for row in rows)
    np.testing.assert_array_equal(codes.checked_code(code.tolist(), n_classes), code)


@pytest.mark.parametrize("n_classes", [6, 8, 21, 40])
def test_random_codes_have_the_length_and_the_share_of_zeros_that_was_asked_for(n_classes):
    dense, sparse = codes.dense_code(n_classes), codes.sparse_code(n_classes)
    assert dense.shape[1] == min(2 ** (n_classes - 1) - 1, np.ceil(10 * np.log2(n_classes)))
    assert dense.all()
    assert sparse.shape[1] == np.ceil(15 * np.log2(n_classes))
    assert 0.35 < np.mean(sparse == 0) < 0.6


@pytest.mark.parametrize(("n_classes", "n_dense", "n_sparse"), [(2, 1, 1), (3, 3, 6), (4, 7, 25)])
def test_few_classes_have_all_columns_that_differ(n_classes, n_dense, n_sparse):
    assert codes.dense_code(n_classes).shape[1] == n_dense
    assert codes.sparse_code(n_classes).shape[1] == n_sparse


def test_more_draws_never_bring_rows_closer():
    distances = [codes.least_distance(codes.dense_code(12, n_draws=n, seed=5)) for n in (1, 10, 100)]
    assert distances == sorted(distances)
    assert distances[-1] > distances[0]


def test_least_distance_is_that_of_the_closest_pair(monkeypatch):
    monkeypatch.setattr(codes, "BLOCK_DISTANCES", 20)
    code = codes.sparse_code(9, seed=1, n_draws=1)
    pairs = [0.5 * np.sum(1 - code[k] * code[m]) for k in range(9) for m in range(k)]
    assert codes.least_distance(code) == min(pairs)


def test_a_seed_fixes_the_code():
    np.testing.assert_array_equal(codes.dense_code(12, seed=3), codes.dense_code(12, seed=3))
    assert not np.array_equal(codes.dense_code(12, seed=3), codes.dense_code(12, seed=4))


def test_too_few_columns_are_refused():
    with pytest.raises(ValueError, match="No code of 2 columns was found that distinguishes 9 classes"):
        codes.dense_code(9, 2)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1], [-1]], r"one row for each of the 3 classes.*got shape \(2, 1\)"),
        ([1, -1, 0], r"got shape \(3,\)"),
        (np.zeros((3, 0)), r"at least one column"),
        ([[1, 2], [-1, 1], [0, -1]], r"-1, 0 and 1; got \[2\]"),
        ([[1, np.nan], [-1, 1], [0, -1]], r"-1, 0 and 1; got \[nan\]"),
        ([["a", "b"], ["a", "c"], ["c", "c"]], r"-1, 0 and 1; got"),
        ([[1, 1], [-1, 1], [0, 1]], r"both 1 and -1; columns \[1\]"),
        ([[1, 1], [-1, 0], [0, 0]], r"both 1 and -1; columns \[1\]"),
        ([[1, 1, 1], [-1, 0, -1], [0, -1, 0]], "Columns 0 and 2 of the code are equal or negatives"),
        ([[0, 1, 0], [1, -1, -1], [-1, 0, 1]], "Columns 0 and 2 of the code are equal or negatives"),
        ([[1], [-1], [-1]], "Rows 1 and 2 of the code are equal"),
        ([[1], [-1], [0]], r"Rows \[2\] of the code are zero"),
    ],
)
def test_a_matrix_that_is_no_code_is_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        codes.checked_code(matrix, 3)


@pytest.mark.parametrize("name", MAKERS)
def test_accuracy_counts_the_rows_of_a_class_on_its_side_by_weight(name):
    random = np.random.default_rng(0)
    y = random.integers(0, 5, size=60)
    X = random.normal(size=(60, 3)) + y[:, None]
    weight = random.uniform(0.5, 2.0, size=60)
    data = prepare(X, y, weight, C=1.0, class_weight=None, pairwise=False, in_place=False)
    training_set = linear_set(data, fit_intercept=True)
    code = MAKERS[name](5, 0)
    machines = train_columns(Trainer(training_set, 1e-3, 1000, 0), code)
    accuracy = training_accuracy(training_set, code, machines, data.sample_weight)
    for j, machine in enumerate(machines):
        found = machine.classifier
        values = X[:, found.columns] @ found.weights + found.intercept
        for k in range(5):
            of_class = y == k
            correct = weight[of_class & (values * code[k, j] > 0)].sum()
            share = (correct + 1) / (weight[of_class].sum() + 2) if code[k, j] else 0.0
            assert accuracy[k, j] == pytest.approx(share)
