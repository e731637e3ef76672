"""How every kernel is compiled: released GIL, cached on disk, no bounds checks.

A plain ``@njit(cache=True)`` fails at import when numba finds no directory that it may write
to (a read-only image, a locked-down service account). Kernels compile without a cache then: the
first fit of each process takes longer, and nothing else changes.
"""

from collections.abc import Callable
from typing import Any

import numba

# Sums may be reassociated, so that dot products use vector registers; infinities and NaN keep
# their meaning, because a kernel may meet either.
FAST_SUMS = {"reassoc", "contract", "nsz", "arcp"}

OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": FAST_SUMS, "error_model": "numpy"}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel on its first call, with an on-disk cache where one can be written."""
    try:
        return numba.njit(cache=True, **OPTIONS)(function)
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
        return numba.njit(**OPTIONS)(function)
