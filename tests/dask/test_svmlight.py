"""Svmlight files in pieces, and fits of the command line with bounded memory."""

from pathlib import Path

import dask
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from typer.testing import CliRunner

from margintree import load_model
from margintree.cli import csv_rows, out_of_core
from margintree.cli.app import app
from margintree.cli.row_format import RowFileError, RowFormat
from margintree.dask import ClusterLostError, DaskMarginTreeClassifier, read_svmlight


@pytest.fixture
def path(tmp_path, sparse_rows):
    path = tmp_path / "rows.svm"
    dump_svmlight_file(sparse_rows[0], np.unique(sparse_rows[1], return_inverse=True)[1], str(path), zero_based=False)
    return path


@pytest.mark.parametrize("blocksize", [1000, "10 kB", "1 GB"])
def test_pieces_have_every_row_once(path, blocksize):
    X, y = load_svmlight_file(path)
    with dask.config.set(scheduler="synchronous"):
        rows, labels = read_svmlight(path, blocksize=blocksize)
        assert rows.shape[1] == X.shape[1]
        blocks = dask.compute(*rows.to_delayed().ravel())
        np.testing.assert_array_equal(np.vstack([block.toarray() for block in blocks]), X.toarray())
        np.testing.assert_array_equal(labels.compute(), y)
        narrow, _ = read_svmlight(path, n_features=7, zero_based=True, blocksize=blocksize)
        assert narrow.blocks[0].compute().toarray()[:, 1:].tolist() == blocks[0].toarray()[:, :6].tolist()


def test_what_cannot_be_read_in_pieces(tmp_path):
    (tmp_path / "labels.svm").write_text("1\n2\n")
    with pytest.raises(ValueError, match="stores no value, so its width is unknown"):
        read_svmlight(tmp_path / "labels.svm")
    with pytest.raises(ValueError, match="A compressed file cannot be read in pieces"):
        read_svmlight(tmp_path / "rows.svm.gz")


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_fit_with_bounded_memory(path, tmp_path, same_model):
    for name, options in (("memory", ()), ("pieces", ("--memory", "2GB", "--jobs", "1"))):
        done = run("fit", path, "-o", tmp_path / name, "--test", path, *options)
        assert done.exit_code == 0, done.output
        assert "accuracy" in done.stdout
    assert same_model(load_model(tmp_path / "pieces"), load_model(tmp_path / "memory"))
    assert run("predict", tmp_path / "pieces", path).exit_code == 0


@pytest.mark.filterwarnings("error:Port .* is already in use")
def test_processes_of_bounded_memory_serve_no_pages_and_listen_to_this_machine_only():
    import psutil

    with out_of_core.bounded("1GB", 2) as memory:
        nodes = [memory._client.scheduler_info()["address"], *memory._client.scheduler_info()["workers"]]
        assert memory._client.run_on_scheduler(lambda dask_scheduler: dict(dask_scheduler.services)) == {}
        assert set(map(str, memory._client.run(lambda dask_worker: dict(dask_worker.services)).values())) == {"{}"}
        assert all(address.startswith("tcp://127.0.0.1:") for address in nodes)
        processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
        connections = [one for process in processes for one in process.net_connections("tcp")]
        assert {one.laddr.ip for one in connections if one.status == psutil.CONN_LISTEN} == {"127.0.0.1"}


