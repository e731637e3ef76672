"""Parameters: what was given comes back, with its type, and code does not get in."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margintree import MarginTreeClassifier, ModelFileError, OneVsRestSVC
from margintree.model_file.parameters import (
    LARGEST_PADDING,
    SMALL_TEXT,
    decode,
    decode_parameters,
    encode,
    encode_parameters,
)
from margintree.splits import AlternatingSplit, BestFirstSplit, ExhaustiveSplit, RelaxationSplit

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.booleans() | st.integers() | st.text(), inner, max_size=4)
    ),
)


def same(one, other):
    return repr(one) == repr(other) and type(one) is type(other)


@given(VALUES)
def test_plain_values_come_back_through_json(value):
    assert same(decode(json.loads(json.dumps(encode(value), allow_nan=False))), value)


@pytest.mark.parametrize(
    "split",
    [
        BestFirstSplit(patience=None),
        AlternatingSplit(relaxation=RelaxationSplit(rounding="kruskal")),
        ExhaustiveSplit("margin"),
    ],
)
def test_splits_come_back(split):
    assert decode(json.loads(json.dumps(encode(split)))) == split


@pytest.mark.parametrize(
    "array",
    [np.array([3, 1, 2]), np.array([[1, 0], [-1, 1]], dtype=np.int8), np.array(["b", "äa"]), np.array([True, False])],
)
def test_arrays_come_back_with_their_type(array):
    found = decode(json.loads(json.dumps(encode(array))))
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


@dataclass(frozen=True)
class OwnSplit:
    def divide(self, node):
        raise NotImplementedError


@pytest.mark.parametrize("value", [OwnSplit(), object(), print, b"bytes", {1, 2}, np.array([None]), {(1, 2): 3}])
def test_what_is_no_plain_value_is_refused_with_a_way_out(value):
    with pytest.raises(ModelFileError, match=r"parameter split=.*set_params"):
        encode_parameters(MarginTreeClassifier(split=value))


def test_n_jobs_and_verbose_are_left_out():
    assert encode_parameters(OneVsRestSVC(n_jobs=3, verbose=2)) == encode_parameters(OneVsRestSVC())


@pytest.mark.parametrize(
    "stored",
    [
        {"n_jobs": 1},
        {"nothing": 1},
        {"tol": {"import": "os"}},
        {"tol": {"split": "OwnSplit", "arguments": {}}},
        {"tol": {"split": "RandomSplit", "arguments": {}, "more": 1}},
        {"tol": {"float": "1e5"}},
        {"tol": {"mapping": [[1, 2, 3]]}},
        {"tol": {"mapping": [[1, 2], [1, 3]]}},
        {"tol": {"mapping": [[{"tuple": []}, 3]]}},
        {"tol": {"array": [1], "dtype": "object"}},
        {"tol": {"array": [1], "dtype": "str"}},
        [1],
        None,
    ],
)
def test_a_file_with_other_parameters_is_refused(stored):
    with pytest.raises(ModelFileError):
        decode_parameters(OneVsRestSVC, stored)


def test_a_long_string_among_many_does_not_make_a_huge_array():
    # 20 kB of text as an array of 400 MB.
    with pytest.raises(ModelFileError, match="memory"):
        decode({"array": ["a"] * 10_000 + ["b" * 10_000], "dtype": "str"})
    long = ["a"] * 1000 + ["b" * 1000]
    assert decode({"array": long, "dtype": "str"}).tolist() == long


def test_many_arrays_of_strings_share_one_bound_on_their_memory():
    n_items, length = 1000, 1000
    array = {"array": ["a"] * n_items + ["b" * length], "dtype": "str"}
    assert n_items * length < SMALL_TEXT
    assert 2 * n_items * length > max(SMALL_TEXT, LARGEST_PADDING * 2 * (n_items + length))
    decode([array])
    for arrays in ([array, array], {"mapping": [["one", array], ["two", {"tuple": [array]}]]}):
        with pytest.raises(ModelFileError, match="memory"):
            decode(arrays)


def test_a_parameter_that_a_file_lacks_keeps_its_default():
    assert decode_parameters(OneVsRestSVC, {"C": 2.0}) == {"C": 2.0}
