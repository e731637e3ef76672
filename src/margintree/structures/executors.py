"""Where the nodes of a growing tree are worked on: here, or in threads.

Nodes are independent once their parent is split, so growing needs only this: hand in a task, take
the next finished one, in any order.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Generic, Self, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class Executor(ABC, Generic[Task, Result]):
    """Runs tasks and gives back each with its result."""

    def __init__(self, work: Callable[[Task], Result]) -> None:
        self._work = work

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Take a task."""

    @abstractmethod
    def next_done(self) -> tuple[Task, Result]:
        """Return a finished task and its result, or raise the task's error."""

    @abstractmethod
    def close(self) -> None:
        """Drop the tasks that have not begun."""


class SerialExecutor(Executor[Task, Result]):
    """Works on the task that came in last, in the calling thread: memory stays small."""

    def __init__(self, work: Callable[[Task], Result]) -> None:
        super().__init__(work)
        self._tasks: list[Task] = []

    def submit(self, task: Task) -> None:
        """Take a task."""
        self._tasks.append(task)

    def next_done(self) -> tuple[Task, Result]:
        """Work on the last task."""
        task = self._tasks.pop()
        return task, self._work(task)

    def close(self) -> None:
        """Drop all tasks."""
        self._tasks.clear()


class ThreadExecutor(Executor[Task, Result]):
    """Works in threads; the compiled kernels release the GIL."""

    def __init__(self, work: Callable[[Task], Result], n_threads: int) -> None:
        super().__init__(work)
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix="margintree")
        self._running: dict[Future[Result], Task] = {}

    def submit(self, task: Task) -> None:
        """Take a task."""
        self._running[self._pool.submit(self._work, task)] = task

    def next_done(self) -> tuple[Task, Result]:
        """Wait for any task."""
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        future = next(iter(done))
        return self._running.pop(future), future.result()

    def close(self) -> None:
        """Drop the tasks that have not begun and wait for the others."""
        self._pool.shutdown(wait=True, cancel_futures=True)
