"""Threads over chunks of rows."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

# Below this many rows a second thread costs more than it brings.
LEAST_ROWS = 256


def in_chunks(work: Callable[[int, int], Any], n_rows: int, n_threads: int) -> None:
    """Call ``work(first, last)`` for chunks that cover all rows; compiled loops release the GIL.

    Every row is worked on by itself, so the result does not depend on the chunks.
    """
    n_chunks = min(n_threads, max(1, n_rows // LEAST_ROWS))
    if n_chunks == 1:
        work(0, n_rows)
        return
    bounds = [n_rows * c // n_chunks for c in range(n_chunks + 1)]
    with ThreadPoolExecutor(n_chunks, thread_name_prefix="margintree") as pool:
        for result in [pool.submit(work, *pair) for pair in itertools.pairwise(bounds)]:
            result.result()
