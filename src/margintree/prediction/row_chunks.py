"""Threads over chunks of rows."""

import itertools
from collections.abc import Callable
from typing import Any

from margintree.worker_threads import in_threads

# Below this many rows a second thread costs more than it brings.
LEAST_ROWS = 256


def in_chunks(work: Callable[[int, int], Any], n_rows: int, n_threads: int) -> None:
    """Call ``work(first, last)`` for chunks that cover all rows; compiled loops release the GIL.

    Every row is processed independently, so the result does not depend on the chunks.
    """
    n_chunks = min(n_threads, max(1, n_rows // LEAST_ROWS))
    if n_chunks == 1:
        work(0, n_rows)
        return
    bounds = [n_rows * c // n_chunks for c in range(n_chunks + 1)]
    in_threads(lambda pair: work(*pair), itertools.pairwise(bounds), n_chunks)
