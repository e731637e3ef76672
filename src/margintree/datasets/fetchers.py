"""One fetcher for all data sets: the data directory, then the cache, then the source."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import scipy.sparse as sp
from sklearn.datasets import get_data_home
from sklearn.utils import Bunch

from margintree.datasets import data_files
from margintree.datasets.registry import DATA_SETS, DataSet, Form, named
from margintree.datasets.sources import Options, obtain

Subset = Literal["all", "train", "test"]
PathLike = str | os.PathLike[str]

_PARAMETERS = """Parameters
----------
subset : {"all", "train", "test"}, default="all"
    Which rows: those of the training part of the source, of its test part, or both, training rows first.
data_home : str or path-like, default=None
    Where scikit-learn keeps its data, with the cache in its folder "margintree"; by default
    ``sklearn.datasets.get_data_home()``.
download_if_missing : bool, default=True
    Whether to download what is neither in the data directory nor in the cache.
return_X_y : bool, default=False
    Whether to return ``(data, target)`` instead of a Bunch.
as_frame : bool, default=False
    Whether data and target are a pandas DataFrame and Series.
n_retries : int, default=3
    Number of retries when a download fails.
delay : float, default=1.0
    Seconds between retries.

Returns
-------
Bunch
    ``data`` (rows as stored: dense or CSR, float64), ``target`` (int64), ``target_names`` in ascending order of the
    labels, ``feature_names``, ``frame``, ``DESCR``, ``n_train`` (how many of the rows, the first ones, belong to the
    training part of the source), ``is_substitute``, ``is_part``, ``note`` (how the set differs from the paper's),
    ``source`` ("MARGINTREE_DATA", "cache" or an address) and ``name``.
"""


def fetch(name: str, subset: Subset = "all", **options: Any) -> Any:
    """Return a data set by its name.

    Parameters
    ----------
    name : str
        A key of ``DATA_SETS``.
    subset : {"all", "train", "test"}, default="all"
        Which rows.
    **options
        As in the ``fetch_*`` functions.

    Returns
    -------
    Bunch
        As from the ``fetch_*`` functions.

    Examples
    --------
    >>> from margintree.datasets import fetch
    >>> fetch("vowels")
    Traceback (most recent call last):
        ...
    ValueError: Unknown data set 'vowels'; known are svmguide4, vowel, segment, satimage, usps, news20, sector, \
caltech101, letter, pendigits, wordnet_hypernyms, udhr_char3.
    """
    return fetcher(named(name))(subset, **options)


def fetcher(data_set: DataSet, site: str = Options.site) -> Callable[..., Any]:
    """Return the function that fetches a data set, with the LIBSVM files from ``site``."""

    def fetch_one(
        subset: Subset = "all",
        *,
        data_home: PathLike | None = None,
        download_if_missing: bool = True,
        return_X_y: bool = False,
        as_frame: bool = False,
        n_retries: int = 3,
        delay: float = 1.0,
    ) -> Any:
        if subset not in get_args(Subset):
            raise ValueError(f"subset must be 'all', 'train' or 'test'; got {subset!r}.")
        if n_retries < 1 or delay <= 0:
            raise ValueError(f"n_retries must be 1 or more and delay positive; got {n_retries!r} and {delay!r}.")
        options = Options(data_home, n_retries, delay, site)
        form, directory, source = _located(data_set, options, download_if_missing)
        bunch = _bunch(data_set, form, data_files.read(data_set, form, directory), source, subset)
        if as_frame:
            _as_frames(bunch)
        return (bunch.data, bunch.target) if return_X_y else bunch

    fetch_one.__name__ = fetch_one.__qualname__ = f"fetch_{data_set.name}"
    fetch_one.__doc__ = (
        f"Return the data set {data_set.title}.\n\n{data_set.description}\n\n{_PARAMETERS}\n"
        f"Examples\n--------\n>>> from margintree.datasets import fetch_{data_set.name}\n"
        f">>> X, y = fetch_{data_set.name}(return_X_y=True)  # doctest: +SKIP\n"
    )
    return fetch_one


def _located(data_set: DataSet, options: Options, may_download: bool) -> tuple[Form, Path, str]:
    """Return a form of the set, the directory that holds it, and where it came from; download it if necessary."""
    directory, cache = _data_directory(), Path(get_data_home(options.data_home)) / "margintree"
    for place, source in ((directory, "MARGINTREE_DATA"), (cache, "cache")):
        for form in data_set.forms:
            if place is not None and data_files.is_stored(form, place):
                return form, place, source
    places = f"{directory} (MARGINTREE_DATA)" if directory else "MARGINTREE_DATA (which is not set)"
    names = " or ".join(f"{form.stem}.bz2" for form in data_set.forms)
    missing = f"{data_set.name} is neither in {places} nor in the cache {cache}."
    put = f"put {names} into a directory that MARGINTREE_DATA names"
    forms = [form for form in data_set.forms if form.source is not None]
    if not forms:
        hints = " ".join(form.how_to_get for form in data_set.forms)
        raise OSError(f"{missing} {hints} Or {put}.")
    if not may_download:
        raise OSError(f"{missing} Use download_if_missing=True, or {put}.")
    form, address = _downloaded(data_set, forms, cache, options)
    return form, cache, address


def _data_directory() -> Path | None:
    """Return the directory given by MARGINTREE_DATA, if it is set."""
    value = os.environ.get("MARGINTREE_DATA")
    if not value:
        return None
    if not Path(value).is_dir():
        raise NotADirectoryError(
            f"MARGINTREE_DATA is {value!r}, which is not a directory. Set it to the directory that holds the data "
            "sets (NAME.bz2, NAME.t.bz2), or unset it to download them."
        )
    return Path(value)


def _downloaded(data_set: DataSet, forms: list[Form], cache: Path, options: Options) -> tuple[Form, str]:
    """Download the first form that is available, and return it with its address."""
    form, *others = forms
    try:
        return form, obtain(data_set, form, cache, options)
    except (OSError, data_files.DataError) as error:
        if not others:
            raise
        warnings.warn(f"{error} Trying another form of {data_set.name}: {others[0].note}", stacklevel=4)
    return _downloaded(data_set, others, cache, options)


def _bunch(data_set: DataSet, form: Form, rows: data_files.Rows, source: str, subset: Subset) -> Bunch:
    if subset == "test" and not form.n_test:
        raise ValueError(f"{data_set.name} ({form.stem}) has no test part; use subset='all' and split the rows.")
    chosen = {"all": slice(None), "train": slice(rows.n_train), "test": slice(rows.n_train, None)}[subset]
    return Bunch(
        name=data_set.name,
        data=rows.data[chosen],
        target=rows.target[chosen],
        frame=None,
        target_names=rows.class_names,
        feature_names=[f"feature_{j}" for j in range(1, rows.data.shape[1] + 1)],
        DESCR=_description(data_set, form, rows.data.shape[1]),
        n_train=0 if subset == "test" else rows.n_train,
        is_substitute=form.is_substitute,
        is_part=form.is_part,
        note=form.note,
        source=source,
    )


def _as_frames(bunch: Bunch) -> None:
    """Turn the rows of a Bunch into a DataFrame, its target into a Series, and set ``frame`` to both."""
    try:
        import pandas as pd
    except ImportError as error:
        message = "as_frame=True needs pandas, which is not installed: pip install 'margintree[frames]'."
        raise ImportError(message) from error
    columns, target = bunch.feature_names, pd.Series(bunch.target, name="target")
    if sp.issparse(bunch.data):
        data = pd.DataFrame.sparse.from_spmatrix(bunch.data, columns=columns)
    else:
        data = pd.DataFrame(bunch.data, columns=columns, copy=False)
    bunch.update(data=data, target=target, frame=pd.concat([data, target], axis=1))


def _description(data_set: DataSet, form: Form, n_features: int) -> str:
    sizes = f"{form.n_train} training and {form.n_test} test rows" if form.n_test else f"{form.n_train} rows, no split"
    title, n_classes = data_set.title, data_set.n_classes
    lines = [title, "=" * len(title), data_set.description]
    lines.append(f"{form.stem}: {sizes}, {n_features} features, {n_classes} classes.")
    if data_set.in_paper:
        lines.append(
            f"Table 1 of Yang & Tsang: {data_set.n_train_paper} training and {data_set.n_test_paper} test rows, "
            f"{data_set.n_features} features, {n_classes} classes."
        )
    if form.note:
        lines.append(form.note)
    return "\n".join(lines)


fetch_svmguide4 = fetcher(DATA_SETS["svmguide4"])
fetch_vowel = fetcher(DATA_SETS["vowel"])
fetch_segment = fetcher(DATA_SETS["segment"])
fetch_satimage = fetcher(DATA_SETS["satimage"])
fetch_usps = fetcher(DATA_SETS["usps"])
fetch_news20 = fetcher(DATA_SETS["news20"])
fetch_sector = fetcher(DATA_SETS["sector"])
fetch_caltech101 = fetcher(DATA_SETS["caltech101"])
fetch_letter = fetcher(DATA_SETS["letter"])
fetch_pendigits = fetcher(DATA_SETS["pendigits"])
fetch_wordnet_hypernyms = fetcher(DATA_SETS["wordnet_hypernyms"])
fetch_udhr_char3 = fetcher(DATA_SETS["udhr_char3"])
