"""What all estimators share: parameters of the machines, validation of data, and warnings."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from margintree.estimators.callbacks import CallbackSupportMixin, FitProgress, reporting, with_callbacks
from margintree.estimators.sparse_input import checked_indices, in_canonical_form
from margintree.estimators.training_data import TrainingData, gamma_value, kernel_set, linear_set, prepare
from margintree.prediction.machine_set import KernelMachines, LinearMachines, MachineSet
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.training_set import TrainingSet
from margintree.training.machines import Machine, Trainer
from margintree.worker_threads import apart

Kernel = str | Callable[[Any, Any], Any]


def all_or_nothing(learn: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method learn on a copy of the estimator, whose attributes the estimator takes over at the end.

    If the method fails or is interrupted, the earlier model stays as it was. Another thread never sees the attributes
    of one model together with the machines of another.
    """

    @wraps(learn)
    def learned(self: Any, *args: Any, **kwargs: Any) -> Any:
        attempt = object.__new__(type(self))
        attempt.__dict__.update(self.__dict__)
        learn(attempt, *args, **kwargs)
        self.__dict__ = attempt.__dict__
        return self

    return learned


class MachineClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier made of L2-loss support vector machines.

    Parameters of the same name have the same meaning in all subclasses.
    """

    machine_constraints: ClassVar[dict[str, Any]] = {
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0.0, 1.0, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    kernel_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions({"linear", "rbf", "poly", "precomputed"}), callable],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="neither")],
        "degree": [Interval(Real, 1.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "cache_size": [Interval(Real, 0.0, None, closed="neither")],
        "n_jobs": [Integral, None],
    }

    _parameter_constraints: ClassVar[dict[str, Any]] = {**machine_constraints, **kernel_constraints}

    # Estimators without a choice of kernel are linear.
    kernel: Kernel = "linear"
    _machines: MachineSet
    _progress: FitProgress

    def __init__(
        self,
        kernel: Kernel = "linear",
        *,
        C: float = 1.0,
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        cache_size: float = 1000,
        class_weight: dict[Any, float] | str | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    @with_callbacks  # type: ignore[untyped-decorator]
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @reporting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the machines, and learn the structure if the method has one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernel="precomputed"`` the kernel matrix, of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None
            Weight 2 is equivalent to a row that occurs twice, weight 0 to one that is absent.

        Returns
        -------
        self
        """
        self._check_parameters()
        data, X, y = self._training_data(X, y, sample_weight)
        self._learn(data, X, y)
        return self

    def _check_parameters(self) -> None:
        """Raise an error for parameters that exclude each other."""

    @abstractmethod
    def _learn(self, data: TrainingData, X: Any, y: Any) -> None:
        """Train on sorted data and set the attributes; X and y are for callbacks only."""

    @property
    def _is_pairwise(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _input_rules(self) -> dict[str, Any]:
        """Return the arguments of ``validate_data`` for X."""
        return {"accept_sparse": False if self._is_pairwise else "csr", "dtype": np.float64, "order": "C"}

    def _training_rules(self, X: Any) -> dict[str, Any]:
        """Return the arguments of ``validate_data`` for training data."""
        return self._input_rules()

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def _checked_rows(self, X: Any) -> Any:
        """Return new rows in the form that compiled code reads."""
        self._check_fitted()
        rows = in_canonical_form(validate_data(self, checked_indices(X), reset=False, **self._input_rules()))
        width = self._model_width()
        if rows.shape[1] != width:
            # Compiled loops read as many columns as the machines have, whatever n_features_in_ was set to.
            raise ValueError(f"X has {rows.shape[1]} features, but the machines of this model were trained on {width}.")
        return rows

    def _model_width(self) -> int:
        """Return the number of columns that the machines read; for a kernel matrix, the number it had in ``fit``."""
        model = self._model if hasattr(self, "_model") else self._machines
        return int(self.n_features_in_ if model.n_features is None else model.n_features)

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[TrainingData, Any, npt.NDArray[Any]]:
        """Validate the arguments of fit; return the sorted data, and X and y as they were validated."""
        X, y = validate_data(self, checked_indices(X), y, **self._training_rules(X))
        X = in_canonical_form(X)
        check_classification_targets(y)
        if self._is_pairwise and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"With kernel='precomputed' fit needs a square matrix of kernel values between all pairs of rows; "
                f"got shape {X.shape}."
            )
        data = prepare(
            *(X, y, sample_weight),
            C=self.C,
            class_weight=self.class_weight,
            pairwise=self._is_pairwise,
            in_place=self._trains_in_place(X),
        )
        return data, X, y

    def _trains_in_place(self, X: Any) -> bool:
        """Return whether training leaves X where it is, instead of taking a copy that is sorted by class."""
        return False

    def _training_set(
        self, data: TrainingData, *, learns_from_all: bool = True
    ) -> tuple[TrainingSet, KernelFunction | None]:
        """Return the training set and the kernel function, None for the linear kernel."""
        if isinstance(self.kernel, str) and self.kernel == "linear":
            return linear_set(data, fit_intercept=self.fit_intercept), None
        gamma = gamma_value(self.gamma, data) if self.kernel in ("rbf", "poly") else 1.0
        function = KernelFunction(self.kernel, gamma, self.degree, self.coef0, self.fit_intercept)
        options: dict[str, Any] = {"cache_size": self.cache_size, "tol": self.tol, "learns_from_all": learns_from_all}
        return apart(kernel_set, data, function, **options), function

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _trainer(self, training_set: TrainingSet, seed: int, n_machines: int, X: Any, y: Any) -> Trainer:
        """Return the trainer of a fit with at most so many machines, which reports each of them."""
        self._progress = FitProgress(self, n_machines, X, y)
        return Trainer(training_set, self.tol, self.max_iter, seed, self._progress.machine_done)

    def _store_machines(self, machines: Sequence[Machine], function: KernelFunction | None, data: TrainingData) -> None:
        """Prepare machines without a tree for prediction, and warn about those that did not converge."""
        self.classes_ = data.classes
        classifiers = [machine.classifier for machine in machines]
        if function is None:
            self._machines = LinearMachines.from_classifiers(classifiers, data.X.shape[1])
        else:
            self._machines = KernelMachines.from_classifiers(classifiers, function, data.X, data.original_row)
        self.n_iter_ = max(machine.n_iter for machine in machines)
        self._warn_of_open_gaps((machine.duality_gap for machine in machines), "machines")

    def __getstate__(self) -> dict[str, Any]:
        # A callback may copy an estimator whose fit goes on; its progress is that of the fit alone.
        return {name: value for name, value in super().__getstate__().items() if name != "_progress"}

    def _n_threads(self) -> int:
        return int(effective_n_jobs(self.n_jobs))

    def _warn_of_open_gaps(self, gaps: Iterable[float], what: str) -> None:
        """Issue one ConvergenceWarning for all machines whose gap is above ``tol``."""
        gaps = list(gaps)
        n_open = sum(gap > self.tol for gap in gaps)
        if n_open:
            warnings.warn(
                f"{n_open} of {len(gaps)} {what} stopped with a relative duality gap of up to {max(gaps):.2g}, above "
                f"tol={self.tol:g}. Increase max_iter={self.max_iter}, scale the features, lower C, or check that a "
                "custom kernel is positive semi-definite.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_pairwise
        tags.input_tags.pairwise = self._is_pairwise
        return tags
