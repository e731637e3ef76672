"""Arrays and metadata in one safetensors file, checked as far as the format allows.

A file is the length N of the header (8 bytes, little-endian), N bytes of JSON, and the concatenated arrays without
gaps. The header has dtype, shape and offsets of each array; its ``__metadata__`` has the version of the model format,
the description of the model, and the SHA-256 of all of that. Arrays of wide elements come first, so that each is
aligned. Any reader of safetensors can open such a file.
"""

import json
import math
import mmap
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from margintree.model_file.errors import ModelFileError

AnyArray = npt.NDArray[Any]
Buffer = mmap.mmap | bytes

DTYPES = {
    "BOOL": np.dtype(np.bool_),
    **{f"{kind.upper()}{8 * size}": np.dtype(f"<{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}

# In Python, a parsed header takes about twenty times its length, and far more if it consists of empty lists. Headers
# usually have a few kB; only class weights, class orders and codes given as parameters make them longer.
LARGEST_HEADER, MOST_CONTAINERS = 2**23, 2**18
# The data start at a multiple of this, the size of a cache line.
ALIGNMENT = 64
MOST_DIMENSIONS = 2
# Of all arrays together, because each value is checked. A model has one per node or class.
MOST_TRUTH_VALUES = 2**25
# Key of the header's checksum in the metadata.
SEAL = "sha256"
NO_MODEL = "it is not a margintree model file, as written by save_model or margintree fit"


@dataclass(frozen=True, eq=False)
class Contents:
    """The content of a file, in which only the offsets of the arrays have been checked."""

    header: dict[str, Any]
    metadata: dict[str, str]
    arrays: dict[str, AnyArray]


def write(stream: IO[bytes], arrays: Mapping[str, AnyArray], metadata: Mapping[str, str]) -> None:
    """Write contiguous arrays and the metadata, with the checksum of the header."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    end = 0
    for name, array in ordered:
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
    header["__metadata__"][SEAL] = seal_of(header)
    text = json.dumps(header, separators=(",", ":")).encode()
    if len(text) > LARGEST_HEADER - ALIGNMENT:
        raise ModelFileError(
            f"The description of the model takes {len(text)} bytes, but a model file has room for {LARGEST_HEADER}. "
            "Shorten class_weight, class_order or code, which are stored as parameters, or the metadata."
        )
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    stream.write(len(text).to_bytes(8, "little") + text)
    for _, array in ordered:
        stream.write(array.data)


def seal_of(header: Mapping[str, Any]) -> str:
    """Return the SHA-256 of everything in the header except the checksum itself."""
    unsealed = {key: value for key, value in header["__metadata__"].items() if key != SEAL}
    content = json.dumps({**header, "__metadata__": unsealed}, sort_keys=True, separators=(",", ":"))
    return sha256(content.encode()).hexdigest()


def digest_of(array: AnyArray) -> str:
    """Return the SHA-256 of an array's bytes."""
    return sha256(np.ascontiguousarray(array).reshape(-1).data).hexdigest()


def read(path: Path, *, is_mapped: bool) -> Contents:
    """Return the content of a file; arrays are read-only views of the mapped file, or of a copy in memory."""
    # Opening a pipe would wait for somebody to write to it.
    if not stat.S_ISREG(os.stat(path).st_mode) and not path.is_dir():
        raise ModelFileError("it is not a regular file")
    with path.open("rb") as stream:
        if os.fstat(stream.fileno()).st_size < 8:
            raise ModelFileError(NO_MODEL)
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        # Also checked before the file is read into memory.
        contents = parse(mapped)
        if is_mapped:
            return contents
        try:
            content = stream.read()
        except MemoryError as error:
            raise ModelFileError(f"its {len(mapped)} bytes do not fit into memory; map it with mmap=True") from error
    return parse(content)


def parse(buffer: Buffer) -> Contents:
    """Return the content, after checking that arrays fill the file without gap or overlap."""
    length = int.from_bytes(buffer[:8], "little")
    if length > min(LARGEST_HEADER, len(buffer) - 8):
        if buffer[8:10] != b'{"':
            raise ModelFileError(NO_MODEL)
        raise ModelFileError(
            f"its header claims {length} bytes of {len(buffer)}; the file is damaged or was not copied completely"
        )
    header = parse_json(buffer[8 : 8 + length], "header")
    metadata = header.get("__metadata__")
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ModelFileError("its header has no metadata")
    places = {name: _place(name, entry, len(buffer)) for name, entry in header.items() if name != "__metadata__"}
    n_values = sum(math.prod(shape) for dtype, shape, _ in places.values() if dtype == np.bool_)
    if n_values > MOST_TRUTH_VALUES:
        raise ModelFileError(f"it has {n_values} Boolean values, more than any model")
    arrays, end = {}, 0
    for name, (dtype, shape, begin) in sorted(places.items(), key=lambda item: item[1][2]):
        n_bytes = math.prod(shape) * dtype.itemsize
        if begin != end or begin % dtype.itemsize or 8 + length + begin + n_bytes > len(buffer):
            raise ModelFileError(
                f"array {name!r:.80} does not begin where the one before it ends, or extends beyond the file"
            )
        end = begin + n_bytes
        arrays[name] = as_array(buffer, 8 + length + begin, dtype, shape)
        if dtype == np.bool_ and (arrays[name].view(np.uint8) > 1).any():
            raise ModelFileError(f"array {name!r:.80} has Boolean values other than 0 and 1")
    if (8 + length) % 8 or 8 + length + end != len(buffer):
        raise ModelFileError(f"it has {len(buffer)} bytes where its header announces {8 + length + end}")
    return Contents(header, metadata, arrays)


def _place(name: str, entry: Any, n_bytes: int) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """Return dtype, shape and start of an array; the caller checks the offsets."""
    if not isinstance(entry, dict) or sorted(entry) != ["data_offsets", "dtype", "shape"]:
        raise ModelFileError(f"array {name!r:.80} is not described by dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ModelFileError(f"array {name!r:.80} has the unknown dtype {dtype!r:.40}")
    # Each is limited before they are multiplied, so that the product stays small.
    if not (_are_counts(shape, n_bytes) and len(shape) <= MOST_DIMENSIONS):
        raise ModelFileError(f"array {name!r:.80} has an invalid shape: {shape!r:.80}")
    size = math.prod(shape) * DTYPES[dtype].itemsize
    if not (_are_counts(offsets, n_bytes) and len(offsets) == 2 and offsets[1] - offsets[0] == size):
        raise ModelFileError(f"array {name!r:.80} takes {size} bytes, but its offsets are {offsets!r:.80}")
    return DTYPES[dtype], tuple(shape), offsets[0]


def _are_counts(values: Any, highest: int) -> bool:
    # In Python, True is an int, but it is not a valid number.
    return isinstance(values, list) and all(type(value) is int and 0 <= value <= highest for value in values)


def as_array(buffer: Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> AnyArray:
    """Return a read-only view of some bytes."""
    return np.ndarray(shape, dtype, buffer=buffer, offset=offset)


def parse_json(text: bytes | str, what: str) -> dict[str, Any]:
    """Return a JSON object; raise an error for repeated keys, NaN and whatever else readers interpret differently."""
    n_containers = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    if n_containers > MOST_CONTAINERS:
        raise ModelFileError(f"its {what} has {n_containers} lists and objects; at most {MOST_CONTAINERS} are allowed")
    try:
        value = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its {what} is not valid JSON ({error!s:.80})") from error
    if not isinstance(value, dict):
        raise ModelFileError(f"its {what} is not a JSON object")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key occurs twice")
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")
