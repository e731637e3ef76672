"""The model of a cluster is that of one machine, byte for byte."""

import io
import itertools
import pickle
import time

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask import delayed
from sklearn.base import clone

from margintree import MarginTreeClassifier
from margintree.dask import DaskMarginTreeClassifier
from margintree.dask.array_files import ResultPickler


def in_blocks(X, y, size=150):
    """Return Dask arrays of rows and labels in blocks."""
    return da.from_array(X, chunks=(size, -1)), da.from_array(y, chunks=size)


def tasks_left(client):
    """Return the tasks that the scheduler knows, once it had time to forget those of a fit."""
    for _ in range(50):
        found = client.run_on_scheduler(lambda dask_scheduler: [str(key) for key in dask_scheduler.tasks])
        if not found:
            break
        time.sleep(0.1)
    return found


def sparse_blocks(X, y, bounds):
    """Return Dask arrays of CSR blocks of unknown length, with the given bounds."""
    rows = [delayed(X[i:j]) for i, j in itertools.pairwise(bounds)]
    labels = [delayed(y[i:j]) for i, j in itertools.pairwise(bounds)]
    meta = sp.csr_array((0, X.shape[1]))
    return (
        da.concatenate(
            [da.from_delayed(one, (np.nan, X.shape[1]), X.dtype, meta=meta) for one in rows],
            allow_unknown_chunksizes=True,
        ),
        da.concatenate([da.from_delayed(one, (np.nan,), y.dtype) for one in labels], allow_unknown_chunksizes=True),
    )


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"decide": "rest", "class_weight": "balanced"},
        {"walk": "greedy", "split": "centroid", "random_state": 3, "n_trees": 1},
        {"n_trees": 2, "decide": "pairs", "random_state": 0},
        {"calibration_folds": 0, "walk": "greedy"},
    ],
    ids=lambda parameters: " ".join(parameters) or "defaults",
)
def test_of_sparse_blocks_of_unknown_length(client, sparse_rows, parameters, same_model):
    X, y = sparse_rows
    # Sorted by label, so that each block has labels that others do not have; two blocks have no rows.
    order = np.argsort(y, kind="stable")
    blocks = sparse_blocks(X[order], y[order], [0, 0, 100, 350, 350, 600])
    model = DaskMarginTreeClassifier(client=client, **parameters).fit(*blocks)
    assert same_model(model.to_local(), MarginTreeClassifier(**parameters).fit(X, y))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(5, dtype=np.float32),
        np.arange(5, dtype=">i4"),
        np.arange(10)[::2],
        np.empty(0, dtype=np.int32),
        np.array(["a", "bc"]),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    ],
    ids=["float32", "big-endian", "strided", "empty", "text", "matrix"],
)
@pytest.mark.parametrize("is_writable", [True, False])
def test_arrays_of_results_are_read_as_they_were(array, is_writable):
    array.flags.writeable = is_writable
    stream = io.BytesIO()
    ResultPickler(stream, protocol=5).dump([array])
    (found,) = pickle.loads(stream.getvalue())
    np.testing.assert_array_equal(found, array, strict=True)
    assert found.flags.writeable == is_writable


def test_of_kernels(client, dense_rows, same_model):
    model = DaskMarginTreeClassifier("rbf", C=10.0, client=client).fit(*in_blocks(*dense_rows))
    assert same_model(model.to_local(), MarginTreeClassifier("rbf", C=10.0).fit(*dense_rows))


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_of_types_of_numbers(client, dense_rows, dtype, same_model):
    X, y = (10 * dense_rows[0]).astype(dtype), dense_rows[1]
    model = DaskMarginTreeClassifier(client=client).fit(*in_blocks(X, y))
    assert same_model(model.to_local(), MarginTreeClassifier().fit(X, y))


def test_of_columns_in_blocks(client, dense_rows, same_model):
    X, y = dense_rows
    columns = da.from_array(X, chunks=(200, 3))
    model = DaskMarginTreeClassifier(client=client).fit(columns, da.from_array(y, chunks=77))
    assert same_model(model.to_local(), MarginTreeClassifier().fit(X, y))


def test_of_weights(client, dense_rows, same_model):
    X, y = dense_rows
    # Class 5 has rows of weight zero only, and is not learned.
    weight = np.where(y == 5, 0.0, np.random.default_rng(2).integers(1, 4, len(y)))
    rows, labels = in_blocks(X, y)
    model = DaskMarginTreeClassifier(client=client).fit(rows, labels, da.from_array(weight, chunks=100))
    assert 5 not in model.classes_
    assert same_model(model.to_local(), MarginTreeClassifier().fit(X, y, weight))


@pytest.mark.parametrize("is_pyarrow", [False, True], ids=["pandas", "pyarrow"])
def test_of_frames(client, dense_rows, is_pyarrow, same_model):
    X = pd.DataFrame(dense_rows[0], columns=[f"x{i}" for i in range(8)])
    y = pd.Series([f"class {k}" for k in dense_rows[1]])
    if is_pyarrow:
        X, y = X.convert_dtypes(dtype_backend="pyarrow"), y.convert_dtypes(dtype_backend="pyarrow")
    frame, labels = dd.from_pandas(X, npartitions=3), dd.from_pandas(y, npartitions=3)
    model = DaskMarginTreeClassifier(client=client).fit(frame, labels)
    local = MarginTreeClassifier().fit(X, y)
    assert same_model(model.to_local(), local)
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    np.testing.assert_array_equal(model.predict(frame).compute(), local.predict(X))
    assert model.score(frame, labels) == local.score(X, y)


def test_a_clone_shares_the_client_and_a_fit_leaves_nothing_behind(client, dense_rows, tmp_path):
    model = clone(DaskMarginTreeClassifier(C=3.0, client=client, directory=tmp_path))
    assert model.client is client
    assert model.get_params()["C"] == 3.0
    model.fit(*in_blocks(*dense_rows))
    assert list(tmp_path.iterdir()) == []
    assert tasks_left(client) == []
    assert model.fit_traffic_.n_bytes_sent > 0
    assert model.fit_traffic_.n_bytes_of_rows == dense_rows[0].nbytes


def test_for_one_two_and_four_workers(new_client, dense_rows, same_model):
    local, same = MarginTreeClassifier(C=10.0).fit(*dense_rows), {}
    for n_workers in (2, 4):
        new_client.cluster.scale(n_workers)
        new_client.wait_for_workers(n_workers)
        same[n_workers] = DaskMarginTreeClassifier(C=10.0, client=new_client).fit(*in_blocks(*dense_rows))
    new_client.retire_workers(list(new_client.nthreads())[1:])
    assert len(new_client.nthreads()) == 1
    same[1] = DaskMarginTreeClassifier(C=10.0, client=new_client).fit(*in_blocks(*dense_rows))
    assert {n: same_model(model.to_local(), local) for n, model in same.items()} == {2: True, 4: True, 1: True}
