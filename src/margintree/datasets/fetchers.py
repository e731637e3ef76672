"""One fetcher for all data sets: the data directory, then the cache, then the source."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from sklearn.datasets import get_data_home
from sklearn.utils import Bunch

from margintree.datasets import data_files
from margintree.datasets.registry import DATA_SETS, DataSet, Form

Subset = Literal["all", "train", "test"]


def fetch(
    name: str,
    subset: Subset = "all",
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
    n_retries: int = 3,
    delay: float = 1.0,
) -> Any:
    """Return a data set by its name."""
    if name not in DATA_SETS:
        raise ValueError(f"Unknown data set {name!r}; known are {', '.join(DATA_SETS)}.")
    data_set = DATA_SETS[name]
    if subset not in ("all", "train", "test"):
        raise ValueError(f"subset must be 'all', 'train' or 'test'; got {subset!r}.")
    form, directory, source = _located(data_set, data_home)
    rows = data_files.read(data_set, form, directory)
    bunch = _bunch(data_set, form, rows, source, subset)
    return (bunch.data, bunch.target) if return_X_y else bunch


def _located(data_set: DataSet, data_home: str | os.PathLike[str] | None) -> tuple[Form, Path, str]:
    directory = Path(os.environ["MARGINTREE_DATA"])
    for form in data_set.forms:
        if data_files.is_stored(form, directory):
            return form, directory, "MARGINTREE_DATA"
    cache = Path(get_data_home(data_home)) / "margintree"
    raise OSError(f"{data_set.name} is neither in {directory} nor in {cache}.")


def _bunch(data_set: DataSet, form: Form, rows: data_files.Rows, source: str, subset: Subset) -> Bunch:
    if subset == "test" and not form.n_test:
        raise ValueError(f"The source of {data_set.name} has no test part; use subset='all' and split the rows.")
    chosen = {"all": slice(None), "train": slice(rows.n_train), "test": slice(rows.n_train, None)}[subset]
    return Bunch(
        name=data_set.name,
        data=rows.data[chosen],
        target=rows.target[chosen],
        frame=None,
        target_names=rows.class_names,
        feature_names=[f"feature_{j}" for j in range(1, rows.data.shape[1] + 1)],
        DESCR=data_set.description,
        n_train=0 if subset == "test" else rows.n_train,
        is_substitute=form.is_substitute,
        is_part=form.is_part,
        note=form.note,
        source=source,
    )


Fetcher = Callable[..., Any]


def _fetcher(name: str) -> Fetcher:
    def fetch_one(
        subset: Subset = "all",
        *,
        data_home: str | os.PathLike[str] | None = None,
        download_if_missing: bool = True,
        return_X_y: bool = False,
        as_frame: bool = False,
        n_retries: int = 3,
        delay: float = 1.0,
    ) -> Any:
        return fetch(
            name,
            subset,
            data_home=data_home,
            download_if_missing=download_if_missing,
            return_X_y=return_X_y,
            as_frame=as_frame,
            n_retries=n_retries,
            delay=delay,
        )

    fetch_one.__name__ = fetch_one.__qualname__ = f"fetch_{name}"
    return fetch_one


fetch_svmguide4 = _fetcher("svmguide4")
fetch_vowel = _fetcher("vowel")
fetch_segment = _fetcher("segment")
fetch_satimage = _fetcher("satimage")
fetch_usps = _fetcher("usps")
fetch_news20 = _fetcher("news20")
fetch_sector = _fetcher("sector")
fetch_caltech101 = _fetcher("caltech101")
fetch_letter = _fetcher("letter")
fetch_pendigits = _fetcher("pendigits")
fetch_wordnet_hypernyms = _fetcher("wordnet_hypernyms")
fetch_udhr_char3 = _fetcher("udhr_char3")
