"""Margin trees on a Dask cluster: more rows and classes than one process holds.

The only room that imports dask (extra ``dask``).
"""

try:
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        "margintree.dask needs Dask with its distributed scheduler: pip install 'margintree[dask]'."
    ) from error

from margintree.dask.classifier import DaskMarginTreeClassifier, FitTraffic
from margintree.dask.cluster import ClusterLostError
from margintree.dask.svmlight import read_svmlight

__all__ = ["ClusterLostError", "DaskMarginTreeClassifier", "FitTraffic", "read_svmlight"]
