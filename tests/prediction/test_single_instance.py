"""One row at a time: the labels of the batch, whatever the walk, and no row that is not sound gets an answer."""

import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from margintree import MarginTreeClassifier, OneVsOneSVC, compiled

WALKS = ["greedy", "beam", "all"]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, np.array(list("abcdefghij"))[y]


def linear_kernel(A, B):
    return A @ B.T


def given_rows(X):
    """Return each row as a predictor for one row takes it."""
    if not sp.issparse(X):
        return [(x,) for x in X]
    return [(X.indices[a:b], X.data[a:b]) for a, b in itertools.pairwise(X.indptr)]


def model_of(case, walk, digits, **parameters):
    """Return a fitted model, and rows as it takes them."""
    X, y = digits
    if case == "csr":
        X = sp.csr_array(X)
    if case == "precomputed":
        X = rbf_kernel(X, X[:300], gamma=0.05)
    kernel = {"dense": "linear", "csr": "linear", "callable": linear_kernel}.get(case, case.split()[0])
    model = MarginTreeClassifier(kernel, walk=walk, random_state=0, degree=2, coef0=1.0, **parameters)
    if case == "rbf csr":
        X = sp.csr_array(X)
    return model.fit(X[:300], y[:300]), X


CASES = ["dense", "csr", "rbf", "poly", "precomputed", "callable", "rbf csr"]


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("case", CASES)
def test_labels_and_scores_are_those_of_the_batch(digits, case, walk):
    model, X = model_of(case, walk, digits)
    # Kernels that are no compiled code take their time.
    X = X if case in ("dense", "csr", "rbf", "poly") else X[::20]
    one = model.single_instance()
    rows = given_rows(X)
    labels = np.array([one.predict(*row) for row in rows])
    np.testing.assert_array_equal(labels, model.predict(X))
    rows, X = rows[::25], X[::25]
    np.testing.assert_allclose([one.predict_proba(*row) for row in rows], model.predict_proba(X), atol=1e-6)
    for k in (1, 4, 10):
        classes, scores = model.predict_top_k(X, k)
        found = [one.predict_top_k(*row, k=k) for row in rows]
        np.testing.assert_allclose([part for _, part in found], scores, atol=1e-6)
        np.testing.assert_array_equal([part for part, _ in found], classes)


@pytest.mark.parametrize("case", ["dense", "csr", "rbf"])
def test_several_trees_give_the_labels_of_the_batch(digits, case):
    model, X = model_of(case, "beam", digits, n_trees=2)
    one = model.single_instance()
    np.testing.assert_array_equal([one.predict(*row) for row in given_rows(X)], model.predict(X))


@pytest.mark.parametrize("case", ["dense", "csr", "rbf", "precomputed"])
@pytest.mark.parametrize("decide", ["paths", "pairs", "rest"])
def test_every_decider_gives_the_labels_and_scores_of_the_batch(digits, case, decide):
    model, X = model_of(case, "beam", digits, decide=decide, n_finalists=6, beam_gap=20.0)
    one, X = model.single_instance(), X[::5]
    rows = given_rows(X)
    np.testing.assert_array_equal([one.predict(*row) for row in rows], model.predict(X))
    np.testing.assert_allclose([one.predict_proba(*row) for row in rows], model.predict_proba(X), atol=1e-6)
    classes, scores = model.predict_top_k(X, 8)
    found = [one.predict_top_k(*row, k=8) for row in rows]
    np.testing.assert_allclose([part for _, part in found], scores, atol=1e-6)
    np.testing.assert_array_equal([part for part, _ in found], classes)


@pytest.mark.parametrize("walk", WALKS)
def test_a_linear_model_takes_dense_and_sparse_rows_whatever_it_was_fitted_on(digits, walk):
    for case in ("dense", "csr"):
        model, _ = model_of(case, walk, digits)
        one, X = model.single_instance(), digits[0][::10]
        expected = model.predict(X).tolist()
        assert [one.predict(x) for x in X] == expected
        assert [one.predict(np.flatnonzero(x), x[np.flatnonzero(x)]) for x in X] == expected


