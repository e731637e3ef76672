"""Doctests of the room for Dask are left out where the extra is not installed."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("distributed") else ["margintree/dask/*"]
