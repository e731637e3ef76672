"""Model files that somebody has tampered with: a seeded mutator that knows the format.

Half of the mutations are sealed again, so that they get past the checksums to what checks the content.
"""

import copy
import io
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from margintree.model_file import container
from margintree.prediction.weight_table import n_cells

NUMBERS = [-1, 0, 1, 2, 3, 7, -7, 2**31 - 1, 2**31, 2**32 - 1, 2**62, -(2**63), 2**63 - 1, 2**64, 10**400]
VALUES = [
    *NUMBERS,
    0.0,
    -0.5,
    1e-320,
    1e308,
    -1e308,
    0.3,
    None,
    True,
    False,
    "",
    "linear",
    "rbf",
    [],
    {},
    [1, 2],
    {"float": "nan"},
]
FLOATS = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, -1e308, 1e-320, 1.5]
RESERVED = "__metadata__"
# The multiplier of the hash of columns; see margintree/compiled/tables.py.
GOLDEN, MOST_HASHED = 0x9E3779B1, 2**20


class ModelFile:
    """A model file taken apart."""

    def __init__(self, raw: bytes) -> None:
        contents = container.parse(raw)
        self.raw = raw
        self.header = contents.header
        self.metadata = contents.metadata
        self.model: Any = json.loads(self.metadata["model"])
        self.arrays = {name: array.copy() for name, array in contents.arrays.items()}

    def copy(self) -> "ModelFile":
        """Return a file that can be changed."""
        other = object.__new__(ModelFile)
        other.raw, other.header, other.metadata = self.raw, copy.deepcopy(self.header), dict(self.metadata)
        other.model, other.arrays = copy.deepcopy(self.model), dict(self.arrays)
        return other

    def says_the_same_as(self, other: "ModelFile") -> bool:
        """Tell whether both describe the same model, whatever the spaces in their headers."""
        if self.model != other.model or self.arrays.keys() != other.arrays.keys():
            return False
        return all(array.tobytes() == other.arrays[name].tobytes() for name, array in self.arrays.items())

    def written(self, *, sealed: bool) -> bytes:
        """Return the file as bytes, with new checksums or with those of old."""
        if sealed:
            self.model["sha256"] = {name: container.digest_of(array) for name, array in sorted(self.arrays.items())}
        self.metadata["model"] = json.dumps(self.model, sort_keys=True, separators=(",", ":"))
        seal = self.metadata.pop("sha256")
        stream = io.BytesIO()
        container.write(stream, self.arrays, self.metadata)
        raw = stream.getvalue()
        return raw if sealed else with_header(raw, lambda header: header[RESERVED].update(sha256=seal), sealed=False)


def with_header(raw: bytes, change: Callable[[dict[str, Any]], Any], *, sealed: bool) -> bytes:
    """Return the file with a changed header, sealed anew or not."""
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    change(header)
    if sealed:
        header[RESERVED]["sha256"] = container.seal_of(header)
    return joined(json.dumps(header, separators=(",", ":")), raw[8 + length :])


def joined(text: str, data: bytes) -> bytes:
    """Return a file of a header and data."""
    encoded = text.encode()
    encoded += b" " * (-(8 + len(encoded)) % container.ALIGNMENT)
    return len(encoded).to_bytes(8, "little") + encoded + data


Rng = np.random.Generator


def flip_bits(file: ModelFile, others: list[ModelFile], rng: Rng, sealed: bool) -> bytes:
    if sealed:
        name = _any_array(file, rng)
        flat = bytearray(file.arrays[name].tobytes())
        _flip(flat, rng)
        file.arrays[name] = np.frombuffer(bytes(flat), file.arrays[name].dtype).reshape(file.arrays[name].shape)
        return file.written(sealed=True)
    raw = bytearray(file.raw)
    _flip(raw, rng)
    return bytes(raw)


def flip_bits_of_text(file: ModelFile, others: list[ModelFile], rng: Rng, sealed: bool) -> bytes:
    def change(header: dict[str, Any]) -> None:
        text = bytearray(header[RESERVED]["model"].encode())
        _flip(text, rng)
        header[RESERVED]["model"] = text.decode("latin-1")

    return with_header(file.raw, change, sealed=sealed)


