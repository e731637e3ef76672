"""Predictors for one row at a time: trees, and machines without a tree."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree import compiled
from margintree.prediction.decoding import Code, class_scores
from margintree.prediction.kernel_tree import KernelTree, kernel_table
from margintree.prediction.linear_tree import LinearTree
from margintree.prediction.machine_set import KernelMachines, LinearMachines, MachineSet
from margintree.prediction.one_row import PolynomialGuard, RowReader
from margintree.prediction.ranker import Ranker, checked_k
from margintree.prediction.weight_table import WeightTable
from margintree.solvers.classifier import LinearClassifier
from margintree.solvers.row_layout import read_only
from margintree.solvers.solution import Array

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RowPredictor:
    """Classifies one row at a time; read-only, so threads may share it.

    A row is given dense, ``predict(x)``, or sparse, ``predict(indices, values)`` with ascending columns. The labels
    are those of the estimator's ``predict``. Only the width of a dense row, the columns of a sparse one, and that
    values are finite are checked.
    """

    classes: npt.NDArray[Any]
    n_features: int
    _reader: RowReader
    # From a row and the arguments of the rule to the number of a class; -1 for a row that is not sound.
    _choice: Callable[..., int]
    _rule: tuple[Any, ...]

    def predict(self, x: Any, values: Any = None) -> Any:
        """Return the label of one row, dense ``x`` or sparse ``x`` (the columns) and ``values``."""
        number = self._choice(self._reader.read(x, values), *self._rule)
        if number < 0:
            raise self._reader.complaint(x, values)
        return self.classes[number]


@dataclass(frozen=True, eq=False)
class RankingOfRow:
    """The compiled functions that rank the classes of one row as a ranker does for a batch.

    ``choice`` returns the best class, ``best`` the best k of them with their probabilities, and ``probabilities``
    those of all classes. The first class is -1 for a bad row, which has no probabilities.
    """

    choice: Callable[..., int]
    choice_arguments: tuple[Any, ...]
    best: Callable[..., tuple[Index, Array]]
    probabilities: Callable[..., Array]
    arguments: tuple[Any, ...]

    @classmethod
    def of(cls, ranker: Ranker, row_width: int, forest: Any) -> "RankingOfRow":
        """Rank by walking trees or, if the ranker does without, by one machine per class."""
        if ranker.flat is not None:
            of_row, flat = compiled.flat_ranking, ranker.flat
            rule = (flat.n_features, flat.machines)
            return cls(compiled.flat.largest, rule, of_row.best, of_row.all_probabilities, (*rule, flat.temperature))
        single, decider = compiled.single, ranker.decider.arrays(forest)
        arguments = (row_width, forest, decider, ranker.width, ranker.gap, ranker.n_classes, ranker.size)
        return cls(single.best_class, arguments, single.best, single.all_probabilities, arguments)


@dataclass(frozen=True, eq=False)
class SingleInstancePredictor(RowPredictor):
    """Classifies one row by a tree, in one compiled call."""

    _ranking: "RankingOfRow | None"

    @classmethod
    def of(
        cls,
        tree: LinearTree | KernelTree,
        ranker: Ranker | None,
        classes: npt.NDArray[Any],
        n_features: int,
        *,
        is_greedy: bool,
    ) -> "SingleInstancePredictor":
        """Return the predictor of a fitted model."""
        guard = None if isinstance(tree, LinearTree) else PolynomialGuard.of(tree.function, tree.vectors)
        reader, row_width = RowReader(n_features, isinstance(tree, LinearTree), guard=guard), n_features
        forest = tree.forest if isinstance(tree, LinearTree) else tree.one_row_forest
        if forest is None:
            assert isinstance(tree, KernelTree)
            reader = RowReader(n_features, False, tree.kernel_values, sp.issparse(tree.vectors))
            forest = tree.forest
            row_width = tree.n_support
        ranking, choice, rule = None, compiled.single.greedy_class, (row_width, forest)
        if ranker is not None:
            ranking = RankingOfRow.of(ranker, row_width, forest)
            if not is_greedy:
                choice, rule = ranking.choice, ranking.choice_arguments
        return cls(classes, n_features, reader, choice, rule, ranking)

    def predict_top_k(
        self, x: Any, values: Any = None, *, k: int | None = None
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
        """Return the k (by default 5) most probable labels of one row and their probabilities, the best first."""
        k = checked_k(k, len(self.classes))
        ranking = self._fitted_ranking()
        best, scores = ranking.best(self._reader.read(x, values), *ranking.arguments, k)
        if best[0] < 0:
            raise self._reader.complaint(x, values)
        return self.classes[best], scores

    def predict_proba(self, x: Any, values: Any = None) -> npt.NDArray[np.float64]:
        """Return the probability of every class for one row."""
        ranking = self._fitted_ranking()
        result = ranking.probabilities(self._reader.read(x, values), *ranking.arguments)
        if len(result) == 0:
            raise self._reader.complaint(x, values)
        return np.asarray(result)

    def _fitted_ranking(self) -> "RankingOfRow":
        if self._ranking is None:
            raise AttributeError(
                "Probabilities need calibrated sigmoids, which this model was fitted without. "
                "MarginTreeClassifier has them with calibration_folds='auto'."
            )
        return self._ranking


class FlatInstancePredictor(RowPredictor):
    """Classifies one row by machines without a tree.

    Values, votes and eliminations are one compiled call for linear machines, and for Gaussian and polynomial ones
    with dense support vectors, each of which costs one kernel value. Other kernels evaluate all machines as the
    batch does. Distances from the rows of an output code are taken outside compiled code.
    """

    @classmethod
    def by_largest_value(
        cls, machines: MachineSet, classes: npt.NDArray[Any], n_features: int
    ) -> "FlatInstancePredictor":
        """Return the predictor of one machine per class; a single machine distinguishes two classes."""
        return cls._of(machines, classes, n_features, compiled.flat.largest, ())

    @classmethod
    def by_votes(
        cls, machines: MachineSet, classes: npt.NDArray[Any], n_features: int, pairs: Index
    ) -> "FlatInstancePredictor":
        """Return the one-vs-one predictor; machine m votes for one of the classes ``pairs[m]``."""
        return cls._of(machines, classes, n_features, compiled.flat.most_votes, (read_only(pairs), len(classes)))

    @classmethod
    def by_elimination(
        cls, machines: MachineSet, classes: npt.NDArray[Any], n_features: int, order: Index, machine_of: Index
    ) -> "FlatInstancePredictor":
        """Return the predictor of a decision graph, which evaluates only the machines on its path."""
        rule = (read_only(order), read_only(machine_of))
        return cls._of(machines, classes, n_features, compiled.flat.last_left, rule, asks_all=False)

    @classmethod
    def by_code(
        cls, machines: MachineSet, classes: npt.NDArray[Any], n_features: int, code: Code, weights: Array, rule: str
    ) -> "FlatInstancePredictor":
        """Return the predictor of an output code; see ``class_scores``."""
        return cls._of(machines, classes, n_features, _nearest_row_of_code, (code, weights, rule))

    @classmethod
    def _of(
        cls,
        machines: MachineSet,
        classes: npt.NDArray[Any],
        n_features: int,
        choice: Callable[..., int],
        rule: tuple[Any, ...],
        *,
        asks_all: bool = True,
    ) -> "FlatInstancePredictor":
        if isinstance(machines, LinearMachines):
            arrays = _linear_arrays(machines, asks_all)
            return cls(classes, n_features, RowReader(n_features, True), choice, (n_features, arrays, *rule))
        kernel_arrays = _kernel_arrays(machines)
        if kernel_arrays is not None:
            reader = RowReader(n_features, False, guard=PolynomialGuard.of(machines.function, machines.vectors))
            return cls(classes, n_features, reader, choice, (n_features, kernel_arrays, *rule))
        reader = RowReader(n_features, False, machines.decisions, sp.issparse(machines.vectors))
        n_machines = len(machines.constants)
        arrays = _linear_arrays(_unit_machines(n_machines), asks_all)
        return cls(classes, n_features, reader, choice, (n_machines, arrays, *rule))


def _nearest_row_of_code(row: Any, width: int, machines: Any, code: Code, weights: Array, rule: str) -> int:
    values = compiled.flat.values_of(row, width, machines)
    if len(values) == 0:
        return -1
    scores = class_scores(values[None, :], code, weights, rule)
    return int(scores[0] > 0.0 if scores.ndim == 1 else np.argmax(scores[0]))


def _linear_arrays(machines: LinearMachines, asks_all: bool) -> tuple[Any, ...]:
    """Return the table for ``margintree.compiled.flat``: by features if all machines are evaluated, else one by one."""
    weights, n_machines = machines.weights, len(machines.intercepts)
    # By features there is a place for each of them.
    if not asks_all or machines.has_empty_features:
        table = WeightTable.from_classifiers(_columns(machines), weights.shape[0])
        return table.arrays, read_only(table.scale), read_only(table.intercept), n_machines
    plain = read_only(np.ones(n_machines)), read_only(machines.intercepts), n_machines
    if isinstance(weights, np.ndarray):
        return (read_only(np.ascontiguousarray(weights)),), *plain
    by_feature = sp.csr_array(weights)
    start = by_feature.indptr.astype(np.uint64)
    machine = by_feature.indices.astype(np.uint32)
    return (read_only(start), read_only(machine), read_only(by_feature.data)), *plain


def _columns(machines: LinearMachines) -> list[LinearClassifier]:
    """Return the machines one by one."""
    weights = sp.csc_array(machines.weights)
    parts = [slice(*weights.indptr[m : m + 2]) for m in range(weights.shape[1])]
    return [
        LinearClassifier(weights.indices[part].astype(np.int64), weights.data[part], float(intercept))
        for part, intercept in zip(parts, machines.intercepts, strict=True)
    ]


def _unit_machines(n_machines: int) -> LinearMachines:
    """Return machines over rows that hold the values of other machines."""
    return LinearMachines(sp.eye_array(n_machines, format="csc"), np.zeros(n_machines))


def _kernel_arrays(machines: KernelMachines) -> tuple[Any, ...] | None:
    """Return kernel machines as ``margintree.compiled.flat`` reads them; None for a kernel that is not compiled."""
    coefficients = machines.coefficients
    start, support = coefficients.indptr.astype(np.int64), coefficients.indices.astype(np.int64)
    table = kernel_table(machines.function, machines.vectors, start, support, coefficients.data)
    n_machines = len(machines.constants)
    return None if table is None else (table, read_only(np.ones(n_machines)), read_only(machines.constants), n_machines)
