"""Compiled inner loops: arrays in, arrays out.

Importing this package does not import numba, which takes about half a second; each module is
imported when its first function is needed.
"""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

# Halvings of a Newton step before it is given up as lost in rounding.
MAX_HALVINGS = 30


def __getattr__(name: str) -> ModuleType:
    if find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
