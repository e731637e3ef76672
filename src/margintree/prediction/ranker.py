"""From a tree with calibrated sigmoids to ranked classes and probabilities."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree import kernels
from margintree.prediction.flat_ranking import FlatRanking
from margintree.prediction.kernel_tree import KernelTree
from margintree.prediction.linear_tree import LinearTree
from margintree.prediction.row_chunks import in_chunks
from margintree.prediction.weight_table import WeightTable
from margintree.solvers.linear_rows import read_only
from margintree.solvers.solution import Array

Labels = npt.NDArray[np.int64]

# Up to so many classes, scorers that lie side by side are all asked within microseconds, sparse rows in less time than
# a walk takes that leaves most classes out.
ASK_ALL = 128


@dataclass(frozen=True, eq=False)
class LeafScorers:
    """One linear scorer per class, and how it adds to the score of the path; see ``margintree.kernels.ranking``."""

    table: WeightTable
    path_weight: float
    temperature: float

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the compiled loops read."""
        table = self.table
        return (
            table.arrays,
            read_only(table.scale),
            read_only(table.intercept),
            float(self.path_weight),
            float(self.temperature),
            len(table.scale),
        )


def no_scorers() -> tuple[Any, ...]:
    """Return the arrays for a ranking by path scores alone."""
    return LeafScorers(WeightTable.from_classifiers([], 1), 1.0, 1.0).arrays


@dataclass(frozen=True, eq=False)
class Ranker:
    """Ranks classes by beam or along all paths (``width`` 0), and by leaf scorers where there are any.

    With few classes, all of them candidates, and scorers beside which paths have no weight, no path is followed.
    """

    tree: LinearTree | KernelTree
    scorers: LeafScorers | None
    width: int
    gap: float
    n_candidates: int

    @property
    def n_classes(self) -> int:
        return self.tree.trees[0].n_classes

    @cached_property
    def flat(self) -> FlatRanking | None:
        """What ranks all classes without a walk; None where paths count."""
        scorers, most = self.scorers, min(self.n_candidates, ASK_ALL)
        if scorers is None or scorers.path_weight != 0.0 or self.n_classes > most:
            return None
        return FlatRanking.of(scorers.table, scorers.temperature)

    def __getstate__(self) -> dict[str, Any]:
        # What is flat is another layout of the scorers. Copied first, since another thread may be about to add it.
        state = dict(self.__dict__)
        state.pop("flat", None)
        return state

    def size_for(self, k: int) -> tuple[int, int]:
        """Return the beam width and the number of candidates that serve the best ``k`` classes."""
        size = min(self.n_classes, max(self.n_candidates, k))
        return (0 if self.width == 0 else max(self.width, k)), size

    def top(self, X: Any, k: int, n_threads: int = 1) -> tuple[Labels, Array, Labels]:
        """Return the best classes, their probabilities, and the machines evaluated for each row."""
        n_rows = X.shape[0]
        if self.flat is not None:
            return *self.flat.top(X, k, n_threads), np.full(n_rows, self.n_classes)
        classes, scores = np.empty((n_rows, k), dtype=np.int64), np.empty((n_rows, k))
        counts = np.empty(n_rows, dtype=np.int64)
        width, size = self.size_for(k)
        for first, last, rows, forest in self.tree.blocks(X):
            part = slice(first, last)
            in_chunks(
                lambda low, high, rows=rows, forest=forest, part=part: kernels.ranking.top(  # type: ignore[misc]
                    *(rows, low, high, forest, self._scorers(), width, self.gap, self.n_classes, size),
                    *(classes[part], scores[part], counts[part]),
                ),
                last - first,
                n_threads,
            )
        return classes, scores, counts

    def probabilities(self, X: Any, n_threads: int = 1) -> Array:
        """Return the probability of every class; rows sum to 1."""
        if self.flat is not None:
            return self.flat.probabilities(X, n_threads)
        result = np.empty((X.shape[0], self.n_classes))
        width, size = self.size_for(1)
        for first, last, rows, forest in self.tree.blocks(X):
            part = result[first:last]
            in_chunks(
                lambda low, high, rows=rows, forest=forest, part=part: kernels.ranking.probabilities(  # type: ignore[misc]
                    rows, low, high, forest, self._scorers(), width, self.gap, size, part
                ),
                last - first,
                n_threads,
            )
        return result

    def _scorers(self) -> tuple[Any, ...]:
        return no_scorers() if self.scorers is None else self.scorers.arrays


def path_candidates(tree: LinearTree | KernelTree, X: Any, width: int, gap: float, size: int) -> tuple[Labels, Array]:
    """Return the best ``size`` classes of each row by path score, and these scores; -1 fills what is missing."""
    classes, scores = np.empty((X.shape[0], size), dtype=np.int64), np.empty((X.shape[0], size))
    for first, last, rows, forest in tree.blocks(X):
        n_classes = tree.trees[0].n_classes
        part = slice(first, last)
        kernels.ranking.paths_of(rows, 0, last - first, forest, width, gap, n_classes, classes[part], scores[part])
    return classes, scores


def checked_k(k: int, n_classes: int) -> int:
    """Return k as an integer between 1 and the number of classes, or tell what is wrong with it."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= n_classes:
        raise ValueError(f"k must be a whole number from 1 to the number of classes, {n_classes}. Got {k!r}.")
    return int(k)
