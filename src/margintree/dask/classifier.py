"""DaskMarginTreeClassifier: a margin tree that is trained by the workers of a Dask cluster."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from dask.base import compute, is_dask_collection
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_feature_names

from margintree.dask.array_files import ArrayFiles
from margintree.dask.blocks import aligned, is_frame
from margintree.dask.client_checks import check_parameters, check_workers, checked_directory, usable_client
from margintree.dask.cluster import Cluster
from margintree.dask.lazy_prediction import lazily
from margintree.dask.row_files import Rules, ordered_rows
from margintree.estimators.base import Kernel
from margintree.estimators.margin_tree import MarginTreeClassifier
from margintree.estimators.training_data import TrainingData
from margintree.prediction.ranker import checked_k
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.training_set import LinearTrainingSet, TrainingSet
from margintree.worker_threads import elsewhere

OWN_PARAMETERS = ("client", "directory", "max_rows_per_node")


@dataclass(frozen=True)
class FitTraffic:
    """Bytes that a fit moved.

    Attributes
    ----------
    n_bytes_of_rows : int
        Size of the training rows.
    n_bytes_sent : int
        Size of the tasks sent to the workers.
    n_bytes_written : int
        Size of the files through which workers and client share rows and results.

    Examples
    --------
    >>> from margintree.dask import FitTraffic
    >>> traffic = FitTraffic(n_bytes_of_rows=1000, n_bytes_sent=400, n_bytes_written=2500)
    >>> traffic.n_bytes_sent / traffic.n_bytes_of_rows
    0.4
    """

    n_bytes_of_rows: int
    n_bytes_sent: int
    n_bytes_written: int


class DaskMarginTreeClassifier(MarginTreeClassifier):
    """MarginTreeClassifier for Dask arrays and data frames, fitted by the workers of a Dask cluster.

    The model is that of ``MarginTreeClassifier`` for the same rows and parameters, byte for byte, however many workers
    there are, unless ``max_rows_per_node`` bounds the rows of a node. All work is done in tasks without side effects;
    if a worker dies, others repeat its tasks.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly"} or callable, default="linear"
        As in ``MarginTreeClassifier``. "precomputed" is not available, because it needs all rows in one place.
    client : distributed.Client or None, default=None
        The client of the cluster. None uses the current client. It is not pickled with the estimator.
    directory : str, path-like or None, default=None
        Where the rows are kept in files during a fit. The client and all workers must see it. None uses the directory
        for temporary files, which is enough for workers on one machine.
    max_rows_per_node : int or None, default=None
        A node with more rows learns from a sample of about this size, with the same share of each class and at least
        eight rows of it. This bounds the memory of a worker. None lets every node learn from all of its rows.
    **parameters
        Those of ``MarginTreeClassifier``. ``n_jobs`` is for predictions of rows in memory only.

    Attributes
    ----------
    fit_traffic_ : FitTraffic
        Bytes that the fit moved.

    See Also
    --------
    margintree.MarginTreeClassifier : Has all other attributes and methods.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_digits
    >>> from margintree.dask import DaskMarginTreeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(500, -1)), da.from_array(y, chunks=500)
    >>> with Client(n_workers=2, threads_per_worker=1, dashboard_address=None):  # doctest: +SKIP
    ...     model = DaskMarginTreeClassifier(C=10).fit(X, y)
    ...     labels = model.predict(X).compute()
    >>> plain = model.to_local()  # doctest: +SKIP
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MarginTreeClassifier._parameter_constraints,
        # These are checked before the fit starts, with more informative errors.
        "client": "no_validation",
        "directory": "no_validation",
        "max_rows_per_node": [None, Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        kernel: Kernel = "linear",
        *,
        client: Any = None,
        directory: Any = None,
        max_rows_per_node: int | None = None,
        **parameters: Any,
    ) -> None:
        super().__init__(kernel, **parameters)
        self.client = client
        self.directory = directory
        self.max_rows_per_node = max_rows_per_node

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*MarginTreeClassifier._get_param_names(), *OWN_PARAMETERS])

    def __sklearn_clone__(self) -> "DaskMarginTreeClassifier":
        # A client is a connection: clones share it.
        parameters = self.get_params(deep=False) | {"client": None}
        fresh = type(self)(**{name: clone(value, safe=False) for name, value in parameters.items()})
        fresh.client = self.client
        return fresh

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"client": None}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the tree on the workers.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
            Blocks may be dense, scipy's CSR, pandas frames, empty, and of unknown length.
        y : Dask array or series of shape (n_samples,)
            In the same blocks as X if their lengths are unknown.
        sample_weight : Dask array or series of shape (n_samples,), or None

        Returns
        -------
        self
        """
        with self._cluster() as cluster:
            super().fit(X, y, sample_weight)
            rows = cluster.n_bytes_of_rows
            self.fit_traffic_ = FitTraffic(rows, cluster.n_bytes, cluster.files.n_bytes)
        return self

    def predict(self, X: Any) -> Any:
        """Return the class of each row.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
            Rows in memory are predicted immediately, without the cluster.

        Returns
        -------
        Dask array of shape (n_samples,)
            Nothing is computed yet.
        """
        return lazily(self.to_local(), "predict", X)[0] if is_dask_collection(X) else super().predict(X)

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of every class.

        Returns
        -------
        Dask array of shape (n_samples, n_classes)
            Nothing is computed yet.
        """
        return lazily(self.to_local(), "predict_proba", X)[0] if is_dask_collection(X) else super().predict_proba(X)

    def predict_top_k(self, X: Any, k: int | None = None) -> tuple[Any, Any]:
        """Return the k most probable classes of each row and their probabilities, the best first.

        Returns
        -------
        classes : Dask array of shape (n_samples, k)
        probabilities : Dask array of shape (n_samples, k)
        """
        if not is_dask_collection(X):
            found: tuple[Any, Any] = super().predict_top_k(X, k)
            return found
        classes, probabilities = lazily(self.to_local(), "predict_top_k", X, k=checked_k(k, len(self.classes_)))
        return classes, probabilities

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the given rows, which is computed immediately."""
        if not is_dask_collection(X):
            return float(super().score(X, y, sample_weight))
        # One by one: arrays and frames in one graph make Dask warn.
        predicted, labels, weight = (compute(one)[0] for one in (self.predict(X), y, sample_weight))
        return float(accuracy_score(labels, predicted, sample_weight=weight))

    def to_local(self) -> MarginTreeClassifier:
        """Return the plain MarginTreeClassifier, which does not need Dask; fitted if this one is."""
        parameters = self.get_params(deep=False)
        local = MarginTreeClassifier(**{name: parameters[name] for name in MarginTreeClassifier._get_param_names()})
        hidden = {*OWN_PARAMETERS, "fit_traffic_"}
        local.__dict__.update({name: value for name, value in self.__dict__.items() if name not in hidden})
        return local

    @contextmanager
    def _cluster(self) -> Iterator[Cluster]:
        """Run the work of a fit on the cluster, and clean up at its end."""
        client = usable_client(self.client)
        with closing(ArrayFiles(checked_directory(self.directory))) as files:
            check_parameters(self, files)
            check_workers(client, files)
            with closing(Cluster(client, files)) as cluster:
                token = elsewhere.set(cluster)
                try:
                    yield cluster
                finally:
                    elsewhere.reset(token)

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[TrainingData, Any, npt.NDArray[Any]]:
        blocks = aligned(X, y, sample_weight)
        cluster = elsewhere.get()
        assert isinstance(cluster, Cluster)
        rules = Rules(of_dense=self._training_rules(np.empty((0, X.shape[1]))), of_sparse=self._input_rules())
        data = ordered_rows(cluster, blocks, rules, C=self.C, class_weight=self.class_weight)
        cluster.rows_of_class = np.diff(data.class_start)
        if is_frame(X):
            _check_feature_names(self, X._meta, reset=True)
        self.n_features_in_ = int(data.X.shape[1])
        return data, X, y

    def _training_set(
        self, data: TrainingData, *, learns_from_all: bool = True
    ) -> tuple[TrainingSet, KernelFunction | None]:
        training_set, function = super()._training_set(data, learns_from_all=learns_from_all)
        if isinstance(training_set, LinearTrainingSet):
            # Once here, instead of once on each worker.
            _ = training_set.leading
            training_set.most_rows = self.max_rows_per_node
        return training_set, function

    def _n_threads(self) -> int:
        cluster = elsewhere.get()
        return cluster.n_threads if isinstance(cluster, Cluster) else super()._n_threads()
