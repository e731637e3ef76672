"""Threads for long work that nobody has to wait for.

Python looks at signals between two steps of the interpreter in the main thread, so a Ctrl-C that meets it inside a
compiled loop or a matrix product waits for the end of that. Here long work runs in threads of its own, while the
calling thread waits where it can be interrupted. After an interrupt, or an error in one task, the threads are
abandoned: they are daemons, begin no further task, and leave the one at hand where it calls
``give_up_if_abandoned``, which the solvers do before each problem. Compiled loops look at ``ABANDONED_THREADS``
(see ``margintree.compiled.giving_up``), so that they end within a pass over their rows.
"""

import atexit
import contextlib
import contextvars
import ctypes
import queue
import sys
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

# A waiting thread looks up this often: whether it was abandoned itself, and on Windows whether Ctrl-C was pressed.
SECONDS_BETWEEN_LOOKS = 0.2
# A thread that has not begun by then was killed by a lack of memory.
SECONDS_TO_BEGIN = 10.0
_END = object()


class Elsewhere(Protocol):
    """Takes the place of threads for work without side effects, such as the workers of a cluster."""

    def map(self, work: Callable[[Any], Any], tasks: list[Any], name: str) -> list[Any]:
        """Return the results in the order of the tasks; the name tells people what they do."""
        ...

    def executor(self, work: Callable[[Any], Any]) -> Any:
        """Return what works on the nodes of a growing tree."""
        ...


elsewhere: contextvars.ContextVar[Elsewhere | None] = contextvars.ContextVar("elsewhere", default=None)

# Numbers of abandoned threads that are still at work, from the front; 0 marks the end. One that finds no place is
# only slower to end.
ABANDONED_THREADS = (ctypes.c_uint64 * 64)()
_abandoned: "set[_Worker]" = set()
_listing = threading.Lock()


class Abandoned(SystemExit):
    """Ends the work of a thread whose result nobody waits for any more; threads end by a SystemExit without a word."""


def give_up_if_abandoned() -> None:
    """Raise ``Abandoned`` in a thread whose result nobody waits for any more."""
    thread = threading.current_thread()
    if isinstance(thread, _Worker) and thread.abandoned.is_set():
        raise Abandoned


class Workers(Generic[Task, Result]):
    """Works on tasks in daemon threads, which start as tasks come in.

    Parameters
    ----------
    work : callable
        Takes a task and returns its result.
    n_threads : int
    newest_first : bool, default=False
        Whether the task that came in last is worked on first.
    """

    def __init__(self, work: Callable[[Task], Result], n_threads: int, *, newest_first: bool = False) -> None:
        self._work = work
        self._n_threads = n_threads
        self._waiting: queue.Queue[Any] = queue.LifoQueue() if newest_first else queue.Queue()
        self._done: queue.SimpleQueue[tuple[Task, Any, BaseException | None]] = queue.SimpleQueue()
        self._closed, self._abandoned = threading.Event(), threading.Event()
        self._threads: list[_Worker] = []
        self._n_open = 0

    def submit(self, task: Task) -> None:
        """Take a task."""
        self._n_open += 1
        self._waiting.put(task)
        if len(self._threads) < min(self._n_threads, self._n_open):
            thread = _Worker(self._work, self._waiting, self._done, self._closed, self._abandoned)
            self._threads.append(thread)
            thread.start()

    def next_done(self) -> tuple[Task, Result]:
        """Wait for any task; return it with its result, or raise its error."""
        while True:
            done = None
            with contextlib.suppress(queue.Empty):
                done = self._done.get(timeout=SECONDS_BETWEEN_LOOKS)
            if done is None:
                give_up_if_abandoned()
                if self._done.empty() and not any(thread.is_alive() for thread in self._threads):
                    # For instance for want of memory, before it could say so.
                    raise RuntimeError("All worker threads ended before the work was done.")
                continue
            task, result, error = done
            self._n_open -= 1
            if error is not None:
                raise error
            return task, result

    def close(self) -> None:
        """Begin no further task. Threads that are idle end at once, others are not waited for."""
        self._closed.set()
        self._abandoned.set()
        if self._n_open > 0:
            with _listing:
                _abandoned.update(thread for thread in self._threads if thread.is_alive())
                _list_abandoned()
        for _ in self._threads:
            self._waiting.put(_END)
        if self._n_open == 0:
            for thread in self._threads:
                thread.join()


