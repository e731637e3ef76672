"""The data sets of the paper's experiments and four more, each with one function that fetches it.

A data set is searched for in the directory given by the environment variable ``MARGINTREE_DATA``, then in the cache,
and is downloaded if it is in neither. Data are returned as stored; ``prepared`` scales them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from margintree.datasets.fetchers import (
        fetch,
        fetch_caltech101,
        fetch_letter,
        fetch_news20,
        fetch_pendigits,
        fetch_satimage,
        fetch_sector,
        fetch_segment,
        fetch_svmguide4,
        fetch_udhr_char3,
        fetch_usps,
        fetch_vowel,
        fetch_wordnet_hypernyms,
    )
    from margintree.datasets.preparation import prepared, usual_preparation
    from margintree.datasets.registry import DATA_SETS, DataSet

__all__ = [
    "DATA_SETS",
    "DataSet",
    "fetch",
    "fetch_caltech101",
    "fetch_letter",
    "fetch_news20",
    "fetch_pendigits",
    "fetch_satimage",
    "fetch_sector",
    "fetch_segment",
    "fetch_svmguide4",
    "fetch_udhr_char3",
    "fetch_usps",
    "fetch_vowel",
    "fetch_wordnet_hypernyms",
    "prepared",
    "usual_preparation",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # The registry alone needs neither numpy nor scikit-learn.
    home = "fetchers" if name.startswith("fetch") else "registry" if name.startswith("D") else "preparation"
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
