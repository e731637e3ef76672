"""Where the nodes of a growing tree are worked on: here, or in threads.

Nodes are independent once their parent is split, so growing needs only this: hand in a task, take
the next finished one, in any order.
"""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class Executor(Protocol[Task, Result]):
    """Runs tasks and gives back each with its result."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def submit(self, task: Task) -> None:
        """Take a task."""

    def next_done(self) -> tuple[Task, Result]:
        """Return a finished task and its result, or raise the task's error."""


class SerialExecutor(Generic[Task, Result]):
    """Works on the task that came in last, in the calling thread: memory stays small."""

    def __init__(self, work: Callable[[Task], Result]) -> None:
        self._work = work
        self._tasks: list[Task] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tasks.clear()

    def submit(self, task: Task) -> None:
        self._tasks.append(task)

    def next_done(self) -> tuple[Task, Result]:
        task = self._tasks.pop()
        return task, self._work(task)


class ThreadExecutor(Generic[Task, Result]):
    """Works in threads; the compiled kernels release the GIL."""

    def __init__(self, work: Callable[[Task], Result], n_threads: int) -> None:
        self._work = work
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix="margintree")
        self._running: dict[Future[Result], Task] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def submit(self, task: Task) -> None:
        self._running[self._pool.submit(self._work, task)] = task

    def next_done(self) -> tuple[Task, Result]:
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        future = next(iter(done))
        task = self._running.pop(future)
        return task, future.result()
