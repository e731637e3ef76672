"""Where the nodes of a growing tree are worked on: here, or in threads.

Nodes are independent once their parent is split, so growing needs only this: hand in a task, take
the next finished one, in any order.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

from margintree.worker_threads import Workers, elsewhere, give_up_if_abandoned

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
        give_up_if_abandoned()
        task = self._tasks.pop()
        return task, self._work(task)

    def close(self) -> None:
        """Drop all tasks."""
        self._tasks.clear()


class ThreadExecutor(Executor[Task, Result]):
    """Works in threads; the compiled kernels release the GIL, and the calling thread can be interrupted."""

    def __init__(self, work: Callable[[Task], Result], n_threads: int) -> None:
        super().__init__(work)
        # One thread goes depth first, which keeps few nodes waiting; several begin with the nodes near the root,
        # which are the largest.
        self._workers: Workers[Task, Result] = Workers(work, n_threads, newest_first=n_threads == 1)

    def submit(self, task: Task) -> None:
        """Take a task."""
        self._workers.submit(task)

    def next_done(self) -> tuple[Task, Result]:
        """Wait for any task."""
        return self._workers.next_done()

    def close(self) -> None:
        """Drop the tasks that have not begun; the others are not waited for."""
        self._workers.close()


def executor_for(work: Callable[[Task], Result], n_threads: int) -> Executor[Task, Result]:
    """Return the executor for so many threads.

    One thread is enough of an executor by itself, except where Ctrl-C may arrive: the main thread only waits.
    """
    others = elsewhere.get()
    if others is not None:
        executor: Executor[Task, Result] = others.executor(work)
        return executor
    if n_threads == 1 and threading.current_thread() is not threading.main_thread():
        return SerialExecutor(work)
    return ThreadExecutor(work, n_threads)
