"""The tasks of workers: call the function of a file, with as little memory as possible."""

import ctypes
from contextlib import suppress
from functools import cache
from typing import Any

import psutil
from distributed import get_worker
from threadpoolctl import ThreadpoolController

from margintree.dask.array_files import get_function, release_pages
from margintree.structures.grow import NodeDone, NodeTask

# A worker that uses more than this part of its memory releases the pages of mapped files after each task. Dask counts
# them as its memory; it gives it no more tasks at 0.8, and ends it at 0.95.
PART_OF_MEMORY = 0.5
# Options of glibc's ``mallopt``: free memory at the end of the heap, and the largest block that comes from the heap.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES, LARGEST_BLOCK = 2**24, 2**22


@cache
def reuse_freed_memory() -> None:
    """Keep a few freed megabytes for the next node.

    Dask sets ``MALLOC_TRIM_THRESHOLD_`` so that its workers return freed memory to the system at once, and a fit spends
    a tenth of its time on page faults.
    """
    # Other C libraries have no such function.
    with suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(M_MMAP_THRESHOLD, LARGEST_BLOCK)


@cache
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


@cache
def _process() -> psutil.Process:
    return psutil.Process()


def run_block(path: str, tasks: list[Any]) -> list[Any]:
    """Run some tasks with the function of a file."""
    work = get_function(path)
    reuse_freed_memory()
    try:
        # As in a fit on one machine, so that products round in the same way.
        with _blas().limit(limits=1):
            return [work(task) for task in tasks]
    finally:
        keep_memory_low()


def run_nodes(path: str, task: NodeTask, with_all_below: bool) -> dict[str, NodeDone]:
    """Divide a node, or its whole subtree. Results are keyed by the path from the root."""
    done: dict[str, NodeDone] = {}
    open_tasks = [task]
    while open_tasks:
        task = open_tasks.pop()
        (result,) = run_block(path, [task])
        done[task.path] = result
        for side, classes in enumerate((result.left, result.right)):
            if with_all_below and len(classes) > 1:
                open_tasks.append(task.child(side, classes, -1))
    return done


def keep_memory_low() -> None:
    """Release pages of mapped files if memory is short; they are read again when needed."""
    limit = get_worker().memory_manager.memory_limit
    if limit and _process().memory_info().rss > PART_OF_MEMORY * limit:
        release_pages()