def cut_or_extend(file: ModelFile, others: list[ModelFile], rng: Rng, sealed: bool) -> bytes:
    if rng.random() < 0.5:
        # The seal is of the header alone; what is cut off behind it gets past.
        first = 8 + int.from_bytes(file.raw[:8], "little") if sealed else 0
        return file.raw[: rng.integers(first, len(file.raw))]
    return file.raw + rng.bytes(int(rng.integers(1, 100)))


def swap_headers(file: ModelFile, others: list[ModelFile], rng: Rng, sealed: bool) -> bytes:
    other = others[rng.integers(len(others))]
    if rng.random() < 0.5:
        length = int.from_bytes(other.raw[:8], "little")
        return other.raw[: 8 + length] + file.raw[8 + int.from_bytes(file.raw[:8], "little") :]
    file.model = copy.deepcopy(other.model)
    if rng.random() < 0.7:
        # The arrays that the other header lacks come from here, those of the same name are this file's.
        file.arrays = {**other.arrays, **{name: a for name, a in file.arrays.items() if name in other.arrays}}
    return file.written(sealed=sealed)


def declare_shapes(file: ModelFile, others: list[ModelFile], rng: Rng, sealed: bool) -> bytes:
    name = _any_array(file, rng)

    def change(header: dict[str, Any]) -> None:
        entry = header[name]
        shape = entry["shape"] or [1]
        shape[rng.integers(len(shape))] = NUMBERS[rng.integers(len(NUMBERS))]
        entry["shape"] = shape * int(rng.integers(1, 3))
        if rng.random() < 0.5:
            entry["data_offsets"][int(rng.integers(2))] = NUMBERS[rng.integers(len(NUMBERS))]

    return with_header(file.raw, change, sealed=sealed)


def poison_floats(file: ModelFile, others: list[ModelFile], rng: Rng, sealed: bool) -> bytes:
    name = _any_array(file, rng, "f")
    array = file.arrays[name].copy()
    _scatter(array, [FLOATS[rng.integers(len(FLOATS))] for _ in range(3)], rng)
    file.arrays[name] = array
    return file.written(sealed=sealed)


def poison_cells(file: ModelFile, others: list[ModelFile], rng: Rng, sealed: bool) -> bytes:
    name = _any_array(file, rng, "u")
    array = file.arrays[name].copy()
    if rng.random() < 0.5:
        array = np.frombuffer(rng.bytes(array.nbytes), array.dtype).reshape(array.shape)
    else:
        _scatter(array, rng.choice(np.array([0, 1, 2, 60, 61, 2**31, 2**32 - 1]), 3).astype(array.dtype), rng)
    file.arrays[name] = array
    return file.written(sealed=sealed)


