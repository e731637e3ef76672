"""The named parts of a model: arrays, and facts that fit into JSON.

``Output`` collects them, ``Input`` returns them after checking what the caller expects. Sections give the names of one
structure a common prefix, as in ``model.table.cells``.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.model_file.container import AnyArray
from margintree.model_file.errors import ModelFileError

LARGEST_NUMBER = 1.7e308
# All larger floats are integers.
LARGEST_WHOLE = 2**53
# Number of values that are checked at a time.
FINITE_PART = 2**20


@dataclass(frozen=True, eq=False)
class Output:
    """Named arrays and facts to be written to a file."""

    arrays: dict[str, AnyArray] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    prefix: str = ""

    def section(self, name: str) -> "Output":
        """Return an output that adds to this one, under names that begin with ``name``."""
        return Output(self.arrays, self.facts, f"{self.prefix}{name}.")

    def array(self, name: str, array: AnyArray) -> None:
        """Store an array of numbers."""
        self.arrays[self.prefix + name] = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))

    def fact(self, name: str, value: Any) -> None:
        """Store something that JSON can hold."""
        self.facts[self.prefix + name] = value


@dataclass(frozen=True, eq=False)
class Input:
    """Named arrays and facts from a file, each checked when it is taken."""

    arrays: dict[str, AnyArray]
    facts: dict[str, Any]
    prefix: str = ""

    def section(self, name: str) -> "Input":
        """Return an input for names that begin with ``name``."""
        return Input(self.arrays, self.facts, f"{self.prefix}{name}.")

    def has(self, name: str) -> bool:
        """Return whether there is an array or a fact of this name."""
        return self.prefix + name in self.arrays or self.prefix + name in self.facts

    def array(self, name: str, dtype: npt.DTypeLike, *shape: int | None) -> AnyArray:
        """Take an array of this dtype and shape; None leaves the length open."""
        full, array = self.prefix + name, self.any_array(name)
        if array.dtype != np.dtype(dtype):
            raise ModelFileError(f"array {full!r} has dtype {array.dtype}, expected {np.dtype(dtype)}")
        if len(shape) != array.ndim or any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True)):
            raise ModelFileError(f"array {full!r} has shape {array.shape}, expected {shape}")
        return array

    def any_array(self, name: str) -> AnyArray:
        """Take any array."""
        full = self.prefix + name
        if full not in self.arrays:
            raise ModelFileError(f"array {full!r} is missing")
        return self.arrays.pop(full)

    def finite(self, name: str, *shape: int | None) -> npt.NDArray[np.float64]:
        """Take an array of finite float64 numbers."""
        self.check_finite(name)
        return self.array(name, np.float64, *shape)

    def check_finite(self, name: str) -> None:
        """Raise an error for an array with values that are not finite, without copying it."""
        flat = self.arrays.get(self.prefix + name, np.empty(0)).reshape(-1)
        # In parts: support vectors may be most of a file, and nothing of their size is made.
        for first in range(0, len(flat), FINITE_PART):
            if not np.isfinite(flat[first : first + FINITE_PART]).all():
                raise ModelFileError(f"array {self.prefix + name!r} has values that are not finite")

    def indices(self, name: str, stop: int, *shape: int | None) -> npt.NDArray[np.int64]:
        """Take an array of int64 numbers in 0 .. stop - 1."""
        array = self.array(name, np.int64, *shape)
        self.check_range(name, array, stop)
        return array

    def check_range(self, name: str, array: AnyArray, stop: int) -> None:
        """Raise an error for an array with numbers outside of 0 .. stop - 1."""
        if array.size and not (array.min() >= 0 and array.max() < stop):
            raise ModelFileError(f"array {self.prefix + name!r} has numbers outside of 0..{stop - 1}")

    def permutation(self, name: str, length: int) -> npt.NDArray[np.int64]:
        """Take an array that has each of 0 .. length - 1 once."""
        array = self.indices(name, length, length)
        if np.bincount(array, minlength=length).max(initial=1) > 1:
            raise ModelFileError(f"array {self.prefix + name!r} has a repeated number")
        return array

    def starts(self, name: str, n_parts: int | None, total: int) -> npt.NDArray[np.int64]:
        """Take the lengths of parts that sum to ``total``; return the start of each, and the end."""
        lengths = self.array(name, np.int64, n_parts)
        # Each is limited first, because an overflowing sum may have the expected value.
        if lengths.size and not (lengths.min() >= 0 and lengths.max() <= total):
            raise ModelFileError(f"array {self.prefix + name!r} has lengths outside of 0..{total}")
        if int(lengths.sum()) != total:
            raise ModelFileError(f"array {self.prefix + name!r} has lengths that do not add up to {total}")
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])

    def fact(self, name: str) -> Any:
        """Take any fact."""
        full = self.prefix + name
        if full not in self.facts:
            raise ModelFileError(f"{full!r} is missing")
        return self.facts.pop(full)

    def choice(self, name: str, options: Collection[str]) -> str:
        """Take one of several names."""
        value = self.fact(name)
        if not isinstance(value, str) or value not in options:
            raise ModelFileError(f"{self.prefix + name!r} is {value!r:.40}, expected one of {sorted(options)}")
        return value

    def boolean(self, name: str) -> bool:
        """Take a Boolean."""
        value = self.fact(name)
        if not isinstance(value, bool):
            raise ModelFileError(f"{self.prefix + name!r} is {value!r:.40}, expected true or false")
        return value

    def integer(self, name: str, low: int, high: int) -> int:
        """Take an integer in ``low .. high``."""
        value = self.fact(name)
        if type(value) is not int or not low <= value <= high:
            raise ModelFileError(f"{self.prefix + name!r} is {value!r:.40}, expected a number from {low} to {high}")
        return value

    def number(self, name: str, low: float = -math.inf, *, stays_whole: bool = False) -> float:
        """Take a finite number of at least ``low``, as a float unless integers are to stay integers."""
        value = self.fact(name)
        # Integers beyond the range of floats cannot be tested for being finite.
        if type(value) not in (int, float) or not abs(value) <= LARGEST_NUMBER or value < low:
            raise ModelFileError(f"{self.prefix + name!r} is {value!r:.40}, expected a finite number from {low}")
        return value if stays_whole and abs(value) < LARGEST_WHOLE else float(value)

    def finish(self) -> None:
        """Raise an error for unknown entries."""
        left = sorted([*self.arrays, *self.facts])
        if left:
            raise ModelFileError(f"it holds more than the model: {', '.join(left[:5])!r:.200}")
