"""The workers of a Dask cluster instead of threads.

All tasks are pure functions of a file with the function, the arrays that it maps, and a list of arguments; none is tied
to a worker. If a worker dies, Dask assigns its tasks to others. Results are files, too: whatever is sent to the client
by Dask passes through the scheduler, which would be the bottleneck.
"""

import pickle
import queue
import time
import uuid
import warnings
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import numpy.typing as npt
from dask import delayed
from distributed import Client, Future
from distributed.scheduler import KilledWorker

from margintree.dask.array_files import ArrayFiles, ResultPickler, write_atomically
from margintree.dask.worker_tasks import run_block, run_nodes
from margintree.structures.grow import NodeDone, NodeTask
from margintree.worker_threads import SECONDS_BETWEEN_LOOKS, give_up_if_abandoned

# Blocks of tasks per thread of the cluster. With more, threads wait less for the last one; with fewer, less is sent.
BLOCKS_PER_THREAD = 8
# A subtree is a single task if the number of its rows, times this and the number of threads, is at most that of all.
SUBTREES_PER_THREAD = 8
# Time for which the scheduler may be unreachable; Dask reconnects after short interruptions.
SECONDS_WITHOUT_SCHEDULER = 5.0
# After this time without workers, a warning says what the fit is waiting for.
SECONDS_WITHOUT_WORKERS = 10.0


class ClusterLostError(RuntimeError):
    """The scheduler of a Dask cluster cannot be reached, or a task repeatedly kills its workers.

    Examples
    --------
    >>> from margintree.dask import ClusterLostError
    >>> try:  # doctest: +SKIP
    ...     model.fit(X, y)
    ... except ClusterLostError:
    ...     client = start_another_cluster()
    """


class Cluster:
    """Runs the tasks of one fit on the workers of a client, and none of them after ``close``.

    Attributes
    ----------
    n_threads : int
        Threads of all workers when the fit began.
    n_bytes : int
        Size of the tasks sent to the workers.
    """

    def __init__(self, client: Client, files: ArrayFiles) -> None:
        self.client, self.files = client, files
        self.n_threads = max(1, sum(client.nthreads().values()))
        self.n_bytes = self.n_bytes_of_rows = 0
        self._address = client.scheduler.address
        self._futures: dict[str, Future] = {}
        # The number of rows of each class, from which the sizes of the nodes are computed.
        self.rows_of_class: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def close(self) -> None:
        """Cancel unfinished tasks; other work on the cluster is not affected."""
        futures, self._futures = list(self._futures.values()), {}
        if futures and self.client.status == "running":
            self.client.cancel(futures)

    def map(self, work: Callable[[Any], Any], tasks: list[Any], name: str) -> list[Any]:
        """Return the results in the order of the tasks."""
        if not tasks:
            return []
        path = self.files.put_function(work)
        n_blocks = min(len(tasks), BLOCKS_PER_THREAD * self.n_threads)
        # The first tasks tend to be the largest, so each block gets some of them.
        parts = [tasks[first::n_blocks] for first in range(n_blocks)]
        batch, results = Batch(self, name), [None] * len(tasks)
        for number, part in enumerate(parts):
            batch.submit(number, run_block, path, part)
        for number, found in enumerate(batch.results(n_blocks)):
            results[number::n_blocks] = found
        return results

    def compute(self, function: Callable[..., Any], calls: list[tuple[Any, ...]], name: str) -> list[Any]:
        """Call a function with each tuple of arguments, which may be lazy, and return the results."""
        batch = Batch(self, name)
        batch.submit_lazy(function, calls)
        return batch.results(len(calls))

    def nodes_done(
        self, work: Callable[[NodeTask], NodeDone], tasks: list[NodeTask]
    ) -> Generator[tuple[NodeTask, NodeDone], None, None]:
        """Yield nodes with their results, including nodes that are added to the list meanwhile.

        A large node is a task of its own, a small one is divided together with its whole subtree.
        """
        path, batch = self.files.put_function(work), Batch(self, "divide nodes")
        few_rows = int(self.rows_of_class.sum()) // (SUBTREES_PER_THREAD * self.n_threads)
        n_open = 0
        while tasks or n_open:
            for task in tasks:
                n_rows = int(self.rows_of_class[task.classes].sum())
                batch.submit(task, run_nodes, path, task, n_rows <= few_rows, priority=float(n_rows))
            n_open += len(tasks) - 1
            tasks.clear()
            task, found = batch.next_done()
            todo = [task]
            while todo:
                task = todo.pop()
                yield task, found[task.path]
                # The caller has added the children to the list; those with known results need no task.
                todo += [child for child in tasks if child.path in found]
                tasks[:] = [child for child in tasks if child.path not in found]

    def lost(self) -> ClusterLostError:
        """Return the error for a scheduler that cannot be reached."""
        return ClusterLostError(
            f"The Dask scheduler at {self._address} cannot be reached (the client is "
            f"{self.client.status!r}). The fit has ended; an earlier model is unchanged. Start the cluster again "
            "and call fit with a new client."
        )


