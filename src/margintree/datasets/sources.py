"""Downloads of data sets, with one function per kind of source.

Each stores the files of a form in the cache, in the layout of a data directory, and returns the address.
"""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sklearn.datasets import fetch_20newsgroups, fetch_openml
from sklearn.feature_extraction.text import CountVectorizer

from margintree.datasets import data_files
from margintree.datasets.download import download, failure
from margintree.datasets.registry import DataSet, Form, LibsvmSite, Newsgroups, OpenML

LIBSVM_SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"
OPENML_PAGE = "https://www.openml.org/d/"
NEWSGROUPS_PAGE = "http://qwone.com/~jason/20Newsgroups/"


@dataclass(frozen=True)
class Options:
    """How to download: the address of the LIBSVM files or of a mirror, and what to do on failure."""

    data_home: str | os.PathLike[str] | None = None
    n_retries: int = 3
    delay: float = 1.0
    site: str = LIBSVM_SITE


def obtain(data_set: DataSet, form: Form, cache: Path, options: Options) -> str:
    """Download a form into the cache and return its address."""
    source = form.source
    if isinstance(source, LibsvmSite):
        return _from_libsvm_site(data_set, form, source, cache, options)
    if isinstance(source, OpenML):
        return _from_openml(data_set, form, source, cache, options)
    if isinstance(source, Newsgroups):
        return _from_newsgroups(data_set, form, cache, options)
    raise ValueError(f"{form.stem} has no download.")


def _from_libsvm_site(data_set: DataSet, form: Form, source: LibsvmSite, cache: Path, options: Options) -> str:
    for path, name in zip(data_files.paths(form, cache), [source.train, source.test], strict=False):
        # One part may have been stored before an interruption.
        if not path.is_file():
            url = f"{options.site}{name}"
            n_rows = form.n_test if name == source.test else form.n_train
            check = partial(data_files.checked_part, data_set, form, n_rows, origin=url)
            download(url, path, check=check, n_retries=options.n_retries, delay=options.delay)
    return f"{options.site}{source.train}"


def _from_openml(data_set: DataSet, form: Form, source: OpenML, cache: Path, options: Options) -> str:
    url = f"{OPENML_PAGE}{source.data_id}"
    try:
        # scikit-learn compares the file with the checksum that OpenML gives.
        X, y = fetch_openml(
            data_id=source.data_id,
            cache=False,
            return_X_y=True,
            as_frame=False,
            parser="liac-arff",
            n_retries=options.n_retries,
            delay=options.delay,
        )
        target = y.astype(float)
    except (OSError, ValueError) as error:
        raise failure(url, error) from error
    data_files.store_part(data_set, form, form.n_train, X, target, data_files.paths(form, cache)[0], url)
    return url


def _from_newsgroups(data_set: DataSet, form: Form, cache: Path, options: Options) -> str:
    how = {"data_home": options.data_home, "n_retries": options.n_retries, "delay": options.delay}
    try:
        texts = [fetch_20newsgroups(subset=subset, **how) for subset in ("train", "test")]
    except OSError as error:
        raise failure(NEWSGROUPS_PAGE, error) from error
    # A word that occurs in a single training text is of no use for the others.
    vectorizer = CountVectorizer(min_df=2).fit(texts[0].data)
    sizes = [form.n_train, form.n_test]
    for text, path, n_rows in zip(texts, data_files.paths(form, cache), sizes, strict=True):
        counts = vectorizer.transform(text.data)
        data_files.store_part(data_set, form, n_rows, counts, text.target, path, NEWSGROUPS_PAGE)
    data_files.store_class_names(form, texts[0].target_names, cache)
    return NEWSGROUPS_PAGE
