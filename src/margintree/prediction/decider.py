"""What decides between the finalists of a walk: their paths, machines between pairs of them, or one per class."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree import compiled
from margintree.prediction.weight_table import WeightTable
from margintree.solvers.row_layout import read_only

Index = npt.NDArray[np.int64]

# As margintree.compiled.ranking numbers them.
KINDS = ("paths", "pairs", "rest")


@dataclass(frozen=True, eq=False)
class Decider:
    """Deciding machines and how their values become scores; see ``margintree.compiled.ranking``.

    Parameters
    ----------
    kind : {"paths", "pairs", "rest"}
    table : WeightTable or None
        The machines of the linear kernel; those of other kernels follow the nodes of their ``KernelTree``.
    slope : float, default=1.0
        Factor of the scores, which makes their softmax a probability.
    path_weight : float, default=0.0
        Weight of the path score added to the machine of a class ("rest").
    pair_start, pair_other : ndarray
        Class a has machines with the larger classes ``pair_other[pair_start[a]:pair_start[a + 1]]`` ("pairs").
    """

    kind: str
    table: WeightTable | None = None
    slope: float = 1.0
    path_weight: float = 0.0
    pair_start: Index = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    pair_other: Index = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def machines_between(self, one: Index, other: Index) -> tuple[Index, Index]:
        """Return for pairs of classes the machine between them, -1 where there is none, and its sign for the first."""
        n_classes = len(self.pair_start) - 1
        keys = np.repeat(np.arange(n_classes), np.diff(self.pair_start)) * n_classes + self.pair_other
        wanted = np.minimum(one, other) * n_classes + np.maximum(one, other)
        place = np.searchsorted(keys, wanted)
        found = np.append(keys, -1)[place] == wanted
        return np.where(found, place, -1), np.where(one < other, 1, -1)

    def arrays(self, forest: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what the compiled loops read, given the forest whose table holds kernel machines."""
        trees = compiled.walk.Forest(*forest)
        table, scale, intercept, first = trees.table, trees.scale, trees.intercept, trees.n_nodes
        if self.table is not None:
            table, first = self.table.arrays, 0
            scale, intercept = read_only(self.table.scale), read_only(self.table.intercept)
        numbers = (float(self.path_weight), float(self.slope))
        pairs = (read_only(self.pair_start), read_only(self.pair_other))
        return KINDS.index(self.kind), table, scale, intercept, int(first), *numbers, *pairs


def pairs_by_class(pairs: npt.NDArray[np.integer], n_classes: int) -> tuple[Index, Index]:
    """Return ``pair_start`` and ``pair_other`` of different pairs, each the smaller class first, sorted by both."""
    counts = np.bincount(pairs[:, 0], minlength=n_classes)
    return np.concatenate([[0], np.cumsum(counts)]), np.ascontiguousarray(pairs[:, 1], dtype=np.int64)
