"""ConditionalProbabilityTreeClassifier: a tree that is grown online."""

import warnings
from copy import deepcopy
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from margintree.class_tree import ClassTree
from margintree.estimators.available import available_if
from margintree.estimators.base import Kernel, all_or_nothing
from margintree.estimators.callbacks import FitProgress
from margintree.estimators.sparse_input import checked_indices, in_canonical_form
from margintree.estimators.training_data import TrainingData
from margintree.estimators.tree_walk import TreeWalker
from margintree.prediction.probability_tree import ProbabilityTree
from margintree.solvers.online import OnlineRegressors
from margintree.solvers.solution import Array
from margintree.structures.stream_tree import Stream, StreamTree
from margintree.training.machines import Trainer, train_each
from margintree.worker_threads import apart


def _has_regressors(estimator: Any) -> bool:
    if estimator.node != "online":
        raise AttributeError(
            f"predict_proba and partial_fit need the regressors of node='online'; this "
            f"{type(estimator).__name__} has node={estimator.node!r}."
        )
    return True


class ConditionalProbabilityTreeClassifier(TreeWalker):
    """The conditional probability tree of Beygelzimer, Langford, Lifshits, Sorkin and Strehl.

    The tree grows in one pass over the rows. Every node has a linear regressor that estimates the probability f(x)
    that a row belongs to its right side. A row whose class has a leaf trains the regressors on the way there. A row
    of a new class walks down, going right where

        (1 - alpha) 2 (f(x) - 1/2) + alpha log2(L / R) > 0

    with L and R the leaves on either side, and trains the nodes it passes to send it that way; the leaf at the end
    becomes a node with the old class on its left and the new one on its right. The probability of a class is the
    product of the node probabilities on its path.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
        Kernel of the machines of ``node="svm"``. The regressors that shape the tree are linear in the features for any
        kernel; with "precomputed" the kernel values of a row are its features. ``node="online"`` is linear only.
    alpha : float in [0, 1], default=0.4
        Balance against similarity. With 1 a new class goes where fewer leaves are, with 0 where the regressors send
        it. A side can only gain a leaf while it has at most r = 2^((1 - alpha) / alpha) times the leaves of the other,
        so the depth is at most 1 + log(c - 1) / log(1 + 1 / r) for c classes: 2.3 log2(c) + 1 for 0.4.
    learning_rate : float, default=0.5
        Learning rate of the regressors.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the rows. ``partial_fit`` never does.
    node : {"online", "svm"}, default="online"
        "online" keeps the regressors, which give probabilities and can be trained further with ``partial_fit``. "svm"
        keeps only the tree and trains a support vector machine at each node on all rows below it, as Yang & Tsang do in
        their comparison.
    walk : {"all", "greedy"}, default="all"
        How ``predict`` finds a leaf. "all" finds the most probable class, the argmax of ``predict_proba``, without
        looking into subtrees that are less probable than a leaf already found. "greedy" takes the more probable side
        at each node and evaluates one regressor per level. Machines of ``node="svm"`` have no probabilities and
        always walk greedily.
    C, gamma, degree, coef0, tol, max_iter, cache_size, n_jobs
        As in ``MarginTreeClassifier``; only for ``node="svm"``.
    fit_intercept : bool, default=True
        Add a constant feature, to regressors and machines.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. ``partial_fit`` refuses "balanced", because it does not know all rows.
    random_state : int, RandomState or None, default=None
        Controls the shuffling of the rows.
    verbose : int, default=0
        1 shows a progress bar, 2 prints a line when the tree has grown, and one per machine.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted; new classes in ``partial_fit`` shift the columns of ``predict_proba``.
    tree_ : ClassTree
    n_iter_ : int
        Largest number of passes over the rows at any node; 1 for ``node="online"``.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in,)
        Only if X has feature names that are all strings.

    Notes
    -----
    The greedy walk finds the most probable class wherever the path it takes has probability 1/2 or more, and always
    for two classes; elsewhere the two sides of a node can be almost equally probable, and a wrong choice is final.
    ``n_evaluations`` counts the regressors that either walk evaluates.

    Choices that the paper leaves open:

    - The output of a regressor is clip(1/2 + w'x, 0, 1), so an untrained one returns 1/2. A step descends on the
      squared loss, with features divided by the largest magnitude seen so far and with adaptive rates (Ross et al.
      2013). A sample weight h is a step of duration h (Karampatziakis and Langford 2011): like h times the gradient
      where that is small, but it never overshoots the target. There is no step if the output is already beyond its
      target.
    - A leaf has a regressor too, which learns to send its class left. When the leaf is split, the new node keeps it,
      the leaf on the left gets a copy, and the one on the right starts from scratch.
    - A new class goes left where the rule is exactly 0.
    - The shuffled order depends on the content of the rows, not on their positions, and identical rows of a class are
      merged, their weights added: weight 2 is equivalent to a row that occurs twice, and the model does not depend on
      the order of the training rows. With ``shuffle=False`` rows are taken one by one.

    References
    ----------
    A. Beygelzimer, J. Langford, Y. Lifshits, G. Sorkin and A. Strehl, Conditional Probability Tree Estimation
    Analysis and Algorithms, UAI 2009.

    S. Ross, P. Mineiro and J. Langford, Normalized Online Learning, UAI 2013.

    N. Karampatziakis and J. Langford, Online Importance Weight Aware Updates, UAI 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from margintree import ConditionalProbabilityTreeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = ConditionalProbabilityTreeClassifier(random_state=0).fit(X, y)
    >>> float(model.score(X, y)) > 0.8
    True
    >>> model.predict_proba(X[:2]).shape
    (2, 10)
    >>> model.partial_fit(X[:1], [10]).classes_
    array([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TreeWalker._parameter_constraints,
        "alpha": [Interval(Real, 0.0, 1.0, closed="both")],
        "learning_rate": [Interval(Real, 0.0, None, closed="neither")],
        "shuffle": ["boolean"],
        "node": [StrOptions({"online", "svm"})],
        "walk": [StrOptions({"all", "greedy"})],
    }

    _stream_tree: StreamTree | None
    _regressors: OnlineRegressors
    # In order of arrival: what the stream calls 0, 1, 2 and so on.
    _labels: npt.NDArray[Any]

    def __init__(
        self,
        kernel: Kernel = "linear",
        *,
        alpha: float = 0.4,
        learning_rate: float = 0.5,
        shuffle: bool = True,
        node: str = "online",
        walk: str = "all",
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
        self.alpha = alpha
        self.learning_rate = learning_rate
        self.shuffle = shuffle
        self.node = node
        self.walk = walk
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
        """Grow the tree in one pass over the rows, and train its machines if it has any."""
        seed = self._seed()
        stream_tree, regressors = StreamTree(self.alpha), self._new_regressors(data.X)
        n_classes = len(data.classes)
        # One pass over the rows, and where there are machines n_classes - 1 of them.
        self._progress = FitProgress(self, 1 if self.node == "online" else n_classes, X, y)
        apart(stream_tree.absorb, data.X, self._stream(data, seed), regressors)
        tree, _ = stream_tree.class_tree(np.arange(n_classes))
        self._progress.task_done("pass", f"{data.X.shape[0]} rows, {n_classes} classes, depth {tree.max_depth}")
        if self.node == "online":
            self._stream_tree, self._regressors, self._labels = stream_tree, regressors, data.classes
            self._store_regressors()
        else:
            self._stream_tree = None
            gaps = self._train_machines(data, tree, seed)
            self._warn_of_open_gaps(gaps, "nodes")

    @available_if(_has_regressors)
    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows, in the order given; their classes may be new.

        Only for ``node="online"``. With ``shuffle=False``, ``fit`` on some rows and ``partial_fit`` on more is the
        same as ``fit`` on all of them. ``alpha``, ``learning_rate`` and ``fit_intercept`` are those of the first call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like or None, default=None
            Not needed. If given, labels in y that are not among them raise an error. A class is added to the tree and
            to ``classes_`` with its first row.
        sample_weight : array-like of shape (n_samples,) or None

        Returns
        -------
        self
        """
        is_first = getattr(self, "_stream_tree", None) is None
        X, y = self._checked_part(X, y, classes, is_first)
        weight = self._stream_weight(X, y, sample_weight)
        kept = np.flatnonzero(weight > 0.0)
        labels, codes = _with_new_labels(None if is_first else self._labels, y[kept])
        if len(labels) == 0:
            raise ValueError("The first call of partial_fit needs at least one row of positive weight.")
        if is_first:
            self._stream_tree, self._regressors = StreamTree(self.alpha), self._new_regressors(X)
        else:
            # Training writes to them, and must not leave half a batch behind if it fails.
            self._stream_tree, self._regressors = deepcopy((self._stream_tree, self._regressors))
        assert self._stream_tree is not None
        self._labels = labels
        self._stream_tree.absorb(X, Stream(kept, codes, weight[kept]), self._regressors)
        self._store_regressors()
        return self

    @available_if(_has_regressors)
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class: the product of the node probabilities on its path.

        Only for ``node="online"``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``; rows sum to 1.
        """
        rows = self._checked_rows(X)
        if not isinstance(self._model, ProbabilityTree):
            raise ValueError("This model was fitted with node='svm' and has no regressors; call fit first.")
        return self._model.probabilities(rows)

    def n_evaluations(self, X: Any) -> npt.NDArray[np.int64]:
        """Return how many regressors or machines the prediction of each row evaluates.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        rows = self._checked_rows(X)
        if self.walk == "all" and isinstance(self._model, ProbabilityTree):
            return self._model.most_probable(rows)[1]
        return super().n_evaluations(X)

    def _leaves(self, X: Any) -> npt.NDArray[np.int32]:
        rows = self._checked_rows(X)
        if self.walk == "all" and isinstance(self._model, ProbabilityTree):
            return self._model.most_probable(rows)[0]
        return self._model.leaves(rows)

    def _check_parameters(self) -> None:
        if self.node == "online" and self.kernel != "linear":
            raise ValueError(
                f"node='online' has linear regressors and needs kernel='linear'; got kernel={self.kernel!r}. Use "
                "node='svm', or pass kernel values or other transformed features as X."
            )

    def _checked_part(self, X: Any, y: Any, classes: Any, is_first: bool) -> tuple[Any, npt.NDArray[Any]]:
        """Validate part of a stream."""
        self._check_parameters()
        if is_first and hasattr(self, "tree_"):
            raise ValueError("This model was fitted with node='svm' and has no regressors to train; call fit first.")
        X, y = validate_data(self, checked_indices(X), y, reset=is_first, **self._input_rules())
        X = in_canonical_form(X)
        with warnings.catch_warnings():
            # Part of a stream may well have nearly as many classes as rows.
            warnings.filterwarnings("ignore", message="The number of unique classes is greater", category=UserWarning)
            check_classification_targets(y)
        if classes is not None and not np.isin(y, classes).all():
            raise ValueError(f"y has classes that are not in classes={np.asarray(classes).tolist()}.")
        return X, y

    def _new_regressors(self, X: Any) -> OnlineRegressors:
        return OnlineRegressors(X.shape[1], learning_rate=self.learning_rate, fit_intercept=self.fit_intercept)

    def _stream(self, data: TrainingData, seed: int) -> Stream:
        labels = np.repeat(np.arange(len(data.classes)), np.diff(data.class_start))
        weight = data.cost / self.C
        if self.shuffle:
            return Stream.in_order_of_content(data.X, labels, weight, seed)
        order = np.argsort(data.original_row)
        return Stream(order, labels[order], weight[order])

    def _stream_weight(self, X: Any, y: npt.NDArray[Any], sample_weight: Any) -> Array:
        """Return sample weight times class weight."""
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if self.class_weight is None:
            return np.asarray(weight)
        if isinstance(self.class_weight, str):
            raise ValueError(f"class_weight={self.class_weight!r} needs all rows at once; with partial_fit use a dict.")
        classes, codes = np.unique(y, return_inverse=True)
        factors = np.array([self.class_weight.get(label, 1.0) for label in classes.tolist()])
        return np.asarray(weight * factors[codes])

    def _train_machines(self, data: TrainingData, tree: ClassTree, seed: int) -> list[float]:
        """Train a machine at every node; return their duality gaps."""
        training_set, function = self._training_set(data)
        trainer = Trainer(training_set, self.tol, self.max_iter, seed, self._progress.machine_done)
        machines = train_each(trainer, tree, self._n_threads())
        self._store_tree(tree, [machine.classifier for machine in machines], function, data)
        self.n_iter_ = max(machine.n_iter for machine in machines)
        return [machine.duality_gap for machine in machines]

    def _store_regressors(self) -> None:
        """Lay out the regressors for prediction."""
        assert self._stream_tree is not None
        self.classes_, class_of_label = np.unique(self._labels, return_inverse=True)
        self.tree_, number = self._stream_tree.class_tree(class_of_label)
        number[self.tree_.leaf_class >= 0] = -1
        n_features = self._regressors.n_features
        self._model = ProbabilityTree(self.tree_, n_features, *self._regressors.weights(number))
        self.n_iter_ = 1


def _with_new_labels(
    labels: npt.NDArray[Any] | None, y: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the labels followed by the new ones in y, and the position of each y among them."""
    found, inverse = np.unique(y, return_inverse=True)
    if labels is None:
        return found, inverse
    if len(found) and np.issubdtype(labels.dtype, np.number) != np.issubdtype(found.dtype, np.number):
        raise ValueError(f"Labels must be all numbers or all strings; got {found[:3]} after {labels[:3]}.")
    labels = np.concatenate([labels, found[~np.isin(found, labels)]])
    order = np.argsort(labels)
    return labels, order[np.searchsorted(labels[order], found)][inverse]
