"""OutputCodeSVC: one machine per column of an error-correcting output code."""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import StrOptions

from margintree.estimators.base import Kernel
from margintree.estimators.flat import FlatClassifier
from margintree.estimators.training_data import TrainingData
from margintree.prediction.decoding import class_scores, loss_weights
from margintree.prediction.single_instance import FlatInstancePredictor
from margintree.structures import codes
from margintree.training.code_machines import train_columns, training_accuracy


class OutputCodeSVC(FlatClassifier):
    """One L2-loss support vector machine per column of a code matrix; the class at the least distance wins.

    The code gives every class a row of -1, 0 and +1. The machine of a column is trained between the classes with +1
    and those with -1, on their rows alone. With f_j the values of the machines and x_j their signs, the distance from
    class k is, for the code M,

    - ``decoding="hamming"``: ``sum_j (1 - x_j M_kj) / 2``, where each 0 counts one half;
    - ``decoding="attenuated"``: ``sqrt(sum_j |x_j| |M_kj| (x_j - M_kj)^2)``, where no 0 counts;
    - ``decoding="loss_weighted"``: ``sum_j W_kj exp(-M_kj f_j)``, where W_kj is the share of the training rows of class
      k that machine j puts on its side, scaled so that sum_j W_kj = 1.

    The paper has the last rule with a linear and with an exponential loss; this is the exponential one. One thing
    differs: the shares in W are (correct + 1) / (all + 2), so that a class that most machines get wrong does not rely
    on a few trivial ones alone. Where the paper is silent: rows count by their sample weight in W, and of classes at
    the same distance the first wins. With two classes there is one machine, and all rules follow its sign.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
    code : {"dense", "sparse", "one_vs_one", "one_vs_rest"} or array-like of shape (n_classes, n_columns), \
            default="dense"
        "dense" draws -1 and +1, 10 log2(n_classes) columns; "sparse" draws 0 with probability 1/2 and -1 and +1 with
        1/4 each, 15 log2(n_classes) columns. The draw with the largest minimum distance between rows is kept; with few
        classes, all possible columns are used. A matrix has its rows in the order of ``classes_``, entries -1, 0 and 1,
        both signs in each column, no column twice (nor its negative), and rows that differ.
        ``margintree.structures.codes`` makes codes of other lengths.
    decoding : {"hamming", "attenuated", "loss_weighted"}, default="loss_weighted"
    C, gamma, degree, coef0, fit_intercept, tol, max_iter, cache_size, class_weight, n_jobs, random_state, verbose
        As in ``MarginTreeClassifier``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    code_ : ndarray of shape (n_classes, n_machines)
    code_weights_ : ndarray of shape (n_classes, n_machines)
        W of loss-weighted decoding.
    n_machines_ : int
    n_iter_ : int
        Largest number of passes over the rows of any machine.
    n_features_in_ : int

    References
    ----------
    S. Escalera, O. Pujol and P. Radeva, On the Decoding Process in Ternary Error-Correcting Output Codes, 2010.

    E. L. Allwein, R. E. Schapire and Y. Singer, Reducing Multiclass to Binary: A Unifying Approach for Margin
    Classifiers, 2000.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import OutputCodeSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OutputCodeSVC("rbf", C=10, code="one_vs_one", random_state=0).fit(X, y)
    >>> model.code_.tolist()
    [[1, 1, 0], [-1, 0, 1], [0, -1, -1]]
    >>> model.decision_function(X[:2]).shape
    (2, 3)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **FlatClassifier._parameter_constraints,
        "code": [StrOptions({"dense", "sparse", "one_vs_one", "one_vs_rest"}), "array-like"],
        "decoding": [StrOptions({"hamming", "attenuated", "loss_weighted"})],
    }

    def __init__(
        self,
        kernel: Kernel = "linear",
        *,
        code: str | npt.ArrayLike = "dense",
        decoding: str = "loss_weighted",
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
        self.code = code
        self.decoding = decoding
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

    def _learn(self, data: TrainingData, X: Any, y: Any) -> None:
        """Make the code and train the machines."""
        seed = self._seed()
        self.code_ = self._make_code(len(data.classes), seed)
        training_set, function = self._training_set(data)
        trainer = self._trainer(training_set, seed, self.code_.shape[1], X, y)
        machines = train_columns(trainer, self.code_, self._n_threads())
        accuracy = training_accuracy(training_set, self.code_, machines, data.sample_weight)
        self.code_weights_ = loss_weights(accuracy)
        self._store_machines(machines, function, data)

    def _make_code(self, n_classes: int, seed: int) -> codes.Code:
        if not isinstance(self.code, str):
            return codes.checked_code(self.code, n_classes)
        if self.code == "dense":
            return codes.dense_code(n_classes, seed=seed)
        if self.code == "sparse":
            return codes.sparse_code(n_classes, seed=seed)
        return codes.one_vs_one_code(n_classes) if self.code == "one_vs_one" else codes.one_vs_rest_code(n_classes)

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Return minus the distance from every class.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or the machine's values, of shape (n_samples,), for two classes
        """
        rows = self._checked_rows(X)
        values = self._machines.decisions(rows)
        return class_scores(values, self.code_, self.code_weights_, self.decoding)

    def single_instance(self) -> FlatInstancePredictor:
        self._check_fitted()
        rule = (self.code_, self.code_weights_, self.decoding)
        return FlatInstancePredictor.by_code(self._machines, self.classes_, self._model_width(), *rule)
