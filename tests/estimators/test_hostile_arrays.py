"""Arrays that are wrong, odd or huge: a clear error or the right answer, for a batch and for one row alike."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

from margintree import ConditionalProbabilityTreeClassifier, MarginTreeClassifier, OneVsRestSVC

N_FEATURES = 30
X, Y = make_classification(
    300, N_FEATURES, n_informative=10, n_classes=5, n_clusters_per_class=1, class_sep=2.0, random_state=0
)
X[np.abs(X) < 0.8] = 0.0
MODELS = {
    "beam": MarginTreeClassifier(random_state=0),
    "greedy": MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0),
    "rbf": MarginTreeClassifier("rbf", walk="all", random_state=0),
    "one against the rest": OneVsRestSVC(random_state=0),
}


@pytest.fixture(scope="module", params=list(MODELS))
def model(request):
    # The rbf model keeps sparse support vectors: each layout of rows must find its way there, too.
    rows = sp.csr_array(X) if request.param in ("greedy", "rbf") else X
    return MODELS[request.param].fit(rows, Y)


def parts(matrix):
    return matrix.data.copy(), matrix.indices.copy(), matrix.indptr.copy()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(model, value):
    rows = X[:3].copy()
    rows[1, 4] = value
    one = model.single_instance()
    stored = sp.csr_array(rows)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model.predict(rows)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model.predict(stored)
    with pytest.raises(ValueError, match="finite"):
        one.predict(rows[1])
    with pytest.raises(ValueError, match="finite"):
        one.predict(stored[[1]].indices, stored[[1]].data)


@pytest.mark.parametrize("n_columns", [0, 1, N_FEATURES - 1, N_FEATURES + 1])
def test_rows_of_another_width_are_refused(model, n_columns):
    rows = np.ones((2, n_columns))
    message = "0 feature" if n_columns == 0 else f"X has {n_columns} features, but .* is expecting {N_FEATURES}"
    for given in (rows, sp.csr_array(rows)):
        with pytest.raises(ValueError, match=message):
            model.predict(given)
    with pytest.raises(ValueError, match=rf"must have the shape \({N_FEATURES},\)"):
        model.single_instance().predict(rows[0])


@pytest.mark.parametrize("columns", [[3, N_FEATURES], [-1, 3], [5, 3], [4, 4], [3, 2**31 + 3], [3, 2**40], [0.5, 3.0]])
def test_one_sparse_row_with_wrong_columns_is_refused(model, columns):
    with pytest.raises(ValueError, match="ascending columns from 0 to 29"):
        model.single_instance().predict(np.array(columns), np.ones(2))


def test_one_sparse_row_of_unequal_lengths_is_refused(model):
    one = model.single_instance()
    for columns, values in (([1, 2], [1.0]), ([1], [1.0, 2.0]), ([[1]], [[1.0]])):
        with pytest.raises(ValueError, match="two arrays of equal length"):
            one.predict(np.array(columns), np.array(values))


def test_no_rows_are_refused_and_a_row_of_zeros_is_not(model):
    for empty in (np.empty((0, N_FEATURES)), sp.csr_array((0, N_FEATURES))):
        with pytest.raises(ValueError, match="0 sample"):
            model.predict(empty)
    [expected] = model.predict(np.zeros((1, N_FEATURES)))
    one = model.single_instance()
    assert model.predict(sp.csr_array((1, N_FEATURES)))[0] == expected
    assert one.predict(np.zeros(N_FEATURES)) == expected
    assert one.predict(np.array([], dtype=np.int64), np.array([])) == expected


def test_wide_indices_unsorted_and_repeated_columns_give_the_right_answer(model):
    expected = model.predict(X[:40])
    rows = sp.csr_array(X[:40])
    wide = sp.csr_array(rows)
    wide.indices, wide.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    halves = sp.coo_array(rows)
    twice = sp.csr_array(
        (
            np.tile(0.5 * rows.data, 2)[np.argsort(np.tile(halves.row, 2), kind="stable")],
            np.tile(halves.col, 2)[np.argsort(np.tile(halves.row, 2), kind="stable")],
            2 * rows.indptr,
        ),
        shape=rows.shape,
    )
    backwards = rows.copy()
    for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        backwards.indices[a:b], backwards.data[a:b] = rows.indices[a:b][::-1], rows.data[a:b][::-1]
    # What scipy remembers of the arrays from before they were changed must not be believed.
    backwards.has_sorted_indices = backwards.has_canonical_format = True
    for given in (wide, twice, backwards, rows.tocsc(), rows.tocoo(), rows.tolil(), rows.tobsr(), rows.todok()):
        np.testing.assert_array_equal(model.predict(given), expected, err_msg=given.format)
    one = model.single_instance()
    columns = [wide.indices[a:b] for a, b in zip(wide.indptr[:-1], wide.indptr[1:], strict=True)]
    assert [one.predict(c, X[i, c]) for i, c in enumerate(columns)] == expected.tolist()


def test_a_matrix_that_stores_more_than_it_uses_gives_the_right_answer(model):
    data, indices, indptr = parts(sp.csr_array(X[:40]))
    rest = sp.csr_array((40, N_FEATURES))
    rest.data, rest.indices = np.append(data, [np.e, 1.0]), np.append(indices, [7, 10**9]).astype(np.int32)
    rest.indptr = indptr
    np.testing.assert_array_equal(model.predict(rest), model.predict(X[:40]))


BREAKS = {
    "an index too large": lambda d, i, p: (d, np.where(np.arange(len(i)) == 3, N_FEATURES, i), p),
    "an index far too large": lambda d, i, p: (d, np.where(np.arange(len(i)) == 3, 2**31 - 1, i), p),
    "a negative index": lambda d, i, p: (d, np.where(np.arange(len(i)) == 3, -2, i), p),
    "an index beyond 32 bits": lambda d, i, p: (d, np.where(np.arange(len(i)) == 3, 2**33, i.astype(np.int64)), p),
    "descending indptr": lambda d, i, p: (d, i, np.concatenate([p[:1], p[2:3], p[1:2], p[3:]])),
    "negative indptr": lambda d, i, p: (d, i, np.concatenate([p[:1], [-4], p[2:]])),
    "indptr from 1": lambda d, i, p: (d, i, np.concatenate([[1], p[1:]])),
    "indptr beyond the end": lambda d, i, p: (d, i, np.concatenate([p[:-1], p[-1:] + 10**6])),
    "indptr too short": lambda d, i, p: (d, i, p[:-1]),
    "too few values": lambda d, i, p: (d[:-2], i, p),
    "too few indices": lambda d, i, p: (d, i[:-2], p),
}


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("name", BREAKS)
def test_a_matrix_whose_arrays_contradict_each_other_is_refused(model, name, kind):
    # Square, so that the same breaks are breaks of rows and of columns.
    matrix = sp.csr_array(X[:N_FEATURES]).asformat(kind)
    matrix.data, matrix.indices, matrix.indptr = BREAKS[name](*parts(matrix))
    with pytest.raises(ValueError, match="are inconsistent"):
        model.predict(matrix)
    with pytest.raises(ValueError, match="are inconsistent"):
        type(model)().fit(matrix, np.arange(N_FEATURES) % 3)


def test_a_list_of_coordinates_outside_of_the_matrix_is_refused(model):
    for change in ({"row": 99}, {"row": -1}, {"col": N_FEATURES}, {"col": -3}):
        matrix = sp.coo_array(X[:4])
        for name, value in change.items():
            index = getattr(matrix, name).copy()
            index[2] = value
            setattr(matrix, name, index)
        with pytest.raises(ValueError, match="are inconsistent"):
            model.predict(matrix)


def test_a_sparse_vector_is_refused_as_rows(model):
    vector = sp.coo_array(X[0])
    assert vector.ndim == 1
    with pytest.raises(ValueError, match=r"2 dimensions. Got 1. Use X.reshape"):
        model.predict(vector)
    with pytest.raises(ValueError, match=r"2 dimensions. Got 1. Use X.reshape"):
        type(model)().fit(vector, [0])


def test_a_stream_refuses_a_broken_matrix_and_goes_on_with_a_sound_one():
    stream = ConditionalProbabilityTreeClassifier(random_state=0)
    stream.partial_fit(sp.csr_array(X[:100]), Y[:100])
    broken = sp.csr_array(X[100:200])
    broken.indices = np.where(np.arange(broken.nnz) == 7, -9, broken.indices)
    with pytest.raises(ValueError, match="are inconsistent"):
        stream.partial_fit(broken, Y[100:200])
    stream.partial_fit(sp.csr_array(X[100:200]), Y[100:200])
    other = ConditionalProbabilityTreeClassifier(random_state=0)
    other.partial_fit(sp.csr_array(X[:100]), Y[:100]).partial_fit(sp.csr_array(X[100:200]), Y[100:200])
    np.testing.assert_array_equal(stream.predict(X), other.predict(X))


def test_object_arrays_are_numbers_or_refused(model):
    expected = model.predict(X[:5])
    np.testing.assert_array_equal(model.predict(X[:5].astype(object)), expected)
    one = model.single_instance()
    assert one.predict(X[0].astype(object)) == expected[0]
    for bad in ("a word", None, [1.0], {}):
        rows = X[:2].astype(object)
        rows[1, 3] = bad
        with pytest.raises((ValueError, TypeError)):
            model.predict(rows)
        with pytest.raises((ValueError, TypeError)):
            one.predict(rows[1])


def test_strided_reversed_read_only_and_swapped_arrays_give_the_right_answer(model):
    expected = model.predict(X[:20])
    strided = np.repeat(X[:20], 2, axis=1)[:, ::2]
    backwards = X[:20][:, ::-1].copy()[:, ::-1]
    locked = X[:20].copy()
    locked.flags.writeable = False
    one = model.single_instance()
    for rows in (strided, backwards, locked, np.asfortranarray(X[:20]), X[:20].astype(">f8")):
        np.testing.assert_array_equal(model.predict(rows), expected)
        assert [one.predict(row) for row in rows] == expected.tolist()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_million_columns(kernel):
    n_columns = 1_000_000
    columns = np.linspace(0, n_columns - 1, N_FEATURES).astype(np.int64)
    small = sp.coo_array(X)
    rows = sp.csr_array((small.data, (small.row, columns[small.col])), shape=(len(X), n_columns))
    model = MarginTreeClassifier(kernel, walk="greedy", calibration_folds=0, gamma=0.02, random_state=0).fit(rows, Y)
    expected = model.predict(rows)
    assert np.mean(expected == Y) > 0.8
    one = model.single_instance()
    for i in range(0, 60, 7):
        row = rows[[i]]
        assert one.predict(row.indices, row.data) == expected[i]
    assert one.predict(rows[[0]].toarray()[0]) == expected[0]
    with pytest.raises(ValueError, match="0 to 999999"):
        one.predict(np.array([n_columns]), np.ones(1))
    with pytest.raises(ValueError, match="X has 1000001 features"):
        model.predict(sp.csr_array((2, n_columns + 1)))
