"""Leave-one-out decision values of kernel machines, without training any machine again.

``KernelRows.leave_one_out`` gives the value of a machine for each of its training rows, as if it were trained without
this row. Other machines have not seen the row anyway.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree.class_tree import ClassTree
from margintree.prediction.kernel_tree import BLOCK_ENTRIES
from margintree.prediction.linear_tree import Sigmoids, flat_forest
from margintree.solvers.classifier import KernelClassifier, NodeClassifier
from margintree.solvers.row_layout import layout, read_only
from margintree.solvers.training_set import KernelTrainingSet

Index = npt.NDArray[np.int64]
# Number of values that are cached, because those of validation rows are needed several times.
HELD_ENTRIES = 2**23


@dataclass(frozen=True, eq=False)
class LeftOutTree:
    """A forest over rows that hold the values of all machines: those of the nodes, then deciding ones.

    Rows are given by their numbers in the training set.
    """

    trees: tuple[ClassTree, ...]
    training_set: KernelTrainingSet
    machines: dict[int, KernelClassifier]
    n_machines: int
    sigmoids: Sigmoids | None
    _held: list[tuple[Index, npt.NDArray[np.float64]]] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        grown: Sequence[tuple[ClassTree, Sequence[NodeClassifier]]],
        training_set: KernelTrainingSet,
        sigmoids: Sigmoids | None,
        deciding: Sequence[NodeClassifier],
    ) -> "LeftOutTree":
        """Assign the machines their numbers in a ``KernelTree``."""
        machines: dict[int, KernelClassifier] = {}
        first = 0
        for tree, classifiers in grown:
            machines |= zip((first + tree.internal_nodes).tolist(), classifiers, strict=True)  # type: ignore[arg-type]
            first += tree.n_nodes
        machines |= enumerate(deciding, first)  # type: ignore[arg-type]
        return cls(tuple(tree for tree, _ in grown), training_set, machines, first + len(deciding), sigmoids)

    @cached_property
    def forest(self) -> tuple[Any, ...]:
        numbers = np.arange(self.n_machines + 1)
        table = tuple(read_only(array) for array in (numbers, numbers[:-1], np.ones(self.n_machines)))
        nothing = np.zeros(self.n_machines)
        return flat_forest(self.trees, table, np.ones(self.n_machines), nothing, self.sigmoids)

    @cached_property
    def _coefficients(self) -> tuple[Index, Any, npt.NDArray[np.float64]]:
        """The support vectors, their coefficients in all machines, and the constants of these."""
        lengths = [len(machine.row_index) for machine in self.machines.values()]
        number = np.repeat(list(self.machines), lengths)
        rows = np.concatenate([machine.row_index for machine in self.machines.values()])
        values = np.concatenate([machine.coefficients for machine in self.machines.values()])
        support, place = np.unique(rows, return_inverse=True)
        constants = np.zeros(self.n_machines)
        constants[list(self.machines)] = [machine.constant for machine in self.machines.values()]
        shape = (len(support), self.n_machines)
        return support, sp.csr_array((values, (place, number)), shape=shape), constants

    def on_own_rows(self, number: int) -> tuple[Index, npt.NDArray[np.float64]]:
        """Return the rows that a machine was trained on, and its leave-one-out values there."""
        machine = self.machines[number]
        if machine.trained_on is None or machine.left_out is None:
            return np.empty(0, dtype=np.int64), np.empty(0)
        return machine.trained_on, machine.left_out

    @cached_property
    def _left_out(self) -> Any:
        """Values of all machines on the rows that they were trained on, by row."""
        rows, values = zip(*(self.on_own_rows(number) for number in self.machines), strict=True)
        number = np.repeat(list(self.machines), [len(part) for part in rows])
        shape = (self.training_set.n_rows, self.n_machines)
        return sp.csr_array((np.concatenate(values), (np.concatenate(rows), number)), shape=shape)

    def blocks(self, rows: Index) -> Iterator[tuple[int, int, Any, tuple[Any, ...]]]:
        """Yield parts of the rows, ``first:last``, as the values of all machines, with the forest over these."""
        height = max(1, BLOCK_ENTRIES // max(1, self.n_machines, len(self._coefficients[0])))
        parts = [slice(first, min(first + height, len(rows))) for first in range(0, len(rows), height)]
        # Replaced as a whole, because other threads may read it.
        held = self._held[0] if self._held and np.isin(rows, self._held[0][0]).all() else None
        if held is None and len(rows) * self.n_machines <= HELD_ENTRIES:
            held = rows, np.concatenate([self._values(rows[part]) for part in parts])
            self._held[:] = [held]
        if held is not None:
            order = np.argsort(held[0])
            place = order[np.searchsorted(held[0], rows, sorter=order)]
        for part in parts:
            values = self._values(rows[part]) if held is None else held[1][place[part]]
            yield part.start, part.stop, layout(np.ascontiguousarray(values)), self.forest

    def _values(self, rows: Index) -> npt.NDArray[np.float64]:
        """Return the values of all machines, leaving the row out of those trained on it."""
        support, coefficients, constants = self._coefficients
        values = self.training_set.source.block(rows, support) @ coefficients + constants
        known = self._left_out[rows]
        row = np.repeat(np.arange(len(rows)), np.diff(known.indptr))
        values[row, known.indices] = known.data
        return np.asarray(values)
