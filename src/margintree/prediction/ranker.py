"""From a tree with calibrated sigmoids to ranked classes and probabilities."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from margintree import compiled
from margintree.class_tree import ClassTree
from margintree.prediction.decider import Decider
from margintree.prediction.flat_ranking import FlatRanking
from margintree.prediction.row_chunks import in_chunks
from margintree.solvers.solution import Array

# As many classes as people read at a glance.
DEFAULT_K = 5

Labels = npt.NDArray[np.int64]


class Forest(Protocol):
    """Trees over the same classes whose machines can be evaluated block by block."""

    @property
    def trees(self) -> tuple[ClassTree, ...]: ...

    def blocks(self, X: Any) -> Iterator[tuple[int, int, Any, tuple[Any, ...]]]:
        """Yield parts of the rows, ``first:last``, as compiled code reads them, with the forest over these."""
        ...


@dataclass(frozen=True, eq=False)
class Ranker:
    """Nominates finalists by beam or along all paths (``width`` 0), and lets a decider rank them.

    If all classes are finalists of linear machines and paths have no weight, no path is followed.
    """

    tree: Forest
    decider: Decider
    width: int
    gap: float
    n_finalists: int

    @property
    def n_classes(self) -> int:
        return self.tree.trees[0].n_classes

    @cached_property
    def flat(self) -> FlatRanking | None:
        """The ranking of all classes without a walk; None if paths count."""
        decider = self.decider
        if decider.kind != "rest" or decider.table is None or decider.path_weight != 0.0:
            return None
        return FlatRanking.of(decider.table, decider.slope) if self.n_finalists >= self.n_classes else None

    def __getstate__(self) -> dict[str, Any]:
        # What is flat is another layout of the machines. Copied first, since another thread may be about to add it.
        state = dict(self.__dict__)
        state.pop("flat", None)
        return state

    def winners(self, X: Any, n_threads: int = 1) -> tuple[Labels, Labels]:
        """Return the most probable class of each row, and the machines evaluated to find it."""
        classes, counts = np.empty(X.shape[0], dtype=np.int64), np.full(X.shape[0], self.n_classes)
        if self.flat is not None:
            return self.flat.top(X, 1, n_threads)[0][:, 0], counts
        self._fill(X, n_threads, compiled.ranking.winners, classes, counts)
        return classes, counts

    def top(self, X: Any, k: int, n_threads: int = 1) -> tuple[Labels, Array]:
        """Return the classes with the k largest probabilities, and these."""
        if self.flat is not None:
            return self.flat.top(X, k, n_threads)
        classes, scores = np.empty((X.shape[0], k), dtype=np.int64), np.empty((X.shape[0], k))
        self._fill(X, n_threads, compiled.ranking.top, classes, scores)
        return classes, scores

    def probabilities(self, X: Any, n_threads: int = 1) -> Array:
        """Return the probability of every class; rows sum to 1."""
        if self.flat is not None:
            return self.flat.probabilities(X, n_threads)
        result = np.empty((X.shape[0], self.n_classes))
        self._fill(X, n_threads, compiled.ranking.probabilities, result)
        return result

    def _fill(self, X: Any, n_threads: int, fill: Callable[..., Any], *results: Any) -> None:
        """Fill the results of all rows by a function of ``margintree.compiled.ranking``."""
        for first, last, rows, forest in self.tree.blocks(X):
            arguments = forest, self.decider.arrays(forest), self.width, self.gap
            parts = [result[first:last] for result in results]
            in_chunks(
                lambda low, high, rows=rows, arguments=arguments, parts=parts: fill(  # type: ignore[misc]
                    rows, low, high, *arguments, self.size, *parts
                ),
                last - first,
                n_threads,
            )

    @property
    def size(self) -> int:
        """The largest number of finalists."""
        return min(self.n_finalists, self.n_classes)


def path_candidates(tree: Forest, X: Any, width: int, gap: float, size: int) -> tuple[Labels, Array]:
    """Return the best ``size`` classes of each row by path score, and these scores, padded with -1."""
    classes, scores = np.empty((X.shape[0], size), dtype=np.int64), np.empty((X.shape[0], size))
    for first, last, rows, forest in tree.blocks(X):
        n_classes = tree.trees[0].n_classes
        part = slice(first, last)
        compiled.ranking.paths_of(rows, forest, width, gap, n_classes, classes[part], scores[part])
    return classes, scores


def path_values(tree: Forest, X: Any, leaves: Labels, parent: Labels, start: Labels, values: Array) -> None:
    """Fill ``values[start[j]:]`` with the decision values at the nodes above the leaf of row j, the deepest first.

    ``parent`` has the parent of each node of the forest, -1 at the root.
    """
    for first, last, rows, forest in tree.blocks(X):
        numbers = np.arange(last - first)
        compiled.walk.path_values(rows, numbers, leaves[first:last], parent, forest, start[first:last], values)


def decided(tree: Forest, decider: Decider, X: Any, finalists: Labels, path_scores: Array) -> Array:
    """Return the scores that the decider gives the finalists of each row, padded with -1."""
    scores = path_scores.copy()
    for first, last, rows, forest in tree.blocks(X):
        compiled.ranking.decided(rows, decider.arrays(forest), finalists[first:last], scores[first:last])
    return scores


def machine_values(tree: Forest, decider: Decider, X: Any, row: Labels, machine: Labels) -> Array:
    """Return the values of deciding machines for sorted rows of X."""
    result = np.empty(len(row))
    for first, last, rows, forest in tree.blocks(X):
        part = slice(*np.searchsorted(row, [first, last]))
        compiled.ranking.machine_values(rows, row[part] - first, machine[part], decider.arrays(forest), result[part])
    return result


def checked_k(k: int | None, n_classes: int) -> int:
    """Return k as an integer between 1 and the number of classes, or raise an error."""
    if k is None:
        return min(DEFAULT_K, n_classes)
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= n_classes:
        raise ValueError(f"k must be an integer from 1 to the number of classes, {n_classes}. Got {k!r}.")
    return int(k)
