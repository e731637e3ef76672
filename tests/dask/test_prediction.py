"""Predictions of Dask collections are lazy, and those of the plain model."""

import pickle

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import laplacian_kernel

from margintree import MarginTreeClassifier
from margintree.dask import DaskMarginTreeClassifier


@pytest.fixture(scope="module")
def fitted(client, sparse_rows):
    X, y = sparse_rows
    rows = da.from_array(X.toarray(), chunks=((250, 0, 350), -1)).map_blocks(sp.csr_array)
    return DaskMarginTreeClassifier(client=client).fit(rows, da.from_array(y, chunks=(250, 350))), rows


def test_labels_probabilities_and_top_classes(fitted, sparse_rows):
    model, rows = fitted
    local, X = model.to_local(), sparse_rows[0]
    labels, probabilities = model.predict(rows), model.predict_proba(rows)
    top, of_top = model.predict_top_k(rows, k=3)
    assert [type(found) for found in (labels, probabilities, top, of_top)] == [da.Array] * 4
    assert [found.shape for found in (labels, probabilities, top, of_top)] == [(600,), (600, 12), (600, 3), (600, 3)]
    assert [found.dtype for found in (labels, of_top)] == [model.classes_.dtype, np.float64]
    computed = dask.compute(labels, probabilities, top, of_top)
    np.testing.assert_array_equal(computed[0], local.predict(X))
    np.testing.assert_array_equal(computed[1], local.predict_proba(X))
    for found, expected in zip(computed[2:], local.predict_top_k(X, k=3), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_the_model_is_one_task_of_the_graph(fitted):
    model, rows = fitted
    sizes = {str(key): len(pickle.dumps(task)) for key, task in model.predict(rows).__dask_graph__().items()}
    (of_model,) = (size for key, size in sizes.items() if "margintree-model" in key)
    of_calls = [size for key, size in sizes.items() if "predict_block" in key]
    # One of the three blocks is empty.
    assert len(of_calls) == 2
    assert 5 * max(of_calls) < of_model < 2 * len(pickle.dumps(model.to_local()))


def test_a_lazy_prediction_is_that_of_the_model_when_it_was_asked(client, fitted, sparse_rows):
    model, rows = fitted
    asked, before = model.predict(rows), model.to_local().predict(sparse_rows[0])
    other = DaskMarginTreeClassifier(C=1e-3, client=client).fit(rows, da.from_array(sparse_rows[1], chunks=(250, 350)))
    model_before = model.__dict__
    try:
        model.__dict__ = other.__dict__
        np.testing.assert_array_equal(asked.compute(), before)
    finally:
        model.__dict__ = model_before


def test_without_a_cluster(fitted, sparse_rows):
    model, rows = fitted
    with dask.config.set(scheduler="synchronous"):
        np.testing.assert_array_equal(model.predict(rows).compute(), model.to_local().predict(sparse_rows[0]))


def test_rows_in_memory_are_predicted_at_once(fitted, sparse_rows):
    model, rows = fitted
    X, y = sparse_rows
    assert type(model.predict(X)) is np.ndarray
    assert model.score(X, y) == model.score(rows, da.from_array(y, chunks=100)) == model.to_local().score(X, y)


def test_a_kernel_that_is_code(client, dense_rows):
    X, y = (da.from_array(one, chunks=200) for one in dense_rows)
    model = DaskMarginTreeClassifier(laplacian_kernel, C=10.0, client=client).fit(X, y)
    local = MarginTreeClassifier(laplacian_kernel, C=10.0).fit(*dense_rows)
    np.testing.assert_array_equal(model.predict_proba(X).compute(), local.predict_proba(dense_rows[0]))


def test_a_pickle_holds_no_client(fitted, sparse_rows):
    model = pickle.loads(pickle.dumps(fitted[0]))
    assert model.client is None
    np.testing.assert_array_equal(model.predict(sparse_rows[0]), fitted[0].predict(sparse_rows[0]))


def test_dask_knows_models_by_what_they_have_learned():
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    model, other = (MarginTreeClassifier(random_state=0).fit(rows, y) for rows in (X, X + y[:, None]))
    assert dask.base.tokenize(model) != dask.base.tokenize(other)
    assert dask.base.tokenize(model.predict) != dask.base.tokenize(other.predict)
    assert dask.base.tokenize(DaskMarginTreeClassifier(max_rows_per_node=3)) != dask.base.tokenize(
        DaskMarginTreeClassifier(max_rows_per_node=5)
    )
    (computed,) = dask.compute(model)
    np.testing.assert_array_equal(computed.predict(X), model.predict(X))