def collide(file: ModelFile, others: list[ModelFile], rng: Rng, sealed: bool) -> bytes:
    """Give machines columns that meet in the same places of a hash table, or a filter that lets all of them pass."""
    n_features = int(file.model["facts"]["n_features"])
    for name, array in list(file.arrays.items()):
        if name.endswith(".cells"):
            n_weights = file.arrays[name.replace("cells", "n_weights")]
            start = np.concatenate([[0], np.cumsum(n_cells(n_weights, n_features))])
            cells = array.copy()
            for first, n in zip(start.tolist(), n_weights.tolist(), strict=False):
                cells[first : first + max(0, 2 * ((n + 3) // 4))] = 2**32 - 1
            file.arrays[name] = cells
        elif name.endswith((".weights.indices", ".columns")):
            if rng.random() < 0.5:
                file.model["facts"]["n_features"] = n_features = 2**31 - 1
            file.arrays[name] = _colliding(array, n_features, int(rng.integers(2**32)))
    return file.written(sealed=sealed)


def _colliding(columns: np.ndarray, n_features: int, first: int) -> np.ndarray:
    """Return columns whose hashes lie close together, ascending wherever the given ones do."""
    runs = np.split(np.arange(len(columns)), np.flatnonzero(np.diff(columns) <= 0) + 1)
    longest = max(len(run) for run in runs)
    if n_features > MOST_HASHED:
        hashes = np.arange(first, first + 4 * longest, dtype=np.uint64)
        found = hashes * np.uint64(pow(GOLDEN, -1, 2**32)) % np.uint64(2**32)
        found = found[found < n_features]
    else:
        found = np.roll(_in_order_of_hash(n_features), -first)
    return np.concatenate([np.sort(found[: len(run)]) for run in runs]).astype(columns.dtype)


@cache
def _in_order_of_hash(n_columns: int) -> np.ndarray:
    return np.argsort(np.arange(n_columns, dtype=np.uint64) * np.uint64(GOLDEN) % np.uint64(2**32))


def bend_pointers(file: ModelFile, others: list[ModelFile], rng: Rng, sealed: bool) -> bytes:
    names = [name for name in file.arrays if name.startswith("trees.") or name.startswith("stream.")]
    return _bend(file, names or list(file.arrays), rng, sealed)


def bend_indices(file: ModelFile, others: list[ModelFile], rng: Rng, sealed: bool) -> bytes:
    return _bend(file, list(file.arrays), rng, sealed)


def change_dtypes(file: ModelFile, others: list[ModelFile], rng: Rng, sealed: bool) -> bytes:
    name = _any_array(file, rng)
    dtype = list(container.DTYPES)[rng.integers(len(container.DTYPES))]
    if rng.random() < 0.5:
        return with_header(file.raw, lambda header: header[name].update(dtype=dtype), sealed=sealed)
    with np.errstate(all="ignore"):
        file.arrays[name] = file.arrays[name].astype(container.DTYPES[dtype])
    return file.written(sealed=sealed)


def repeat_keys(file: ModelFile, others: list[ModelFile], rng: Rng, sealed: bool) -> bytes:
    length = int.from_bytes(file.raw[:8], "little")
    text = file.raw[8 : 8 + length].decode().strip()
    if rng.random() < 0.5:
        name = _any_array(file, rng)
        return joined(text[:-1] + f',"{name}":{json.dumps(file.header[name])}}}', file.raw[8 + length :])

    def change(header: dict[str, Any]) -> None:
        model = header[RESERVED]["model"]
        key = list(file.model)[rng.integers(len(file.model))]
        header[RESERVED]["model"] = model[:-1] + f',"{key}":{json.dumps(file.model[key])}}}'

    return with_header(file.raw, change, sealed=sealed)


def nest_deeply(file: ModelFile, others: list[ModelFile], rng: Rng, sealed: bool) -> bytes:
    depth = int(rng.choice([10, 500, 5_000, 100_000]))
    nested = [
        "[" * depth + "]" * depth,
        '{"tuple":' * depth + "[]" + "}" * depth,
        # Not deep, but many.
        f"[{'[[]],' * (2 * depth)}[]]",
    ][rng.integers(3)]

    def change(header: dict[str, Any]) -> None:
        key = ["parameters", "facts", "sha256", "estimator"][rng.integers(4)]
        model = header[RESERVED]["model"]
        header[RESERVED]["model"] = model.replace(f'"{key}":', f'"{key}":{nested},"x":', 1)
        if key == "parameters":
            header[RESERVED]["model"] = model.replace('"tol":', f'"tol":{nested},"y":', 1)

    return with_header(file.raw, change, sealed=sealed)


def change_facts(file: ModelFile, others: list[ModelFile], rng: Rng, sealed: bool) -> bytes:
    part = file.model["facts" if rng.random() < 0.7 else "parameters"]
    for _ in range(int(rng.integers(1, 3))):
        key = list(part)[rng.integers(len(part))]
        if rng.random() < 0.1:
            del part[key]
        elif isinstance(part[key], int) and not isinstance(part[key], bool) and rng.random() < 0.5:
            part[key] += int(rng.integers(-3, 4))
        else:
            part[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
        if not part:
            break
    return file.written(sealed=sealed)


def change_description(file: ModelFile, others: list[ModelFile], rng: Rng, sealed: bool) -> bytes:
    match int(rng.integers(4)):
        case 0:
            file.model["estimator"] = others[rng.integers(len(others))].model["estimator"]
        case 1:
            del file.model[list(file.model)[rng.integers(len(file.model))]]
        case 2:
            file.metadata["margintree_format"] = str(VALUES[rng.integers(len(VALUES))])
        case _:
            key = list(file.model)[rng.integers(len(file.model))]
            file.model[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
    return file.written(sealed=sealed and isinstance(file.model.get("sha256", {}), dict))


def exchange_arrays(file: ModelFile, others: list[ModelFile], rng: Rng, sealed: bool) -> bytes:
    one, other = _any_array(file, rng), _any_array(file, rng)
    match int(rng.integers(4)):
        case 0:
            del file.arrays[one]
        case 1:
            file.arrays[one + "x"] = file.arrays[one]
        case 2:
            file.arrays[one], file.arrays[other] = file.arrays[other], file.arrays[one]
        case _:
            file.arrays |= {f"{one}.{i}": np.zeros(1) for i in range(int(rng.choice([1, 2000])))}
    return file.written(sealed=sealed)


def change_lengths(file: ModelFile, others: list[ModelFile], rng: Rng, sealed: bool) -> bytes:
    name = _any_array(file, rng)
    array = file.arrays[name]
    match int(rng.integers(4)):
        case 0:
            array = array[: int(rng.integers(len(array) + 1))]
        case 1:
            array = np.concatenate([array, array[: int(rng.integers(1, 4))]])
        case 2:
            array = array.reshape(-1)
        case _:
            array = array[..., : int(rng.integers(array.shape[-1] + 1))]
    file.arrays[name] = np.ascontiguousarray(array)
    return file.written(sealed=sealed)


MUTATIONS: list[Callable[[ModelFile, list[ModelFile], Rng, bool], bytes]] = [
    flip_bits,
    flip_bits_of_text,
    cut_or_extend,
    swap_headers,
    declare_shapes,
    poison_floats,
    poison_cells,
    collide,
    bend_pointers,
    bend_indices,
    change_dtypes,
    repeat_keys,
    nest_deeply,
    change_facts,
    change_description,
    exchange_arrays,
    change_lengths,
]


def mutated(files: list[ModelFile], seed: int) -> tuple[int, int, bool, bytes]:
    """Return which file was changed, how, whether it was sealed again, and its bytes."""
    rng = np.random.default_rng(seed)
    number, kind, sealed = int(rng.integers(len(files))), int(rng.integers(len(MUTATIONS))), bool(rng.random() < 0.5)
    return number, kind, sealed, MUTATIONS[kind](files[number].copy(), files, rng, sealed)


def _any_array(file: ModelFile, rng: Rng, kinds: str = "biuf") -> str:
    names = [name for name, array in file.arrays.items() if array.dtype.kind in kinds and array.size]
    names = names or [name for name, array in file.arrays.items() if array.size]
    return names[rng.integers(len(names))]


def _flip(content: bytearray, rng: Rng) -> None:
    for place in rng.integers(8 * len(content), size=int(rng.choice([1, 1, 2, 8]))).tolist():
        content[place // 8] ^= 1 << (place % 8)


def _scatter(array: np.ndarray, values: Any, rng: Rng) -> None:
    with np.errstate(all="ignore"):
        for value in values:
            array.reshape(-1)[rng.integers(array.size)] = np.asarray(value).astype(array.dtype)


def _bend(file: ModelFile, names: list[str], rng: Rng, sealed: bool) -> bytes:
    names = [name for name in names if file.arrays[name].dtype.kind in "iu" and file.arrays[name].size]
    if not names:
        return flip_bits(file, [], rng, sealed)
    name = names[rng.integers(len(names))]
    array = file.arrays[name].copy()
    flat, n = array.reshape(-1), array.size
    limits = np.iinfo(array.dtype)
    i, j = rng.integers(n, size=2)
    match int(rng.integers(6)):
        case 0:
            flat[i] = limits.min if rng.random() < 0.5 else limits.max
        case 1:
            flat[i] += np.array(rng.integers(-3, 4)).astype(array.dtype)
        case 2:
            flat[i], flat[j] = flat[j], flat[i]
        case 3:
            # A cycle, where the array holds children.
            flat[i] = np.array(i if rng.random() < 0.5 else 0).astype(array.dtype)
        case 4:
            flat[i] = np.array(n + int(rng.integers(-2, 3))).astype(array.dtype)
        case _:
            flat[i], flat[j] = flat[i] + array.dtype.type(1), flat[j] - array.dtype.type(1)
    file.arrays[name] = array
    return file.written(sealed=sealed)
