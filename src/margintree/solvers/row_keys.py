"""Content hashes of rows.

Rows sorted or assigned to folds by their hash depend neither on the position of a row in the data nor on a seed.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree import compiled
from margintree.solvers.linear_rows import layout

Keys = npt.NDArray[np.uint64]


def row_keys(X: Any, *, pairwise: bool = False) -> Keys:
    """Return a number for each row, the same for a dense and for a sparse row.

    For a matrix of kernel values it is a hash of the set of values in a row, which is independent of repeated rows and
    their order.
    """
    if pairwise:
        kept = [np.unique(row) for row in X]
        return np.concatenate([compiled.row_keys.of_dense(row[None, :], False) for row in kept])
    rows = layout(sp.csr_array(X) if sp.issparse(X) else X)
    keys = compiled.row_keys.of_dense(rows[0], True) if len(rows) == 1 else compiled.row_keys.of_sparse(*rows)
    return np.asarray(keys)
