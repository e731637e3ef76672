"""Linear regressors that learn from one row at a time, one per node of a growing tree.

The output of a node is f(x) = clip(1/2 + w'x, 0, 1). The step and the layout of the weights are described in
``margintree.kernels.stream``; this module owns the arrays, lets them grow, and turns the regressors into
weights over the features as they are.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from margintree import kernels
from margintree.solvers.solution import Array

Index = npt.NDArray[np.int64]

# Slots of the pool to begin with, at least.
FIRST_SLOTS = 2**12
# Regions of the pool have sizes up to 2^SIZES.
SIZES = 48


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
        self._is_dense = not sparse
        self._scale = np.zeros(n_features + 1)
        self._totals = np.zeros(2)
        self._first, self._room, self._filled = (np.empty(0, dtype=np.int64) for _ in range(3))
        self._used = np.zeros(1, dtype=np.int64)
        self._returned = np.full(SIZES, -1)
        self._slot_column = np.empty(0, dtype=np.int64)
        self._state = np.empty((0, 2))

    def reserve(self, n_nodes: int) -> None:
        """Make room for nodes 0 .. n_nodes - 1."""
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
        return kernels.stream.NodeRegressors(
            self.n_features + 1,
            self._is_dense,
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
        owner = np.flatnonzero(nodes >= 0)
        room = self._room[nodes[owner]]
        # The regions of the nodes, one behind the other.
        shift = self._first[nodes[owner]] - np.cumsum(room) + room
        slots = np.arange(room.sum()) + np.repeat(shift, room)
        owner, columns, values = np.repeat(owner, room), self._slot_column[slots], -self._state[slots, 0]
        intercepts = np.zeros(len(nodes))
        constant = columns == self.n_features
        intercepts[owner[constant]] = values[constant]
        kept = np.flatnonzero((columns >= 0) & ~constant & (values != 0.0))
        owner, columns, values = owner[kept], columns[kept], values[kept]
        start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(nodes)))])
        return start, columns, values / self._scale[columns], intercepts

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
