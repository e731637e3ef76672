"""MarginTreeClassifier: the class tree of maximum separating margin."""

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from margintree.estimators.base import Kernel
from margintree.estimators.callbacks import CallbackSupportMixin, FitProgress, with_callbacks
from margintree.estimators.tree_walk import TreeWalker
from margintree.splits import SPLITS, Split
from margintree.structures.grow import grow


class MarginTreeClassifier(CallbackSupportMixin, TreeWalker):  # type: ignore[misc]
    """Classify by walking a binary tree over the classes, learned by maximum separating margin.

    Each internal node divides its classes into the two groups that a support vector machine separates
    best, and keeps that machine to send a row left or right. A prediction evaluates one decision
    function per level. The method is MSM of Yang & Tsang, "Hierarchical Maximum Margin Learning for
    Multi-Class Classification".

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
        A callable gets two sets of rows and returns their kernel matrix.
    C : float, default=1.0
        Weight of the squared hinge loss, C/2 sum_j s_j max(0, 1 - z_j f(x_j))^2. liblinear's C is half
        of this.
    gamma : {"scale", "auto"} or float, default="scale"
        Of the "rbf" and "poly" kernels. "scale" is 1 / (n_features * variance of X).
    degree : float, default=3
        Of the "poly" kernel.
    coef0 : float, default=0.0
        Of the "poly" kernel.
    split : str or split object, default="best_first"
        How a node divides its classes: "best_first", "alternating", "relaxation", "paper", "exhaustive",
        "random", "centroid", or an object of ``margintree.splits``.
    balance : float in [0, 1), default=0.3
        Part of a node's rows by which its two sides may differ. Small values give shallow trees and fast
        predictions, large ones leave the margin more choice. A single class that outweighs it widens it.
    fit_intercept : bool, default=True
        Add a constant feature (with a kernel, add 1 to it). Its weight is part of the norm.
    tol : float, default=1e-3
        Relative duality gap of each node's machine.
    max_iter : int, default=1000
        Passes over a node's rows for one machine.
    cache_size : float, default=1000
        Megabytes for the kernel values of one node.
    class_weight : dict, "balanced" or None, default=None
        Factors of the loss. The sizes that ``balance`` compares do not change.
    n_jobs : int or None, default=None
        Threads that work on nodes. The tree is the same for any number.
    random_state : int, RandomState or None, default=None
        Steers the order of coordinate descent, and splits that draw at random.
    verbose : int, default=0
        Print a line per node.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    tree_ : ClassTree
        The structure; its leaves number ``classes_``.
    node_records_ : list of NodeRecord
        One per internal node, in preorder: the root first.
    n_iter_ : int
        Passes over the rows at the node that took most.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where X has feature names.

    References
    ----------
    J.-B. Yang and I. W. Tsang, Hierarchical Maximum Margin Learning for Multi-Class Classification.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import MarginTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MarginTreeClassifier(C=10, random_state=0).fit(X, y)
    >>> float(model.score(X, y)) > 0.9
    True
    >>> model.n_evaluations(X[[0, 100]])
    array([1, 2])
    >>> print(model.tree_.to_text(["setosa", "versicolor", "virginica"]))  # doctest: +SKIP
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TreeWalker.machine_constraints,
        **TreeWalker.kernel_constraints,
        "split": [StrOptions(set(SPLITS)), HasMethods("divide")],
        "balance": [Interval(Real, 0.0, 1.0, closed="left")],
    }

    def __init__(
        self,
        kernel: Kernel = "linear",
        *,
        C: float = 1.0,
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        split: str | Split = "best_first",
        balance: float = 0.3,
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
        self.split = split
        self.balance = balance
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the tree.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernel="precomputed"`` the kernel matrix, of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None
            Weight 2 is the same as a row that stands there twice, weight 0 as one that is absent.

        Returns
        -------
        self
        """
        data, X, y = self._training_data(X, y, sample_weight)
        training_set, function = self._training_set(data)
        progress = FitProgress(self, len(data.classes) - 1, X, y)
        grown = grow(
            training_set,
            self._split_object(),
            balance=self.balance,
            tol=self.tol,
            max_iter=self.max_iter,
            seed=self._seed(),
            n_threads=self._n_threads(),
            on_node=progress.node_done,
        )
        self._store_tree(grown.tree, grown.classifiers, function, data)
        self.node_records_ = grown.records
        self.n_iter_ = max(record.n_iter for record in grown.records)
        self._warn_of_open_gaps((record.duality_gap for record in grown.records), "nodes")
        progress.finish()
        return self

    def _split_object(self) -> Split:
        if isinstance(self.split, type):
            raise TypeError(
                f"split must be a name or an object. Got the class {self.split.__name__}; "
                f"write split={self.split.__name__}()."
            )
        return SPLITS[self.split] if isinstance(self.split, str) else self.split
