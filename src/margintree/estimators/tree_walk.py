"""Prediction by walking a class tree, for every estimator that has one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree.class_tree import ClassTree
from margintree.estimators.available import available_if
from margintree.estimators.base import MachineClassifier
from margintree.estimators.training_data import TrainingData
from margintree.prediction.kernel_tree import KernelTree
from margintree.prediction.linear_tree import LinearTree
from margintree.prediction.probability_tree import ProbabilityTree
from margintree.prediction.ranker import Ranker
from margintree.prediction.single_instance import SingleInstancePredictor
from margintree.solvers.classifier import NodeClassifier
from margintree.solvers.kernel_function import KernelFunction


def _has_machines(estimator: "TreeWalker") -> bool:
    if isinstance(getattr(estimator, "_model", None), ProbabilityTree):
        raise AttributeError(
            "single_instance() walks trees of support vector machines; this model has the regressors of node='online'. "
            "Use predict, or fit with node='svm'."
        )
    return True


class TreeWalker(MachineClassifier):
    """A classifier with a tree over its classes and a machine at each internal node."""

    classes_: npt.NDArray[Any]
    tree_: ClassTree
    _model: LinearTree | KernelTree | ProbabilityTree
    # Only trees with calibrated sigmoids rank their classes.
    _ranker: Ranker | None = None

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each row: that of the leaf it reaches.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernel="precomputed"`` the kernel values between the rows and all training rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        leaves = self._leaves(X)
        return np.asarray(self.classes_[self.tree_.leaf_class[leaves]])

    def decision_path(self, X: Any) -> sp.csr_array:
        """Return the nodes on the path of each row, including the root and the leaf.

        Returns
        -------
        csr_array of shape (n_samples, n_nodes)
            1 if the row passes the node.
        """
        leaves = self._leaves(X)
        start, above = self.tree_.paths(leaves)
        rows = np.arange(len(leaves))
        passed = np.concatenate([rows, np.repeat(rows, np.diff(start))]), np.concatenate([leaves, above])
        return sp.coo_array((np.ones(len(passed[0])), passed), shape=(len(leaves), self.tree_.n_nodes)).tocsr()

    def node_coef(self, node: int) -> npt.NDArray[np.float64]:
        """Return the weights of a node's machine: what ``coef_`` is for a linear support vector machine.

        A row goes left if ``x @ node_coef(node) + node_intercept(node)`` is positive.

        Parameters
        ----------
        node : int
            An internal node of ``tree_``.

        Returns
        -------
        ndarray of shape (n_features,)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from margintree import MarginTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = MarginTreeClassifier(random_state=0).fit(X, y)
        >>> model.node_coef(0).shape
        (4,)
        >>> goes_left = X @ model.node_coef(0) + model.node_intercept(0) > 0
        """
        columns, weights = self._linear_node(node).table.weights(node)
        result = np.zeros(self._model_width())
        result[columns] = weights
        return result

    def node_intercept(self, node: int) -> float:
        """Return the intercept of a node's machine; see ``node_coef``.

        Examples
        --------
        >>> from margintree import MarginTreeClassifier
        >>> model = MarginTreeClassifier(random_state=0).fit([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1])
        >>> bool(-model.node_intercept(0) / model.node_coef(0)[0] > 1.0)
        True
        """
        return float(self._linear_node(node).table.intercept[node])

    def _linear_node(self, node: int) -> LinearTree:
        self._check_fitted()
        if not isinstance(self._model, LinearTree):
            raise AttributeError(
                f"node_coef and node_intercept need a tree of linear machines. This model has kernel={self.kernel!r} "
                f"and nodes of the type {type(self._model).__name__}; fit with kernel='linear'."
            )
        if self.tree_.is_leaf(node):
            raise ValueError(f"node must be an internal node, one of tree_.internal_nodes. Got the leaf {node}.")
        return self._model

    def n_evaluations(self, X: Any) -> npt.NDArray[np.int64]:
        """Return how many decision functions the prediction of each row evaluates.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        leaves = self._leaves(X)
        return self.tree_.depth[leaves].astype(np.int64)

    @available_if(_has_machines)
    def single_instance(self) -> SingleInstancePredictor:
        """Return a predictor for one row at a time, without the cost of validating a batch.

        Returns
        -------
        SingleInstancePredictor
            ``predict(x)`` for a dense row, ``predict(indices, values)`` for a sparse one; likewise ``predict_top_k``
            and ``predict_proba`` where nodes are calibrated. It is read-only and may be shared between threads.
        """
        self._check_fitted()
        assert not isinstance(self._model, ProbabilityTree)
        return SingleInstancePredictor.of(
            self._model, self._ranker, self.classes_, self._model_width(), is_greedy=self._walks_greedily()
        )

    def _walks_greedily(self) -> bool:
        return True

    def _leaves(self, X: Any) -> npt.NDArray[np.int32]:
        rows = self._checked_rows(X)
        return self._model.leaves(rows, self._n_threads())

    def _store_tree(
        self,
        tree: ClassTree,
        classifiers: Sequence[NodeClassifier],
        function: KernelFunction | None,
        data: TrainingData,
    ) -> None:
        """Prepare the tree and its machines, given in preorder, for prediction."""
        self.classes_ = data.classes
        self.tree_ = tree
        if function is None:
            self._model = LinearTree.of_trees([(tree, classifiers)], data.X.shape[1])
        else:
            self._model = KernelTree.of_trees([(tree, classifiers)], function, data.X, data.original_row)
