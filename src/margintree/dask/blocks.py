"""Dask arrays and frames as lists of blocks of rows."""

from typing import Any

import dask.array as da
import scipy.sparse as sp
from dask.delayed import Delayed
from dask.sizeof import sizeof

# Dask knows the size of scipy's sparse matrices, but not of its sparse arrays. It would assume that they are tiny, and
# move rows to where their labels are.
sizeof.register(sp.csr_array, lambda rows: sum(sizeof(part) for part in vars(rows).values()))


def is_frame(collection: Any) -> bool:
    """Return whether a collection has columns with names, or is one of them."""
    return hasattr(collection, "map_partitions") and hasattr(collection, "npartitions") and hasattr(collection, "_meta")


def blocks_of(collection: Any, name: str) -> list[Delayed]:
    """Return the blocks of rows of a Dask array or frame."""
    if not (isinstance(collection, da.Array) or is_frame(collection)):
        raise TypeError(
            f"{name} must be a Dask array, data frame or series. Got {type(collection).__name__}. Make one with "
            "dask.array.from_array or dask.dataframe.from_pandas, or use margintree.MarginTreeClassifier, which takes "
            "rows that are in memory."
        )
    if isinstance(collection, da.Array) and collection.ndim == 2 and collection.numblocks[1] > 1:
        # A row is never in two blocks.
        collection = collection.rechunk({1: -1})
    delayed = collection.to_delayed()
    return list(delayed if isinstance(delayed, list) else delayed.ravel())


def aligned(X: Any, y: Any, sample_weight: Any) -> list[tuple[Delayed, Delayed, Delayed | None]]:
    """Return blocks of rows with their labels and weights; these are divided like X, if lengths are known."""
    rows = blocks_of(X, "X")
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and columns. Got {X.ndim}.")

    def beside(values: Any, name: str) -> list[Delayed]:
        known = [getattr(one, "chunks", ((float("nan"),),))[0] for one in (X, values)]
        # Unknown lengths are NaN, which is not equal to itself.
        if known[0] != known[1] and all(length == length for chunks in known for length in chunks):
            if sum(known[0]) != sum(known[1]):
                raise ValueError(
                    f"X and {name} must have the same number of rows. Got {sum(known[0])} and {sum(known[1])}."
                )
            values = values.rechunk((known[0], *values.chunks[1:]))
        blocks = blocks_of(values, name)
        if len(blocks) != len(rows):
            raise ValueError(
                f"X and {name} must be divided into the same blocks, since not all of their lengths are known. X has "
                f"{len(rows)} and {name} has {len(blocks)}. Call compute_chunk_sizes() on arrays, or repartition."
            )
        return blocks

    weights = [None] * len(rows) if sample_weight is None else beside(sample_weight, "sample_weight")
    return list(zip(rows, beside(y, "y"), weights, strict=True))
