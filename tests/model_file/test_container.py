"""The container: what other readers of safetensors see, and headers that are refused."""

import copy
import io
import json
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margintree import ModelFileError, load_model, save_model
from margintree.model_file import container
from margintree.model_file.files import as_contents

ARRAYS = {
    "bytes": np.arange(5, dtype=np.uint8),
    "numbers": np.arange(6, dtype=np.int64).reshape(2, 3),
    "weights": np.array([0.5, -1.0]),
    "nothing": np.empty((0, 4), dtype=np.int32),
    "flags": np.array([True, False]),
}
METADATA = {"margintree_format": "1", "model": "{}"}


def written(arrays=ARRAYS, metadata=METADATA):
    import io

    stream = io.BytesIO()
    container.write(stream, arrays, metadata)
    return stream.getvalue()


def with_header(raw, header):
    length = int.from_bytes(raw[:8], "little")
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + raw[8 + length :]


def header_of(raw):
    return json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])


def test_arrays_come_back_as_they_were():
    contents = container.parse(written())
    assert contents.metadata["model"] == "{}"
    for name, array in ARRAYS.items():
        assert contents.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(contents.arrays[name], array)
        assert not contents.arrays[name].flags.writeable


def test_the_library_safetensors_reads_model_files_and_finds_the_same_arrays(fitted, tmp_path):
    safetensors = pytest.importorskip("safetensors", reason="safetensors is part of the extra 'test'")
    save_model(fitted("MarginTreeClassifier linear").model, tmp_path / "model")
    ours = container.read(tmp_path / "model", is_mapped=True)
    with safetensors.safe_open(tmp_path / "model", framework="numpy") as theirs:
        assert theirs.metadata() == ours.metadata
        assert set(theirs.keys()) == set(ours.arrays)
        for name, array in ours.arrays.items():
            np.testing.assert_array_equal(theirs.get_tensor(name), array)


def test_what_the_library_safetensors_writes_is_read():
    save = pytest.importorskip("safetensors.numpy", reason="safetensors is part of the extra 'test'").save
    contents = container.parse(save(ARRAYS, METADATA))
    np.testing.assert_array_equal(contents.arrays["numbers"], ARRAYS["numbers"])


def change(key, value):
    def changed(header):
        header["numbers"][key] = value

    return changed


@pytest.mark.parametrize(
    "mutate",
    [
        change("shape", [2, 4]),
        change("shape", [-2, -3]),
        change("shape", [True, 6]),
        change("shape", [2.0, 3]),
        change("shape", [2**62, 2**62]),
        change("shape", [0, 2**62]),
        change("shape", [1] * 60 + [6]),
        change("shape", "23"),
        change("dtype", "F64x"),
        change("dtype", ["I64"]),
        change("dtype", "I32"),
        change("data_offsets", [0, 10**30]),
        change("data_offsets", [8, 56]),
        change("data_offsets", [-48, 0]),
        change("data_offsets", [0]),
        lambda header: header["numbers"].update(more=1),
        lambda header: header.pop("weights"),
        lambda header: header.update(weights=header["numbers"]),
        lambda header: header.update(extra={"dtype": "I64", "shape": [6], "data_offsets": [0, 48]}),
        lambda header: header.pop("__metadata__"),
        lambda header: header.update(__metadata__={"model": 1}),
        lambda header: header.update(numbers=None),
    ],
)
def test_a_header_that_does_not_fit_its_data_is_refused(mutate):
    raw = written()
    header = header_of(raw)
    mutate(header)
    with pytest.raises(ModelFileError):
        container.parse(with_header(raw, header))


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b'{"__metadata__":{},"__metadata__":{}}', "twice"),
        (b'{"__metadata__":{"a":NaN}}', "NaN"),
        (b'{"a":' * 100_000, "JSON"),
        (b"[" * 100_000, "JSON"),
        (b'{"a":' + b"9" * 10_000 + b"}", "JSON"),
        (b"\xff\xfe", "JSON"),
        (b"[1, 2]", "not a JSON object"),
    ],
)
def test_json_that_readers_may_disagree_about_is_refused(header, reason):
    with pytest.raises(ModelFileError, match=reason):
        container.parse(with_header(written(), header))


def test_truth_values_other_than_true_and_false_are_refused():
    raw = bytearray(written({"flags": np.array([True, False])}))
    raw[-1] = 7
    with pytest.raises(ModelFileError, match="Boolean"):
        container.parse(bytes(raw))


def test_a_header_that_claims_more_than_the_file_has_is_refused_without_memory_for_it():
    for length in (2**63, 2**40, len(written())):
        with pytest.raises(ModelFileError, match="header claims"):
            container.parse(length.to_bytes(8, "little") + written()[8:])


