"""Progress of a fit: scikit-learn's callbacks where it has them (1.9 and later), and ``verbose``.

Everything that depends on the callback API stands here, so that older versions of scikit-learn work
without it.
"""

from typing import Any

from margintree.structures.grow import NodeRecord

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "FitProgress", "with_callbacks"]


class FitProgress:
    """Tells callbacks and, if verbose, the terminal about each finished node."""

    def __init__(self, estimator: Any, n_nodes: int, X: Any, y: Any) -> None:
        self._estimator = estimator
        self._n_nodes = n_nodes
        self._context = None
        if hasattr(estimator, "_init_callback_context"):
            self._context = estimator._init_callback_context(max_subtasks=n_nodes)
            self._context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    def node_done(self, record: NodeRecord, n_done: int) -> None:
        """Report one node."""
        if self._context is not None:
            task = self._context.subcontext(task_name="node")
            task.call_on_fit_task_begin(estimator=self._estimator)
            task.call_on_fit_task_end(estimator=self._estimator)
        if self._estimator.verbose:
            n_left, n_right = len(record.classes_left), len(record.classes_right)
            print(
                f"[margintree] node {n_done}/{self._n_nodes}: {n_left + n_right} classes -> {n_left} + {n_right}, "
                f"{record.n_rows} rows, objective {record.objective:.4g}, {record.seconds:.3f} s",
                flush=True,
            )

    def finish(self) -> None:
        """Report the end of the fit, once the estimator is ready to predict."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator, reconstruction_attributes=dict)
