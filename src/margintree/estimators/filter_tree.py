"""FilterTreeClassifier: a random tree, trained from the leaves up."""

from typing import Any

import numpy as np

from margintree.estimators.training_data import TrainingData
from margintree.estimators.tree_walk import TreeWalker
from margintree.structures.random_tree import random_tree
from margintree.training.filtered import train_filtered
from margintree.worker_threads import apart


class FilterTreeClassifier(TreeWalker):
    """The filter tree of Beygelzimer, Langford and Ravikumar.

    The structure is a random binary tree of minimum depth. The machines are trained from the leaves up: a node decides
    between the winners of its two subtrees, and is trained only on the rows whose true class wins its own subtree (the
    filter). If no row of one side passes the filter, the machine always decides for the other. Prediction walks from
    the root to a leaf.

    The paper reduces cost-sensitive learning to importance-weighted binary problems; with 0/1 costs the importance
    of a row is 1 where exactly one side holds its class, which is the rule above. It does not prescribe a tree; Yang &
    Tsang draw it at random, and so do we.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
    C, gamma, degree, coef0, fit_intercept, tol, max_iter, cache_size, class_weight, n_jobs, random_state, verbose
        As in ``MarginTreeClassifier``; ``random_state`` also controls the tree. ``n_jobs`` has no effect on ``fit``,
        because nodes depend on their children.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    tree_ : ClassTree
    node_rows_ : list of ndarray
        For each internal node, in preorder, the training rows that passed the filter.
    n_iter_ : int
        Largest number of passes over the rows at any node.
    n_features_in_ : int

    References
    ----------
    A. Beygelzimer, J. Langford and P. Ravikumar, Error-Correcting Tournaments, 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import FilterTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> FilterTreeClassifier("rbf", C=10, random_state=0).fit(X, y).tree_.n_classes
    3
    """

    def _learn(self, data: TrainingData, X: Any, y: Any) -> None:
        """Draw the tree and train its machines from the leaves up."""
        training_set, function = self._training_set(data)
        seed = self._seed()
        tree = random_tree(len(data.classes), seed)
        trainer = self._trainer(training_set, seed, len(data.classes) - 1, X, y)
        trained = apart(train_filtered, trainer, tree)
        self._store_tree(tree, [machine.classifier for machine in trained.machines], function, data)
        self.node_rows_ = [np.sort(data.original_row[rows]) for rows in trained.rows]
        self.n_iter_ = max(machine.n_iter for machine in trained.machines)
        self._warn_of_open_gaps((machine.duality_gap for machine in trained.machines), "nodes")
