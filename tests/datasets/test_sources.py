import bz2
import gzip
import hashlib
import io
import json
import tarfile
from dataclasses import replace

import numpy as np
import pytest
import sklearn.datasets._openml as openml
import sklearn.datasets._twenty_newsgroups as newsgroups
from sklearn.datasets._base import RemoteFileMetadata

from margintree.datasets.data_files import DataError, read
from margintree.datasets.download import DownloadError
from margintree.datasets.registry import Form, Newsgroups, OpenML
from margintree.datasets.sources import Options, obtain


@pytest.fixture
def options(site, tmp_path):
    return Options(str(tmp_path / "home"), n_retries=1, delay=0.01, site=site.address)


def test_the_files_of_the_libsvm_site_are_stored_under_the_names_of_a_data_directory(
    small, small_site, options, tmp_path
):
    address = obtain(small, small.forms[0], tmp_path / "cache", options)
    assert address == f"{small_site.address}small.scale"
    assert sorted(p.name for p in (tmp_path / "cache").iterdir()) == ["small.bz2", "small.t.bz2"]
    assert bz2.decompress((tmp_path / "cache" / "small.bz2").read_bytes()) == small_site.files["/small.scale"]


def test_a_part_that_came_before_an_interruption_is_not_fetched_again(small, small_site, options, tmp_path):
    small_site.faults += [None, 404]
    with pytest.raises(DownloadError):
        obtain(small, small.forms[0], tmp_path / "cache", options)
    assert [p.name for p in (tmp_path / "cache").iterdir()] == ["small.bz2"]
    obtain(small, small.forms[0], tmp_path / "cache", options)
    assert small_site.requests == ["/small.scale", "/small.t.bz2", "/small.t.bz2"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"<html>Log in to use this network</html>", "does not contain rows of small in LIBSVM format"),
        (b"0 1:1\n1 2:1\n2 3:1\n", "has 3 rows; expected the 12 of small"),
        (b"0 1:1\n1 2:1\n" * 6, "has 2 classes, 0 to 1; expected the 3 of small, 0 to 2"),
        (b"0 1:1\n1 2:1\n2 5:1\n" * 4, "does not contain rows of small"),
        (b"", "small"),
    ],
    ids=["page", "too few rows", "too few classes", "too many features", "empty"],
)
def test_a_wrong_file_is_refused_with_its_address_and_not_stored(
    small, small_site, options, tmp_path, content, complaint
):
    small_site.files["/small.scale"] = content
    with pytest.raises(DataError, match=complaint) as caught:
        obtain(small, small.forms[0], tmp_path / "cache", options)
    assert str(caught.value).startswith(f"{small_site.address}small.scale")
    assert "MARGINTREE_DATA" in str(caught.value)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_compressed_file_that_is_cut_short_at_the_source_is_refused(small, small_site, options, tmp_path):
    whole = small_site.files["/small.t.bz2"]
    small_site.files["/small.t.bz2"] = whole[: len(whole) // 2]
    with pytest.raises(DataError, match=r"small\.t\.bz2 does not contain rows"):
        obtain(small, small.forms[0], tmp_path / "cache", options)
    assert not (tmp_path / "cache" / "small.t.bz2").exists()


@pytest.fixture
def openml_site(site, monkeypatch):
    """Serve a set of nine rows with the labels 1, 2, 3 the way OpenML does."""
    rows = [[j + 0.5 * k for j in range(4)] for k in range(9)]
    lines = [f"{','.join(map(str, row))},{k % 3 + 1}" for k, row in enumerate(rows)]
    header = "@RELATION small\n" + "".join(f"@ATTRIBUTE x{j} REAL\n" for j in range(4))
    arff = (header + "@ATTRIBUTE class {1,2,3}\n@DATA\n" + "\n".join(lines) + "\n").encode()
    about = {
        "id": "7",
        "name": "small",
        "version": "1",
        "status": "active",
        "format": "ARFF",
        "url": f"{site.address}data/v1/download/7/small.arff",
        "file_id": "7",
        "md5_checksum": hashlib.md5(arff).hexdigest(),
    }
    column = {"is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"}
    features = [
        {"index": str(j), "name": f"x{j}", "data_type": "numeric", "is_target": "false", **column} for j in range(4)
    ]
    features.append({"index": "4", "name": "class", "data_type": "nominal", "is_target": "true", **column})
    answers = {
        "api/v1/json/data/7": {"data_set_description": about},
        "api/v1/json/data/features/7": {"data_features": {"feature": features}},
        "api/v1/json/data/qualities/7": {
            "data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "9.0"}]}
        },
    }
    site.files |= {f"/{path}": json.dumps(answer).encode() for path, answer in answers.items()}
    site.files["/data/v1/download/7/small.arff"] = arff
    # Some versions of scikit-learn keep the beginning of the addresses by itself.
    monkeypatch.setattr(openml, "_OPENML_PREFIX", site.address, raising=False)
    for name in ("_DATA_INFO", "_DATA_FEATURES", "_DATA_QUALITIES"):
        address = getattr(openml, name)
        if "openml.org/" in address:
            monkeypatch.setattr(openml, name, site.address + address.split("openml.org/")[1])
    return site


@pytest.fixture
def small_openml(small):
    return replace(small, forms=(Form("small_openml", 9, 0, 4, OpenML(7)),))


def test_rows_of_openml_are_stored_with_the_labels_of_the_registry(small_openml, openml_site, options, tmp_path):
    form = small_openml.forms[0]
    assert obtain(small_openml, form, tmp_path, options) == "https://www.openml.org/d/7"
    rows = read(small_openml, form, tmp_path)
    np.testing.assert_allclose(rows.data, [[j + 0.5 * k for j in range(4)] for k in range(9)])
    np.testing.assert_array_equal(rows.target, [0, 1, 2] * 3)


@pytest.mark.filterwarnings("ignore:Downloaded file could have been corrupted")
def test_a_file_of_openml_with_another_checksum_is_refused(small_openml, openml_site, options, tmp_path):
    openml_site.files["/data/v1/download/7/small.arff"] += b"9,9,9,9,1\n"
    with pytest.raises(DownloadError, match=r"openml\.org/d/7 could not be downloaded: .*md5"):
        obtain(small_openml, small_openml.forms[0], tmp_path / "cache", options)
    assert not (tmp_path / "cache").exists()


GROUPS = ("alt.trees", "rec.gardens", "sci.margins")


@pytest.fixture
def newsgroups_site(site, monkeypatch):
    """Serve an archive of three groups with four training and three test texts each."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for part, n_texts in (("train", 4), ("test", 3)):
            for group in GROUPS:
                for k in range(n_texts):
                    text = f"Subject: {group}\n\nshared {group.split('.')[1]} word once{part}{group[:3]}{k}".encode()
                    entry = tarfile.TarInfo(f"20news-bydate-{part}/{group}/{k}")
                    entry.size = len(text)
                    archive.addfile(entry, io.BytesIO(text))
    content = stream.getvalue()
    site.files["/20news.tar.gz"] = content
    metadata = RemoteFileMetadata("20news.tar.gz", f"{site.address}20news.tar.gz", hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(newsgroups, "ARCHIVE", metadata)
    return site


@pytest.fixture
def small_newsgroups(small):
    return replace(small, is_sparse=True, forms=(Form("small_counts", 12, 9, None, Newsgroups()),))


def test_newsgroups_become_counts_of_words_of_two_or_more_training_texts(
    small_newsgroups, newsgroups_site, options, tmp_path
):
    form = small_newsgroups.forms[0]
    obtain(small_newsgroups, form, tmp_path / "cache", options)
    rows = read(small_newsgroups, form, tmp_path / "cache")
    assert rows.class_names == list(GROUPS)
    # alt, trees, rec, gardens, sci, margins, shared, subject, word: the group's second word occurs twice.
    assert rows.data.shape == (21, 9)
    np.testing.assert_array_equal(rows.data.sum(axis=1).A1, np.full(21, 6.0))
    np.testing.assert_array_equal(np.bincount(rows.target[:12]), [4, 4, 4])


def test_newsgroups_with_another_checksum_are_refused(small_newsgroups, newsgroups_site, options, tmp_path):
    newsgroups_site.files["/20news.tar.gz"] = gzip.compress(b"something else")
    with pytest.raises(DownloadError, match=r"20Newsgroups.*checksum"):
        obtain(small_newsgroups, small_newsgroups.forms[0], tmp_path / "cache", options)
    assert not (tmp_path / "cache").exists()
