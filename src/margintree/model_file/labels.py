"""Class labels and names of features, with their dtype.

Numbers and Booleans are stored as they are, strings of a fixed width as their code points, and strings of dtype object
as UTF-8 with the length of each.
"""

import itertools
import re

import numpy as np

from margintree.model_file.container import NAMES, AnyArray
from margintree.model_file.errors import ModelFileError
from margintree.model_file.sections import Input, Output

LARGEST_CODE_POINT = 0x10FFFF
FIXED_WIDTH = re.compile(r"U([1-9][0-9]{0,8})")


def put_labels(out: Output, labels: AnyArray) -> None:
    """Store labels, or raise an error for types that a file cannot store."""
    if labels.dtype.kind == "U":
        width = labels.dtype.itemsize // 4
        out.fact("type", f"U{width}")
        native = np.ascontiguousarray(labels, dtype=labels.dtype.newbyteorder("="))
        out.array("code_points", native.view(np.uint32).reshape(len(labels), width))
    elif labels.dtype == object and all(isinstance(label, str) for label in labels):
        encoded = [label.encode("utf-8", "surrogatepass") for label in labels]
        out.fact("type", "str")
        out.array("utf8", np.frombuffer(b"".join(encoded), dtype=np.uint8))
        out.array("lengths", np.array([len(text) for text in encoded], dtype=np.int64))
    elif labels.dtype.newbyteorder("<") in NAMES:
        out.fact("type", "number")
        out.array("values", labels)
    else:
        raise ModelFileError(
            f"A model file stores labels that are numbers, Booleans or strings. Got dtype {labels.dtype}, such as "
            f"{labels[:3].tolist()!r:.80}. Fit again with labels of one of these types."
        )


def take_labels(source: Input, n_labels: int | None = None) -> AnyArray:
    """Return the labels."""
    kind = source.fact("type")
    if kind == "number":
        values = source.any_array("values")
        if values.ndim != 1 or n_labels not in (None, len(values)):
            raise ModelFileError(f"it has {len(values)} labels; expected {n_labels}")
        return values
    if kind == "str":
        text = source.array("utf8", np.uint8, None).tobytes()
        start = source.starts("lengths", n_labels, len(text)).tolist()
        labels = np.empty(len(start) - 1, dtype=object)
        # UnicodeDecodeError is a ValueError, which the caller turns into its own.
        labels[:] = [text[i:j].decode("utf-8", "surrogatepass") for i, j in itertools.pairwise(start)]
        return labels
    fixed = FIXED_WIDTH.fullmatch(kind) if isinstance(kind, str) else None
    if fixed is None:
        raise ModelFileError(f"labels of type {kind!r:.40} are unknown")
    points = source.array("code_points", np.uint32, n_labels, int(fixed[1]))
    if points.size and points.max() > LARGEST_CODE_POINT:
        raise ModelFileError("its labels have invalid characters")
    return np.ascontiguousarray(points).view(f"<U{int(fixed[1])}").reshape(-1)
