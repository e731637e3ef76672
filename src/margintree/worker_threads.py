"""Threads for long work, which can be stopped by Ctrl-C or by an error in one of them.

Python handles signals between two steps of the interpreter in the main thread, so Ctrl-C inside a compiled loop or a
matrix product has no effect until that ends. Long work therefore runs in other threads, while the main thread waits in
a way that can be interrupted. All threads of one piece of work, however deeply nested, share one flag. An interrupt or
an error sets it; then nobody waits for the threads, and they end when they next check it: before each task, in
``give_up_if_abandoned``, and once per pass over the rows in compiled loops, which get the flag from ``stoppable``. A
process that exits waits for that.
"""

import contextlib
import contextvars
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Task = TypeVar("Task")
Result = TypeVar("Result")
P = ParamSpec("P")
_Task: TypeAlias = tuple[Future[Any], Callable[[], Any]]


class Elsewhere(Protocol):
    """Replaces threads for work without side effects, such as the workers of a cluster."""

    def map(self, work: Callable[[Any], Any], tasks: list[Any], name: str) -> list[Any]:
        """Return the results in the order of the tasks; the name describes them."""
        ...

    def nodes_done(self, work: Callable[[Any], Any], tasks: list[Any]) -> Generator[tuple[Any, Any], None, None]:
        """Yield the nodes of a growing tree with their results, as ``in_any_order`` does."""
        ...


elsewhere: contextvars.ContextVar[Elsewhere | None] = contextvars.ContextVar("elsewhere", default=None)

# A waiting thread looks up this often: whether its work has ended, and on Windows whether Ctrl-C was pressed.
SECONDS_BETWEEN_LOOKS = 0.2
# A thread that has not begun by then was killed by a lack of memory.
SECONDS_TO_BEGIN = 10.0


class Abandoned(SystemExit):
    """Ends work whose result is no longer needed; as a SystemExit, it ends a thread silently."""


class _Work:
    """A flag that compiled loops can read, and the error that set it."""

    def __init__(self) -> None:
        self.flag = np.zeros(1, dtype=np.bool_)
        self.error: BaseException | None = None

    def stop(self, error: BaseException) -> None:
        if not self.flag[0]:
            self.error = error
            self.flag[0] = True


_current: contextvars.ContextVar[_Work | None] = contextvars.ContextVar("margintree_work", default=None)
_never_stopped = _Work()


def stop_flag() -> npt.NDArray[np.bool_]:
    """Return an array with one element, which becomes True when the work of this thread is to stop."""
    return (_current.get() or _never_stopped).flag


def give_up_if_abandoned() -> None:
    """Raise ``Abandoned`` in a thread whose result is no longer needed."""
    if stop_flag()[0]:
        raise Abandoned


@contextlib.contextmanager
def stoppable() -> Generator[npt.NDArray[np.bool_], None, None]:
    """Give the flag to a compiled loop. One that stops leaves its results unfinished, which nobody may then read."""
    give_up_if_abandoned()
    yield stop_flag()
    give_up_if_abandoned()


class Threads(Executor):
    """Threads that start as tasks come in and share the flag of the work that they are part of."""

    def __init__(self, n_threads: int) -> None:
        self._n_threads = n_threads
        self._work = _current.get() or _Work()
        # What the caller set for its own context, such as numpy's error state, holds in the threads, too.
        self._context = contextvars.copy_context()
        self._context.run(_current.set, self._work)
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._done: SimpleQueue[Future[Any]] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Take a task."""
        future: Future[Any] = Future()
        self._tasks.put((future, lambda: function(*args, **kwargs)))
        if len(self._threads) < self._n_threads:
            thread = _Thread(target=self._context.copy().run, args=(self._work_on_tasks,), name="margintree")
            self._threads.append(thread)
            thread.start()
        return future

    def _work_on_tasks(self) -> None:
        while (task := self._next_task()) is not None:
            future, function = task
            try:
                give_up_if_abandoned()
                future.set_result(function())
            except BaseException as error:
                # Before anybody hears of it, so that no thread begins another task.
                self._work.stop(error)
                future.set_exception(error)
            self._done.put(future)
            # An idle thread keeps no rows and no results alive.
            del task, future, function

    def _next_task(self) -> "_Task | None":
        """Wait for a task; None where there will be no more, because the work or the process ends."""
        # A second error may keep ``shutdown`` from telling.
        while not self._work.flag[0] and threading.main_thread().is_alive():
            with contextlib.suppress(Empty):
                return self._tasks.get(timeout=SECONDS_BETWEEN_LOOKS)
        return None

    def next_done(self) -> Future[Any]:
        """Wait until a task is done that was not returned before, or raise the error that ended the work."""
        while True:
            with contextlib.suppress(Empty):
                future = self._done.get(timeout=SECONDS_BETWEEN_LOOKS)
                error = future.exception()
                if error is not None:
                    raise self._work.error or error
                return future
            if self._work.error is not None:
                raise self._work.error
            if not any(thread.is_alive() for thread in self._threads):
                # For instance for want of memory, before it could say so.
                raise RuntimeError("All worker threads ended before the work was done.")

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end after the tasks that they have."""
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads if wait else ():
            thread.join()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._work.stop(error)
        self.shutdown(wait=error is None)


