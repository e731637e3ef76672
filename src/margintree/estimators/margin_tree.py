"""MarginTreeClassifier: the class tree of maximum separating margin."""

from dataclasses import replace
from functools import cache, partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions
from threadpoolctl import ThreadpoolController

from margintree.class_tree import ClassTree
from margintree.estimators.base import Kernel
from margintree.estimators.callbacks import FitProgress
from margintree.estimators.ranked_walk import RankedWalker
from margintree.estimators.split_parameters import SplitParametersMixin
from margintree.estimators.training_data import TrainingData
from margintree.inspection.explanation import Explanation
from margintree.inspection.html_repr import html_with_tree
from margintree.inspection.row_explanation import explain
from margintree.prediction.decider import KINDS
from margintree.prediction.kernel_tree import KernelTree
from margintree.prediction.linear_tree import LinearTree
from margintree.prediction.ranker import Ranker
from margintree.solvers.training_set import (
    COPIED_VALUES,
    MOST_DENSE_FEATURES,
    SOLVER_SEED,
    KernelTrainingSet,
    TrainingSet,
)
from margintree.splits import SPLITS, RandomSplit, Split
from margintree.splits.given_tree import GivenTreeSplit
from margintree.structures.given_tree import GivenTree, class_tree_of
from margintree.structures.grow import GrownTree, NodeSettings, grow
from margintree.structures.half_rows import half_of_the_rows
from margintree.training.decision import Regrow, decide
from margintree.training.defaults import Wanted
from margintree.training.held_out import Grown
from margintree.training.machines import Trainer, as_kept, train_each
from margintree.worker_threads import apart


