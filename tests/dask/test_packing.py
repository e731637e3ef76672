"""Results are sent in few bytes, and none of them is changed."""

import numpy as np
import pytest

from margintree.dask.packing import packed, unpacked


@pytest.mark.parametrize(
    "array",
    [
        np.array([2**64 - 1, 0, 5], dtype=np.uint64),
        np.array([-(2**63), 2**63 - 1]),
        np.array([3, -1, 2], dtype=np.int8),
        np.array([np.nan, -0.0, np.inf, 1e-310]),
        np.array([1.5, -2.25], dtype=np.float16),
        np.array([1, 2], dtype=">i4"),
        np.array([True, False]),
        np.array(["a", "long label"]),
        np.array(["a", None, 3], dtype=object),
        np.array(["2026-11-18"], dtype="datetime64[D]"),
        np.array(2.0),
        np.zeros((0, 3)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(36.0).reshape(6, 6)[::2, 1:3],
    ],
    ids=lambda array: f"{array.dtype}-{array.shape}",
)
def test_every_kind_of_array_comes_back(array):
    found = unpacked(packed([(array, "between"), np.arange(5), array]))
    assert found[0][1] == "between"
    np.testing.assert_array_equal(found[1], np.arange(5))
    for one in (found[0][0], found[2]):
        assert (one.dtype, one.shape, one.flags.writeable) == (array.dtype, array.shape, True)
        np.testing.assert_array_equal(one, array)
        assert array.dtype.hasobject or one.tobytes() == array.tobytes()


def test_machines_take_little_more_than_the_digits_of_their_weights():
    random = np.random.default_rng(0)
    columns = [np.sort(random.choice(20_000, 200, replace=False)).astype(np.int32) for _ in range(500)]
    weights = [random.normal(size=200).astype(np.float32) for _ in range(500)]
    # Three bytes of a weight are random digits; 100 columns apart on average, a column takes one byte.
    assert len(packed(list(zip(columns, weights, strict=True)))) < 5.0 * 500 * 200
