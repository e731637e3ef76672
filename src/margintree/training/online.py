"""Linear regressors that learn from one row at a time, one per node of a growing tree.

The output of a node is f(x) = clip(1/2 + w'x, 0, 1). The step and the layout of the weights are described in
``margintree.compiled.stream``; this module owns the arrays, lets them grow, and turns the regressors into
weights over the features as they are.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree import compiled
from margintree.solvers.linear_rows import read_only
from margintree.solvers.solution import Array

Index = npt.NDArray[np.int64]

# Slots of the pool to begin with, at least.
FIRST_SLOTS = 2**12
# Regions of the pool have sizes up to 2^SIZES.
SIZES = 48


@dataclass(frozen=True, eq=False)
class StoredRegressors:
    """Regressors without the room to learn in: node i has ``start[i]:start[i + 1]`` of the columns, which ascend.

    ``state`` has the weight and the sum of squared gradients of each column, ``scale`` and ``totals`` are those of
    ``margintree.compiled.stream``.
    """

    scale: Array
    totals: Array
    start: Index
    columns: Index
    state: Array


class OnlineRegressors:
    """Regressors by node number; a node that nobody has trained says 1/2.

    Parameters
    ----------
    n_features : int
    learning_rate : float
        Rate of the step.
    fit_intercept : bool
        Whether each regressor has a constant feature.
    sparse : bool
        Whether rows use few of the features, so that a node should keep weights for those it has seen only.
    """

    def __init__(self, n_features: int, *, learning_rate: float, fit_intercept: bool, sparse: bool) -> None:
        self.n_features = n_features
        self.learning_rate = learning_rate
        self.fit_intercept = fit_intercept
        self.is_dense = not sparse
        self._scale = np.zeros(n_features + 1)
        self._totals = np.zeros(2)
        self._first, self._room, self._filled = (np.empty(0, dtype=np.int64) for _ in range(3))
        self._used = np.zeros(1, dtype=np.int64)
        self._returned = np.full(SIZES, -1)
        self._slot_column = np.empty(0, dtype=np.int64)
        self._state = np.empty((0, 2))
        # What has been read and is not laid out yet: only learning needs that.
        self._waiting: StoredRegressors | None = None

    @classmethod
    def from_stored(
        cls, stored: StoredRegressors, *, learning_rate: float, fit_intercept: bool, sparse: bool
    ) -> "OnlineRegressors":
        """Return regressors that learn on from stored ones."""
        regressors = cls(len(stored.scale) - 1, learning_rate=learning_rate, fit_intercept=fit_intercept, sparse=sparse)
        regressors._waiting = stored
        return regressors

    def stored(self, n_nodes: int) -> StoredRegressors:
        """Return what the regressors of nodes 0 .. n_nodes - 1 have learned."""
        if self._waiting is not None:
            return self._waiting
        owner, slots = self._slots_of(np.arange(n_nodes))
        slots, owner = slots[self._slot_column[slots] >= 0], owner[self._slot_column[slots] >= 0]
        order = np.lexsort((self._slot_column[slots], owner))
        start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n_nodes))])
        return StoredRegressors(
            self._scale, self._totals, start, self._slot_column[slots[order]], self._state[slots[order]]
        )

    def _lay_out(self) -> None:
        """Give each node that waits a region of the pool."""
        if self._waiting is None:
            return
        stored, self._waiting = self._waiting, None
        self._scale, self._totals = stored.scale.copy(), stored.totals.copy()
        n_nodes = len(stored.start) - 1
        self.reserve(n_nodes)
        arrays = [read_only(array) for array in (stored.start, stored.columns, stored.state)]
        done = 0
        while True:
            done = compiled.stream.restore(self.arrays(), done, *arrays)
            if done == n_nodes:
                return
            self.make_room()

    def reserve(self, n_nodes: int) -> None:
        """Make room for nodes 0 .. n_nodes - 1."""
        self._lay_out()
        self._first = lengthened(self._first, n_nodes, 0)
        self._room = lengthened(self._room, n_nodes, 0)
        self._filled = lengthened(self._filled, n_nodes, 0)

    def make_room(self) -> None:
        """Double the room for weights."""
        n_slots = max(FIRST_SLOTS, 2 * len(self._state), 2 * (self.n_features + 1))
        self._slot_column = lengthened(self._slot_column, n_slots, -1)
        self._state = lengthened(self._state, n_slots, 0.0)

    def arrays(self) -> Any:
        """Return the arrays as the compiled loop takes them; it writes to them."""
        return compiled.stream.NodeRegressors(
            self.n_features + 1,
            self.is_dense,
            self._scale,
            self._totals,
            self._first,
            self._room,
            self._filled,
            self._used,
            self._returned,
            self._slot_column,
            self._state,
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
        self._lay_out()
        kept = np.flatnonzero(nodes >= 0)
        owner, slots = self._slots_of(nodes[kept])
        owner, columns, values = kept[owner], self._slot_column[slots], -self._state[slots, 0]
        intercepts = np.zeros(len(nodes))
        constant = columns == self.n_features
        intercepts[owner[constant]] = values[constant]
        kept = np.flatnonzero((columns >= 0) & ~constant & (values != 0.0))
        owner, columns, values = owner[kept], columns[kept], values[kept]
        start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(nodes)))])
        return start, columns, values / self._scale[columns], intercepts

    def _slots_of(self, nodes: Index) -> tuple[Index, Index]:
        """Return the slots of the nodes' regions, one region behind the other, each with the position of its node."""
        room = self._room[nodes]
        shift = self._first[nodes] - np.cumsum(room) + room
        return np.repeat(np.arange(len(nodes)), room), np.arange(room.sum()) + np.repeat(shift, room)

    def __getstate__(self) -> dict[str, Any]:
        # The untouched part of the pool needs no place in a file.
        used = int(self._used[0])
        return self.__dict__ | {"_slot_column": self._slot_column[:used], "_state": self._state[:used]}


def lengthened(array: npt.NDArray[Any], length: int, value: float) -> npt.NDArray[Any]:
    """Return the array with ``value`` added up to ``length``, or as it is when it is long enough."""
    if len(array) >= length:
        return array
    # Zeros cost no memory until they are written to.
    shape = (length, *array.shape[1:])
    result = np.zeros(shape, dtype=array.dtype) if value == 0 else np.full(shape, value, dtype=array.dtype)
    result[: len(array)] = array
    return result
