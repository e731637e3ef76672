"""MarginTreeClassifier: the class tree of maximum separating margin."""

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions

from margintree.estimators.base import Kernel
from margintree.estimators.callbacks import CallbackSupportMixin, FitProgress, with_callbacks
from margintree.estimators.ranked_walk import RankedWalker
from margintree.estimators.training_data import TrainingData
from margintree.prediction.kernel_tree import KernelTree
from margintree.prediction.linear_tree import LinearTree, Sigmoids
from margintree.prediction.ranker import ASK_ALL, Ranker
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.training_set import LinearTrainingSet, TrainingSet
from margintree.splits import SPLITS, RandomSplit, Split
from margintree.structures.grow import GrownTree, grow
from margintree.structures.half_rows import half_of_the_rows
from margintree.training.held_out import number_copies
from margintree.training.leaf_scorers import DENSE
from margintree.training.machines import Trainer, as_kept, train_each
from margintree.training.refinement import Refinement, RefiningRows, refine
from margintree.worker_threads import apart

# Up to here more folds help accuracy and probabilities in cross-validation, most of all where each is
# without a jury, too; beyond, two are as good, and faster.
FEW_CLASSES = 100
# Length of the shortlists where the user sets nothing. Up to ASK_ALL classes are all on the list where rows are so few
# that no more than this comes of it, pairs of row and class, and stored values of the rows in all pairs: paths learned
# from few rows often leave the right class out.
SHORTLIST = 20
FEW_PAIRS = 2**18
FEW_VALUES = 2**26
# Trees where the user sets nothing and rows of more than SHORTLIST, but no more than ASK_ALL classes are dense. Three
# are more accurate there and ask about as many decision functions as one-vs-rest. With fewer classes half of the rows
# gives the same tree again, sparse rows gain little or nothing, and with more classes one tree saves most of the time.
FEW_TREES = 3
# Of the beam while it is not yet known how wide a gap is worth its time.
WIDEST_GAP = 10.0


