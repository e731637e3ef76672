"""Rows of a Dask collection, sorted into the order of a training set without collecting them in one process.

Each block is checked and written to files of its own. The order of the rows depends on labels, weights and a hash of
the content of each row, which are all that the client sees. Then each part of the ordered rows is put together from the
files of the blocks. Tasks that are repeated write the same bytes again.
"""

import itertools
import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import check_classification_targets

from margintree.dask.array_files import ArrayPlace, write_atomically
from margintree.dask.cluster import Cluster
from margintree.dask.worker_tasks import keep_memory_low
from margintree.estimators.sparse_input import checked_indices, in_canonical_form
from margintree.estimators.training_data import TrainingData, checked_weight, sorted_rows
from margintree.solvers.row_keys import row_keys

Index = npt.NDArray[np.int64]

# Rows that are put together in one task; it holds up to three copies of them.
PART_BYTES = 2**24
LARGEST_INT32 = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Rules:
    """The arguments of scikit-learn's ``check_X_y`` for blocks."""

    of_dense: dict[str, Any]
    of_sparse: dict[str, Any]


@dataclass(frozen=True, eq=False)
class BlockFacts:
    """Facts about a block for the client: label, content key, weight and number of stored values of each row."""

    n_features: int
    labels: npt.NDArray[Any]
    codes: npt.NDArray[np.int32]
    keys: npt.NDArray[np.uint64]
    weight: npt.NDArray[np.float64] | None
    # None for dense rows.
    lengths: npt.NDArray[np.int32] | None
    arrays: dict[str, ArrayPlace]

    @property
    def n_rows(self) -> int:
        return len(self.codes)


def write_block(X: Any, y: Any, weight: Any, number: int, *, directory: str, rules: Rules) -> BlockFacts:
    """Check a block of rows and write it to files; runs on a worker."""
    if X.shape[0] == 0 and len(y) == 0:
        none = np.empty(0, dtype=np.int32)
        return BlockFacts(X.shape[1], np.empty(0), none, none.astype(np.uint64), None, None, {})
    try:
        asked = rules.of_sparse if sp.issparse(X) else rules.of_dense
        X, y = check_X_y(checked_indices(X), y, ensure_min_samples=0, **asked)
        X = in_canonical_form(X)
        weight = None if weight is None else checked_weight(np.asarray(weight), X)
    except Exception as error:
        error.add_note(f"This happened while margintree read block {number} of the rows (counted from 0).")
        raise
    labels, codes = np.unique(y, return_inverse=True)
    stored = {"values": X.data, "columns": X.indices, "start": X.indptr} if sp.issparse(X) else {"values": X}
    places = {name: _write(array, os.path.join(directory, f"block-{number}-{name}")) for name, array in stored.items()}
    lengths = np.diff(X.indptr).astype(np.int32) if sp.issparse(X) else None
    return BlockFacts(X.shape[1], labels, codes.astype(np.int32), row_keys(X), weight, lengths, places)


def _write(array: npt.NDArray[Any], path: str) -> ArrayPlace:
    array = np.ascontiguousarray(array)
    write_atomically(path, array.tofile)
    return ArrayPlace(path, 0, array.dtype, array.shape)


def ordered_rows(
    cluster: Cluster, blocks: list[tuple[Any, ...]], rules: Rules, *, C: float, class_weight: Any
) -> TrainingData:
    """Write the rows of all blocks to files in the order of a training set, and return it, mapped."""
    write = partial(write_block, directory=str(cluster.files.path), rules=rules)
    facts = cluster.compute(write, [(*block, number) for number, block in enumerate(blocks)], "read rows")
    _check_alike(facts)
    full = [fact for fact in facts if fact.n_rows]
    classes = np.unique(np.concatenate([fact.labels for fact in full]))
    # Each label twice, because scikit-learn warns if most of them occur only once.
    check_classification_targets(np.repeat(classes, 2))
    codes = np.concatenate([np.searchsorted(classes, fact.labels)[fact.codes] for fact in full])
    weight = np.concatenate([np.ones(fact.n_rows) if fact.weight is None else fact.weight for fact in full])
    keys = np.concatenate([fact.keys for fact in full])
    data = sorted_rows(classes, codes, weight, keys, C=C, class_weight=class_weight)
    return replace(data, X=_in_order(cluster, full, data.original_row))


