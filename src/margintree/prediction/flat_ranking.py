"""Ranks all classes by one machine each, without a walk."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from margintree import compiled
from margintree.prediction.row_chunks import in_chunks
from margintree.prediction.weight_table import WeightTable
from margintree.solvers.node_rows import Matrix
from margintree.solvers.row_layout import layout, read_only
from margintree.solvers.solution import Array


@dataclass(frozen=True, eq=False)
class FlatRanking:
    """One linear machine per class and the temperature of their softmax; see ``margintree.compiled.flat_ranking``."""

    n_features: int
    n_classes: int
    machines: tuple[Any, ...]
    temperature: float

    @classmethod
    def of(cls, table: WeightTable, temperature: float) -> "FlatRanking":
        """Lay out the machines side by side, or one by one if nearly all features have no weight."""
        by_feature, plain = table.by_feature(), (read_only(table.scale), read_only(table.intercept), len(table.scale))
        machines = (table.arrays if by_feature is None else by_feature, *plain)
        return cls(table.n_features, len(table.scale), machines, float(temperature))

    def top(self, X: Matrix, k: int, n_threads: int = 1) -> tuple[np.ndarray[Any, np.dtype[np.int64]], Array]:
        """Return the best classes of each row and their probabilities."""
        rows, n_rows = layout(X), X.shape[0]
        classes, scores = np.empty((n_rows, k), dtype=np.int64), np.empty((n_rows, k))
        in_chunks(
            lambda first, last: compiled.flat_ranking.top(
                rows, first, last, self.machines, self.temperature, classes, scores
            ),
            n_rows,
            n_threads,
        )
        return classes, scores

    def probabilities(self, X: Matrix, n_threads: int = 1) -> Array:
        """Return the probability of every class; rows sum to 1."""
        rows, result = layout(X), np.empty((X.shape[0], self.n_classes))
        in_chunks(
            lambda first, last: compiled.flat_ranking.probabilities(
                rows, first, last, self.machines, self.temperature, result
            ),
            X.shape[0],
            n_threads,
        )
        return result
