"""LabelTreeClassifier: a tree that keeps confused classes together, trained node by node or jointly."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import Interval

from margintree.estimators.base import Kernel
from margintree.estimators.training_data import TrainingData
from margintree.estimators.tree_walk import TreeWalker
from margintree.solvers.joint import train_jointly
from margintree.solvers.training_set import LinearTrainingSet
from margintree.structures.confusion_tree import confusion_tree
from margintree.training.held_out_confusion import held_out_confusion
from margintree.training.machines import train_each
from margintree.worker_threads import apart


class LabelTreeClassifier(TreeWalker):
    """The label tree of Bengio, Weston and Grangier, with two children per node: I-BWG and J-BWG of Yang & Tsang.

    The structure keeps classes together that a one-vs-rest model confuses: with its confusion matrix M on held-out rows
    and A = (M + M') / 2, each node divides its classes into two by a spectral cut of A, from the root down. Prediction
    walks from the root to a leaf. The machines f_v of the nodes are trained in one of two ways:

    - ``joint=False`` (I-BWG): each by itself, on all rows of the classes below it;
    - ``joint=True`` (J-BWG, linear only): all at once. A row is misclassified as soon as one node on its path errs, so
      it has a single slack, the largest on its path::

          min_w  1/2 sum_v |w_v|^2 + C/2 sum_j s_j max(0, max_{v on path(j)} (1 - t_jv f_v(x_j)))^2

      with s_j the sample weight and t_jv = +1 where the class of row j lies to the left of v, else -1.

    Choices that the paper leaves open, or that differ from it:

    - The slack. The paper's is linear, 1/m sum_j xi_j; here it is squared, as in all machines of this package. The
      paper has a predictor for every child and compares siblings. With two children only their difference counts, and
      half its squared norm is that of the best pair: one machine per node is the same problem. The paper takes
      stochastic gradient steps; here the duality gap is the stopping criterion.
    - The held-out rows. There are ``n_folds`` folds, each predicted by machines that were trained on the others. The
      rows of a class are assigned to the folds by their content, so that identical rows stay together. A class whose
      rows all fall into one fold, for instance because there is only one, has no machine while they are held out; they
      count for the class with the largest decision value.
    - The graph cut. A goes into the normalised Laplacian as it is, the diagonal included, so that a class weighs about
      as much as its rows. The classes are ordered by the Fiedler vector and cut where the normalised cut is lowest,
      with at least a quarter of the node's classes (rounded down) on each side. Groups of classes with no confusion
      between them are never cut: whole groups, the largest first, go to the side with fewer classes.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
        ``joint=True`` takes "linear" only.
    joint : bool, default=False
        Whether to train the machines of all nodes as one problem.
    n_folds : int, default=3
        Number of folds for the confusion matrix, at least 2. Each fold trains one machine per class.
    C, gamma, degree, coef0, fit_intercept, tol, max_iter, cache_size, class_weight, n_jobs, random_state, verbose
        As in ``MarginTreeClassifier``, for the machines of the tree and of the confusion matrix. With ``joint=True``
        the machines of the tree are one problem: ``tol`` is its relative duality gap, ``max_iter`` its passes over all
        rows, and ``n_jobs`` is used for the confusion matrix only. ``class_weight`` does not affect the counts of the
        confusion matrix.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    tree_ : ClassTree
    confusion_ : ndarray of shape (n_classes, n_classes)
        Sample weight of the held-out rows of each class (row) by predicted class (column).
    n_iter_ : int
        Largest number of passes over the rows at any node; with ``joint=True``, for all nodes together.
    n_features_in_ : int

    References
    ----------
    S. Bengio, J. Weston and D. Grangier, Label Embedding Trees for Large Multi-Class Tasks, NIPS 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import LabelTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LabelTreeClassifier(joint=True, C=10, random_state=0).fit(X, y)
    >>> model.tree_.to_nested()
    (0, (1, 2))
    >>> model.confusion_.sum(axis=1)
    array([50., 50., 50.])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TreeWalker._parameter_constraints,
        "joint": ["boolean"],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        kernel: Kernel = "linear",
        *,
        joint: bool = False,
        C: float = 1.0,
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        n_folds: int = 3,
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
        self.joint = joint
        self.C = C
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_folds = n_folds
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        if self.joint and not (isinstance(self.kernel, str) and self.kernel == "linear"):
            raise ValueError(
                "joint=True optimises the weights of all nodes as one linear problem and needs kernel='linear'. "
                f"Got kernel={self.kernel!r}. Use joint=False, which trains each node by itself with any kernel, "
                "or kernel='linear'."
            )

    def _learn(self, data: TrainingData, X: Any, y: Any) -> None:
        """Estimate which classes are confused, build the tree and train its machines."""
        training_set, function = self._training_set(data)
        n_classes, n_threads = len(data.classes), self._n_threads()
        n_machines = self.n_folds * n_classes + (1 if self.joint else n_classes - 1)
        trainer = self._trainer(training_set, self._seed(), n_machines, X, y)
        confusion = held_out_confusion(trainer, data.X, function, n_folds=self.n_folds, n_threads=n_threads)
        self.confusion_: npt.NDArray[np.float64] = confusion.matrix
        tree = confusion_tree((confusion.matrix + confusion.matrix.T) / 2.0)
        if self.verbose > 1:
            share = 1.0 - np.trace(confusion.matrix) / max(confusion.matrix.sum(), np.finfo(float).tiny)
            print(f"[margintree] {share:.1%} of the held-out rows confused; tree of depth {tree.max_depth}", flush=True)
        if isinstance(training_set, LinearTrainingSet) and self.joint:
            tol, max_iter = self.tol, self.max_iter
            solution = apart(train_jointly, training_set, tree, tol=tol, max_iter=max_iter, seed=trainer.seed)
            self._progress.machine_done(solution, "problem")
            self._store_tree(tree, solution.classifiers, function, data)
            gaps, self.n_iter_ = [solution.duality_gap], solution.n_iter
        else:
            machines = train_each(trainer, tree, n_threads)
            self._store_tree(tree, [machine.classifier for machine in machines], function, data)
            gaps, self.n_iter_ = [m.duality_gap for m in machines], max(m.n_iter for m in machines)
        self._warn_of_open_gaps(confusion.duality_gaps, "machines behind the confusion matrix")
        self._warn_of_open_gaps(gaps, "joint problems" if self.joint else "nodes")