class _Begun(threading.Event):
    """Tells that a thread has begun; Python waits for that without end, also where memory has run out before it."""

    def wait(self, timeout: float | None = None) -> bool:
        if not super().wait(SECONDS_TO_BEGIN if timeout is None else timeout) and timeout is None:
            raise MemoryError("A worker thread did not begin; there is probably too little memory for it.")
        return True


class _Worker(threading.Thread):
    def __init__(self, work: Any, waiting: Any, done: Any, closed: threading.Event, abandoned: threading.Event) -> None:
        super().__init__(name="margintree", daemon=True)
        self._started = _Begun()
        self._work, self._waiting, self._done = work, waiting, done
        self._closed, self.abandoned = closed, abandoned
        # What the caller set for its own context, such as numpy's error state, holds here, too.
        self._context = contextvars.copy_context()

    def run(self) -> None:
        try:
            self._context.run(self._work_on_tasks)
        finally:
            with _listing:
                if self in _abandoned:
                    _abandoned.remove(self)
                    _list_abandoned()

    def _work_on_tasks(self) -> None:
        while True:
            task = self._waiting.get()
            if task is _END or self._closed.is_set():
                return
            result, error = None, None
            try:
                result = self._work(task)
            except BaseException as raised:
                error = raised
                # Before anybody hears of it, so that no thread begins another task.
                self._closed.set()
            self._done.put((task, result, error))
            # An idle thread keeps no rows and no results alive.
            del task, result, error


def _list_abandoned() -> None:
    """Write the numbers of the abandoned threads where compiled loops look for them."""
    numbers = [thread.ident or 0 for thread in _abandoned][: len(ABANDONED_THREADS) - 1]
    # From the back: the end mark is in place before what it ends.
    for place in range(len(ABANDONED_THREADS) - 1, -1, -1):
        ABANDONED_THREADS[place] = numbers[place] if place < len(numbers) else 0


@atexit.register
def _wait_for_abandoned() -> None:
    """End abandoned threads before the libraries that they are in are taken down, which would crash them.

    One that compiles, or runs a user's function, asks for nothing; the exception reaches it between two steps of the
    interpreter. Only here, where nobody is left whom a half-finished step could hurt.
    """
    sys.unraisablehook = partial(_unless_abandoned, sys.unraisablehook)
    for thread in list(_abandoned):
        while thread.is_alive():
            number = ctypes.c_ulong(thread.ident or 0)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(Abandoned))
            thread.join(SECONDS_BETWEEN_LOOKS)


def _unless_abandoned(otherwise: Callable[[Any], Any], unraisable: "sys.UnraisableHookArgs") -> None:
    """Say nothing of an exception of ours that met a callback of a library, such as that of the compiler's cache."""
    if not issubclass(unraisable.exc_type, Abandoned):
        otherwise(unraisable)


def in_threads(work: Callable[[Task], Result], tasks: Iterable[Task], n_threads: int) -> list[Result]:
    """Return the results in the order of the tasks; the compiled loops release the GIL.

    Examples
    --------
    >>> from margintree.worker_threads import in_threads
    >>> in_threads(abs, [-1, 2, -3], n_threads=2)
    [1, 2, 3]
    """
    if n_threads == 1:
        return apart(lambda: [_next(work, task) for task in tasks])
    numbered = list(enumerate(tasks))
    results: dict[int, Result] = {}
    workers: Workers[tuple[int, Task], Result] = Workers(lambda pair: work(pair[1]), n_threads)
    try:
        for pair in numbered:
            workers.submit(pair)
        while len(results) < len(numbered):
            (number, _), result = workers.next_done()
            results[number] = result
    finally:
        workers.close()
    return [results[number] for number in range(len(numbered))]


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


def apart(work: Callable[[], Result]) -> Result:
    """Return what ``work`` returns; where Ctrl-C may arrive, it runs in a thread of its own.

    That is the main thread alone. Any other thread works itself.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    workers: Workers[None, Result] = Workers(lambda _: work(), 1)
    try:
        workers.submit(None)
        return workers.next_done()[1]
    finally:
        workers.close()


def _next(work: Callable[[Task], Result], task: Task) -> Result:
    give_up_if_abandoned()
    return work(task)
