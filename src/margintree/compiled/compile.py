"""How functions are compiled: released GIL, cached on disk, no bounds checks.

A plain ``@njit(cache=True)`` fails at import when numba finds no directory that it may write
to (a read-only image, a locked-down service account). Functions are compiled without a cache then: the
first fit of each process takes longer, and nothing else changes.

numba takes a cached function for current as long as its own file is unchanged, although functions of other
files are compiled into it. Here the stamp of every function covers all compiled code, so that a new version of the
package never runs an old layout's code.
"""

import hashlib
import logging
import time
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numba
from numba.core import event
from numba.extending import overload

from margintree.worker_threads import give_up_if_abandoned

# Sums may be reassociated, so that dot products use vector registers; infinities and NaN keep
# their meaning, because compiled code may meet either. A loop that adds up numbers has no stores: one that does both
# uses vector registers or not, and so has other last bits, depending on where its arrays lie in memory.
FAST_SUMS = {"reassoc", "contract", "nsz", "arcp"}

OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": FAST_SUMS, "error_model": "numpy", "no_cfunc_wrapper": True}


# Silence that is longer than this needs an explanation.
SECONDS_BEFORE_A_WORD = 2.0


class _Announcement(event.Listener):  # type: ignore[misc]
    """Reports once that code is being compiled, if it takes long; later processes use the cache on disk."""

    def __init__(self) -> None:
        self._open, self._began, self._seconds = 0, 0.0, 0.0

    def on_start(self, event: Any) -> None:
        # A compiler that nobody waits for any more ends between two functions.
        give_up_if_abandoned()
        if self._open == 0:
            self._began = time.perf_counter()
        self._open += 1

    def on_end(self, event: Any) -> None:
        self._open -= 1
        if self._open > 0 or self._seconds > SECONDS_BEFORE_A_WORD:
            return
        self._seconds += time.perf_counter() - self._began
        if self._seconds > SECONDS_BEFORE_A_WORD:
            logging.getLogger("margintree").warning(
                "margintree compiles its loops for this machine: once, for about half a minute in all."
            )


event.register("numba:compile", _Announcement())


# A function that is called, not inlined, may run as another process compiled it or as this one did: last bits differ.
INLINED: dict[str, Any] = {**OPTIONS, "forceinline": True}


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a small function into each of its callers."""
    return numba.njit(**INLINED)(function)


def by_type(choose: Callable[..., Any], options: dict[str, Any] = OPTIONS) -> Callable[..., Any]:
    """Make a function for compiled code of one that gets the types of the arguments and returns the body for them."""

    @wraps(choose)
    def function(*_: Any) -> None:
        raise TypeError(f"{choose.__name__} is for compiled code only")

    overload(function, jit_options=options)(choose)
    return function


def inlined_by_type(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Do as ``by_type`` does, and compile the body into its callers."""
    return by_type(choose, INLINED)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function on its first call, with an on-disk cache where one can be written."""
    try:
        dispatcher = numba.njit(cache=True, **OPTIONS)(function)
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
        return numba.njit(**OPTIONS)(function)
    cache_file = getattr(dispatcher._cache, "_cache_file", None)
    if cache_file is not None:
        cache_file._source_stamp = (cache_file._source_stamp, _stamp_of_all_code())
    return dispatcher


@cache
def _stamp_of_all_code() -> str:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
