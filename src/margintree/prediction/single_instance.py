"""A predictor for one row at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree import compiled
from margintree.prediction.flat_ranking import FlatRanking
from margintree.prediction.kernel_tree import KernelTree
from margintree.prediction.linear_tree import LinearTree
from margintree.prediction.one_row import PolynomialGuard, RowPredictor, RowReader
from margintree.prediction.ranker import Ranker, checked_k
from margintree.solvers.solution import Array


@dataclass(frozen=True, eq=False)
class SingleInstancePredictor(RowPredictor):
    """Classifies one row by a tree, in one compiled call."""

    _ranking: "WalkOfRow | FlatRankingOfRow | None"

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
        ranking: WalkOfRow | FlatRankingOfRow | None = None
        choice, rule = compiled.single.greedy_class, (row_width, forest)
        if ranker is not None:
            ranking = WalkOfRow(ranker, row_width, forest) if ranker.flat is None else FlatRankingOfRow(ranker.flat)
            if not is_greedy:
                choice, rule = ranking.choice
        return cls(classes, n_features, reader, choice, rule, ranking)

    def predict_top_k(
        self, x: Any, values: Any = None, *, k: int | None = None
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
        """Return the k (by default 5) most probable labels of one row and their probabilities, the best first."""
        k = checked_k(k, len(self.classes))
        best, scores = self._fitted_ranking().best(self._reader.read(x, values), k)
        if best[0] < 0:
            raise self._reader.complaint(x, values)
        return self.classes[best], scores

    def predict_proba(self, x: Any, values: Any = None) -> npt.NDArray[np.float64]:
        """Return the probability of every class for one row."""
        result = self._fitted_ranking().probabilities(self._reader.read(x, values))
        if len(result) == 0:
            raise self._reader.complaint(x, values)
        return result

    def _fitted_ranking(self) -> "WalkOfRow | FlatRankingOfRow":
        if self._ranking is None:
            raise AttributeError(
                "Probabilities need calibrated sigmoids, which this model was fitted without. "
                "MarginTreeClassifier has them with calibration_folds='auto'."
            )
        return self._ranking


@dataclass(frozen=True, eq=False)
class WalkOfRow:
    """Ranks the classes of one row by walking trees, as a ranker does for a batch."""

    ranker: Ranker
    row_width: int
    forest: Any

    @cached_property
    def _arguments(self) -> tuple[Any, ...]:
        ranker = self.ranker
        size = (ranker.width, ranker.gap, ranker.n_classes, ranker.size)
        return self.row_width, self.forest, ranker.decider.arrays(self.forest), *size

    @property
    def choice(self) -> tuple[Callable[..., int], tuple[Any, ...]]:
        """What returns the best class, and its arguments."""
        return compiled.single.best_class, self._arguments

    def best(self, row: tuple[Any, ...], k: int) -> tuple[npt.NDArray[np.int64], Array]:
        """Return the best classes and their probabilities; the first class is -1 for a bad row."""
        classes, scores = compiled.single.best(row, *self._arguments, k)
        return classes, scores

    def probabilities(self, row: tuple[Any, ...]) -> Array:
        """Return the probability of every class; nothing for a bad row."""
        return np.asarray(compiled.single.all_probabilities(row, *self._arguments))


@dataclass(frozen=True, eq=False)
class FlatRankingOfRow:
    """Ranks the classes of one row by one machine each."""

    flat: FlatRanking

    @property
    def choice(self) -> tuple[Callable[..., int], tuple[Any, ...]]:
        """What returns the best class, and its arguments."""
        return compiled.flat.largest, (self.flat.n_features, self.flat.machines)

    def best(self, row: tuple[Any, ...], k: int) -> tuple[npt.NDArray[np.int64], Array]:
        """Return the best classes and their probabilities; the first class is -1 for a bad row."""
        flat = self.flat
        classes, scores = compiled.flat_ranking.best(row, flat.n_features, flat.machines, flat.temperature, k)
        return classes, scores

    def probabilities(self, row: tuple[Any, ...]) -> Array:
        """Return the probability of every class; nothing for a bad row."""
        flat = self.flat
        return np.asarray(
            compiled.flat_ranking.all_probabilities(row, flat.n_features, flat.machines, flat.temperature)
        )