@pytest.mark.parametrize("content", [b"", b"1 0:2", b"5.1,3.5,1.4,0.2,setosa\n", pickle.dumps(list(range(50)))])
def test_a_file_that_is_no_model_is_called_that(tmp_path, content):
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(ModelFileError, match="it is not a margintree model file"):
        container.read(tmp_path / "other", is_mapped=True)


def test_bytes_behind_the_last_array_are_refused():
    with pytest.raises(ModelFileError, match="announces"):
        container.parse(written() + b"\0")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def paths_of(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths_of(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from paths_of(item, (*path, number))


def replaced(value, path, new):
    if not path:
        return new
    result = copy.deepcopy(value)
    place = result
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = new
    return result


@pytest.fixture(scope="module")
def small_file(tmp_path_factory):
    from fitted_models import fitted_case

    path = tmp_path_factory.mktemp("model") / "model"
    save_model(fitted_case("MarginTreeClassifier linear").model, path)
    return path


@given(data=st.data())
def test_any_json_in_any_place_of_the_header_is_refused_or_harmless(small_file, data):
    raw = small_file.read_bytes()
    header = header_of(raw)
    header = replaced(header, data.draw(st.sampled_from(list(paths_of(header))[1:])), data.draw(JSON))
    seals(header)
    assert_refused_or_harmless(small_file, with_header(raw, header))


@given(data=st.data())
def test_any_json_in_any_place_of_the_description_is_refused_or_harmless(small_file, data):
    raw = small_file.read_bytes()
    header = header_of(raw)
    model = json.loads(header["__metadata__"]["model"])
    model = replaced(model, data.draw(st.sampled_from(list(paths_of(model))[1:])), data.draw(JSON))
    header["__metadata__"]["model"] = json.dumps(model)
    seals(header)
    assert_refused_or_harmless(small_file, with_header(raw, header))


def seals(header):
    if isinstance(header.get("__metadata__"), dict):
        header["__metadata__"]["sha256"] = container.seal_of(header)


def assert_refused_or_harmless(small_file, raw):
    path = small_file.with_name("mutated")
    path.write_bytes(raw)
    try:
        model = load_model(path)
    except ModelFileError:
        return
    # The columns must fit the cells, so a file of this size cannot say that there are many more.
    assert len(model.predict(np.zeros((2, model.n_features_in_)))) == 2


@pytest.mark.parametrize("n_arrays", [1, 4096])
def test_more_truth_values_than_models_have_are_refused_without_looking_at_them(tmp_path, n_arrays):
    # A sparse file: some kilobytes on disk, 100 GiB by its length.
    n_values, n_each = 100 * 2**30, 100 * 2**30 // n_arrays
    path = tmp_path / "model.margintree"
    header = {"__metadata__": {}} | {
        f"{k}": {"dtype": "BOOL", "shape": [n_each], "data_offsets": [k * n_each, (k + 1) * n_each]}
        for k in range(n_arrays)
    }
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    try:
        with path.open("rb+") as stream:
            stream.truncate(8 + len(text) + n_values)
    except OSError:
        pytest.skip("this file system has no sparse files")
    for is_mapped in (True, False):
        with pytest.raises(ModelFileError, match="Boolean values"):
            container.read(path, is_mapped=is_mapped)


def test_a_file_that_does_not_fit_into_memory_is_refused_with_the_way_to_use_it(tmp_path, monkeypatch):
    path = tmp_path / "model.margintree"
    path.write_bytes(written())

    def out_of_memory(self):
        raise MemoryError

    class Reader(io.FileIO):
        read = out_of_memory

    monkeypatch.setattr(type(path), "open", lambda self, mode: Reader(str(self), "rb"))
    with pytest.raises(ModelFileError, match="mmap=True"):
        container.read(path, is_mapped=False)


@pytest.mark.parametrize("escaped", [False, True])
def test_more_lists_than_parameters_need_are_refused_before_they_are_made(fitted, tmp_path, escaped):
    """Three bytes of an empty list become a hundred; hidden by escapes, they are only found in the description."""
    arrays, metadata = as_contents(fitted("OneVsRestSVC linear").model)
    description = json.loads(metadata["model"])
    description["parameters"]["class_weight"] = [[] for _ in range(container.MOST_CONTAINERS + 1)]
    path = tmp_path / "model"
    with path.open("wb") as stream:
        container.write(stream, arrays, {**metadata, "model": json.dumps(description, separators=(",", ":"))})
    if escaped:
        raw = path.read_bytes()
        length = int.from_bytes(raw[:8], "little")
        text = raw[8 : 8 + length].replace(b"[],", b"\\u005b\\u005d,")
        text += b" " * (-(8 + len(text)) % container.ALIGNMENT)
        path.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + length :])
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=f"its {'description' if escaped else 'header'} has 26.... lists"):
            load_model(path)
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    finally:
        tracemalloc.stop()
