"""Files of rows: what is read, what is refused, and that the message says where."""

import bz2
import gzip
import os
import threading
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from margintree.cli import csv_rows, row_files, row_format
from margintree.cli.row_files import MOST_COLUMNS, read_rows
from margintree.cli.row_format import FittedFormat, RowFileError, RowFormat

CSV = "kind,a,b\nfox,1,2\nhen,3.5,-4\n"


def written(directory, name, content):
    path = directory / name
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes({".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)(data))
    return path


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2"])
def test_rows_are_the_same_plain_and_compressed(tmp_path, ending):
    rows = read_rows(written(tmp_path, f"rows.csv{ending}", CSV), RowFormat())
    np.testing.assert_array_equal(rows.X, [[1.0, 2.0], [3.5, -4.0]])
    assert rows.labels.tolist() == ["fox", "hen"]
    rows = read_rows(written(tmp_path, f"rows.svm{ending}", "3 0:1 2:5\n-1 1:2.5 # a hen\n"), RowFormat())
    np.testing.assert_array_equal(rows.X, [[1.0, 0.0, 5.0], [0.0, 2.5, 0.0]])
    assert rows.labels.tolist() == [3, -1]
    assert rows.labels.dtype == np.int64


@pytest.mark.parametrize(
    "content",
    [
        "a,b,kind\n1,2,fox\n3.5,-4,hen\n",
        "a;kind;b\r\n1;fox;2\r\n3.5;hen;-4\r\n",
        '\ufeffkind\tb\ta\n"fox"\t2\t1\n\nhen\t-4\t3.5\n',
    ],
)
def test_the_label_may_have_any_column_and_delimiters_are_recognised(tmp_path, content):
    rows = read_rows(written(tmp_path, "rows.csv", content), RowFormat(label="kind"))
    assert rows.labels.tolist() == ["fox", "hen"]
    np.testing.assert_array_equal(np.sort(rows.X, axis=1), [[1.0, 2.0], [-4.0, 3.5]])


@pytest.mark.parametrize(("label", "place"), [("1", 0), ("2", 1), ("-1", 2), ("-3", 0), ("3", 2)])
@pytest.mark.parametrize("header", ["", "a,b,c\n"])
def test_the_label_may_be_a_column_by_its_number(tmp_path, label, place, header):
    # The first row has cells that are the numbers of columns themselves.
    path = written(tmp_path, "rows.csv", f"{header}3,2,-1\n5,1,4\n")
    rows = read_rows(path, RowFormat(label=label))
    cells = np.array([[3, 2, -1], [5, 1, 4]])
    assert rows.labels.tolist() == cells[:, place].tolist()
    np.testing.assert_array_equal(rows.X, np.delete(cells, place, axis=1))
    assert (rows.names is None) == (header == "")


@pytest.mark.parametrize("label", ["0", "4", "-4"])
def test_the_number_of_a_column_must_be_one_of_them(tmp_path, label):
    with pytest.raises(RowFileError, match=rf"has 3 columns\. Got --label {label}; columns are numbered from 1"):
        read_rows(written(tmp_path, "rows.csv", "3,2,-1\n5,1,4\n"), RowFormat(label=label))


@pytest.mark.parametrize("header", ["", "alcohol,ash,kind\n"])
@pytest.mark.parametrize("first", ["{}.25", "{}"])
def test_a_first_column_that_looks_like_a_feature_is_not_guessed_to_be_the_label(tmp_path, header, first):
    lines = [f"{first.format(i)},2.5,{i % 3}\n" for i in range(60)]
    path = written(tmp_path, "rows.csv", header + "".join(lines))
    with pytest.raises(RowFileError, match=r"has 60 different numbers.*--label -1 for the last column"):
        read_rows(path, RowFormat())
    assert sorted(set(read_rows(path, RowFormat(label="-1")).labels.tolist())) == [0, 1, 2]
    assert len(set(read_rows(path, RowFormat(label="1")).labels.tolist())) == 60


def test_whole_numbers_with_few_values_are_labels_without_asking(tmp_path):
    for labels in (range(50), [f"{i}.0" for i in range(5)]):
        path = written(tmp_path, "rows.csv", "".join(2 * [f"{label},1.5,2\n" for label in labels]))
        assert len(set(read_rows(path, RowFormat()).labels.tolist())) == len(labels)


@pytest.mark.parametrize("header", ["", "length,width,kind\n"])
def test_a_column_of_words_is_proposed_for_the_label(tmp_path, header):
    path = written(tmp_path, "rows.csv", header + "1.5,2,fox\n3.5,4,hen\n")
    with pytest.raises(RowFileError, match=r"olumn.* holds the labels, use --label 3;"):
        read_rows(path, RowFormat())
    assert read_rows(path, RowFormat(label="3")).labels.tolist() == ["fox", "hen"]


def test_a_line_of_names_is_told_from_a_row(tmp_path):
    plain = read_rows(written(tmp_path, "a.csv", "fox,1,2\nhen,3,4\n"), RowFormat())
    named = read_rows(written(tmp_path, "b.csv", "kind,a,b\nfox,1,2\nhen,3,4\n"), RowFormat())
    np.testing.assert_array_equal(plain.X, named.X)
    assert plain.labels.tolist() == named.labels.tolist() == ["fox", "hen"]
    mixed = written(tmp_path, "d.csv", "kind,1,b\nfox,1,2\nhen,3,4\n")
    np.testing.assert_array_equal(read_rows(mixed, RowFormat(label="kind")).X, plain.X)
    numbers = read_rows(written(tmp_path, "c.csv", "7,1,2\n8,3,4\n"), RowFormat())
    assert numbers.labels.tolist() == [7, 8]


def test_names_that_are_numbers_are_told_from_a_row_by_the_name_of_the_labels(tmp_path):
    named = read_rows(written(tmp_path, "a.csv", "digit,0,1\n7,1,2\n8,3,4\n"), RowFormat())
    np.testing.assert_array_equal(named.X, [[1.0, 2.0], [3.0, 4.0]])
    assert named.labels.tolist() == [7, 8]
    words = read_rows(written(tmp_path, "b.csv", "fox,0,1\nhen,1,2\n8,3,4\n"), RowFormat())
    assert words.labels.tolist() == ["fox", "hen", "8"]


def test_labels_that_are_written_differently_stay_different(tmp_path):
    for labels in (["01", "1", "001"], ["10", "1_0", "1"], ["+1", "1", "2"], ["1.0", "1", "2"], ["٣", "3", "4"]):
        path = written(tmp_path, "rows.csv", "".join(f"{label},1,2\n" for label in labels))
        assert read_rows(path, RowFormat()).labels.tolist() == labels
    path = written(tmp_path, "rows.csv", "-1,1,2\n0,3,4\n100,5,6\n")
    assert read_rows(path, RowFormat()).labels.tolist() == [-1, 0, 100]


@pytest.mark.parametrize("name", ["rows.csv", "rows"])
def test_rows_come_from_a_pipe_without_losing_a_byte(tmp_path, name):
    content = "17,1,2\n18,3,4\n" if name == "rows.csv" else "17 0:1 1:2\n18 0:3 1:4\n"
    os.mkfifo(tmp_path / name)
    writer = threading.Thread(target=(tmp_path / name).write_text, args=(content,))
    writer.start()
    rows = read_rows(tmp_path / name, RowFormat())
    writer.join()
    np.testing.assert_array_equal(rows.X, [[1.0, 2.0], [3.0, 4.0]])
    assert rows.labels.tolist() == [17, 18]


@pytest.mark.parametrize("ending", [".gz", ".bz2"])
@pytest.mark.parametrize("name", ["rows.csv", "rows"])
def test_a_file_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path, monkeypatch, name, ending):
    monkeypatch.setattr(row_files, "ALWAYS_UNPACKED", 2**16)
    row = "1,0,0\n" if name == "rows.csv" else "1 0:0 1:0\n"
    fits = read_rows(written(tmp_path, name + ending, 1000 * row), RowFormat())
    assert fits.X.shape == (1000, 2)
    for bomb in (100_000 * row, 3_000_000 * " "):
        with pytest.raises(RowFileError, match="decompresses to more than 200 times its size"):
            read_rows(written(tmp_path, name + ending, bomb), RowFormat())


def test_a_csv_file_takes_little_more_memory_than_its_numbers(tmp_path):
    path = written(tmp_path, "rows.csv", 400 * (",".join(["1"] * 501) + "\n"))
    tracemalloc.start()
    try:
        rows = read_rows(path, RowFormat())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Cells of text would take another 8 bytes each for the pointers alone.
    assert peak < 1.5 * rows.X.nbytes


def test_an_option_for_the_other_kind_of_file_is_refused(tmp_path):
    with pytest.raises(RowFileError, match=r"--label is for CSV and Parquet files.*--format csv"):
        read_rows(written(tmp_path, "rows", "1 1:2\n"), RowFormat(label="kind"))
    with pytest.raises(RowFileError, match="--one-based is for svmlight"):
        read_rows(written(tmp_path, "rows.csv", CSV), RowFormat(one_based=True))


def test_a_reason_is_short_however_long_the_line(tmp_path):
    with pytest.raises(RowFileError) as caught:
        read_rows(written(tmp_path, "rows", 100_000 * "x"), RowFormat())
    assert len(str(caught.value)) < 600


def test_sparse_rows_stay_sparse_and_get_the_width_of_the_model(tmp_path):
    X = sp.random(50, 400, density=0.02, random_state=0, format="lil")
    X[0, 399] = 1.0
    X = X.tocsr()
    X.data = X.data.round(3)
    path = tmp_path / "rows"
    dump_svmlight_file(X, np.arange(50) % 3, str(path), zero_based=True)
    for n_features in (None, 400, 1000, 120):
        rows = read_rows(path, RowFormat(), n_features)
        assert sp.issparse(rows.X)
        expected = X.toarray()
        wanted = np.zeros((50, n_features or 400))
        wanted[:, : min(400, wanted.shape[1])] = expected[:, : wanted.shape[1]]
        np.testing.assert_array_equal(rows.X.toarray(), wanted)


def test_columns_may_count_from_one(tmp_path):
    path = written(tmp_path, "rows", "1 1:5 2:6\n2 2:7\n")
    np.testing.assert_array_equal(read_rows(path, RowFormat(one_based=True)).X, [[5.0, 6.0], [0.0, 7.0]])
    with pytest.raises(RowFileError, match="Leave --one-based out"):
        read_rows(written(tmp_path, "zero", "1 0:5 2:6\n"), RowFormat(one_based=True))


def test_columns_that_start_at_one_are_noticed(tmp_path):
    path = written(tmp_path, "rows", "1 1:5 2:6\n2 2:7\n")
    rows = read_rows(path, RowFormat())
    np.testing.assert_array_equal(rows.X, [[5.0, 6.0], [0.0, 7.0]])
    assert rows.fitted.one_based
    np.testing.assert_array_equal(read_rows(path, RowFormat(one_based=False)).X, [[0.0, 5.0, 6.0], [0.0, 0.0, 7.0]])
    assert not read_rows(written(tmp_path, "zero", "1 0:5\n2 1:7\n"), RowFormat()).fitted.one_based


def test_columns_of_rows_for_a_model_count_as_in_the_fit(tmp_path):
    path = written(tmp_path, "rows", "1 2:6\n")
    from_1, from_0 = (RowFormat(fitted=FittedFormat("svmlight", one_based=is_so)) for is_so in (True, False))
    np.testing.assert_array_equal(read_rows(path, from_1, 3).X, [[0.0, 6.0, 0.0]])
    np.testing.assert_array_equal(read_rows(path, from_0, 3).X, [[0.0, 0.0, 6.0]])
    with pytest.raises(RowFileError, match=r"has a column 0.*or use --zero-based"):
        read_rows(written(tmp_path, "zero", "1 0:5\n"), from_1, 3)
    # Nothing is known of the fit of a model that Python has saved.
    np.testing.assert_array_equal(read_rows(written(tmp_path, "full", "1 1:5 3:6\n"), RowFormat(), 3).X, [[5, 0, 6]])
    np.testing.assert_array_equal(read_rows(path, RowFormat(), 3).X, [[0.0, 0.0, 6.0]])


def test_csv_for_a_model_may_have_labels_or_not(tmp_path):
    with_labels = read_rows(written(tmp_path, "a.csv", CSV), RowFormat(), 2)
    without = read_rows(written(tmp_path, "b.csv", "1,2\n3.5,-4\n"), RowFormat(), 2)
    np.testing.assert_array_equal(with_labels.X, without.X)
    assert without.labels is None
    with pytest.raises(RowFileError, match=r"has 3 columns\. The model expects 5"):
        read_rows(tmp_path / "a.csv", RowFormat(), 5)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.csv", "", "is empty"),
        ("rows.csv", "\n\n", "contains no rows"),
        ("rows.csv", "kind,a,b\n", "contains no rows"),
        ("rows.csv", "fox,1,2\nhen,3\n", "line 2: 2 cells where the first line has 3"),
        ("rows.csv", "fox,1,2\nhen,,4\n", "line 2, column 2: the cell is empty"),
        ("rows.csv", "fox,,2\nhen,3,4\n", "line 1: '' is not a number.*--label"),
        ("rows.csv", "fox,1,2\nhen,3,1_0\n", "line 2, column 3: expected a finite number, got '1_0'"),
        ("rows.csv", "fox,1,2\nhen,3,nan\n", "line 2, column 3: expected a finite number, got 'nan'"),
        ("rows.csv", "fox,1,2\nhen,3,1e999\n", "line 2, column 3: expected a finite number, got '1e999'"),
        ("rows.csv", "fox,1,2\nhen,3,four\n", "line 2, column 3: expected a finite number, got 'four'"),
        ("rows.csv", "fox,1,2\n,3,4\n", "a row without a label"),
        ("rows.csv", "fox\nhen\n", "a single column, the labels"),
        ("rows.csv", b"fox,1\nh\xffn,2\n", "could not be read as csv"),
        ("rows.csv", "fox,1\nh\0n,2\n", "NUL"),
        ("rows.csv", 'fox,1\n"hen,2\n', "could not be read as csv"),
        ("rows.csv.gz", b"", "contains no rows"),
        ("rows", "", "is empty"),
        ("rows", "# nothing\n", "contains no rows"),
        ("rows", "1 2:x\n", "could not be read as svmlight"),
        ("rows", "fox 1:2\n", "could not be read as svmlight"),
        ("rows", "1 -3:2\n", "could not be read as svmlight"),
        ("rows", "1 3:2 2:1\n", "could not be read as svmlight"),
        ("rows", "1 99999999999999:2\n", "could not be read as svmlight|column 99999999999999"),
        ("rows", f"1 0:1 {MOST_COLUMNS}:2\n", "Renumber the columns"),
    ],
)
def test_a_file_that_holds_no_rows_is_refused_with_a_reason(tmp_path, name, content, message):
    with pytest.raises(RowFileError, match=message):
        read_rows(written(tmp_path, name, content), RowFormat())