class _Begun(threading.Event):
    """Signals that a thread has started; Python waits for that forever, even if memory has run out."""

    def wait(self, timeout: float | None = None) -> bool:
        if not super().wait(SECONDS_TO_BEGIN if timeout is None else timeout) and timeout is None:
            raise MemoryError("A worker thread did not start, probably for lack of memory.")
        return True


class _Thread(threading.Thread):
    def __init__(self, **options: Any) -> None:
        super().__init__(daemon=False, **options)
        self._started = _Begun()


def in_any_order(
    work: Callable[[Task], Result], tasks: list[Task], n_threads: int
) -> Generator[tuple[Task, Result], None, None]:
    """Yield each task with its result; the list is emptied, including tasks that are added to it meanwhile.

    A single thread takes the newest task first, which keeps the list short; several take the oldest.
    """
    if n_threads == 1 and threading.current_thread() is not threading.main_thread():
        while tasks:
            give_up_if_abandoned()
            task = tasks.pop()
            yield task, work(task)
        return
    with Threads(n_threads) as threads:
        pending: dict[Future[Result], Task] = {}
        while tasks or pending:
            taken = tasks[-1:] if n_threads == 1 else tasks[:]
            del tasks[-len(taken) :]
            pending.update((threads.submit(work, task), task) for task in taken)
            future = threads.next_done()
            yield pending.pop(future), future.result()


def in_threads(work: Callable[[Task], Result], tasks: Iterable[Task], n_threads: int) -> list[Result]:
    """Return the results in the order of the tasks; the compiled loops release the GIL.

    Examples
    --------
    >>> from margintree.worker_threads import in_threads
    >>> in_threads(abs, [-1, 2, -3], n_threads=2)
    [1, 2, 3]
    """
    tasks = list(tasks)
    results: list[Any] = [None] * len(tasks)
    # All threads share it: whoever is free takes the next task. Handed out, each would cost a tenth of a millisecond.
    numbers = iter(range(len(tasks)))

    def work_on() -> None:
        for number in numbers:
            give_up_if_abandoned()
            results[number] = work(tasks[number])

    if n_threads == 1:
        apart(work_on)
        return results
    with Threads(n_threads) as threads:
        n_working = min(n_threads, len(tasks))
        for _ in range(n_working):
            threads.submit(work_on)
        for _ in range(n_working):
            threads.next_done()
    return results


def in_tasks(work: Callable[[Task], Result], tasks: Iterable[Task], n_threads: int, name: str) -> list[Result]:
    """Return the results in the order of the tasks; work without side effects, which ``elsewhere`` may take over.

    Examples
    --------
    >>> from margintree.worker_threads import in_tasks
    >>> in_tasks(abs, [-1, 2, -3], 2, "absolute values")
    [1, 2, 3]
    """
    others = elsewhere.get()
    return in_threads(work, tasks, n_threads) if others is None else others.map(work, list(tasks), name)


def apart(work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """Return what ``work`` returns; in the main thread, where Ctrl-C may arrive, it runs in a thread of its own."""
    if threading.current_thread() is not threading.main_thread():
        return work(*args, **kwargs)
    with Threads(1) as threads:
        future: Future[Result] = threads.submit(work, *args, **kwargs)
        threads.next_done()
        return future.result()
