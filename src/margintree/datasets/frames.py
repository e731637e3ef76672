"""A data set as a pandas DataFrame."""

import scipy.sparse as sp
from sklearn.utils import Bunch


def as_frames(bunch: Bunch) -> None:
    """Turn the rows of a Bunch into a DataFrame, its target into a Series, and set ``frame`` to both."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "as_frame=True needs pandas, which is not installed: pip install 'margintree[frames]'."
        ) from error
    columns = bunch.feature_names
    if sp.issparse(bunch.data):
        data = pd.DataFrame.sparse.from_spmatrix(bunch.data, columns=columns)
    else:
        data = pd.DataFrame(bunch.data, columns=columns, copy=False)
    target = pd.Series(bunch.target, name="target")
    bunch.update(data=data, target=target, frame=pd.concat([data, target], axis=1))