@cache
def _blas() -> Any:
    """Return the controller of BLAS threads, cached because finding the libraries takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


class MarginTreeClassifier(SplitParametersMixin, RankedWalker):
    """Classify by walking a binary tree over the classes, learned by maximum separating margin.

    Each internal node divides its classes into the two groups that a support vector machine separates with the largest
    margin, and uses that machine to send a row left or right. The method is MSM of Yang & Tsang [1]_. With
    ``walk="greedy"`` a prediction evaluates one decision function per level, as in the paper. By default, the walk
    follows the most probable paths to nominate finalists, and the decider that does best in cross-validation chooses
    between them.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
        Kernel of the machines. A callable takes two sets of rows and returns their kernel matrix.
    C : float, default=1.0
        Weight of the squared hinge loss, ``C/2 sum_j s_j max(0, 1 - z_j f(x_j))^2``. liblinear's C is half
        of this.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the "rbf" and "poly" kernels. "scale" is 1 / (n_features * X.var()), "auto" is 1 / n_features.
    degree : float of at least 1, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=0.0
        Constant term of the "poly" kernel.
    split : str or split object, default="best_first"
        How a node divides its classes: "best_first", "alternating", "relaxation", "paper", "exhaustive",
        "random", "centroid", or an object of ``margintree.splits``. Parameters of a split can be set and searched as
        ``split__patience``.
    tree : ClassTree, Newick str, nested lists of labels or None, default=None
        A known tree over the classes, such as a taxonomy, whose machines are trained. ``split`` and ``balance`` then
        have no effect. Leaves are labels as in y; those of a ``ClassTree`` are indices into the sorted classes. A group
        of more than two members is halved in the order in which they are listed.
    balance : float in [0, 1), default=0.1
        Largest difference between the two sides of a node, as a share of its rows. Small values give shallow trees and
        fast predictions; large values leave the margin more choice. It is widened at nodes where a single class
        outweighs the others.
    fit_intercept : bool, default=True
        Whether to add a constant feature (with a kernel, to add 1 to it). Its weight is regularised.
    tol : float, default=1e-3
        Relative duality gap at which the machine of a node has converged.
    max_iter : int, default=1000
        Maximum number of passes over the rows for one machine.
    cache_size : float, default=1000
        Memory for kernel values, in megabytes.
    walk : {"beam", "greedy", "all"}, default="beam"
        How finalists are nominated. "greedy" goes left or right at each node and predicts the class of the leaf that it
        reaches; it is the walk of the paper, and the fastest. "beam" keeps the ``beam_width`` most probable nodes of
        each level. "all" follows every path.
    decide : {"auto", "paths", "pairs", "rest"}, default="auto"
        What decides between the finalists: "paths", the probability of their paths; "pairs", machines between pairs of
        finalists (one-vs-one); "rest", one machine per class against the other classes (one-vs-rest). "auto" chooses
        the cheapest one that is within half a standard error of the best in cross-validation; this is always "pairs"
        with kernels other than linear, and "paths" with two classes.
    n_finalists : int or "auto", default="auto"
        Maximum number of finalists of a row. "auto" leaves it to cross-validation.
    beam_width : int, default=10
        Number of nodes per level that ``walk="beam"`` keeps.
    beam_gap : float or "auto", default="auto"
        With ``walk="beam"``, a path is dropped if its log probability is more than this below the best one. Smaller
        values are faster. "auto" leaves it to cross-validation.
    n_trees : int, default=1
        Number of trees whose path scores are averaged. The structure of each tree but the first is chosen on a random
        half of the rows of each class.
    prune : float in [0, 1), default=0.1
        Drop the smallest weights of each machine, up to this share of its norm: no decision value changes by more than
        ``prune * |w| |x|``. Linear kernel only.
    calibration_folds : int or "auto", default="auto"
        Folds of the cross-validation that fits the sigmoids of the nodes and chooses the decider. "auto" is 5 up to
        5000 rows and 2 beyond; kernel machines leave out one row at a time instead. 0 skips the calibration, which only
        the greedy walk can do without.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the loss. They do not affect ``balance``.
    n_jobs : int or None, default=None
        Number of threads in ``fit`` and ``predict``; -1 uses all cores. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Controls the randomness of the splits "random" and "centroid", and of ``n_trees`` above 1. Nothing else is
        random.
    verbose : int, default=0
        1 shows a progress bar for the nodes and one for the choice of the decider; 2 prints a line per node and step.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    tree_ : ClassTree
        The tree, whose leaves are indices into ``classes_``; the first one if there are several.
    trees_ : list of ClassTree
    node_records_ : list of NodeRecord
        One record per internal node, in preorder: the root first.
    decide_ : str
        The decider: "paths", "pairs" or "rest".
    candidates_ : list of CandidateRecord
        Cross-validation results of each decider that was tried; empty if there was no choice.
    n_iter_ : int
        Largest number of passes over the rows at any node.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in,)
        Only if X has feature names that are all strings.

    References
    ----------
    .. [1] J.-B. Yang and I. W. Tsang, Hierarchical Maximum Margin Learning for Multi-Class Classification.

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
        **RankedWalker._parameter_constraints,
        "split": [StrOptions(set(SPLITS)), HasMethods("divide")],
        "tree": [None, ClassTree, str, list, tuple],
        "balance": [Interval(Real, 0.0, 1.0, closed="left")],
        "walk": [StrOptions({"beam", "greedy", "all"})],
        "beam_width": [Interval(Integral, 1, None, closed="left")],
        "beam_gap": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="neither")],
        "decide": [StrOptions({"auto", *KINDS})],
        "n_finalists": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "prune": [Interval(Real, 0.0, 1.0, closed="left")],
        "calibration_folds": [StrOptions({"auto"}), Options(Integral, {0}), Interval(Integral, 2, None, closed="left")],
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
        tree: GivenTree | None = None,
        balance: float = 0.1,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        cache_size: float = 1000,
        walk: str = "beam",
        decide: str = "auto",
        n_finalists: int | str = "auto",
        beam_width: int = 10,
        beam_gap: float | str = "auto",
        n_trees: int = 1,
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
        self.tree = tree
        self.balance = balance
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.walk = walk
        self.decide = decide
        self.n_finalists = n_finalists
        self.beam_width = beam_width
        self.beam_gap = beam_gap
        self.n_trees = n_trees
        self.prune = prune
        self.calibration_folds = calibration_folds
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _learn(self, data: TrainingData, X: Any, y: Any) -> None:
        """Learn the tree."""
        split = self._split_object()
        if self.tree is not None:
            split = GivenTreeSplit(class_tree_of(self.tree, data.classes))
        self._progress = FitProgress(self, len(data.classes) - 1, X, y, has_decider=self.calibration_folds != 0)
        seed = self._seed()
        # Matrix products round differently with several threads, but a model must not depend on their number.
        with _blas().limit(limits=1):
            training_set, _ = self._training_set(data, learns_from_all=not self._only_nominates(data))
            training_set.n_threads = self._n_threads()
            if isinstance(training_set, KernelTrainingSet):
                training_set.leaves_one_out = self.calibration_folds == "auto"
            keep = partial(as_kept, training_set=training_set, prune=self.prune)
            grown = self._grow(training_set, split, seed, data, on_node=self._progress.node_done, keep=keep)
            trainer = Trainer(training_set, self.tol, self.max_iter, SOLVER_SEED)
            regrow = (lambda rows: self._grow(rows, split, seed, data).tree) if self.n_trees == 1 else None
            self._store([grown, *self._more_trees(trainer, data, seed)], trainer, data, regrow)
        self._warn_of_open_gaps((record.duality_gap for record in grown.records), "nodes")
        self.node_records_, self.n_iter_ = grown.records, max(record.n_iter for record in grown.records)

    def explain(
        self, row: Any, *, feature_names: Any = None, class_names: Any = None, n_features: int = 5, n_listed: int = 10
    ) -> Explanation:
        """Explain the prediction of one row: its path, the classes given up on it, and how the finalists were ranked.

        Parameters
        ----------
        row : array-like of shape (n_features,) or (1, n_features), sparse row, or data frame of one row
        feature_names : sequence, or object with ``get_feature_names_out``, default=None
            Names of the features, or the vectorizer that has them. None uses ``feature_names_in_`` or x0, x1 and so on.
        class_names : sequence of length n_classes, default=None
            Names to show instead of the labels.
        n_features : int, default=5
            Number of features to list for each side (linear kernel).
        n_listed : int, default=10
            Number of finalists to list.

        Returns
        -------
        Explanation
            ``str()`` gives a table, ``plot()`` a figure, ``to_dict()`` a dictionary.

        Examples
        --------
        >>> from margintree import MarginTreeClassifier
        >>> model = MarginTreeClassifier(random_state=0).fit([[0.0], [1.0], [4.0], [5.0]], ["a", "a", "b", "b"])
        >>> model.explain([4.5]).prediction
        'b'
        """
        names = {"feature_names": feature_names, "class_names": class_names}
        return explain(self, row, **names, n_features=n_features, n_listed=n_listed)

    def _html_repr(self) -> str:
        box: str = super()._html_repr()
        return html_with_tree(box, self) if hasattr(self, "tree_") else box

    def _training_rules(self, X: Any) -> dict[str, Any]:
        # Dense rows keep their dtype, because double precision would take twice the memory.
        return self._input_rules() | ({"dtype": [np.float64, np.float32]} if self._is_linear_on_dense(X) else {})

    def _trains_in_place(self, X: Any) -> bool:
        return self._is_linear_on_dense(X) and X.size > COPIED_VALUES

    def _is_linear_on_dense(self, X: Any) -> bool:
        """Return whether X is trained on as it is; very wide dense rows are converted to sparse ones."""
        is_linear = isinstance(self.kernel, str) and self.kernel == "linear"
        shape: tuple[int, ...] = getattr(X, "shape", ())
        return is_linear and not sp.issparse(X) and len(shape) == 2 and shape[1] <= MOST_DENSE_FEATURES

    def _only_nominates(self, data: TrainingData) -> bool:
        """Return whether the decision always lies with machines other than those of the nodes."""
        return self._wanted().decide != "paths" and self.calibration_folds == "auto" and len(data.classes) > 2

    def _check_parameters(self) -> None:
        is_greedy, several = self.walk == "greedy", f"n_trees={self.n_trees}"
        refused = {
            f"walk={self.walk!r} needs calibrated sigmoids, which calibration_folds=0 skips. "
            "Set calibration_folds='auto', or walk='greedy'.": self.calibration_folds == 0 and not is_greedy,
            f"{several} grows several trees, but tree= gives only one. Set n_trees=1 or tree=None.": self.tree
            is not None
            and self.n_trees != 1,
            f"{several} averages path scores, which the greedy walk does not compute. "
            "Set walk='beam', or n_trees=1.": is_greedy and self.n_trees != 1,
            f"decide={self.decide!r} chooses between finalists, but the greedy walk ends at a single leaf. "
            "Set walk='beam', or leave decide at 'auto'.": is_greedy and self.decide not in ("auto", "paths"),
        }
        for message, is_given in refused.items():
            if is_given:
                raise ValueError(message)

    def _grow(self, rows: TrainingSet, split: Split, seed: int, data: TrainingData, **options: Any) -> GrownTree:
        settings = NodeSettings(self.balance, self.tol, self.max_iter)
        return grow(rows, split, settings, seed=seed, n_threads=self._n_threads(), class_names=data.classes, **options)

    def _more_trees(self, trainer: Trainer, data: TrainingData, seed: int) -> list[GrownTree]:
        """Grow the trees beyond the first on half of the rows each, and train their machines on all rows."""
        trees: list[GrownTree] = []
        split = self._split_object()
        for number in range(1, self.n_trees):
            half = half_of_the_rows(trainer.training_set, seed, number)
            # A split that ignores the rows would return the same tree again.
            grown = self._grow(half, split, seed + number if isinstance(split, RandomSplit) else seed, data)
            machines = train_each(trainer, grown.tree, self._n_threads())
            kept = [as_kept(machine.classifier, trainer.training_set, self.prune) for machine in machines]
            trees.append(GrownTree(grown.tree, grown.records, kept))
            self._progress.step_done(f"tree {number + 1}/{self.n_trees}", 0.0)
        return trees

    def _store(self, grown: list[GrownTree], trainer: Trainer, data: TrainingData, regrow: Regrow) -> None:
        """Calibrate, choose a decider, and prepare everything for prediction."""
        trees = [one.tree for one in grown]
        machines: Grown = [(one.tree, list(one.classifiers)) for one in grown]
        for one in grown:
            # The flat model replaces them; with many classes, both would be most of the memory of a fit.
            one.classifiers.clear()
        function = trainer.training_set.function
        model: LinearTree | KernelTree
        if function is None:
            model = LinearTree.of_trees(machines, data.X.shape[1])
            machines = [(tree, []) for tree in trees]
        decision = ranker = None
        if self.calibration_folds != 0:
            wanted, done = self._wanted(), self._progress.step_done
            decision = apart(decide, trainer, machines, wanted, self._n_threads(), done, regrow)
            self._progress.steps_done("decider")
            self._warn_of_open_gaps([decision.open_gap], "deciders")
        if function is not None:
            deciding = decision.machines if decision else []
            model = KernelTree.of_trees(machines, function, data.X, data.original_row, deciding=deciding)
        if decision is not None:
            model, chosen = replace(model, sigmoids=decision.sigmoids), decision.chosen
            ranker = Ranker(model, decision.decider, chosen.beam(wanted.width), chosen.gap, chosen.n_finalists)
        # All at once, and last: a fit that is interrupted or fails leaves an earlier model as it was.
        self.classes_, self.trees_, self.tree_, self._model = data.classes, trees, trees[0], model
        self._ranker, self.candidates_ = ranker, decision.records if decision else []

    def _wanted(self) -> Wanted:
        return Wanted(
            "paths" if self.walk == "greedy" else self.decide,
            None if isinstance(self.n_finalists, str) else self.n_finalists,
            None if isinstance(self.beam_gap, str) else float(self.beam_gap),
            None if isinstance(self.calibration_folds, str) else self.calibration_folds,
            0 if self.walk == "all" else self.beam_width,
            self.prune,
        )

    @property
    def decide_(self) -> str:
        """What decides between the finalists."""
        self._check_fitted()
        return "paths" if self._ranker is None else self._ranker.decider.kind
