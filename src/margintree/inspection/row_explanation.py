"""The explanation of a prediction, computed from a fitted tree and one row."""

import itertools
import operator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree import compiled
from margintree.inspection.explanation import Comparison, Contribution, Explanation, Finalist, PathStep
from margintree.inspection.labels import Names, checked_names, feature_name, feature_names_of
from margintree.inspection.path_values import path_values, side_probability
from margintree.inspection.tree_facts import before_last_step
from margintree.prediction.kernel_tree import KernelTree
from margintree.prediction.linear_tree import LinearTree
from margintree.prediction.ranker import decided, machine_values, path_candidates
from margintree.prediction.weight_table import WeightTable

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


def explain(
    estimator: Any,
    row: Any,
    *,
    feature_names: Any = None,
    class_names: Names | None = None,
    n_features: int = 5,
    n_listed: int = 10,
) -> Explanation:
    """Explain the prediction of one row.

    Parameters
    ----------
    estimator : MarginTreeClassifier
        Fitted, or a pipeline that ends in one. Other estimators with a tree of support vector machines work as well.
    row : array-like of shape (n_features,) or (1, n_features), sparse row, or data frame of one row
        As for ``predict``; a str for a pipeline that starts with text.
    feature_names : sequence, or object with ``get_feature_names_out``, default=None
        Names of the features, or the vectorizer that has them. None uses those of the earlier steps of a pipeline,
        ``feature_names_in_``, or x0, x1 and so on.
    class_names : sequence of length n_classes, default=None
        Names that the table and the figure show instead of the labels.
    n_features : int, default=5
        Number of features to list for each side (linear kernel).
    n_listed : int, default=10
        Number of finalists to list.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import MarginTreeClassifier
    >>> from margintree.inspection import explain
    >>> iris = load_iris()
    >>> model = MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0).fit(iris.data, iris.target)
    >>> explanation = explain(model, iris.data[0], feature_names=iris.feature_names, n_features=1)
    >>> explanation.prediction
    0
    >>> explanation.path[0].features[0].feature
    'sepal width (cm)'
    """
    row = [row] if isinstance(row, str) else one_row(row)
    estimator, row, feature_names = before_last_step(estimator, row, feature_names)
    for name, value, least in (("n_features", n_features, 0), ("n_listed", n_listed, 1)):
        if operator.index(value) < least:
            raise ValueError(f"{name} must be at least {least}. Got {value}.")
    if not isinstance(estimator._model, LinearTree | KernelTree):
        raise TypeError(
            f"explain needs support vector machines at the nodes. Got a {type(estimator).__name__} with "
            f"{type(estimator._model).__name__}."
        )
    x = estimator._checked_rows(one_row(row))
    names = feature_names_of(feature_names, estimator) if isinstance(estimator._model, LinearTree) else None
    explanation = _Row(estimator, x, names, n_features).explanation(n_listed)
    if class_names is None:
        return explanation
    shown = checked_names(class_names, estimator.classes_)
    return replace(explanation, class_names=dict(zip(estimator.classes_.tolist(), shown, strict=True)))


def one_row(row: Any) -> Any:
    """Return a row as a matrix of one row; raise an error for several."""
    if hasattr(row, "to_frame") and hasattr(row, "index") and getattr(row, "ndim", 2) == 1:
        # A row of a pandas frame: its index has the names of the features.
        row = row.to_frame().T
    if not sp.issparse(row) and not hasattr(row, "columns"):
        row = np.asarray(row)
    if getattr(row, "ndim", 2) == 1:
        row = row.reshape(1, -1)
    shape = getattr(row, "shape", (1, 1))
    if len(shape) != 2 or shape[0] != 1:
        raise ValueError(f"explain takes one row. Got an array of shape {shape}; give X[[i]], or call it row by row.")
    return row