def test_rows_of_many_types_are_taken(digits):
    model, X = model_of("dense", "beam", digits)
    one = model.single_instance()
    x, expected = np.round(16 * X[7]) / 16, model.predict(np.round(16 * X[7:8]) / 16)[0]
    columns = np.flatnonzero(x)
    frozen = x.copy()
    frozen.flags.writeable = False
    for row in (x, frozen, x.tolist(), x.astype(np.float32), np.repeat(x, 2)[::2], x.astype(">f8")):
        assert one.predict(row) == expected
    for dtype in (np.int32, np.int64, np.uint32, np.uint8, ">i4"):
        assert one.predict(columns.astype(dtype), x[columns]) == expected
    assert one.predict(columns.tolist(), x[columns].tolist()) == expected
    assert one.predict(np.repeat(columns.astype(np.int32), 2)[::2], x[columns]) == expected


@pytest.mark.parametrize("case", ["dense", "csr", "rbf"])
def test_a_row_without_entries_is_the_row_of_zeros(digits, case):
    model, _ = model_of(case, "beam", digits)
    zeros = model.predict(np.zeros((1, 64)) if case != "csr" else sp.csr_array((1, 64)))[0]
    one = model.single_instance()
    assert one.predict(np.zeros(64)) == zeros
    assert one.predict([], []) == zeros
    assert one.predict(np.empty(0, dtype=np.int32), np.empty(0)) == zeros


def row_with(value):
    return np.where(np.arange(64) == 63, value, 0.5)


BAD_DENSE = {
    "nan": row_with(np.nan),
    "infinite": row_with(np.inf),
    "minus infinity": row_with(-np.inf),
    "too short": np.zeros(63),
    "too long": np.zeros(65),
    "empty": np.zeros(0),
    "two dimensions": np.zeros((1, 64)),
    "a number": 3.0,
}
BAD_SPARSE = {
    "nan": ([1, 2], [1.0, np.nan]),
    "infinite": ([1, 2], [np.inf, 1.0]),
    "negative": (np.array([-1, 2], dtype=np.int32), [1.0, 1.0]),
    "negative, 64 bits": (np.array([-1, 2]), [1.0, 1.0]),
    "not sorted": (np.array([5, 2], dtype=np.int32), [1.0, 1.0]),
    "not sorted, 64 bits": ([5, 2], [1.0, 1.0]),
    "twice": (np.array([2, 2], dtype=np.int32), [1.0, 1.0]),
    "too large": (np.array([2, 64], dtype=np.int32), [1.0, 1.0]),
    "far too large": (np.array([2**31 - 1], dtype=np.int32), [1.0]),
    "wraps to 1 in 32 bits": (np.array([2**32 + 1]), [1.0]),
    "wraps to -1 in 32 bits": (np.array([2**32 - 1], dtype=np.uint32), [1.0]),
    "64 bits unsigned": (np.array([2**64 - 1], dtype=np.uint64), [1.0]),
    "fractions": ([0.5, 1.5], [1.0, 1.0]),
    "truth values": ([True, False], [1.0, 1.0]),
    "more columns than values": (np.array([1, 2], dtype=np.int32), [1.0]),
    "more values than columns": (np.array([1], dtype=np.int32), [1.0, 2.0]),
    "two dimensions": (np.array([[1, 2]], dtype=np.int32), [[1.0, 1.0]]),
}


@pytest.fixture(scope="module")
def predictors(digits):
    return {
        (case, walk): model_of(case, walk, digits)[0].single_instance()
        for case in ("dense", "rbf", "callable")
        for walk in ("greedy", "beam")
    }


@pytest.mark.parametrize("walk", ["greedy", "beam"])
@pytest.mark.parametrize("case", ["dense", "rbf", "callable"])
@pytest.mark.parametrize("name", BAD_DENSE)
def test_dense_rows_that_are_not_sound_are_refused(predictors, case, walk, name):
    one, row = predictors[case, walk], BAD_DENSE[name]
    for ask in (one.predict, one.predict_proba, lambda x: one.predict_top_k(x, k=3)):
        with pytest.raises(ValueError, match=r"A dense row must have the shape \(64,\) and finite values. Got shape"):
            ask(row)


@pytest.mark.parametrize("walk", ["greedy", "beam"])
@pytest.mark.parametrize("case", ["dense", "rbf", "callable"])
@pytest.mark.parametrize("name", BAD_SPARSE)
def test_sparse_rows_that_are_not_sound_are_refused(predictors, case, walk, name):
    one, row = predictors[case, walk], BAD_SPARSE[name]
    for ask in (one.predict, one.predict_proba, lambda *given: one.predict_top_k(*given, k=3)):
        with pytest.raises(ValueError, match=r"A (sparse row is given by two arrays|dense row must)"):
            ask(*row)


