"""Compiled inner loops: arrays in, arrays out.

Importing this package does not import numba, which takes about half a second; each module is
imported when its first kernel is needed.
"""

from importlib import import_module
from types import ModuleType

_MODULES = (
    "all_together",
    "compile",
    "flat",
    "flat_ranking",
    "gather",
    "joint",
    "kernel_dual",
    "knapsack",
    "labellings",
    "leaf_dual",
    "linear_dual",
    "machine",
    "pairs",
    "paths",
    "pointers",
    "ranking",
    "row_keys",
    "rows",
    "sigmoids",
    "single",
    "softmax_dual",
    "stream",
    "tables",
    "walk",
)


def __getattr__(name: str) -> ModuleType:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
