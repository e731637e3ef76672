"""What is known about each data set: its sizes in Table 1 of the paper, its forms, and where they come from.

A set may exist in several forms. The first is the paper's own where it can be had; the others are substitutes
for it, or parts of it, and say so. Each form is a pair of files in LIBSVM format, ``STEM.bz2`` with the training
part of the source and, where the source has a split, ``STEM.t.bz2`` with its test part.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Preparation = Literal["none", "minmax", "tfidf", "sqrt_l2"]


@dataclass(frozen=True)
class LibsvmSite:
    """Files of the LIBSVM data page; those that end in .bz2 are stored as they come."""

    train: str
    test: str | None = None


@dataclass(frozen=True)
class Newsgroups:
    """Word counts of the 20 Newsgroups texts that scikit-learn downloads."""


@dataclass(frozen=True)
class Form:
    """One form in which a data set exists.

    Attributes
    ----------
    stem : str
        How the names of its files begin.
    n_train, n_test : int
        Rows of the two parts of the source; ``n_test`` is 0 where the source has no split.
    n_features : int or None
        None where it depends on the version of the texts.
    source : LibsvmSite, Newsgroups or None
        Where it can be downloaded; None if it comes only from a data directory.
    is_substitute, is_part : bool
        Whether it stands for other data in the paper, or holds only some of the paper's rows.
    note : str
        How it differs from the paper's set.
    """

    stem: str
    n_train: int
    n_test: int
    n_features: int | None
    source: LibsvmSite | Newsgroups | None = None
    is_substitute: bool = False
    is_part: bool = False
    note: str = ""


@dataclass(frozen=True)
class DataSet:
    """A data set, with the sizes that Table 1 of the paper gives.

    Attributes
    ----------
    name, title : str
        The name in the code, and as the paper writes it.
    n_train_paper, n_test_paper : int or None
        Rows that the paper trains and tests on; None for sets that it does not have.
    n_features, n_classes : int
        Columns and classes.
    kernels : tuple of str
        The kernels that the paper uses on it.
    in_paper : bool
        Whether it is one of the eight sets of Table 1.
    description : str
        What a row and a class are.
    labels : tuple of int
        The class labels, in ascending order.
    forms : tuple of Form
        The forms in which it exists, best first.
    is_sparse : bool
        Whether rows come as a CSR matrix.
    preparation : {"none", "minmax", "tfidf", "sqrt_l2"}
        The usual scaling, which ``margintree.datasets.prepared`` applies.
    class_names : tuple of str
        Names of the classes in the order of ``labels``, where the source tells them.
    """

    name: str
    title: str
    n_train_paper: int | None
    n_test_paper: int | None
    n_features: int
    n_classes: int
    kernels: tuple[str, ...]
    in_paper: bool
    description: str
    labels: tuple[int, ...]
    forms: tuple[Form, ...]
    is_sparse: bool = False
    preparation: Preparation = "none"
    class_names: tuple[str, ...] = ()


_BOTH = ("linear", "rbf")
_LINEAR = ("linear",)
_DIRECTORY_ONLY = "It has no public download in this form: it comes only from a data directory."
_VOWELS = ("hid", "hId", "hEd", "hAd", "hYd", "had", "hOd", "hod", "hUd", "hud", "hed")
_SOILS = (
    "red soil",
    "cotton crop",
    "grey soil",
    "damp grey soil",
    "soil with vegetation stubble",
    "very damp grey soil",
)
_SURFACES = ("brickface", "sky", "foliage", "cement", "window", "path", "grass")
_DIGITS = tuple("0123456789")

_SETS = [
    DataSet(
        "svmguide4",
        "svmguide4",
        300,
        312,
        10,
        6,
        _BOTH,
        True,
        "The traffic light data of the LIBSVM guide; values are not scaled.",
        (-3, -2, -1, 1, 2, 3),
        (Form("svmguide4", 300, 312, 10, LibsvmSite("svmguide4", "svmguide4.t")),),
        preparation="minmax",
    ),
    DataSet(
        "vowel",
        "vowel",
        528,
        462,
        10,
        11,
        _BOTH,
        True,
        "Vowels of British English as spoken by fifteen people; the speakers of the test part are others.",
        tuple(range(11)),
        (Form("vowel", 528, 462, 10, LibsvmSite("vowel.scale", "vowel.scale.t")),),
        class_names=_VOWELS,
    ),
    DataSet(
        "segment",
        "segment",
        1000,
        1310,
        19,
        7,
        _BOTH,
        True,
        "Regions of 3 x 3 pixels of outdoor photographs, by what they show; the source has no split.",
        tuple(range(1, 8)),
        (Form("segment", 2310, 0, 19, LibsvmSite("segment.scale")),),
        class_names=_SURFACES,
    ),
    DataSet(
        "satimage",
        "satimage",
        2000,
        4435,
        36,
        6,
        _BOTH,
        True,
        "Neighbourhoods of 3 x 3 pixels of a Landsat image in four spectral bands, by the soil in the middle.",
        tuple(range(1, 7)),
        (Form("satimage", 4435, 2000, 36, LibsvmSite("satimage.scale", "satimage.scale.t")),),
        class_names=_SOILS,
    ),
    DataSet(
        "usps",
        "usps",
        2007,
        7291,
        256,
        10,
        _BOTH,
        True,
        "Handwritten digits from envelopes, 16 x 16 grey values in [-1, 1], row by row.",
        tuple(range(10)),
        (Form("usps", 7291, 2007, 256, LibsvmSite("usps.bz2", "usps.t.bz2")),),
        class_names=_DIGITS,
    ),
    DataSet(
        "news20",
        "news20",
        3993,
        15935,
        62061,
        20,
        _LINEAR,
        True,
        "Word counts of messages to twenty newsgroups.",
        tuple(range(20)),
        (
            Form("news20", 15935, 3993, 62061, LibsvmSite("news20.bz2", "news20.t.bz2")),
            Form(
                "news20_bydate",
                11314,
                7532,
                44577,
                is_substitute=True,
                note="A substitute for LIBSVM's news20 (19928 rows, 62061 features): word counts of the bydate "
                "version of the same newsgroups.",
            ),
            Form(
                "news20_counts",
                11314,
                7532,
                None,
                Newsgroups(),
                is_substitute=True,
                note="A substitute for LIBSVM's news20 (19928 rows, 62061 features): counts of the words that occur "
                "in two or more training texts of the bydate version that scikit-learn downloads.",
            ),
        ),
        is_sparse=True,
        preparation="tfidf",
    ),
    DataSet(
        "sector",
        "sector",
        3207,
        6412,
        55197,
        105,
        _LINEAR,
        True,
        "Weighted words of web pages of companies, by the industry sector of the company.",
        tuple(range(1, 106)),
        (
            Form("sector", 6412, 3207, 55197, LibsvmSite("sector/sector.scale.bz2", "sector/sector.t.scale.bz2")),
            Form(
                "sector_part",
                865,
                961,
                55197,
                is_part=True,
                note="A part of LIBSVM's sector: 1826 of its 9619 documents, all 105 classes.",
            ),
        ),
        is_sparse=True,
    ),
    DataSet(
        "caltech101",
        "Caltech 101",
        3030,
        5647,
        1000,
        101,
        _LINEAR,
        True,
        "Counts of 1000 visual words in the images of the object classes of Caltech-101 (no background class).",
        tuple(range(101)),
        (
            Form(
                "caltech101_bow1000",
                8677,
                0,
                1000,
                is_substitute=True,
                note="A substitute for the authors' unpublished features: the paper's images and recipe (dense SIFT, "
                "step 8, patch 16, 1000 codewords) with another codebook.",
            ),
        ),
        preparation="sqrt_l2",
    ),
    DataSet(
        "letter",
        "letter",
        None,
        None,
        16,
        26,
        _BOTH,
        False,
        "Sixteen statistics of the pixels of printed capital letters.",
        tuple(range(1, 27)),
        (Form("letter", 15000, 5000, 16, LibsvmSite("letter.scale", "letter.scale.t")),),
        class_names=tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    ),
    DataSet(
        "pendigits",
        "pendigits",
        None,
        None,
        16,
        10,
        _BOTH,
        False,
        "Handwritten digits as eight points (x, y) along the pen's way; the writers of the test part are others. "
        "Values are 0 to 100.",
        tuple(range(10)),
        (Form("pendigits", 7494, 3498, 16, LibsvmSite("pendigits", "pendigits.t")),),
        class_names=_DIGITS,
    ),
    DataSet(
        "wordnet_hypernyms",
        "wordnet_hypernyms",
        None,
        None,
        22654,
        1482,
        _LINEAR,
        False,
        "Word counts of a noun's gloss and lemmas in WordNet 3.0; the class is its direct hypernym. " + _DIRECTORY_ONLY,
        tuple(range(1482)),
        (Form("wordnet_hypernyms", 26643, 8838, 22654),),
        is_sparse=True,
        preparation="tfidf",
    ),
    DataSet(
        "udhr_char3",
        "udhr_char3",
        None,
        None,
        20000,
        527,
        _LINEAR,
        False,
        "Counts of runs of one to three characters in paragraphs of the Universal Declaration of Human Rights; the "
        "class is the language. " + _DIRECTORY_ONLY,
        tuple(range(527)),
        (Form("udhr_char3", 22790, 7273, 20000),),
        is_sparse=True,
        preparation="tfidf",
    ),
]

DATA_SETS: Mapping[str, DataSet] = MappingProxyType({data_set.name: data_set for data_set in _SETS})
