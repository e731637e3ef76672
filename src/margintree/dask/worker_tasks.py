"""The tasks of workers: call the function of a file, with as little memory as possible."""

from functools import cache
from typing import Any

import psutil
from distributed import get_worker
from threadpoolctl import ThreadpoolController

from margintree.dask.array_files import get_function, release_pages
from margintree.structures.grow import NodeDone, NodeTask

# Part of a worker's memory from which on pages of mapped files are given back after each task. Dask counts them as
# memory of the worker; it stops giving it tasks at 0.8 and ends it at 0.95.
PART_OF_MEMORY = 0.5


@cache
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


def run_block(path: str, tasks: list[Any]) -> list[Any]:
    """Run some tasks with the function of a file."""
    work = get_function(path)
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
    if limit and psutil.Process().memory_info().rss > PART_OF_MEMORY * limit:
        release_pages()
