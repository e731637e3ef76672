"""Progress of a fit: scikit-learn's callbacks where it has them (1.9 and later), and ``verbose``.

Everything that depends on the callback API stands here, so that older versions of scikit-learn work
without it.
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
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "FitProgress", "reporting", "with_callbacks"]


def reporting(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Let a fit report its end, once the estimator is ready to predict, and nothing after that.

    Between, ``estimator._progress`` is the ``FitProgress`` that the fit has made.
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
    """Tells callbacks and, if verbose, the terminal about each finished node, machine or other task of a fit.

    Threads may report at the same time; one that nobody waits for any more is not heard.
    """

    def __init__(self, estimator: Any, n_tasks: int, X: Any, y: Any) -> None:
        self._estimator = estimator
        self._n_tasks, self._n_done = n_tasks, 0
        self._began = time.perf_counter()
        self._reporting, self._is_closed = threading.Lock(), False
        self._context = None
        if hasattr(estimator, "_init_callback_context"):
            self._context = estimator._init_callback_context(max_subtasks=n_tasks)
            self._context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    def node_done(self, record: NodeRecord, n_done: int) -> None:
        """Report a node and the machine that divides its classes."""
        n_left, n_right = len(record.classes_left), len(record.classes_right)
        self.task_done(
            "node",
            f"{n_left + n_right} classes -> {n_left} + {n_right}, {record.n_rows} rows, "
            f"objective {record.objective:.4g}, {record.seconds:.3f} s",
        )

    def machine_done(self, machine: Machine | DualSolution, name: str = "machine") -> None:
        """Report a machine, or a problem that all machines are the solution of."""
        self.task_done(
            name,
            f"{len(machine.decision)} rows, objective {machine.objective:.4g}, {machine.n_iter} passes, "
            f"{time.perf_counter() - self._began:.3f} s since the beginning",
        )

    def task_done(self, name: str, description: str) -> None:
        """Report one of the tasks."""
        with self._reporting:
            if self._is_closed:
                return
            self._n_done += 1
            # Until all went well: an error of a callback ends the fit, and other threads have nothing to tell.
            self._is_closed = True
            if self._context is not None:
                task = self._context.subcontext(task_name=name)
                task.call_on_fit_task_begin(estimator=self._estimator)
                task.call_on_fit_task_end(estimator=self._estimator)
            if self._estimator.verbose:
                print(f"[margintree] {name} {self._n_done}/{self._n_tasks}: {description}", flush=True)
            self._is_closed = False

    def finish(self) -> None:
        """Report the end of the fit."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator, reconstruction_attributes=dict)

    def close(self) -> None:
        """Report nothing any more."""
        with self._reporting:
            self._is_closed = True
