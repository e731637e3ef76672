"""Progress of a fit: scikit-learn's callbacks where it has them (1.9 and later), and ``verbose``.

Everything that depends on the callback API is in this file, so that older versions of scikit-learn work without it.
"""

import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.solvers.solution import DualSolution
from margintree.structures.grow import NodeRecord
from margintree.training.machines import Machine

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Placeholder for versions of scikit-learn without callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method unchanged."""
        return method


# With many classes the choice of a decider takes about as long as the tree.
SHARE_OF_TASKS = 0.5
# On wordnet_hypernyms a node takes 1.5 ms, and 2.1 microseconds for each of its rows.
ROWS_PER_NODE = 700

__all__ = ["CallbackSupportMixin", "FitProgress", "reporting", "with_callbacks"]


def reporting(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Let a fit report its end once the estimator is ready to predict, and nothing after that.

    During the fit, ``estimator._progress`` is the ``FitProgress`` that the fit has made.
    """

    @wraps(fit)
    def reported(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            fit(estimator, *args, **kwargs)
            if "_progress" in vars(estimator):
                estimator._progress.finish()
        finally:
            # A fit that calls the one of its base class finds that this was done already.
            progress = vars(estimator).pop("_progress", None)
            if progress is not None:
                progress.close()
        return estimator

    return reported


class FitProgress:
    """Reports each finished node, machine or other task of a fit to callbacks and, if verbose, to the terminal.

    ``verbose=1`` shows one progress bar over the tasks and, unless they are the whole fit, the steps after them;
    ``verbose=2`` prints a line for each. Threads may report at the same time; those of a cancelled fit are ignored.
    """

    def __init__(self, estimator: Any, n_tasks: int, X: Any, y: Any, *, is_all: bool = True) -> None:
        self._estimator = estimator
        self._n_tasks, self._n_done = n_tasks, 0
        self._share_of_nodes = 0.0
        self._share = 1.0 if is_all else SHARE_OF_TASKS
        self._began = time.perf_counter()
        self._reporting, self._is_closed = threading.Lock(), False
        self._context = None
        if hasattr(estimator, "_init_callback_context"):
            self._context = estimator._init_callback_context(max_subtasks=n_tasks + (not is_all))
            self._context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
        self._bar = None if int(estimator.verbose) != 1 else _bar(type(estimator).__name__)

    def node_done(self, record: NodeRecord, n_done: int, *, n_rows_of: npt.NDArray[np.int64]) -> None:
        """Report a node and the machine that divides its classes; ``n_rows_of`` has the number of rows per class."""
        sides = np.array(record.classes_left), np.array(record.classes_right)
        left, right = (_work_below(n_rows_of[classes]) for classes in sides)
        n_left, n_right = len(sides[0]), len(sides[1])
        here = _work_below(n_rows_of[np.concatenate(sides)])
        self._share_of_nodes += (here - left - right) / _work_below(n_rows_of)
        self.task_done(
            "node",
            f"{n_left + n_right} classes -> {n_left} + {n_right}, {record.n_rows} rows, "
            f"objective {record.objective:.4g}, {record.seconds:.3f} s",
            done=self._share_of_nodes,
        )

    def machine_done(self, machine: Machine | DualSolution, name: str = "machine") -> None:
        """Report a machine, or the joint problem of all machines."""
        self.task_done(
            name,
            f"{len(machine.decision)} rows, objective {machine.objective:.4g}, {machine.n_iter} passes, "
            f"{time.perf_counter() - self._began:.3f} s since the start",
        )

    def task_done(self, name: str, description: str, *, done: float | None = None) -> None:
        """Report one of the tasks; ``done`` is the fraction of their work that is done, if they differ in size."""
        with self._reporting:
            if self._is_closed:
                return
            self._n_done += 1
            # Until all went well: an error of a callback ends the fit, and other threads have nothing to tell.
            self._is_closed = True
            self._call_back(name)
            if self._estimator.verbose > 1:
                print(f"[margintree] {name} {self._n_done}/{self._n_tasks}: {description}", flush=True)
            done = self._n_done / self._n_tasks if done is None else min(done, 1.0)
            self._move(f"{name} {self._n_done}/{self._n_tasks}", self._share * done)
            self._is_closed = False

    def steps_done(self, name: str) -> None:
        """Report to callbacks that all steps after the tasks are done; to them, these are one task."""
        with self._reporting:
            if not self._is_closed:
                self._call_back(name)

    def _call_back(self, name: str) -> None:
        if self._context is not None:
            task = self._context.subcontext(task_name=name)
            task.call_on_fit_task_begin(estimator=self._estimator)
            task.call_on_fit_task_end(estimator=self._estimator)

    def step_done(self, description: str, done: float) -> None:
        """Show a step that follows the tasks; ``done`` is the fraction of these steps that is done."""
        with self._reporting:
            if self._is_closed:
                return
            if self._estimator.verbose > 1:
                print(f"[margintree] {description}", flush=True)
            self._move(description, self._share + (1.0 - self._share) * done)

    def _move(self, description: str, done: float) -> None:
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, step=description)

    def finish(self) -> None:
        """Report the end of the fit."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator, reconstruction_attributes=dict)
        self._move("fitted", 1.0)

    def close(self) -> None:
        """Stop reporting."""
        with self._reporting:
            self._is_closed = True
            if self._bar is not None:
                self._bar.stop()


def _work_below(n_rows_of: npt.NDArray[np.int64]) -> float:
    """Return what growing a subtree over classes with so many rows costs, in rows that a node sees.

    A subtree of k classes has k - 1 nodes, and about log2(k) levels that each see all of its rows.
    """
    n_classes = len(n_rows_of)
    return float(n_rows_of.sum() * np.log2(n_classes) + ROWS_PER_NODE * (n_classes - 1))


def _bar(name: str) -> Any:
    """Start a progress bar on standard error; if that is not a terminal, print one line at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    # A console of its own: one that shows something else already, such as a bar over several fits, refuses a second.
    bar = Progress(*columns, TextColumn("{task.fields[step]}"), console=Console(stderr=True))
    bar.add_task(name, total=1.0, step="")
    bar.start()
    return bar
