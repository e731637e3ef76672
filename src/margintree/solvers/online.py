"""Linear regressors that learn from one row at a time, one per node of a growing tree.

The output of a node is f(x) = clip(1/2 + w'x, 0, 1). The step and the layout of the weights are described in
``margintree.compiled.stream``; this module owns the arrays, lets them grow, and turns the regressors into weights over
unscaled features.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from margintree import compiled
from margintree.solvers.solution import Array

Index = npt.NDArray[np.int64]

# Weights that there is room for at first, at least.
FIRST_ENTRIES = 2**12


class NodeRegressors(NamedTuple):
    """The weights of all nodes; the constant feature is the last column of ``scale``."""

    # Largest magnitude of each column so far.
    scale: npt.NDArray[Any]
    # m and Q of the step size.
    totals: npt.NDArray[Any]
    # Entry e is the pair of w_i and G_i of this node and column; the first n_entries[0] are in use.
    node: npt.NDArray[Any]
    column: npt.NDArray[Any]
    state: npt.NDArray[Any]
    n_entries: npt.NDArray[Any]
    # The entries of a node: the last one, and the one before each; -1 at the end.
    last: npt.NDArray[Any]
    before: npt.NDArray[Any]
    # The hash table of entries, twice as long as there is room for them; -1 where it is empty.
    table: npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class StoredRegressors:
    """Regressors without spare capacity: node i has ``start[i]:start[i + 1]`` of the columns, which ascend.

    ``state`` has the weight and the sum of squared gradients of each column, ``scale`` and ``totals`` are those of
    ``margintree.compiled.stream``.
    """

    scale: Array
    totals: Array
    start: Index
    columns: Index
    state: Array


class OnlineRegressors:
    """Regressors by node number; the output of an untrained one is 1/2.

    Parameters
    ----------
    n_features : int
    learning_rate : float
        Rate of the step.
    fit_intercept : bool
        Whether each regressor has a constant feature.
    """

    def __init__(self, n_features: int, *, learning_rate: float, fit_intercept: bool) -> None:
        self.n_features = n_features
        self.learning_rate = learning_rate
        self.fit_intercept = fit_intercept
        self._scale, self._totals = np.zeros(n_features + 1), np.zeros(2)
        self._node, self._column, self._last, self._before = (np.empty(0, dtype=np.int64) for _ in range(4))
        self._state, self._n_entries = np.empty((0, 2)), np.zeros(1, dtype=np.int64)
        # None while weights are only read, as after loading a file; only training looks them up.
        self._table: Index | None = None

    @classmethod
    def from_stored(cls, stored: StoredRegressors, *, learning_rate: float, fit_intercept: bool) -> "OnlineRegressors":
        """Return regressors that continue learning from stored ones."""
        regressors = cls(len(stored.scale) - 1, learning_rate=learning_rate, fit_intercept=fit_intercept)
        regressors._scale, regressors._totals = stored.scale, stored.totals
        regressors._node = np.repeat(np.arange(len(stored.start) - 1), np.diff(stored.start))
        regressors._column, regressors._state = stored.columns, stored.state
        regressors._n_entries[0] = len(stored.columns)
        return regressors

    def stored(self, n_nodes: int) -> StoredRegressors:
        """Return what the regressors of nodes 0 .. n_nodes - 1 have learned."""
        used = int(self._n_entries[0])
        order = np.lexsort((self._column[:used], self._node[:used]))
        start = np.concatenate([[0], np.cumsum(np.bincount(self._node[:used], minlength=n_nodes))])
        return StoredRegressors(self._scale, self._totals, start, self._column[order], self._state[order])

    def reserve(self, n_nodes: int) -> None:
        """Make room for nodes 0 .. n_nodes - 1."""
        self._last = lengthened(self._last, n_nodes, -1)
        if self._table is None:
            self.make_room()

    def make_room(self) -> None:
        """Double the room for weights."""
        n_entries = max(FIRST_ENTRIES, 1 << len(self._node).bit_length())
        self._scale, self._totals = self._scale.copy(), self._totals.copy()
        self._node = lengthened(self._node, n_entries, 0)
        self._column = lengthened(self._column, n_entries, 0)
        self._state = lengthened(self._state, n_entries, 0.0)
        self._last, self._before = np.full_like(self._last, -1), np.empty(n_entries, dtype=np.int64)
        self._table = np.full(2 * n_entries, -1)
        compiled.stream.link_all(self.arrays())

    def arrays(self) -> NodeRegressors:
        """Return the arrays as the compiled loop takes them; it writes to them."""
        assert self._table is not None
        return NodeRegressors(
            self._scale,
            self._totals,
            self._node,
            self._column,
            self._state,
            self._n_entries,
            self._last,
            self._before,
            self._table,
        )

    def weights(self, nodes: Index) -> tuple[Index, Index, Array, Array]:
        """Return 1/2 - f before clipping, so that positive means left, as weights over unscaled features.

        Parameters
        ----------
        nodes : ndarray
            Numbers of the nodes wanted, -1 for one that has no weights.

        Returns
        -------
        start, columns, weights, intercepts : ndarray
            ``nodes[i]`` has ``start[i]:start[i + 1]`` of the columns and weights, and ``intercepts[i]``.
        """
        used, present = int(self._n_entries[0]), np.flatnonzero(nodes >= 0)
        position = np.full(max(int(nodes.max()), int(self._node[:used].max(initial=0))) + 1, -1)
        position[nodes[present]] = present
        owner, columns, values = position[self._node[:used]], self._column[:used], -self._state[:used, 0]
        intercepts = np.zeros(len(nodes))
        constant = (columns == self.n_features) & (owner >= 0)
        intercepts[owner[constant]] = values[constant]
        kept = np.flatnonzero((owner >= 0) & ~constant & (values != 0.0))
        kept = kept[np.argsort(owner[kept], kind="stable")]
        start = np.concatenate([[0], np.cumsum(np.bincount(owner[kept], minlength=len(nodes)))])
        return start, columns[kept], values[kept] / self._scale[columns[kept]], intercepts

    def __getstate__(self) -> dict[str, Any]:
        # Spare capacity is not pickled.
        used = int(self._n_entries[0])
        entries = {name: getattr(self, name)[:used] for name in ("_node", "_column", "_state")}
        return self.__dict__ | entries | {"_before": self._before[:0], "_table": None}


def lengthened(array: npt.NDArray[Any], length: int, value: float) -> npt.NDArray[Any]:
    """Return the array padded with ``value`` to ``length``, or unchanged if it is long enough."""
    if len(array) >= length:
        return array
    # Zeros cost no memory until they are written to.
    shape = (length, *array.shape[1:])
    result = np.zeros(shape, dtype=array.dtype) if value == 0 else np.full(shape, value, dtype=array.dtype)
    result[: len(array)] = array
    return result
