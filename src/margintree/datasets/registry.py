"""Facts about each data set: its sizes in Table 1 of the paper, its forms, and where they come from.

A set may exist in several forms. The first is the paper's own if it is available; the others are substitutes for it, or
parts of it, and are marked as such. Each form is a pair of files in LIBSVM format, ``STEM.bz2`` with the training part
of the source and, where the source has a split, ``STEM.t.bz2`` with its test part.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

Preparation = Literal["none", "minmax", "tfidf", "sqrt_l2"]


class LibsvmSite(NamedTuple):
    """Files of the LIBSVM data page; those that end in .bz2 are stored as they come."""

    train: str
    test: str | None = None


class OpenML(NamedTuple):
    """A set of OpenML by its number."""

    data_id: int


@dataclass(frozen=True)
class Newsgroups:
    """Word counts of the 20 Newsgroups texts that scikit-learn downloads."""


@dataclass(frozen=True)
class Form:
    """One form in which a data set exists.

    Attributes
    ----------
    stem : str
        Prefix of its file names.
    n_train, n_test : int
        Rows of the two parts of the source; ``n_test`` is 0 where the source has no split.
    n_features : int or None
        None where it depends on the version of the texts.
    source : LibsvmSite, OpenML, Newsgroups or None
        Where it can be downloaded; None if it comes only from a data directory.
    is_substitute, is_part : bool
        Whether it replaces other data of the paper, or has only some of the paper's rows.
    note : str
        How it differs from the paper's set.
    how_to_get : str
        What to do if there is no download.
    """

    stem: str
    n_train: int
    n_test: int
    n_features: int | None
    source: LibsvmSite | OpenML | Newsgroups | None = None
    is_substitute: bool = False
    is_part: bool = False
    note: str = ""
    how_to_get: str = ""


@dataclass(frozen=True)
class DataSet:
    """A data set, with the sizes that Table 1 of the paper gives.

    Attributes
    ----------
    name : str
        The name in the code.
    description : str
        What a row and a class are.
    labels : tuple of int
        The class labels, in ascending order.
    n_features : int
        Number of columns.
    forms : tuple of Form
        The forms in which it exists, best first.
    n_train_paper, n_test_paper : int or None
        Rows that the paper trains and tests on; None for sets that it does not have.
    title : str
        The name as the paper writes it.
    kernels : tuple of str
        The kernels that the paper uses on it.
    is_sparse : bool
        Whether rows come as a CSR matrix.
    preparation : {"none", "minmax", "tfidf", "sqrt_l2"}
        The usual scaling, which ``margintree.datasets.prepared`` applies.
    class_names : tuple of str
        Names of the classes in the order of ``labels``, if the source has them.

    Examples
    --------
    >>> from margintree.datasets import DATA_SETS
    >>> DATA_SETS["usps"].n_features, DATA_SETS["usps"].n_classes
    (256, 10)
    """

    name: str
    description: str
    labels: tuple[int, ...]
    n_features: int
    forms: tuple[Form, ...]
    n_train_paper: int | None = None
    n_test_paper: int | None = None
    title: str = ""
    kernels: tuple[str, ...] = ("linear", "rbf")
    is_sparse: bool = False
    preparation: Preparation = "none"
    class_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.name)

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.labels)

    @property
    def in_paper(self) -> bool:
        """Whether it is one of the eight sets of Table 1."""
        return self.n_train_paper is not None


_DIRECTORY_ONLY = "This set has no public download in this form: it comes only from a data directory."
_COMPUTE = "Compute the features from the images with margintree.datasets.caltech_features.store_features."
_DIGITS_IN_ONE_PART = "The digits of both parts from OpenML, in one part: its order is not known to be the source's."
_OTHER_NEWS = "A substitute for LIBSVM's news20 (19928 rows, 62061 features):"
_BYDATE = f"{_OTHER_NEWS} word counts of the bydate version of the same newsgroups."
_COUNTS = (
    f"{_OTHER_NEWS} counts of the words that occur in two or more training texts of the bydate version that "
    "scikit-learn downloads."
)
_PART_OF_SECTOR = "A part of LIBSVM's sector: 1826 of its 9619 documents, all 105 classes."
_OWN_WORDS = (
    "A substitute for the authors' unpublished features: the paper's images and recipe (dense SIFT, step 8, patch 16, "
    "1000 codewords) with another codebook."
)
_SOILS = (
    *("red soil", "cotton crop", "grey soil", "damp grey soil"),
    *("soil with vegetation stubble", "very damp grey soil"),
)
_DIGITS = tuple("0123456789")

_SETS = [
    DataSet(
        "svmguide4",
        n_train_paper=300,
        n_test_paper=312,
        n_features=10,
        description="The traffic light data of the LIBSVM guide; values are not scaled.",
        labels=(-3, -2, -1, 1, 2, 3),
        forms=(Form("svmguide4", 300, 312, 10, LibsvmSite("svmguide4", "svmguide4.t")),),
        preparation="minmax",
    ),
    DataSet(
        "vowel",
        n_train_paper=528,
        n_test_paper=462,
        n_features=10,
        description="Vowels of British English as spoken by fifteen people; the test part has other speakers.",
        labels=tuple(range(11)),
        forms=(Form("vowel", 528, 462, 10, LibsvmSite("vowel.scale", "vowel.scale.t")),),
        class_names=("hid", "hId", "hEd", "hAd", "hYd", "had", "hOd", "hod", "hUd", "hud", "hed"),
    ),
    DataSet(
        "segment",
        n_train_paper=1000,
        n_test_paper=1310,
        n_features=19,
        description="Regions of 3 x 3 pixels of outdoor photographs, by what they show; the source has no split.",
        labels=tuple(range(1, 8)),
        forms=(Form("segment", 2310, 0, 19, LibsvmSite("segment.scale")),),
        class_names=("brickface", "sky", "foliage", "cement", "window", "path", "grass"),
    ),
    DataSet(
        "satimage",
        n_train_paper=2000,
        n_test_paper=4435,
        n_features=36,
        description="Squares of 3 x 3 pixels of a Landsat image in four spectral bands, by the soil in the middle.",
        labels=tuple(range(1, 7)),
        forms=(Form("satimage", 4435, 2000, 36, LibsvmSite("satimage.scale", "satimage.scale.t")),),
        class_names=_SOILS,
    ),
    DataSet(
        "usps",
        n_train_paper=2007,
        n_test_paper=7291,
        n_features=256,
        description="Handwritten digits from envelopes, 16 x 16 grey values in [-1, 1], row by row.",
        labels=tuple(range(10)),
        forms=(
            Form("usps", 7291, 2007, 256, LibsvmSite("usps.bz2", "usps.t.bz2")),
            Form("usps_openml", 9298, 0, 256, OpenML(41082), note=_DIGITS_IN_ONE_PART),
        ),
        class_names=_DIGITS,
    ),
    DataSet(
        "news20",
        n_train_paper=3993,
        n_test_paper=15935,
        n_features=62061,
        kernels=("linear",),
        description="Word counts of messages to twenty newsgroups.",
        labels=tuple(range(20)),
        forms=(
            Form("news20", 15935, 3993, 62061, LibsvmSite("news20.bz2", "news20.t.bz2")),
            Form("news20_bydate", 11314, 7532, 44577, is_substitute=True, note=_BYDATE),
            Form("news20_counts", 11314, 7532, None, Newsgroups(), is_substitute=True, note=_COUNTS),
        ),
        is_sparse=True,
        preparation="tfidf",
    ),
    DataSet(
        "sector",
        n_train_paper=3207,
        n_test_paper=6412,
        n_features=55197,
        kernels=("linear",),
        description="Weighted words of web pages of companies, by the industry sector of the company.",
        labels=tuple(range(1, 106)),
        forms=(
            Form("sector", 6412, 3207, 55197, LibsvmSite("sector/sector.scale.bz2", "sector/sector.t.scale.bz2")),
            Form("sector_part", 865, 961, 55197, is_part=True, note=_PART_OF_SECTOR),
        ),
        is_sparse=True,
    ),
    DataSet(
        "caltech101",
        title="Caltech 101",
        n_train_paper=3030,
        n_test_paper=5647,
        n_features=1000,
        kernels=("linear",),
        description="Counts of 1000 visual words in the images of Caltech-101, without its background class.",
        labels=tuple(range(101)),
        forms=(Form("caltech101_bow1000", 8677, 0, 1000, is_substitute=True, note=_OWN_WORDS, how_to_get=_COMPUTE),),
        preparation="sqrt_l2",
    ),
    DataSet(
        "letter",
        n_features=16,
        description="Sixteen statistics of the pixels of printed capital letters.",
        labels=tuple(range(1, 27)),
        forms=(Form("letter", 15000, 5000, 16, LibsvmSite("letter.scale", "letter.scale.t")),),
        class_names=tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    ),
    DataSet(
        "pendigits",
        n_features=16,
        description="Handwritten digits as eight points (x, y) along the stroke, values 0 to 100; the test part "
        "has other writers.",
        labels=tuple(range(10)),
        forms=(Form("pendigits", 7494, 3498, 16, LibsvmSite("pendigits", "pendigits.t")),),
        class_names=_DIGITS,
    ),
    DataSet(
        "wordnet_hypernyms",
        n_features=22654,
        kernels=("linear",),
        description="Word counts of a noun's gloss and lemmas in WordNet 3.0; the class is its direct hypernym.",
        labels=tuple(range(1482)),
        forms=(Form("wordnet_hypernyms", 26643, 8838, 22654, how_to_get=_DIRECTORY_ONLY),),
        is_sparse=True,
        preparation="tfidf",
    ),
    DataSet(
        "udhr_char3",
        n_features=20000,
        kernels=("linear",),
        description="Counts of character n-grams (1 to 3) in paragraphs of the Universal Declaration of Human "
        "Rights; the class is the language.",
        labels=tuple(range(527)),
        forms=(Form("udhr_char3", 22790, 7273, 20000, how_to_get=_DIRECTORY_ONLY),),
        is_sparse=True,
        preparation="tfidf",
    ),
]

DATA_SETS: Mapping[str, DataSet] = MappingProxyType({data_set.name: data_set for data_set in _SETS})


def named(name: str) -> DataSet:
    """Return a data set, or raise an error that lists the names of all."""
    if name not in DATA_SETS:
        raise ValueError(f"Unknown data set {name!r}; known are {', '.join(DATA_SETS)}.")
    return DATA_SETS[name]
