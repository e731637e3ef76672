"""Content hashes of rows.

Rows sorted or assigned to folds by their hash depend neither on the position of a row in the data nor on a seed.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree import compiled
from margintree.solvers.node_rows import Matrix
from margintree.solvers.row_layout import layout

Keys = npt.NDArray[np.uint64]


def row_keys(X: Any, *, pairwise: bool = False) -> Keys:
    """Return a number for each row, the same for a dense and for a sparse row.

    For a matrix of kernel values it is a hash of the set of values in a row, which is independent of repeated rows and
    their order.
    """
    if pairwise:
        return np.concatenate([_keys(np.unique(row)[None, :], counts_columns=False) for row in X])
    return _keys(sp.csr_array(X) if sp.issparse(X) else X, counts_columns=True)


def _keys(X: Matrix, *, counts_columns: bool) -> Keys:
    return np.asarray(compiled.row_keys.of_rows(layout(X), X.shape[0], counts_columns))
