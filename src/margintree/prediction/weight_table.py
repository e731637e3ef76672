"""Weight vectors of many linear machines, flat, read-only and in single precision."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree import compiled
from margintree.solvers.classifier import LinearClassifier
from margintree.solvers.row_layout import read_only
from margintree.solvers.solution import Array

# Share of nonzero weights from which on a machine is stored dense; sparse storage takes 2.5 cells per weight.
DENSE_MACHINE_SHARE = 0.4
DENSE = -1
# A table by features has an entry for each of them, so it is used up to so many features per weight.
FEATURES_PER_WEIGHT = 2
# If the largest weight lies between these, no relevant weight underflows in single precision.
TINY, HUGE = 1e-20, 1e20


@dataclass(frozen=True, eq=False)
class WeightTable:
    """Cells of all machines, concatenated; see ``margintree.compiled.tables``.

    Weights are stored relative to the largest of their machine, which ``scale`` keeps in double precision, so that
    single precision holds them whatever their size.
    """

    n_features: int
    start: npt.NDArray[np.uint64]
    n_weights: npt.NDArray[np.int64]
    cells: npt.NDArray[np.uint32]
    scale: Array
    intercept: Array

    @classmethod
    def from_classifiers(
        cls, classifiers: Sequence[LinearClassifier | None], n_features: int, *, prune: float = 0.0
    ) -> "WeightTable":
        """Lay out the given machines; None leaves an empty place.

        ``prune`` drops the smallest weights of a machine as long as their norm is at most this fraction of that of all
        weights, so that no decision value changes by more than ``prune * |w| |x|``.
        """
        kept = [_kept_weights(c, prune, n_features) if c is not None else _NOTHING for c in classifiers]
        lengths = np.array([len(columns) for columns, _ in kept], dtype=np.int64)
        is_dense = lengths >= np.maximum(1, DENSE_MACHINE_SHARE * n_features)
        n_weights = np.where(is_dense, DENSE, lengths)
        start = np.concatenate([[0], np.cumsum(n_cells(n_weights, n_features))])
        keys = np.zeros(start[-1], dtype=np.uint32)
        values = keys.view(np.float32)
        scale = np.ones(len(kept))
        for m, (columns, weights) in enumerate(kept):
            if len(columns) == 0:
                continue
            scale[m] = np.abs(weights).max()
            relative = (weights / scale[m]).astype(np.float32, copy=False)
            if is_dense[m]:
                values[start[m] + columns] = relative
            else:
                compiled.tables.fill(keys, values, start[m], columns.astype(np.uint32), relative)
        intercept = np.array([c.intercept if c is not None else 0.0 for c in classifiers])
        return cls(n_features, start.astype(np.uint64), n_weights, keys, scale, intercept)

    @classmethod
    def joined(cls, tables: "Iterable[WeightTable]", n_features: int) -> "WeightTable":
        """Return the machines of several tables in one, consuming an iterable of tables."""
        n_weights, lengths = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
        cells, scale, intercept = np.empty(0, dtype=np.uint32), np.empty(0), np.empty(0)
        for table in tables:
            of_table: list[npt.NDArray[Any]] = [table.n_weights, np.diff(table.start), table.cells, table.scale]
            of_table.append(table.intercept)
            of_all: list[npt.NDArray[Any]] = [n_weights, lengths, cells, scale, intercept]
            for whole, part in zip(of_all, of_table, strict=True):
                # In place: large blocks of memory grow without a copy.
                whole.resize(len(whole) + len(part), refcheck=False)
                whole[len(whole) - len(part) :] = part
        start = np.concatenate([[np.uint64(0)], np.cumsum(lengths, dtype=np.uint64)])
        return cls(n_features, start, n_weights, cells, scale, intercept)

    def part(self, machines: npt.NDArray[np.int64]) -> "WeightTable":
        """Return some of the machines, in the given order."""
        start = self.start.astype(np.int64)
        lengths = np.diff(start)[machines]
        new_start = np.concatenate([[0], np.cumsum(lengths)])
        place = np.arange(new_start[-1]) + np.repeat(start[machines] - new_start[:-1], lengths)
        columns = (self.n_weights[machines], self.cells[place], self.scale[machines], self.intercept[machines])
        return WeightTable(self.n_features, new_start.astype(np.uint64), *columns)

    @property
    def arrays(self) -> tuple[npt.NDArray[np.generic], ...]:
        """The tuple that compiled loops read."""
        start, n_weights, keys, values = self.start, self.n_weights, self.cells, self.cells.view(np.float32)
        return read_only(start), read_only(n_weights), read_only(keys), read_only(values)

    def weights(self, machine: int) -> tuple[npt.NDArray[np.int64], Array]:
        """Return the columns of a machine's weights, and the weights."""
        columns, relative = self._relative(machine)
        return columns, relative * self.scale[machine]

    def relative_weights(self, machines: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Return the weights of some machines as columns of a dense matrix, relative to their ``scale``."""
        result = np.zeros((self.n_features, len(machines)), dtype=np.float32)
        for place, machine in enumerate(machines.tolist()):
            columns, weights = self._relative(machine)
            result[columns, place] = weights
        return result

    def by_feature(self) -> tuple[npt.NDArray[np.generic], ...] | None:
        """Return the table that ``margintree.compiled.flat`` reads, with the weights of a feature side by side.

        None if most features have no weight, because such a table has an entry for each.
        """
        n_machines = len(self.scale)
        n_weights = int(np.where(self.n_weights == DENSE, self.n_features, self.n_weights).sum())
        if self.n_features > FEATURES_PER_WEIGHT * n_weights:
            return None
        if n_weights >= DENSE_MACHINE_SHARE * self.n_features * n_machines:
            return (read_only(self.relative_weights(np.arange(n_machines))),)
        parts = [self._relative(machine) for machine in range(n_machines)]
        machine = np.repeat(np.arange(n_machines, dtype=np.uint32), [len(columns) for columns, _ in parts])
        columns, weights = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        order = np.argsort(columns, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=self.n_features))])
        return read_only(start.astype(np.uint64)), read_only(machine[order]), read_only(weights[order])

    def _relative(self, machine: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Return the columns and the weights of a machine, relative to its ``scale``."""
        first, n, values = int(self.start[machine]), int(self.n_weights[machine]), self.cells.view(np.float32)
        if n == DENSE:
            row = values[first : first + self.n_features]
            columns = np.flatnonzero(row)
            return columns, row[columns]
        pairs = slice(first + 2 * ((n + 3) // 4), int(self.start[machine + 1]))
        columns, weights = self.cells[pairs][::2].astype(np.int64), values[pairs][1::2]
        # A column beyond the row can only come from a file that was tampered with.
        known = columns < self.n_features
        return columns[known], weights[known]


_NOTHING = (np.empty(0, dtype=np.int64), np.empty(0))


def n_cells(n_weights: npt.NDArray[np.int64], n_features: int) -> npt.NDArray[np.int64]:
    """Return how many cells each machine takes."""
    sparse = 2 * ((n_weights + 3) // 4) + 2 * n_weights
    return np.where(n_weights < 0, n_features, sparse)


def compact(classifier: LinearClassifier, prune: float, n_features: int) -> LinearClassifier:
    """Return a machine as it is stored in the table, in half the memory: pruned, and in single precision."""
    columns, weights = _kept_weights(classifier, prune, n_features)
    scale = np.abs(weights).max(initial=0.0)
    if not TINY < scale < HUGE:
        # Such weights need the scale of the table.
        return LinearClassifier(columns, weights, classifier.intercept)
    return LinearClassifier(columns.astype(np.int32), weights.astype(np.float32), classifier.intercept)


def _kept_weights(classifier: LinearClassifier, prune: float, n_features: int) -> tuple[npt.NDArray[np.int64], Array]:
    columns, weights = classifier.columns, classifier.weights
    # Pruning a machine that stays dense would cost accuracy and save nothing.
    is_pruned = prune > 0.0 and len(weights) < DENSE_MACHINE_SHARE * n_features
    kept = compiled.tables.large_enough(weights, prune) if is_pruned else np.flatnonzero(weights)
    return (columns, weights) if len(kept) == len(weights) else (columns[kept], weights[kept])