@pytest.mark.parametrize("ending", [".gz", ".bz2"])
@pytest.mark.parametrize("name", ["rows.csv", "rows.svm"])
def test_a_damaged_compressed_file_is_refused(tmp_path, name, ending):
    path = written(tmp_path, name + ending, CSV if "csv" in name else "1 1:2\n2 1:3\n")
    whole = path.read_bytes()
    for damaged in (whole[:-5], whole[:12], b"not compressed at all", whole[:15] + b"\xff" * 8 + whole[23:]):
        path.write_bytes(damaged)
        with pytest.raises(RowFileError, match="could not be read"):
            read_rows(path, RowFormat())


def test_a_named_label_must_be_there(tmp_path):
    with pytest.raises(RowFileError, match="has no column 'species' in its first line: kind, a, b"):
        read_rows(written(tmp_path, "rows.csv", CSV), RowFormat(label="species"))


def test_one_long_label_among_many_short_ones_is_refused_before_all_take_its_room(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("".join(f"{'x' * 120_000 if i == 7 else 'ab'},{i},1\n" for i in range(4000)))
    tracemalloc.start()
    try:
        with pytest.raises(RowFileError, match=r"label of 120000 characters.*--label"):
            read_rows(path, RowFormat())
        assert tracemalloc.get_traced_memory()[1] < 50 * 2**20
    finally:
        tracemalloc.stop()
    path.write_text("".join(f"{'x' * 300},{i},1\n" if i % 2 else f"ab,{i},1\n" for i in range(100)))
    assert len(np.unique(read_rows(path, RowFormat()).labels)) == 2


@pytest.mark.parametrize("n_lines", [0, 1])
def test_a_line_of_more_cells_than_rows_have_is_refused_before_it_is_taken_apart(tmp_path, n_lines):
    path = tmp_path / "rows.csv.gz"
    with gzip.open(path, "wt") as stream:
        stream.write("a,1,2\n" * n_lines + "b" + ",1" * (csv_rows.MOST_CSV_COLUMNS + 1) + "\n")
    tracemalloc.start()
    try:
        with pytest.raises(RowFileError, match="svmlight"):
            read_rows(path, RowFormat())
        assert tracemalloc.get_traced_memory()[1] < 50 * 2**20
    finally:
        tracemalloc.stop()


def test_a_line_without_an_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_rows, "LONGEST_LINE", 1000)
    path = tmp_path / "rows.csv"
    path.write_text("a,1\nb," + "1" * 2000 + "\n")
    with pytest.raises(RowFileError, match="1000 characters"):
        read_rows(path, RowFormat())


def test_a_row_that_goes_on_over_many_lines_is_bounded_as_a_whole(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("a" + ',1,1,1,"\n"' * 10 + "\n")
    monkeypatch.setattr(csv_rows, "MOST_CSV_COLUMNS", 30)
    with pytest.raises(RowFileError, match="a line of more than 30 cells"):
        read_rows(path, RowFormat())
    # Short rows before it do not count.
    path.write_text("\n".join(["a,1,2", "b,3,4"] * 30))
    assert read_rows(path, RowFormat()).X.shape == (60, 2)


def test_many_long_labels_do_not_all_take_the_room_of_the_longest(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(f"{'fox' * (3 if i else 30)},{i}" for i in range(100)))
    assert read_rows(path, RowFormat()).labels.dtype == "U90"
    monkeypatch.setattr(row_format, "LABEL_CHARACTERS", 1000)
    labels = read_rows(path, RowFormat()).labels
    assert labels.dtype == object
    assert labels.tolist() == ["fox" * 30, *["foxfoxfox"] * 99]
