"""Where the nodes of a growing tree are worked on: in threads, or where ``margintree.worker_threads.elsewhere`` says.

Nodes are independent once their parent is split, so growing needs only this: hand in a task, take
the next finished one, in any order.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from typing import Any, Generic, Self, TypeVar

from margintree.worker_threads import elsewhere, in_any_order

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


def nodes_done(
    work: Callable[[Task], Result], tasks: list[Task], n_threads: int
) -> Generator[tuple[Task, Result], None, None]:
    """Yield each task with its result, in any order, and take tasks that are added to the list meanwhile, too."""
    others = elsewhere.get()
    if others is None:
        yield from in_any_order(work, tasks, n_threads)
        return
    with others.executor(work) as executor:
        n_open = 0
        while tasks or n_open:
            for task in tasks:
                executor.submit(task)
            n_open += len(tasks) - 1
            tasks.clear()
            yield executor.next_done()
