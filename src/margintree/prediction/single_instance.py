"""A predictor for one row at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree import kernels
from margintree.prediction.kernel_tree import KernelTree
from margintree.prediction.linear_tree import LinearTree
from margintree.prediction.one_row import PolynomialGuard, RowReader
from margintree.prediction.ranker import Ranker, checked_k, no_scorers


@dataclass(frozen=True, eq=False)
class SingleInstancePredictor:
    """Classifies one row in one compiled call; read-only, so threads may share it.

    A row is given dense, ``predict(x)``, or sparse, ``predict(indices, values)`` with ascending columns. The labels
    are those of the estimator's ``predict``. Only what memory safety needs is checked: the width of a dense row,
    the columns of a sparse one, and that values are finite.
    """

    classes: npt.NDArray[Any]
    n_features: int
    _reader: RowReader
    _tree: LinearTree | KernelTree
    _ranker: Ranker | None
    _is_greedy: bool
    _forest: Any
    _scorers: Any
    _sizes: tuple[int, float, int, int]
    _width: int

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
        guard = None if isinstance(tree, LinearTree) else PolynomialGuard.of(tree.function, tree.vectors)
        reader, row_width = RowReader(n_features, isinstance(tree, LinearTree), guard=guard), n_features
        forest = tree.forest if isinstance(tree, LinearTree) else tree.one_row_forest
        if forest is None:
            assert isinstance(tree, KernelTree)
            reader = RowReader(n_features, False, tree.all_decisions, sp.issparse(tree.vectors))
            row_width, forest = len(tree.constants), tree.forest_of_values
        scorers = no_scorers() if ranker is None or ranker.scorers is None else ranker.scorers.arrays
        width, size = ranker.size_for(1) if ranker is not None else (0, 1)
        sizes = (width, 0.0 if ranker is None else ranker.gap, len(classes), size)
        return cls(classes, n_features, reader, tree, ranker, is_greedy, forest, scorers, sizes, row_width)

    def predict(self, x: Any, values: Any = None) -> Any:
        """Return the label of one row, dense ``x`` or sparse ``x`` (the columns) and ``values``."""
        row = self._reader.read(x, values)
        if self._is_greedy:
            leaf = kernels.single.greedy_leaf(row, self._width, self._forest)
            number = self._tree.trees[0].leaf_class[leaf] if leaf >= 0 else -1
        else:
            number = kernels.single.best_class(row, self._width, self._forest, self._scorers, *self._sizes)
        if number < 0:
            raise self._reader.complaint(x, values)
        return self.classes[number]

    def predict_top_k(self, x: Any, values: Any = None, *, k: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
        """Return the k most probable labels of one row and their probabilities, the best first."""
        k = checked_k(k, len(self.classes))
        width, size = self._fitted_ranker().size_for(k)
        row = self._reader.read(x, values)
        best, scores = kernels.single.best(
            row, self._width, self._forest, self._scorers, width, self._sizes[1], len(self.classes), size, k
        )
        if best[0] < 0:
            raise self._reader.complaint(x, values)
        return self.classes[best[:k]], scores[:k]

    def predict_proba(self, x: Any, values: Any = None) -> npt.NDArray[np.float64]:
        """Return the probability of every class for one row."""
        self._fitted_ranker()
        row = self._reader.read(x, values)
        result: npt.NDArray[np.float64] = kernels.single.all_probabilities(
            row, self._width, self._forest, self._scorers, *self._sizes
        )
        if len(result) == 0:
            raise self._reader.complaint(x, values)
        return result

    def _fitted_ranker(self) -> Ranker:
        if self._ranker is None:
            raise AttributeError(
                "Probabilities need calibrated sigmoids, which this model was fitted without. "
                "MarginTreeClassifier has them with calibration_folds='auto'."
            )
        return self._ranker
