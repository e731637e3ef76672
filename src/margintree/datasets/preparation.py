"""The usual scaling of each data set, fitted on training rows only.

- svmguide4: every feature to [-1, 1] by the minimum and maximum of the training rows;
- word counts: tf-idf with logarithmic term frequency, rows of unit length;
- counts of visual words: square roots, rows of unit length;
- the others are used as provided by their source.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer
from sklearn.utils import Bunch

from margintree.datasets.registry import named


def usual_preparation(name: str) -> Any:
    """Return a new transformer with the usual scaling of a data set.

    Parameters
    ----------
    name : str
        A key of ``DATA_SETS``.

    Returns
    -------
    transformer
        A scikit-learn transformer that has not been fitted.

    Examples
    --------
    >>> from margintree.datasets import usual_preparation
    >>> usual_preparation("svmguide4")
    MinMaxScaler(feature_range=(-1, 1))
    """
    kind = named(name).preparation
    if kind == "minmax":
        return MinMaxScaler((-1, 1))
    if kind == "tfidf":
        return TfidfTransformer(sublinear_tf=True)
    if kind == "sqrt_l2":
        return make_pipeline(FunctionTransformer(np.sqrt), Normalizer())
    return FunctionTransformer(accept_sparse=True)


def prepared(bunch: Bunch, train_rows: npt.ArrayLike) -> Any:
    """Return all rows of a data set with its usual scaling, fitted on some of them.

    Parameters
    ----------
    bunch : Bunch
        As returned by a ``fetch_*`` function.
    train_rows : array-like of int or bool
        Index or mask of the rows to fit on.

    Returns
    -------
    ndarray or csr_matrix
        The rows in the order of ``bunch.data``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.utils import Bunch
    >>> from margintree.datasets import prepared
    >>> bunch = Bunch(name="svmguide4", data=np.array([[0.0], [4.0], [6.0]]))
    >>> prepared(bunch, [0, 1]).ravel()
    array([-1.,  1.,  2.])
    """
    rows = np.asarray(train_rows)
    if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iub":
        raise ValueError(
            f"train_rows must be a list of row numbers or a mask of rows, and not empty; got {train_rows!r}."
        )
    return usual_preparation(bunch.name).fit(bunch.data[rows]).transform(bunch.data)