class MarginTreeClassifier(CallbackSupportMixin, RankedWalker):  # type: ignore[misc]
    """Classify by walking a binary tree over the classes, learned by maximum separating margin.

    Each internal node divides its classes into the two groups that a support vector machine separates
    best, and keeps that machine to send a row left or right. The method is MSM of Yang & Tsang,
    "Hierarchical Maximum Margin Learning for Multi-Class Classification". With ``walk="greedy"`` a prediction
    evaluates one decision function per level, as in the paper. By default it follows the most probable paths, and
    with the linear kernel scorers of the leaves decide between the classes at their ends.

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
        Add a constant feature (with a kernel, add 1 to it). Its weight is part of the norm. Scorers of leaves that
        start from an offset do so only if at least a tenth of the values are not zero.
    tol : float, default=1e-3
        Relative duality gap of each node's machine.
    max_iter : int, default=1000
        Passes over a node's rows for one machine.
    cache_size : float, default=1000
        Megabytes for the kernel values of one node.
    walk : {"beam", "greedy", "all"}, default="beam"
        "greedy" goes left or right at each node, once: the paper's walk, and the fastest. "beam" keeps the
        ``beam_width`` most probable nodes of each level. "all" follows every path.
    beam_width : int, default=10
        Of ``walk="beam"``.
    beam_gap : float or "auto", default="auto"
        Of ``walk="beam"``: a path whose log probability lies further than this below the best one's is given up.
        Smaller is faster. "auto" takes one of which held-out rows say that it is worth the classes it looks at, or 10
        where there are no scorers of leaves.
    shortlist : int or "auto", default="auto"
        How many classes at the ends of the best paths get a second look by scorers of their own, one per class,
        trained on the rows whose shortlists contain it. 0 ranks by the paths alone. "auto" is 0 for kernels that are
        not linear, which have no scorers, else 20, or up to 128 where rows are so few that scorers which learn from all
        of them take little time. Where up to 128 classes are all on the list and held-out rows give the path no weight
        beside the scorers, no path is followed. The greedy walk has no shortlist.
    n_trees : int or "auto", default="auto"
        Trees whose path scores are averaged. All but the first choose their structure by half of the rows of
        each class, drawn at random, equal ones together.
        "auto" is 3 for 21 to 128 classes if at least a tenth of the values are not zero and there are scorers of
        leaves, else 1. Where no path is followed, it keeps only the first.
    prune : float in [0, 1), default=0.1
        Part of the length of a machine's weights that the smallest of them may lose together when the model is
        stored: no decision value moves by more than ``prune * |w| |x|``. Linear kernel only.
    calibration_folds : int or "auto", default="auto"
        Folds that give each node decision values for rows that it was not trained on, to which its sigmoid is fitted.
        "auto" is 2 for more than 100 classes; up to 100, 5 with scorers of the leaves and 3 without. Scorers hold out
        a seventh of the rows besides, and with fewer than 7000 rows each of several sevenths in turn. 0 leaves
        probabilities out, which only the greedy walk can do without.
    class_weight : dict, "balanced" or None, default=None
        Factors of the loss. The sizes that ``balance`` compares do not change.
    n_jobs : int or None, default=None
        Threads that work on nodes in ``fit`` and on rows in ``predict``. The result is the same for any number.
    random_state : int, RandomState or None, default=None
        Steers the order of coordinate descent, splits that draw at random, and the halves of the rows by which trees
        beyond the first choose their structure.
    verbose : int, default=0
        Print a line per node.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    tree_ : ClassTree
        The structure; its leaves number ``classes_``. The first one if there are several.
    trees_ : list of ClassTree
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
    >>> model = MarginTreeClassifier(C=10, walk="greedy", random_state=0).fit(X, y)
    >>> float(model.score(X, y)) > 0.9
    True
    >>> model.n_evaluations(X[[0, 100]])
    array([1, 2])
    >>> print(model.tree_.to_text(["setosa", "versicolor", "virginica"]))  # doctest: +SKIP
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **RankedWalker.machine_constraints,
        **RankedWalker.kernel_constraints,
        "split": [StrOptions(set(SPLITS)), HasMethods("divide")],
        "balance": [Interval(Real, 0.0, 1.0, closed="left")],
        "walk": [StrOptions({"beam", "greedy", "all"})],
        "beam_width": [Interval(Integral, 1, None, closed="left")],
        "beam_gap": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="neither")],
        "shortlist": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "n_trees": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "prune": [Interval(Real, 0.0, 1.0, closed="left")],
        "calibration_folds": [
            StrOptions({"auto"}),
            Options(Integral, {0}),
            Interval(Integral, 2, None, closed="left"),
        ],
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
        walk: str = "beam",
        beam_width: int = 10,
        beam_gap: float | str = "auto",
        shortlist: int | str = "auto",
        n_trees: int | str = "auto",
        prune: float = 0.1,
        calibration_folds: int | str = "auto",
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
        self.walk = walk
        self.beam_width = beam_width
        self.beam_gap = beam_gap
        self.shortlist = shortlist
        self.n_trees = n_trees
        self.prune = prune
        self.calibration_folds = calibration_folds
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
        self._check_walk()
        data, X, y = self._training_data(X, y, sample_weight)
        training_set, function = self._training_set(data)
        progress = FitProgress(self, len(data.classes) - 1, X, y)
        seed = self._seed()
        grown = grow(
            training_set,
            self._split_object(),
            balance=self.balance,
            tol=self.tol,
            max_iter=self.max_iter,
            seed=seed,
            n_threads=self._n_threads(),
            on_node=progress.node_done,
            class_names=data.classes,
            keep=lambda machine: as_kept(machine, training_set, self.prune),
        )
        self._warn_of_open_gaps((record.duality_gap for record in grown.records), "nodes")
        trainer = Trainer(training_set, self.tol, self.max_iter, seed)
        self._store_trees([grown, *self._more_trees(trainer, data)], trainer, function, data)
        self.node_records_ = grown.records
        self.n_iter_ = max(record.n_iter for record in grown.records)
        progress.finish()
        return self

    def _check_walk(self) -> None:
        """Refuse parameters that do not go together."""
        if not self._is_linear() and self.shortlist not in ("auto", 0):
            raise ValueError(
                f"Scorers of leaves are linear, so shortlist={self.shortlist} needs kernel='linear'. "
                f"Got kernel={self.kernel!r}; leave shortlist at 'auto'."
            )
        if self.calibration_folds == 0 and self.walk != "greedy":
            raise ValueError(
                f"walk={self.walk!r} needs calibrated sigmoids, which calibration_folds=0 leaves out. "
                "Set calibration_folds='auto', or walk='greedy'."
            )
        if self.walk == "greedy" and self.n_trees not in ("auto", 1):
            raise ValueError(
                f"n_trees={self.n_trees} averages path scores, which the greedy walk has none of. "
                "Set walk='beam', or n_trees=1."
            )

    def _is_linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    def _shortlist(self, data: TrainingData) -> int:
        """Return the length of the lists, 0 for a ranking by paths alone. With two classes the path says it all."""
        n_classes = len(data.classes)
        if self.walk == "greedy" or not self._is_linear() or n_classes == 2:
            return 0
        if not isinstance(self.shortlist, str):
            return int(self.shortlist)
        # A row of weight 2 counts as two that stand there.
        n_rows = np.maximum(1.0, data.sample_weight)
        n_values = data.X.shape[1] if isinstance(data.X, np.ndarray) else np.diff(data.X.indptr)
        is_little = n_classes * n_rows.sum() <= FEW_PAIRS and n_classes * (n_values * n_rows).sum() <= FEW_VALUES
        return n_classes if SHORTLIST < n_classes <= ASK_ALL and is_little else SHORTLIST

    def _n_trees(self, training_set: TrainingSet, data: TrainingData) -> int:
        if not isinstance(self.n_trees, str):
            return self.n_trees
        if self._shortlist(data) == 0 or not isinstance(training_set, LinearTrainingSet):
            return 1
        return FEW_TREES if SHORTLIST < len(data.classes) <= ASK_ALL and training_set.density >= DENSE else 1

    def _more_trees(self, trainer: Trainer, data: TrainingData) -> list[GrownTree]:
        """Grow the trees beyond the first on half of the rows each, and train their machines on all rows."""
        trees: list[GrownTree] = []
        n_trees = self._n_trees(trainer.training_set, data)
        if n_trees == 1:
            return trees
        copy = number_copies(data.X, data.class_start, pairwise=self.kernel == "precomputed")
        split = self._split_object()
        for number in range(1, n_trees):
            half = half_of_the_rows(trainer.training_set, copy, trainer.seed, number)
            grown = grow(
                half,
                split,
                balance=self.balance,
                tol=self.tol,
                max_iter=self.max_iter,
                # A split that looks at no row would draw the same tree again.
                seed=trainer.seed + number if isinstance(split, RandomSplit) else trainer.seed,
                n_threads=self._n_threads(),
                class_names=data.classes,
            )
            machines = train_each(trainer, grown.tree, self._n_threads())
            kept = [as_kept(machine.classifier, trainer.training_set, self.prune) for machine in machines]
            trees.append(GrownTree(grown.tree, grown.records, kept))
        return trees

    def _store_trees(
        self,
        grown: list[GrownTree],
        trainer: Trainer,
        function: KernelFunction | None,
        data: TrainingData,
    ) -> None:
        """Calibrate, train scorers where asked for, and keep everything ready to predict."""
        trees = [one.tree for one in grown]
        model = self._laid_out(grown, function, data)
        sigmoids: Sigmoids | None = None
        scorers = None
        gap = WIDEST_GAP if isinstance(self.beam_gap, str) else float(self.beam_gap)
        n_classes, shortlist = len(data.classes), self._shortlist(data)
        n_folds = self._n_folds(n_classes, shortlist)
        if n_folds:
            how = Refinement(n_folds, self._width(), gap, shortlist, self.prune)
            rows = RefiningRows(data.X, data.sample_weight, data.cost / self.C, function)
            n_threads = self._n_threads()
            sigmoids, scorers, narrow_gap = apart(lambda: refine(trainer, rows, trees, how, n_threads))
            gap = narrow_gap if isinstance(self.beam_gap, str) else gap
            model = replace(model, sigmoids=sigmoids)
        n_paths = n_classes if self.walk == "all" else self.beam_width
        n_candidates = n_paths if scorers is None else shortlist
        ranker = None if sigmoids is None else Ranker(model, scorers, self._width(), gap, n_candidates)
        if self.n_trees == "auto" and ranker is not None and ranker.flat is not None:
            assert isinstance(model, LinearTree)
            trees, model = trees[:1], model.first()
            ranker = replace(ranker, tree=model)
        # All at once, and last: a fit that is interrupted or fails leaves an earlier model as it was.
        self.classes_, self.trees_, self.tree_, self._model = data.classes, trees, trees[0], model
        self._ranker = ranker

    def _laid_out(
        self, grown: list[GrownTree], function: KernelFunction | None, data: TrainingData
    ) -> LinearTree | KernelTree:
        machines = [(one.tree, list(one.classifiers)) for one in grown]
        for one in grown:
            # The flat model takes their place; with many classes both would be most of the memory of a fit.
            one.classifiers.clear()
        if function is None:
            return LinearTree.of_trees(machines, data.X.shape[1])
        return KernelTree.of_trees(machines, function, data.X, data.original_row)

    def _n_folds(self, n_classes: int, shortlist: int) -> int:
        if not isinstance(self.calibration_folds, str):
            return self.calibration_folds
        if n_classes > FEW_CLASSES:
            return 2
        return 5 if shortlist else 3

    def _width(self) -> int:
        return 0 if self.walk == "all" else self.beam_width

    def _split_object(self) -> Split:
        if isinstance(self.split, type):
            raise TypeError(
                f"split must be a name or an object. Got the class {self.split.__name__}; "
                f"write split={self.split.__name__}()."
            )
        return SPLITS[self.split] if isinstance(self.split, str) else self.split
