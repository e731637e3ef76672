"""Arrays in files that all workers map, and pickles that refer to such arrays instead of containing them.

Work on a training set is a function that holds the training set. Its large arrays are written to the directory of the
fit once; only the rest of the function, a few kilobytes, is sent to a worker. If a worker dies, another one maps the
same files.
"""

import hashlib
import io
import math
import mmap
import os
import pickle
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Literal

import cloudpickle
import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[Any]

# Smaller arrays are pickled with the function.
LEAST_BYTES = 2**16
# Number of functions that a worker caches: those of the current and of the previous fit.
KEPT_FUNCTIONS = 4


@dataclass(frozen=True)
class ArrayPlace:
    """Position of a contiguous array in a file."""

    path: str
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"] = "C"
    is_writable: bool = False

    @classmethod
    def of(cls, array: AnyArray, path: str, offset: int) -> "ArrayPlace":
        """Return the position of an array that begins at the given byte of a file."""
        order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
        return cls(path, offset, array.dtype, array.shape, order, array.flags.writeable)

    @property
    def n_bytes(self) -> int:
        """Size of the array."""
        return math.prod(self.shape) * self.dtype.itemsize

    def open(self) -> AnyArray:
        """Map the array. What is written to it stays in this process."""
        # Not a view of the whole file: scipy copies arrays that are views of much larger ones.
        flat = np.frombuffer(_mapped(self.path), self.dtype, math.prod(self.shape), self.offset)
        array: AnyArray = flat.reshape(self.shape, order=self.order)
        # Functions are compiled separately for writable and for read-only arrays.
        array.flags.writeable = self.is_writable
        return array


_maps: "weakref.WeakValueDictionary[str, mmap.mmap]" = weakref.WeakValueDictionary()


def _mapped(path: str) -> mmap.mmap:
    """Return the bytes of a file; all arrays of this process that lie in it share one map."""
    found = _maps.get(path)
    if found is None:
        try:
            with open(path, "rb") as stream:
                found = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
        except FileNotFoundError as error:
            error.add_note(
                "Rows of a fit are kept in a directory that all workers must see. Give directory= a path on a file "
                "system that they share."
            )
            raise
        _maps[path] = found
    return found


def write_atomically(path: str, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file, which a repeated task replaces while it may be in use."""
    unfinished = f"{path}.{os.getpid()}"
    with open(unfinished, "wb") as stream:
        write(stream)
    os.replace(unfinished, path)


def release_pages() -> None:
    """Release the pages of all maps from the memory of this process; they are read again when needed.

    Whatever a task wrote to a mapped array is lost; tasks without side effects write nothing.
    """
    if hasattr(mmap, "MADV_DONTNEED"):
        for whole in list(_maps.values()):
            whole.madvise(mmap.MADV_DONTNEED)


class ArrayFiles:
    """The arrays of one fit in a directory of its own; ``close`` removes it."""

    def __init__(self, parent: str | os.PathLike[str] | None) -> None:
        # A task that nobody waits for any more may write a file while the directory is removed.
        self._directory = tempfile.TemporaryDirectory(prefix="margintree-", dir=parent, ignore_cleanup_errors=True)
        self.path = Path(self._directory.name)
        self._files: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._n_files = 0
        self.n_bytes = 0

    def close(self) -> None:
        """Remove the directory; arrays that are mapped stay valid."""
        self._directory.cleanup()

    def new_path(self, name: str) -> str:
        """Return a new path."""
        self._n_files += 1
        return str(self.path / f"{name}-{self._n_files}")

    def empty(self, name: str, dtype: Any, shape: tuple[int, ...]) -> ArrayPlace:
        """Make a file for an array that workers fill."""
        place = ArrayPlace(self.new_path(name), 0, np.dtype(dtype), shape)
        with open(place.path, "wb") as stream:
            # An empty file cannot be mapped.
            stream.truncate(max(1, place.n_bytes))
        self.n_bytes += place.n_bytes
        return place

    def place_of(self, array: AnyArray) -> ArrayPlace | None:
        """Return the position of an array in a file; it is written to one unless it is already part of one.

        None if the array is not contiguous.
        """
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        if not (array.flags.forc and root.flags.forc):
            return None
        for path, whole in list(_maps.items()):
            offset = _address(array) - _address(np.frombuffer(whole, np.uint8))
            if 0 <= offset < len(whole):
                return ArrayPlace.of(array, path, offset)
        return ArrayPlace.of(array, self._path_of(root), _address(array) - _address(root))

    def _path_of(self, root: AnyArray) -> str:
        known, path = self._files.get(id(root), (None, ""))
        if known is None or known() is not root:
            path = self.new_path("array")
            root.ravel(order="K").tofile(path)
            self.n_bytes += root.nbytes
            # When the array is garbage-collected, no further task can refer to it.
            weakref.finalize(root, Path(path).unlink, missing_ok=True)
            self._files[id(root)] = weakref.ref(root), path
        return path

    def pickled(self, thing: Any) -> bytes:
        """Pickle anything, with references instead of its large arrays."""
        stream = io.BytesIO()
        _Pickler(stream, self).dump(thing)
        return stream.getvalue()

    def take_result(self, name: str) -> Any:
        """Return what a worker wrote to a file, and remove that."""
        path = self.path / name
        with path.open("rb") as stream:
            result = pickle.load(stream)
            self.n_bytes += stream.tell()
        path.unlink()
        return result

    def put_function(self, function: Any) -> str:
        """Write a function to a file named by a hash of its content, and return the path."""
        content = self.pickled(function)
        path = str(self.path / f"function-{hashlib.sha256(content).hexdigest()[:24]}")
        if not os.path.exists(path):
            Path(path).write_bytes(content)
            self.n_bytes += len(content)
        return path


@lru_cache(KEPT_FUNCTIONS)
def get_function(path: str) -> Any:
    """Return the function that a file holds."""
    return pickle.loads(Path(path).read_bytes())


class ResultPickler(pickle.Pickler):
    """Pickles the many small arrays of a result in half the time that numpy takes."""

    def reducer_override(self, obj: Any) -> Any:
        """Return how to make an array from its bytes; a copy is writable like the original."""
        if type(obj) is not np.ndarray or obj.ndim != 1 or obj.dtype.hasobject or not obj.size:
            return NotImplemented
        return np.frombuffer, (bytearray(obj) if obj.flags.writeable else bytes(obj), obj.dtype)


class _Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    def __init__(self, stream: io.BytesIO, files: ArrayFiles) -> None:
        super().__init__(stream, protocol=5)
        self._array_files = files

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is np.ndarray and obj.nbytes >= LEAST_BYTES and not obj.dtype.hasobject:
            place = self._array_files.place_of(obj)
            if place is not None:
                return ArrayPlace.open, (place,)
        return super().reducer_override(obj)


def _address(array: AnyArray) -> int:
    return int(array.__array_interface__["data"][0])