def test_fit_a_parquet_file_with_bounded_memory(dense_rows, tmp_path):
    X, y = dense_rows
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(kind=[f"class {k}" for k in y])
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    # An index of pandas is a column of the file, but not of the frame.
    frame.set_index(np.array([f"row {i}" for i in range(len(y))])).to_parquet(tmp_path / "indexed.parquet")
    done = run("fit", tmp_path / "indexed.parquet", "-o", tmp_path / "i", "--label", "kind", "--memory", "2GB")
    assert done.exit_code == 0, done.output
    for name, options in (("memory", ()), ("pieces", ("--memory", "2GB", "--jobs", "1"))):
        done = run("fit", tmp_path / "rows.parquet", "-o", tmp_path / name, "--label", "kind", *options)
        assert done.exit_code == 0, done.output
    found = [run("predict", tmp_path / name, tmp_path / "rows.parquet").stdout for name in ("memory", "pieces")]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("columns", "options", "ending"),
    [
        (["kind", *(f"x{i}" for i in range(8))], ("--label", "kind"), ".csv"),
        (["kind", *map(str, range(8))], (), ".csv.gz"),
        (None, ("--label", "1"), ".csv"),
    ],
    ids=["names", "a name for the labels only", "no header row"],
)
def test_fit_a_csv_file_with_bounded_memory(dense_rows, tmp_path, same_model, monkeypatch, columns, options, ending):
    # In several blocks, and written to a file in several pieces.
    monkeypatch.setattr(out_of_core, "BYTES_OF_BLOCK", 10_000)
    monkeypatch.setattr(csv_rows, "VALUES_IN_MEMORY", 1000)
    path = tmp_path / f"rows{ending}"
    table = pd.DataFrame(np.column_stack([dense_rows[1], dense_rows[0]])).astype({0: int})
    table.to_csv(path, index=False, header=columns or False)
    for name, more in (("memory", ()), ("pieces", ("--memory", "2GB", "--jobs", "1"))):
        done = run("fit", path, "-o", tmp_path / name, *options, *more)
        assert done.exit_code == 0, done.output
    assert same_model(load_model(tmp_path / "pieces"), load_model(tmp_path / "memory"))


def test_a_size_that_is_none_is_refused(path, tmp_path):
    done = run("fit", path, "-o", tmp_path / "model", "--memory", "much", "--jobs", "1")
    assert done.exit_code == 2
    assert "must be a size such as" in " ".join(done.output.split())


@pytest.mark.parametrize("memory", ["0", "1", "-1GB", "1e400", "much"])
def test_memory_is_a_positive_size(path, tmp_path, memory):
    options = ["--memory", memory, "--jobs", "2", "-o", str(tmp_path / "m")]
    done = CliRunner().invoke(app, ["fit", str(path), *options])
    assert done.exit_code == 2
    assert "--memory must be a size" in " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize(("place", "message"), [("label", "200 times its size"), ("feature", "got string")])
def test_parquet_files_read_in_pieces_have_the_limits_of_those_in_memory(tmp_path, place, message):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    n_rows = 20_000
    long = pa.DictionaryArray.from_arrays(pa.array([0] * n_rows, pa.int32()), pa.array(["x" * 100_000]))
    columns = {"kind": long if place == "label" else np.arange(n_rows) % 2, "a": np.arange(n_rows) % 7.0}
    rows = tmp_path / "rows.parquet"
    pq.write_table(pa.table({**columns, **({"b": long} if place == "feature" else {})}), rows, store_schema=False)
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(RowFileError, match=message):
        out_of_core.BoundedMemory(None, 2**30, tmp_path).read(rows, RowFormat())
    assert pa.default_memory_pool().max_memory() < before + 2**26


@pytest.mark.parametrize("kind", ["svmlight", "parquet"])
def test_rows_that_are_read_in_pieces_cannot_come_from_standard_input(kind, tmp_path):
    with pytest.raises(RowFileError, match=f"{kind} rows are read in pieces, and standard input has none"):
        out_of_core.BoundedMemory(None, 2**30, tmp_path).read(Path("-"), RowFormat(name=kind))


def test_a_fit_whose_processes_are_killed_says_that_memory_is_short(path, tmp_path, monkeypatch):
    def killed(*arguments):
        raise ClusterLostError("A task of the fit killed 4 workers.")

    monkeypatch.setattr(DaskMarginTreeClassifier, "fit", killed)
    done = CliRunner().invoke(app, ["fit", str(path), "--memory", "1GB", "--jobs", "1", "-o", str(tmp_path / "m")])
    assert done.exit_code == 1
    assert "There is not enough memory. Processes were killed" in " ".join(done.output.split())
