"""The parameters of an estimator as JSON: plain values, arrays, class weights and the splits of this package.

Code (callable kernels, custom splits) and hidden state (a RandomState) raise an error. ``n_jobs`` and ``verbose`` are
not part of the model and are left out.
"""

import math
from dataclasses import fields
from typing import Any

import numpy as np

from margintree import splits
from margintree.class_tree import ClassTree
from margintree.model_file.errors import ModelFileError

LEFT_OUT = ("n_jobs", "verbose")
SPLIT_CLASSES = {
    cls.__name__: cls
    for cls in (
        splits.AlternatingSplit,
        splits.BestFirstSplit,
        splits.CentroidSplit,
        splits.ExhaustiveSplit,
        splits.RandomSplit,
        splits.RelaxationSplit,
    )
}
ARRAY_TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
# Every string in an array is stored as wide as the longest. All arrays of a file together may take SMALL_TEXT
# characters, or LARGEST_PADDING times the characters of their strings.
SMALL_TEXT, LARGEST_PADDING = 2**20, 4


def encode_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator in a form that JSON can represent."""
    given = estimator.get_params(deep=False)
    return {name: _encode_parameter(name, given[name]) for name in sorted(given) if name not in LEFT_OUT}


def _encode_parameter(name: str, value: Any) -> Any:
    if name == "kernel" and callable(value):
        raise ModelFileError(
            f"A model file contains no code, but kernel={value!r:.80} is a function. Use "
            "kernel='rbf', 'poly', 'linear' or 'precomputed', or save this estimator with joblib."
        )
    if name == "random_state" and not (value is None or isinstance(value, int | np.integer)):
        raise ModelFileError(
            f"A model file stores random_state only as a number or None. Got {value!r:.80}, which changes with every "
            "use. Call set_params(random_state=None) before saving; predictions do not depend on it."
        )
    try:
        return encode(value)
    except ModelFileError as error:
        raise ModelFileError(f"The parameter {name}={value!r:.80} cannot be stored in a model file: {error}") from None


def encode(value: Any) -> Any:
    """Return a value as JSON; a dictionary marks types that JSON does not have."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, dict) and all(isinstance(key, int | str | float | np.generic) for key in value):
        return {"mapping": [[encode(key), encode(item)] for key, item in value.items()]}
    if isinstance(value, np.ndarray) and (value.dtype.kind == "U" or value.dtype.name in ARRAY_TYPES):
        return {"array": value.tolist(), "dtype": "str" if value.dtype.kind == "U" else value.dtype.name}
    if isinstance(value, ClassTree):
        return {"class_tree": value.leaf_class.tolist()}
    if type(value) is SPLIT_CLASSES.get(type(value).__name__):
        arguments = {field.name: encode(getattr(value, field.name)) for field in fields(value)}
        return {"split": type(value).__name__, "arguments": arguments}
    raise ModelFileError(
        f"it is a {type(value).__name__}. Use plain values, lists, dictionaries, arrays of numbers or strings, or the "
        "splits of margintree.splits: call set_params before saving, or use joblib."
    )


def decode_parameters(cls: type[Any], stored: Any) -> dict[str, Any]:
    """Return the parameters of an estimator in a file; missing ones keep their defaults."""
    if not isinstance(stored, dict):
        raise ModelFileError("its parameters are not a JSON object")
    known = set(cls._get_param_names()) - set(LEFT_OUT)
    unknown = sorted(set(stored) - known)
    if unknown:
        raise ModelFileError(f"{cls.__name__} has no parameters {unknown!r:.80}")
    room = TextRoom()
    return {name: decode(value, room) for name, value in stored.items()}


class TextRoom:
    """Counts the characters of all arrays of strings in a file, and raises an error if they take too much memory."""

    def __init__(self) -> None:
        self._own, self._padded = 0, 0

    def take(self, items: list[str]) -> None:
        """Count one more array."""
        self._own += sum(map(len, items))
        self._padded += len(items) * max(map(len, items), default=0)
        if self._padded > max(SMALL_TEXT, LARGEST_PADDING * self._own):
            raise ModelFileError("its parameters hold arrays of strings that take too much memory")


def decode(value: Any, room: TextRoom | None = None) -> Any:
    """Return the value that was passed to ``encode``; all values of a file share one limit for text."""
    room = room or TextRoom()
    if isinstance(value, list):
        return [decode(item, room) for item in value]
    if not isinstance(value, dict):
        return value
    match sorted(value.items()):
        case [("float", "nan" | "inf" | "-inf" as text)]:
            return float(text)
        case [("tuple", list(items))]:
            return tuple(decode(item, room) for item in items)
        case [("mapping", list(pairs))]:
            return _mapping(pairs, room)
        case [("array", list(items)), ("dtype", str(dtype))]:
            return _array(items, dtype, room)
        case [("class_tree", list(leaf_class))]:
            return _class_tree(leaf_class)
        case [("arguments", dict(arguments)), ("split", str(name))] if name in SPLIT_CLASSES:
            return SPLIT_CLASSES[name](**{key: decode(item, room) for key, item in arguments.items()})
    raise ModelFileError(f"its parameters hold something unknown: {sorted(value)!r:.80}")


def _class_tree(leaf_class: list[Any]) -> ClassTree:
    if not all(type(k) is int and -1 <= k < len(leaf_class) for k in leaf_class):
        raise ModelFileError("its parameters hold a class tree whose leaves are not classes")
    try:
        return ClassTree.from_preorder(leaf_class)
    except ValueError as error:
        raise ModelFileError(f"its parameters hold an invalid class tree: {error}") from None


def _mapping(pairs: list[Any], room: TextRoom) -> dict[Any, Any]:
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise ModelFileError("its parameters hold a mapping that is not made of pairs")
    result = {key: decode(item, room) for key, item in pairs if not isinstance(key, dict | list)}
    if len(result) < len(pairs):
        raise ModelFileError("its parameters hold a mapping with an invalid or repeated key")
    return result


def _array(items: list[Any], dtype: str, room: TextRoom) -> Any:
    if dtype in ARRAY_TYPES:
        return np.array(items, dtype=dtype)
    if dtype != "str" or not all(isinstance(item, str) for item in items):
        raise ModelFileError(f"its parameters hold an array of the unknown type {dtype!r:.40}")
    room.take(items)
    return np.array(items, dtype=str)