class _Row:
    """One row and the values of the machines of a fitted model for it."""

    def __init__(self, estimator: Any, x: Any, names: list[str] | None, n_features: int) -> None:
        self.estimator, self.x, self.names, self.n_features = estimator, x, names, n_features
        self.model, self.ranker, self.tree = estimator._model, estimator._ranker, estimator.tree_
        self.labels: list[Any] = estimator.classes_.tolist()
        self.stored = sp.csr_array(x)

    def explanation(self, n_listed: int) -> Explanation:
        is_greedy = self.estimator._walks_greedily()
        walk = "greedy" if is_greedy else self.estimator.walk
        if is_greedy or self.ranker is None:
            leaf = int(self.model.leaves(self.x)[0])
            path = self.path(leaf)
            label = self.labels[self.tree.leaf_class[leaf]]
            known = [step.probability for step in path if step.probability is not None]
            probability = float(np.prod(known)) if len(known) == len(path) else None
            own = [Finalist(label, probability, None, probability)]
            return Explanation(label, probability, walk, "walk", True, 1, path, own, 1, [])
        finalists, comparisons = self.ranked()
        winner = finalists[0]
        return Explanation(
            prediction=winner.label,
            probability=winner.probability,
            walk=walk,
            decided_by=self.ranker.decider.kind,
            is_path_followed=self.ranker.flat is None,
            n_trees=len(self.model.trees),
            path=self.path(int(self.tree.leaf_of_class[self.labels.index(winner.label)])),
            finalists=finalists[:n_listed],
            n_finalists=len(finalists),
            comparisons=comparisons,
        )

    def path(self, leaf: int) -> list[PathStep]:
        """Return the nodes from the root to a leaf."""
        _, nodes, values = path_values(self.estimator, self.x, np.array([leaf]))
        children = np.array([leaf, *nodes[:-1]])
        sign = np.where(self.tree.children_left[nodes] == children, 1.0, -1.0)
        probabilities = side_probability(self.estimator, nodes, values, sign)
        found = [None] * len(nodes) if probabilities is None else probabilities.tolist()
        steps = zip(nodes.tolist(), sign.tolist(), values.tolist(), found, strict=True)
        return [self._step(*step) for step in reversed(list(steps))]

    def _step(self, node: int, sign: float, value: float, probability: float | None) -> PathStep:
        sides = [
            [self.labels[k] for k in self.tree.classes_below(int(children[node])).tolist()]
            for children in (self.tree.children_left, self.tree.children_right)
        ]
        kept, given_up = sides if sign > 0.0 else reversed(sides)
        place = int(np.searchsorted(self.tree.internal_nodes, node))
        records = getattr(self.estimator, "node_records_", None)
        return PathStep(
            node=node,
            side="left" if sign > 0.0 else "right",
            decision_value=value,
            margin=float("nan") if records is None else float(records[place].margin),
            probability=probability,
            kept=kept,
            given_up=given_up,
            features=self.contributions(getattr(self.model, "table", None), [(node, sign)]),
        )

    def contributions(self, table: WeightTable | None, machines: list[tuple[int, float]]) -> list[Contribution]:
        """Return the features with the largest positive and negative contributions to a signed sum of machines."""
        if table is None or self.n_features == 0:
            return []
        weights = np.zeros(self.x.shape[1])
        for machine, sign in machines:
            columns, own = table.weights(machine)
            weights[columns] += sign * own
        columns, values = self.stored.indices, self.stored.data
        weights = weights[columns]
        added = weights * values
        order = np.argsort(-added, kind="stable")
        best = [j for j in order[: self.n_features] if added[j] > 0.0]
        worst = [j for j in order[::-1][: self.n_features] if added[j] < 0.0]
        return [
            Contribution(feature_name(self.names, columns[j]), float(values[j]), float(weights[j]), float(added[j]))
            for j in [*best, *worst]
        ]

    def ranked(self) -> tuple[list[Finalist], list[Comparison]]:
        """Return all finalists, the best first, and the comparisons that the decider makes between them.

        See ``margintree.compiled.ranking`` for the deciders.
        """
        ranker, decider = self.ranker, self.ranker.decider
        has_path = ranker.flat is None
        classes, path_scores = np.arange(ranker.n_classes), np.zeros(ranker.n_classes)
        if has_path:
            found, scores_found = path_candidates(ranker.tree, self.x, ranker.width, ranker.gap, ranker.size)
            classes, path_scores = found[found >= 0], scores_found[found >= 0]
        probabilities, scores = ranker.probabilities(self.x)[0, classes], path_scores
        if len(classes) > 1:
            scores = decided(self.model, decider, self.x, classes[None], path_scores[None])[0]
        order = np.lexsort([classes, -scores, -probabilities])
        finalists = [
            Finalist(
                self.labels[classes[j]],
                float(np.exp(path_scores[j])) if has_path else None,
                float(scores[j]),
                float(probabilities[j]),
            )
            for j in order
        ]
        comparisons: list[Comparison] = []
        if len(classes) > 1 and decider.kind == "pairs":
            comparisons = self._by_pairs(classes, path_scores, scores)
        elif len(classes) > 1 and decider.kind == "rest":
            first, second = classes[order[:2]].tolist()
            features = self.contributions(decider.table, [(first, 1.0), (second, -1.0)])
            difference = float(scores[order[0]] - scores[order[1]])
            comparisons = [Comparison(self.labels[first], self.labels[second], difference, "scores", features)]
        return finalists, comparisons

    def _by_pairs(self, classes: Index, path_scores: Array, scores: Array) -> list[Comparison]:
        """Return the comparisons between pairs: a class that loses clearly is not compared again.

        The comparison of the two best classes comes with its features.
        """
        decider, labels = self.ranker.decider, [self.labels[k] for k in classes.tolist()]
        pairs = np.array(list(itertools.combinations(range(len(classes)), 2)))
        machines, signs = decider.machines_between(classes[pairs[:, 0]], classes[pairs[:, 1]])
        row = np.zeros(len(pairs), dtype=np.int64)
        values = machine_values(self.model, decider, self.x, row, np.maximum(machines, 0))
        by_paths = path_scores[pairs[:, 0]] - path_scores[pairs[:, 1]]
        log_odds = np.where(machines >= 0, decider.slope * signs * values, by_paths).tolist()
        best = set(np.argsort(-scores, kind="stable")[:2].tolist())
        is_out = np.zeros(len(classes), dtype=bool)
        comparisons = []
        for (j, m), odds, machine in zip(pairs.tolist(), log_odds, machines.tolist(), strict=True):
            if is_out[j] or is_out[m]:
                continue
            is_out[j], is_out[m] = odds < -compiled.ranking.CLEARLY, odds > compiled.ranking.CLEARLY
            winner, loser = (j, m) if odds >= 0.0 else (m, j)
            features: list[Contribution] = []
            if machine >= 0 and {j, m} == best:
                features = self.contributions(decider.table, [(machine, np.sign(classes[loser] - classes[winner]))])
            source = "machine" if machine >= 0 else "paths"
            comparisons.append(Comparison(labels[winner], labels[loser], abs(odds), source, features))
        return comparisons