def _check_alike(facts: list[BlockFacts]) -> None:
    for number, fact in enumerate(facts):
        if fact.n_features != facts[0].n_features:
            raise ValueError(
                f"All blocks of X must have the same columns. Block 0 has {facts[0].n_features}, block {number} has "
                f"{fact.n_features}."
            )
    full = [fact for fact in facts if fact.n_rows]
    if not full:
        raise ValueError(f"X has no rows: all of its {len(facts)} blocks are empty.")
    kinds = sorted({"number" if fact.labels.dtype.kind in "biuf" else "text or object" for fact in full})
    if len(kinds) > 1:
        raise ValueError(f"Labels must be of the same kind in all blocks. Got {' and '.join(kinds)}.")
    if len({fact.lengths is None for fact in full}) > 1:
        raise ValueError("Blocks of X must be all dense or all sparse. Got both; convert them with map_blocks.")


def _in_order(cluster: Cluster, facts: list[BlockFacts], order: Index) -> Any:
    """Put the rows of the blocks together in the given order."""
    files, n_features = cluster.files, facts[0].n_features
    block_start = np.concatenate([[0], np.cumsum([fact.n_rows for fact in facts])])
    dtype = np.result_type(*(fact.arrays["values"].dtype for fact in facts))
    sources = [fact.arrays for fact in facts]
    if facts[0].lengths is None:
        row_bytes, start = np.full(len(order), n_features * dtype.itemsize), None
        targets = {"values": files.empty("values", dtype, (len(order), n_features))}
    else:
        lengths = np.concatenate([fact.lengths for fact in facts if fact.lengths is not None])[order]
        start = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        index_type = np.int32 if start[-1] <= LARGEST_INT32 else np.int64
        row_bytes, start = lengths * (dtype.itemsize + 4), start.astype(index_type)
        kinds = {"values": dtype, "columns": np.dtype(index_type)}
        targets = {name: files.empty(name, kind, (int(start[-1]),)) for name, kind in kinds.items()}
    bounds = _parts(row_bytes, cluster.n_threads)
    work = partial(write_part, order=order, block_start=block_start, sources=sources, targets=targets, start=start)
    cluster.map(work, list(itertools.pairwise(bounds)), "order rows")
    for place in (place for source in sources for place in source.values()):
        Path(place.path).unlink(missing_ok=True)
        files.n_bytes += place.n_bytes
    cluster.n_bytes_of_rows = int(row_bytes.sum())
    values = targets["values"].open()
    if start is None:
        return values
    return sp.csr_array((values, targets["columns"].open(), start), shape=(len(order), n_features), copy=False)


def _parts(row_bytes: npt.NDArray[Any], n_threads: int) -> list[int]:
    """Return the boundaries of parts that take about the same memory, at least two per thread."""
    until = np.cumsum(row_bytes, dtype=np.int64)
    n_parts = min(len(until), max(2 * n_threads, -(-int(until[-1]) // PART_BYTES)))
    inner = np.searchsorted(until, until[-1] * np.arange(1, n_parts) / n_parts)
    return sorted({0, *inner.tolist(), len(until)})


def write_part(
    bounds: tuple[int, int],
    *,
    order: Index,
    block_start: Index,
    sources: list[dict[str, ArrayPlace]],
    targets: dict[str, ArrayPlace],
    start: npt.NDArray[Any] | None,
) -> None:
    """Write the rows between two positions of the order; runs on a worker."""
    first, last = bounds
    rows = order[first:last]
    block = np.searchsorted(block_start, rows, side="right") - 1
    # Rows arrive block by block, and are sorted afterwards.
    by_block = np.lexsort((rows, block))
    taken = []
    for number in np.unique(block).tolist():
        of_block = rows[by_block[block[by_block] == number]] - block_start[number]
        arrays = {name: place.open() for name, place in sources[number].items()}
        values = arrays["values"]
        if start is not None:
            shape = (len(arrays["start"]) - 1, LARGEST_INT32)
            values = sp.csr_array((values, arrays["columns"], arrays["start"]), shape=shape, copy=False)
        taken.append(values[of_block])
        del arrays, values
        keep_memory_low()
    together: Any = sp.vstack(taken, format="csr") if start is not None else np.concatenate(taken)
    place = np.empty(len(rows), dtype=np.int64)
    place[by_block] = np.arange(len(rows))
    together = together[place]
    if start is None:
        _write_at(targets["values"], first * together.shape[1], together)
    else:
        _write_at(targets["values"], int(start[first]), together.data)
        _write_at(targets["columns"], int(start[first]), together.indices)


def _write_at(target: ArrayPlace, number: int, values: npt.NDArray[Any]) -> None:
    """Write values to a file, starting at the given position."""
    with open(target.path, "r+b") as stream:
        stream.seek(number * target.dtype.itemsize)
        stream.write(np.ascontiguousarray(values, target.dtype).data)
