"""Parquet files: the same rows as those of a CSV file, and what is refused."""

import subprocess
import sys

import numpy as np
import pytest

from margintree.cli import parquet_rows
from margintree.cli.row_files import read_rows
from margintree.cli.row_format import FittedFormat, RowFileError, RowFormat

pa = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
pq = pytest.importorskip("pyarrow.parquet")

COLUMNS = {"a": [1, 3], "b": [2.5, -4.0], "is_big": [True, False], "kind": ["fox", "hen"]}


def written(directory, columns, name="rows.parquet"):
    pq.write_table(pa.table(columns), directory / name)
    return directory / name


@pytest.mark.parametrize("label", ["kind", "4", "-1"])
@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_rows_come_with_names_and_labels(tmp_path, label, kind):
    path = written(tmp_path, {**COLUMNS, "kind": pa.array(COLUMNS["kind"]).cast(kind)})
    rows = read_rows(path, RowFormat(label=label))
    np.testing.assert_array_equal(rows.X, [[1.0, 2.5, 1.0], [3.0, -4.0, 0.0]])
    assert rows.labels.tolist() == ["fox", "hen"]
    assert rows.names == ("a", "b", "is_big")
    assert rows.fitted == FittedFormat("parquet", "kind", 3)


def test_numbers_of_classes_stay_whole_and_rows_for_a_model_may_lack_them(tmp_path):
    rows = read_rows(written(tmp_path, {"digit": pa.array([7, 8], pa.int8()), "x": [1.0, 2.0]}), RowFormat())
    assert (rows.labels.tolist(), rows.labels.dtype) == ([7, 8], np.int64)
    without = read_rows(written(tmp_path, {"x": pa.array([1.0, 2.0], pa.float32())}), RowFormat(), 1)
    assert without.labels is None
    np.testing.assert_array_equal(without.X, rows.X)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (COLUMNS, r"column 'kind': expected numbers, got string\. If it holds the labels, use --label 'kind'"),
        ({"kind": ["fox", "hen"], "a": [1.0, None]}, "row 2, column 'a': a value is missing"),
        ({"kind": ["fox", "hen"], "a": [1.0, np.inf]}, "row 2, column 'a'"),
        ({"kind": ["fox", None], "a": [1.0, 2.0]}, "a row without a label"),
        ({"kind": ["fox", "hen"]}, "a single column, the labels"),
        ({}, "has no columns"),
        ({"kind": pa.array([], pa.string()), "a": pa.array([], pa.float64())}, "contains no rows"),
        ({"a": [1.5, 2.5], "b": [1.0, 2.0]}, "which column holds the labels"),
        ({"kind": [["fox"], ["hen"]], "a": [1.0, 2.0]}, "column 'kind': expected numbers or text as labels, got list"),
    ],
)
def test_a_file_that_holds_no_rows_is_refused_with_a_reason(tmp_path, columns, message):
    with pytest.raises(RowFileError, match=message):
        read_rows(written(tmp_path, columns), RowFormat())


@pytest.mark.parametrize("damage", [lambda whole: b"a,b\n1,2\n", lambda whole: whole[:-9], lambda whole: whole[9:]])
def test_a_damaged_file_is_refused(tmp_path, damage):
    path = written(tmp_path, COLUMNS)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RowFileError, match="could not be read as parquet"):
        read_rows(path, RowFormat(label="kind"))


def test_labels_that_a_damaged_dictionary_lacks_are_refused(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"kind": ["fox", "hen", "owl"] * 20, "a": [1.0] * 60}), path, compression="none")
    whole, column = path.read_bytes(), pq.read_metadata(path).row_group(0).column(0)
    messages = []
    for place in range(column.data_page_offset, column.dictionary_page_offset + column.total_compressed_size):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            try:
                assert set(read_rows(path, RowFormat()).labels) <= {"fox", "hen", "owl"}
            except RowFileError as error:
                messages.append(str(error))
    assert any("out of bounds" in message for message in messages)


def test_a_file_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path, monkeypatch):
    path = written(tmp_path, {"kind": np.zeros(100_000, dtype=np.int64), "a": np.zeros(100_000)})
    assert read_rows(path, RowFormat()).X.shape == (100_000, 1)
    monkeypatch.setattr(parquet_rows, "ALWAYS_UNPACKED", 2**16)
    with pytest.raises(RowFileError, match="decompresses to more than 200 times its size"):
        read_rows(path, RowFormat())


@pytest.mark.parametrize("place", ["label", "feature"])
def test_text_that_is_stored_once_and_stands_in_many_rows_is_refused_before_it_takes_memory(tmp_path, place):
    n_rows = 20_000
    long = pa.DictionaryArray.from_arrays(pa.array([0] * n_rows, pa.int32()), pa.array(["x" * 100_000]))
    labels = pa.array(["fox", "hen"] * (n_rows // 2))
    columns = {"kind": long if place == "label" else labels, "a": np.arange(n_rows) % 7.0}
    path = tmp_path / "rows.parquet"
    # Without the schema of pyarrow the column is one of strings: two gigabytes of them.
    pq.write_table(pa.table({**columns, **({"b": long} if place == "feature" else {})}), path, store_schema=False)
    assert path.stat().st_size < 10_000
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(
        RowFileError, match="200 times its size" if place == "label" else "expected numbers, got string"
    ):
        read_rows(path, RowFormat())
    assert pa.default_memory_pool().max_memory() < before + 2**26


def test_without_pyarrow_the_message_says_what_to_install(tmp_path):
    path = written(tmp_path, COLUMNS)
    code = "import sys; sys.modules['pyarrow'] = None; from margintree.cli import main; main()"
    arguments = ["fit", str(path), "--label", "kind", "-o", str(tmp_path / "m")]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'margintree[parquet]'" in " ".join(done.stderr.split())