@pytest.mark.parametrize("k", [0, 11, -1])
def test_a_number_of_classes_out_of_range_is_refused(predictors, k):
    with pytest.raises(ValueError, match=r"k must be .*from 1 to the number of classes, 10\. Got"):
        predictors["dense", "beam"].predict_top_k(np.zeros(64), k=k)


def test_without_sigmoids_there_are_labels_and_no_probabilities(digits):
    model, X = model_of("dense", "greedy", digits, calibration_folds=0)
    one = model.single_instance()
    assert one.predict(X[0]) == model.predict(X[:1])[0]
    for ask in (one.predict_proba, lambda x: one.predict_top_k(x, k=2)):
        with pytest.raises(AttributeError, match="need calibrated sigmoids"):
            ask(X[0])


@pytest.mark.parametrize("case", ["dense", "csr", "rbf", "callable"])
def test_eight_threads_get_the_labels_of_the_batch(digits, case):
    model, X = model_of(case, "beam", digits)
    X = X[::3] if case != "callable" else X[::20]
    expected, rows = model.predict(X).tolist(), given_rows(X)
    one = pickle.loads(pickle.dumps(model)).single_instance() if case != "callable" else model.single_instance()
    with ThreadPoolExecutor(8) as pool:
        for labels in pool.map(lambda _: [one.predict(*row) for row in rows], range(8)):
            assert labels == expected


def test_a_predictor_outlives_its_model(digits):
    model, X = model_of("csr", "beam", digits)
    expected, rows = model.predict(X).tolist(), given_rows(X)
    one = model.single_instance()
    del model
    assert [one.predict(*row) for row in rows] == expected


@pytest.mark.parametrize("case", ["dense", "rbf", "poly"])
def test_read_only_and_unaligned_rows_compile_nothing_anew(digits, case):
    model, X = model_of(case, "beam", digits)
    one, x = model.single_instance(), X[3].copy()
    columns, values = np.flatnonzero(x).astype(np.int32), x[np.flatnonzero(x)]
    expected = one.predict(x), one.predict(columns, values)
    n_compiled = len(compiled.single.best_class.signatures)
    for odd in (read_only_copy, unaligned_copy):
        assert (one.predict(odd(x)), one.predict(odd(columns), odd(values))) == expected
    assert len(compiled.single.best_class.signatures) == n_compiled


def read_only_copy(array):
    frozen = array.copy()
    frozen.flags.writeable = False
    return frozen


def unaligned_copy(array):
    shifted = np.zeros(array.nbytes + 1, dtype=np.uint8)[1:].view(array.dtype)
    shifted[:] = array
    assert not shifted.flags.aligned
    return shifted


@pytest.mark.parametrize("k", [2.0, 1.5, True, "3"])
def test_a_number_of_classes_that_is_no_integer_is_refused(predictors, k):
    with pytest.raises(ValueError, match=r"k must be an integer from 1 to the number of classes, 10\. Got"):
        predictors["dense", "beam"].predict_top_k(np.zeros(64), k=k)


@pytest.mark.parametrize("estimator", [MarginTreeClassifier, OneVsOneSVC])
def test_powers_that_do_not_exist_or_overflow_are_refused_as_in_the_batch(digits, estimator):
    X, y = digits
    whole = estimator("poly", degree=3, random_state=0).fit(X[:200], y[:200])
    broken = estimator("poly", degree=2.5, coef0=1.0, random_state=0).fit(X[:200], y[:200])
    for model, row in ((whole, 1e120 * X[3]), (whole, 1e250 * X[3]), (broken, -X[3])):
        for ask in (lambda x, m=model: m.predict(x[None]), model.single_instance().predict):
            with pytest.raises(ValueError, match="kernel returned values that are not finite"):
                ask(row)
    # Long rows whose powers are finite all the same, and one whose base is positive.
    for model, row in ((whole, 1e80 * X[3]), (whole, 1e95 * X[3]), (broken, X[3])):
        assert model.single_instance().predict(row) == model.predict(row[None])[0]
