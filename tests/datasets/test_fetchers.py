import bz2
import hashlib
import pickle
import socket
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from margintree.datasets import DATA_SETS, fetch, fetch_news20, fetch_segment, fetch_udhr_char3, fetch_usps, fetch_vowel
from margintree.datasets.data_files import DataError
from margintree.datasets.download import DownloadError
from margintree.datasets.fetchers import fetcher
from margintree.datasets.registry import Form, LibsvmSite


@pytest.fixture
def fetch_small(small, small_site, tmp_path):
    """Return the fetcher of the small set from the loopback server, with a cache of its own."""

    def fetch_it(subset="all", **options):
        options = {"data_home": tmp_path, "n_retries": 1, "delay": 0.01, **options}
        return fetcher(small, site=small_site.address)(subset, **options)

    return fetch_it


def refused_address():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}/"


def test_a_bunch_holds_the_rows_of_both_parts_and_their_facts(fetch_small, small_site):
    bunch = fetch_small()
    assert bunch.data.shape == (21, 4)
    assert bunch.data.dtype == np.float64
    assert bunch.target.dtype == np.int64
    assert bunch.n_train == 12
    assert bunch.target_names == ["0", "1", "2"]
    assert bunch.feature_names == ["feature_1", "feature_2", "feature_3", "feature_4"]
    assert bunch.source == f"{small_site.address}small.scale"
    assert (bunch.is_substitute, bunch.is_part, bunch.note, bunch.name) == (False, False, "", "small")
    assert "12 training and 9 test rows, 4 features, 3 classes" in bunch.DESCR


def test_the_parts_are_those_of_the_source(fetch_small, small_site, tmp_path):
    (tmp_path / "train").write_bytes(small_site.files["/small.scale"])
    X, y = load_svmlight_file(str(tmp_path / "train"))
    both, train, test = fetch_small(), fetch_small("train"), fetch_small("test")
    np.testing.assert_array_equal(train.data, X.toarray())
    np.testing.assert_array_equal(train.target, y)
    np.testing.assert_array_equal(np.vstack([train.data, test.data]), both.data)
    np.testing.assert_array_equal(np.concatenate([train.target, test.target]), both.target)
    assert (train.n_train, test.n_train) == (12, 0)


def test_the_second_call_uses_the_cache(fetch_small, small_site):
    first, second = fetch_small(), fetch_small(download_if_missing=False)
    assert small_site.requests == ["/small.scale", "/small.t.bz2"]
    assert second.source == "cache"
    np.testing.assert_array_equal(first.data, second.data)


def test_a_damaged_file_in_the_cache_is_told_with_its_path(fetch_small, tmp_path):
    fetch_small()
    path = tmp_path / "margintree" / "small.t.bz2"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(DataError, match="Delete the file and fetch it again") as caught:
        fetch_small()
    assert str(path) in str(caught.value)


def test_return_X_y(fetch_small):
    X, y = fetch_small("test", return_X_y=True)
    assert X.shape == (9, 4)
    assert y.shape == (9,)


def test_as_frame_gives_pandas_objects(fetch_small):
    pd = pytest.importorskip("pandas")
    bunch, plain = fetch_small(as_frame=True), fetch_small()
    assert isinstance(bunch.data, pd.DataFrame)
    assert isinstance(bunch.target, pd.Series)
    assert list(bunch.frame.columns) == [*plain.feature_names, "target"]
    np.testing.assert_array_equal(bunch.data.to_numpy(), plain.data)
    np.testing.assert_array_equal(bunch.frame["target"], plain.target)
    X, y = fetch_small(as_frame=True, return_X_y=True)
    assert isinstance(X, pd.DataFrame)
    assert isinstance(y, pd.Series)


def test_as_frame_of_sparse_rows_stays_sparse(small, small_site, tmp_path):
    pytest.importorskip("pandas")
    sparse_set = replace(small, is_sparse=True)
    bunch = fetcher(sparse_set, site=small_site.address)(data_home=tmp_path, as_frame=True)
    assert (bunch.data.sparse.to_coo() != fetcher(sparse_set)(data_home=tmp_path).data).nnz == 0


