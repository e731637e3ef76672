"""Progress of a fit: scikit-learn's callbacks where it has them (1.9 and later), and ``verbose``.

Everything that depends on the callback API is in this file, so that older versions of scikit-learn work without it.
"""

import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

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
            # If a fit calls that of its base class, this was done there.
            progress = vars(estimator).pop("_progress", None)
            if progress is not None:
                progress.close()
        return estimator

    return reported


class FitProgress:
    """Reports each finished node, machine or other task of a fit to callbacks and, if verbose, to the terminal.

    ``verbose=1`` shows a progress bar for the tasks and, with ``has_decider``, another one for the steps that choose a
    decider; ``verbose=2`` prints a line for each. Threads may report at the same time; those of a cancelled fit are
    ignored.
    """

    def __init__(self, estimator: Any, n_tasks: int, X: Any, y: Any, *, has_decider: bool = False) -> None:
        self._estimator = estimator
        self._n_tasks, self._n_done = n_tasks, 0
        self._has_decider = has_decider
        self._began = time.perf_counter()
        self._reporting, self._is_closed = threading.Lock(), False
        self._context = None
        if hasattr(estimator, "_init_callback_context"):
            self._context = estimator._init_callback_context(max_subtasks=n_tasks + has_decider)
            self._context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
        self._bars = _bars() if int(estimator.verbose) == 1 else None
        self._begin_bar(f"{type(estimator).__name__}: nodes" if has_decider else type(estimator).__name__)

    def node_done(self, record: NodeRecord, n_done: int) -> None:
        """Report a node and the machine that divides its classes."""
        n_left, n_right = len(record.classes_left), len(record.classes_right)
        self.task_done(
            "node",
            f"{n_left + n_right} classes -> {n_left} + {n_right}, {record.n_rows} rows, "
            f"objective {record.objective:.4g}, {record.seconds:.3f} s",
        )

    def machine_done(self, machine: Machine | DualSolution, name: str = "machine") -> None:
        """Report a machine, or the joint problem of all machines."""
        self.task_done(
            name,
            f"{len(machine.decision)} rows, objective {machine.objective:.4g}, {machine.n_iter} passes, "
            f"{time.perf_counter() - self._began:.3f} s since the start",
        )

    def task_done(self, name: str, description: str) -> None:
        """Report one of the tasks."""
        with self._reporting:
            if self._is_closed:
                return
            self._n_done += 1
            # Closed until this succeeds: an error in a callback ends the fit, and no other thread may report after it.
            self._is_closed = True
            self._call_back(name)
            if self._estimator.verbose > 1:
                print(f"[margintree] {name} {self._n_done}/{self._n_tasks}: {description}", flush=True)
            self._move_bar(f"{name} {self._n_done}/{self._n_tasks}", self._n_done / self._n_tasks)
            if self._has_decider and self._n_done == self._n_tasks:
                self._begin_bar(f"{type(self._estimator).__name__}: decider")
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
            self._move_bar(description, done)

    def _begin_bar(self, name: str) -> None:
        if self._bars is not None:
            self._bars.add_task(name, total=1.0, step="")

    def _move_bar(self, step: str, done: float) -> None:
        if self._bars is not None:
            self._bars.update(self._bars.task_ids[-1], completed=done, step=step)

    def finish(self) -> None:
        """Report the end of the fit."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator, reconstruction_attributes=dict)

    def close(self) -> None:
        """Stop reporting."""
        with self._reporting:
            self._is_closed = True
            if self._bars is not None:
                self._bars.stop()


def _bars() -> Any:
    """Show progress bars on standard error; if that is not a terminal, print one line each at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    # A console of its own: one that shows something else already, such as a bar over several fits, refuses a second.
    bars = Progress(*columns, TextColumn("{task.fields[step]}"), console=Console(stderr=True))
    bars.start()
    return bars
