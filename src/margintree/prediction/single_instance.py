"""A predictor for one row at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree import kernels
from margintree.prediction.kernel_tree import KernelTree
from margintree.prediction.linear_tree import LinearTree
from margintree.prediction.ranker import Ranker, no_scorers


@dataclass(frozen=True, eq=False)
class SingleInstancePredictor:
    """Classifies one row in one compiled call; read-only, so threads may share it.

    A row is given dense, ``predict(x)``, or sparse, ``predict(indices, values)`` with ascending columns. The labels
    are those of the estimator's ``predict``. Only what memory safety needs is checked: the width of a dense row,
    the columns of a sparse one, and that values are finite.
    """

    classes: npt.NDArray[Any]
    n_features: int
    _tree: LinearTree | KernelTree
    _ranker: Ranker | None
    _is_greedy: bool
    _forest: Any
    _scorers: Any
    _sizes: tuple[int, float, int, int]
    _width: int
    _evaluates_kernel_itself: bool

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
        by_itself, row_width = False, n_features
        forest = tree.forest if isinstance(tree, LinearTree) else tree.one_row_forest
        if forest is None:
            assert isinstance(tree, KernelTree)
            by_itself, row_width, forest = True, len(tree.constants), tree.forest_of_values
        scorers = no_scorers() if ranker is None or ranker.scorers is None else ranker.scorers.arrays
        width, size = ranker.size_for(1) if ranker is not None else (0, 1)
        sizes = (width, 0.0 if ranker is None else ranker.gap, len(classes), size)
        return cls(classes, n_features, tree, ranker, is_greedy, forest, scorers, sizes, row_width, by_itself)

    def predict(self, x: Any, values: Any = None) -> Any:
        """Return the label of one row, dense ``x`` or sparse ``x`` (the columns) and ``values``."""
        row = self._row(x, values)
        if self._is_greedy:
            leaf = kernels.single.greedy_leaf(row, self._width, self._forest)
            number = self._tree.trees[0].leaf_class[leaf] if leaf >= 0 else -1
        else:
            number = kernels.single.best_class(row, self._width, self._forest, self._scorers, *self._sizes)
        if number < 0:
            raise self._complaint(x, values)
        return self.classes[number]

    def predict_top_k(self, x: Any, values: Any = None, *, k: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
        """Return the k most probable labels of one row and their probabilities, the best first."""
        if not 1 <= k <= len(self.classes):
            raise ValueError(f"k must be from 1 to the number of classes, {len(self.classes)}. Got {k!r}.")
        width, size = self._fitted_ranker().size_for(k)
        row = self._row(x, values)
        best, scores = kernels.single.best(
            row, self._width, self._forest, self._scorers, width, self._sizes[1], len(self.classes), size, k
        )
        if best[0] < 0:
            raise self._complaint(x, values)
        return self.classes[best[:k]], scores[:k]

    def predict_proba(self, x: Any, values: Any = None) -> npt.NDArray[np.float64]:
        """Return the probability of every class for one row."""
        self._fitted_ranker()
        row = self._row(x, values)
        result: npt.NDArray[np.float64] = kernels.single.all_probabilities(
            row, self._width, self._forest, self._scorers, *self._sizes
        )
        if len(result) == 0:
            raise self._complaint(x, values)
        return result

    def _fitted_ranker(self) -> Ranker:
        if self._ranker is None:
            raise AttributeError("Probabilities need calibrated sigmoids. Fit with calibration_folds=3.")
        return self._ranker

    def _row(self, x: Any, values: Any) -> tuple[Any, ...]:
        """Return the row as flat arrays of the types that the compiled code takes; it checks what they hold."""
        if values is None:
            row = np.ascontiguousarray(x, dtype=np.float64)
            if row.ndim != 1:
                raise self._complaint(x, values)
            return (row,) if not self._evaluates_kernel_itself else (self._decisions(row),)
        columns, data = np.ascontiguousarray(x), np.ascontiguousarray(values, dtype=np.float64)
        if columns.dtype != np.int32:
            columns = self._as_int32(columns, x, values)
        if columns.ndim != 1 or data.ndim != 1:
            raise self._complaint(x, values)
        if isinstance(self._tree, LinearTree):
            return columns, data
        return self._row(self._densified(columns, data), None)

    def _as_int32(self, columns: npt.NDArray[Any], x: Any, values: Any) -> npt.NDArray[np.int32]:
        if columns.size == 0:
            return np.empty(0, dtype=np.int32)
        if columns.dtype.kind not in "iu" or columns.min() < 0 or columns.max() >= self.n_features:
            raise self._complaint(x, values)
        return columns.astype(np.int32)

    def _densified(self, columns: npt.NDArray[np.int32], values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        row = np.zeros(self.n_features)
        if len(columns) != len(values) or not _ascend_within(columns, self.n_features):
            raise self._complaint(columns, values)
        row[columns] = values
        return row

    def _decisions(self, row: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the values of all machines, for kernels that are no compiled code."""
        assert isinstance(self._tree, KernelTree)
        if len(row) != self.n_features or not np.isfinite(row).all():
            raise self._complaint(row, None)
        X = row.reshape(1, -1)
        if sp.issparse(self._tree.vectors):
            X = sp.csr_array(X)
        [(_, _, (values,), _)] = self._tree.blocks(X)
        return np.array(values[0])

    def _complaint(self, x: Any, values: Any) -> ValueError:
        if values is None:
            return ValueError(
                f"A dense row must have the shape ({self.n_features},) and finite values. Got shape {np.shape(x)}; "
                "impute or drop values that are NaN or infinite."
            )
        return ValueError(
            f"A sparse row is given by two arrays of one length: ascending columns from 0 to {self.n_features - 1}, "
            f"and finite values. Got shapes {np.shape(x)} and {np.shape(values)}, columns of type "
            f"{np.asarray(x).dtype}. Sort the columns, add up values of equal ones, and drop columns that the model "
            "does not know."
        )


def _ascend_within(columns: npt.NDArray[np.int32], n_features: int) -> bool:
    return len(columns) == 0 or bool(columns[0] >= 0 and columns[-1] < n_features and (np.diff(columns) > 0).all())