class Batch:
    """Running tasks of one kind."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster, self.name = cluster, name
        # Dask's dashboard shows the part of the key before 32 hexadecimal digits.
        self._key = f"margintree-{name.replace(' ', '-')}-{uuid.uuid4().hex}"
        self._n_submitted = 0
        self._under_way: dict[str, Any] = {}
        self._done: queue.SimpleQueue[Future] = queue.SimpleQueue()

    def submit(self, tag: Any, function: Callable[..., Any], *arguments: Any, priority: float = 0.0) -> None:
        """Submit a task; tasks of higher priority start first."""
        cluster = self._cluster
        sent = pickle.dumps(arguments)
        cluster.n_bytes += len(sent)
        self._n_submitted += 1
        key = f"{self._key}-{self._n_submitted}"
        if cluster.client.status not in ("running", "connecting"):
            raise cluster.lost()
        path = str(cluster.files.path / key)
        self._watch(
            tag, cluster.client.submit(call_pickled, path, function, sent, key=key, priority=priority, pure=True)
        )

    def submit_lazy(self, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> None:
        """Submit a task for each tuple of arguments; lazy arguments are computed on the workers."""
        store, keys = delayed(call_and_store, pure=False), [f"{self._key}-{number}" for number in range(len(calls))]
        tasks = [
            store(str(self._cluster.files.path / key), function, *arguments, dask_key_name=key)
            for key, arguments in zip(keys, calls, strict=True)
        ]
        for number, future in enumerate(self._cluster.client.compute(tasks)):
            self._watch(number, future)

    def _watch(self, tag: Any, future: Future) -> None:
        self._cluster._futures[future.key] = future
        self._under_way[future.key] = tag
        future.add_done_callback(self._done.put)

    def results(self, n_tasks: int) -> list[Any]:
        """Return the results of all tasks, whose tags are their numbers."""
        found = dict(self.next_done() for _ in range(n_tasks))
        return [found[number] for number in range(n_tasks)]

    def next_done(self) -> tuple[Any, Any]:
        """Wait for any task; return its tag and its result, or raise its error."""
        future = self._wait()
        tag = self._under_way.pop(future.key)
        try:
            # The result is a file, so nothing is fetched from the worker.
            if future.status == "error":
                future.result()
        except KilledWorker as error:
            raise ClusterLostError(
                f"A task of the fit ({future.key}) killed {error.allowed_failures + 1} workers, probably by using too "
                "much memory. Give workers more memory or fewer threads, or lower max_rows_per_node."
            ) from error
        except (OSError, RuntimeError) as error:
            if self._cluster.client.status == "running":
                raise
            raise self._cluster.lost() from error
        self._cluster._futures.pop(future.key, None)
        return tag, self._cluster.files.take_result(future.key)

    def _wait(self) -> Future:
        client = self._cluster.client
        reached = staffed = time.monotonic()
        is_cancelled = False
        while True:
            try:
                future = self._done.get(timeout=SECONDS_BETWEEN_LOOKS)
            except queue.Empty:
                give_up_if_abandoned()
            else:
                # A task that is done but "lost" with its worker has left a file.
                is_cancelled = future.status == "cancelled"
                if not is_cancelled:
                    return future
            now = time.monotonic()
            if client.status == "running":
                if is_cancelled:
                    raise ClusterLostError(
                        f"A task of the fit ({future.key}) was cancelled, for example by Client.restart(). The fit has "
                        "ended; an earlier model is unchanged. Call fit again."
                    )
                reached = now
            elif client.status == "closed" or now - reached > SECONDS_WITHOUT_SCHEDULER:
                raise self._cluster.lost()
            if now - staffed > SECONDS_WITHOUT_WORKERS and client.status == "running":
                staffed = now
                if not client.nthreads():
                    warnings.warn("The Dask cluster has no workers; the fit continues when some join it.", stacklevel=2)


def call_pickled(path: str, function: Callable[..., Any], arguments: bytes) -> None:
    """Call a function; runs on a worker."""
    call_and_store(path, function, *pickle.loads(arguments))


def call_and_store(path: str, function: Callable[..., Any], *arguments: Any) -> None:
    """Write what a function returns to a file; runs on a worker."""
    result = function(*arguments)
    write_atomically(path, lambda stream: ResultPickler(stream, protocol=5).dump(result))