def test_as_frame_without_pandas_says_what_to_install(fetch_small, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'margintree\[frames\]'"):
        fetch_small(as_frame=True)


def test_sparse_rows_come_as_csr(small, small_site, tmp_path):
    dense = fetcher(small, site=small_site.address)(data_home=tmp_path)
    bunch = fetcher(replace(small, is_sparse=True))(data_home=tmp_path)
    assert sp.issparse(bunch.data)
    assert bunch.data.format == "csr"
    np.testing.assert_array_equal(bunch.data.toarray(), dense.data)


def test_the_data_directory_comes_before_the_cache(fetch_small, small_site, tmp_path, monkeypatch):
    fetch_small()
    directory = tmp_path / "data"
    directory.mkdir()
    for name in ("small.bz2", "small.t.bz2"):
        (directory / name).write_bytes((tmp_path / "margintree" / name).read_bytes())
    monkeypatch.setenv("MARGINTREE_DATA", str(directory))
    assert fetch_small().source == "MARGINTREE_DATA"
    (directory / "small.t.bz2").unlink()
    assert fetch_small().source == "cache"


def test_class_names_come_from_the_file_beside_the_rows(fetch_small, tmp_path):
    fetch_small()
    names = tmp_path / "margintree" / "small.classes.txt"
    names.write_text("ash\nbirch\nyew\n", encoding="utf-8")
    assert fetch_small().target_names == ["ash", "birch", "yew"]
    names.write_text("ash\nbirch\n", encoding="utf-8")
    with pytest.raises(DataError, match="names 2 classes; small has 3"):
        fetch_small()


def test_a_file_that_differs_from_its_checksum_is_refused(fetch_small, tmp_path):
    fetch_small()
    cache = tmp_path / "margintree"
    digest = hashlib.sha256((cache / "small.bz2").read_bytes()).hexdigest()
    (cache / "SHA256SUMS").write_text(f"{digest}  small.bz2\n{digest}  another.bz2\n")
    assert fetch_small().source == "cache"
    (cache / "SHA256SUMS").write_text(f"{digest}  small.bz2\n{digest}  small.t.bz2\n")
    with pytest.raises(DataError, match=r"small\.t\.bz2 has SHA-256 .* says"):
        fetch_small()


def test_labels_that_a_source_counts_from_one_are_shifted(store_form, tmp_path, monkeypatch):
    monkeypatch.setenv("MARGINTREE_DATA", str(tmp_path))
    store_form("vowel", "vowel", tmp_path, labels=tuple(range(1, 12)))
    np.testing.assert_array_equal(np.unique(fetch_vowel().target), np.arange(11))


def test_a_set_without_a_split_has_no_test_part(store_form, tmp_path, monkeypatch):
    monkeypatch.setenv("MARGINTREE_DATA", str(tmp_path))
    store_form("segment", "segment", tmp_path)
    assert fetch_segment().n_train == fetch_segment("train").n_train == 2310
    with pytest.raises(ValueError, match="no test part; use subset='all'"):
        fetch_segment("test")


def test_the_source_that_fails_is_told_before_another_form_is_tried(small, small_site, tmp_path):
    forms = (
        Form("small_best", 30, 0, 4, LibsvmSite("absent")),
        replace(small.forms[0], is_substitute=True, note="A substitute for tests."),
    )
    with pytest.warns(UserWarning, match=r"absent could not be downloaded: HTTP 404.*A substitute for tests"):
        bunch = fetcher(replace(small, forms=forms), site=small_site.address)(data_home=tmp_path)
    assert bunch.is_substitute
    assert bunch.note == "A substitute for tests."
    assert bunch.note in bunch.DESCR


@pytest.mark.filterwarnings("ignore:Retry")
def test_without_a_connection_the_error_says_what_to_do(small, tmp_path):
    with pytest.raises(DownloadError, match=r"refused.*put the files into a directory and name it in MARGINTREE_DATA"):
        fetcher(small, site=refused_address())(data_home=tmp_path, n_retries=1, delay=0.01)
    assert list((tmp_path / "margintree").iterdir()) == []


def test_missing_data_that_may_not_be_downloaded_are_told_with_the_places(tmp_path, monkeypatch):
    with pytest.raises(
        OSError, match=r"MARGINTREE_DATA.*not set.*download_if_missing=True, or put usps\.bz2"
    ) as caught:
        fetch_usps(data_home=tmp_path, download_if_missing=False)
    assert str(tmp_path / "margintree") in str(caught.value)
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("MARGINTREE_DATA", str(tmp_path / "empty"))
    with pytest.raises(OSError, match=r"news20\.bz2 or news20_bydate\.bz2") as caught:
        fetch_news20(data_home=tmp_path, download_if_missing=False)
    assert str(tmp_path / "empty") in str(caught.value)


def test_a_set_without_a_download_says_so(tmp_path):
    with pytest.raises(OSError, match=r"udhr_char3.*no public download.*put udhr_char3\.bz2 into a directory"):
        fetch_udhr_char3(data_home=tmp_path)
    with pytest.raises(OSError, match=r"caltech_features\.store_features"):
        fetch("caltech101", data_home=tmp_path)


def test_a_data_directory_that_does_not_exist_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("MARGINTREE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(NotADirectoryError, match=r"nowhere.*not a directory.*or unset it"):
        fetch_vowel(data_home=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"subset": "validation"}, "'all', 'train' or 'test'; got 'validation'"),
        ({"n_retries": 0}, "n_retries must be 1 or more and delay positive; got 0"),
        ({"delay": -0.5}, "delay positive; got 3 and -0.5"),
    ],
)
def test_wrong_arguments_are_told(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        fetch_vowel(**arguments)


def test_an_unknown_name_is_told_with_those_that_are_known():
    with pytest.raises(ValueError, match="Unknown data set 'iris'; known are svmguide4, vowel"):
        fetch("iris")


def test_fetchers_can_be_sent_to_other_processes():
    assert pickle.loads(pickle.dumps(fetch_vowel)) is fetch_vowel


@pytest.mark.parametrize("name", DATA_SETS)
def test_real_data_have_the_sizes_of_the_registry(name, real_data):
    bunch = fetch(name, download_if_missing=False)
    form = next(f for f in DATA_SETS[name].forms if f.note == bunch.note and (real_data / f"{f.stem}.bz2").exists())
    assert bunch.source == "MARGINTREE_DATA"
    assert bunch.data.shape == (form.n_train + form.n_test, form.n_features)
    assert tuple(np.unique(bunch.target)) == DATA_SETS[name].labels
    assert len(bunch.target_names) == DATA_SETS[name].n_classes
    assert sp.issparse(bunch.data) == DATA_SETS[name].is_sparse


def test_real_data_directory_is_never_written(real_data, tmp_path):
    before = sorted(real_data.iterdir())
    fetch_vowel(data_home=tmp_path)
    assert sorted(real_data.iterdir()) == before
    assert list(tmp_path.iterdir()) == []


def test_a_plain_file_under_a_bz2_name_is_refused(store_form, tmp_path, monkeypatch):
    monkeypatch.setenv("MARGINTREE_DATA", str(tmp_path))
    store_form("vowel", "vowel", tmp_path)
    path = tmp_path / "vowel.bz2"
    path.write_bytes(bz2.decompress(path.read_bytes()))
    with pytest.raises(DataError, match="Invalid data stream"):
        fetch_vowel()
