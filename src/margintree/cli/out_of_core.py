"""``margintree fit --memory``: rows that stay in files, fitted in pieces by processes of bounded memory."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import typer

from margintree.cli.parquet_rows import check_texts, opened
from margintree.cli.row_files import DENSE_FILE_SHARE, MOST_COLUMNS, read_rows
from margintree.cli.row_format import STANDARD_INPUT, FittedFormat, RowFileError, RowFormat, Rows
from margintree.estimators.margin_tree import MarginTreeClassifier

# Share of a worker's memory for the rows of one node, which are copied several times.
PART_FOR_NODE = 0.1
# A stored value of a sparse row, and one of a dense row.
BYTES_OF_SPARSE, BYTES_OF_DENSE = 12, 8
# Rows that a worker reads at a time.
BYTES_OF_BLOCK = 2**25


@contextmanager
def bounded(memory: str, n_jobs: int | None) -> Iterator["BoundedMemory"]:
    """Start processes that share the given amount of memory."""
    try:
        from dask.utils import parse_bytes
        from distributed import Client

        from margintree.dask.local_cluster import local_cluster
    except ImportError as error:
        raise RowFileError("--memory needs Dask: pip install 'margintree[dask]'.") from error
    try:
        n_bytes = int(parse_bytes(memory))
    except (ValueError, OverflowError):
        n_bytes = 0
    n_workers = n_jobs if n_jobs and n_jobs > 0 else os.cpu_count() or 1
    bytes_per_worker = n_bytes // n_workers
    # To Dask, 0 means without limit.
    if bytes_per_worker < 1:
        raise typer.BadParameter(f"--memory must be a size such as 2GB or 500MB. Got {memory!r}.")
    with (
        TemporaryDirectory(prefix="margintree-") as directory,
        local_cluster(n_workers, bytes_per_worker) as cluster,
        Client(cluster) as client,
    ):
        yield BoundedMemory(client, bytes_per_worker, Path(directory))


def load_block(path: Path, first: int, shape: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Return rows of a file of numbers, from the given one on."""
    return np.fromfile(path, count=shape[0] * shape[1], offset=BYTES_OF_DENSE * first * shape[1]).reshape(shape)


class BoundedMemory:
    """Reads rows lazily, and fits them with as many rows per node as fit into a worker's memory."""

    def __init__(self, client: Any, n_bytes: int, directory: Path) -> None:
        self._client, self._n_bytes, self._directory = client, n_bytes, directory

    def read(self, path: Path, how: RowFormat) -> Rows:
        """Return the rows of a file, without loading them into memory."""
        read, kind = {"csv": self._csv, "svmlight": self._svmlight, "parquet": self._parquet}, how.kind(path)
        if path == STANDARD_INPUT and kind != "csv":
            raise RowFileError(
                f"With --memory, {kind} rows are read in pieces, and standard input has none. Save the rows to a file."
            )
        rows, self._bytes_per_row = read[kind](path, how)
        return rows

    # Each reader returns the rows, and the bytes that one of them takes in memory.

    def _csv(self, path: Path, how: RowFormat) -> tuple[Rows, float]:
        """Convert the file to one of numbers, line by line, which workers can read in pieces."""
        import dask.array as da
        from dask import delayed

        values_path = self._directory / "values"
        rows = read_rows(path, replace(how, values_path=values_path))
        n_rows, n_features = rows.X.shape
        row_bytes = n_features * BYTES_OF_DENSE
        # If only the label column has a name in the header row, the numbers of that row are in the file, too.
        skipped = values_path.stat().st_size // row_bytes - n_rows
        height = max(1, BYTES_OF_BLOCK // row_bytes)
        labels, load, blocks = da.from_array(rows.labels, chunks=height), delayed(load_block), []
        for first, length in zip(range(skipped, skipped + n_rows, height), labels.chunks[0], strict=True):
            shape = (length, n_features)
            blocks.append(da.from_delayed(load(values_path, first, shape), shape, np.float64))
        return replace(rows, X=da.concatenate(blocks), labels=labels), row_bytes

    def _svmlight(self, path: Path, how: RowFormat) -> tuple[Rows, float]:
        from margintree.dask.svmlight import SvmlightFacts, in_blocks, pieces_of

        pieces = pieces_of(path)
        facts = SvmlightFacts.of(pieces)
        if facts.last_column is None or facts.first_column is None:
            raise RowFileError(f"{path} contains no rows, or none with a value.")
        one_based = facts.first_column > 0 if how.one_based is None else how.one_based
        n_features = facts.last_column + int(not one_based)
        if n_features > MOST_COLUMNS or (one_based and facts.first_column == 0):
            raise RowFileError(
                f"{path} has columns from {facts.first_column} to {facts.last_column}. They must start at "
                f"{int(one_based)}, and at most {MOST_COLUMNS} are supported."
            )
        is_dense = facts.n_stored >= DENSE_FILE_SHARE * facts.n_rows * n_features
        row_bytes = n_features * BYTES_OF_DENSE if is_dense else BYTES_OF_SPARSE * facts.n_stored / facts.n_rows
        X, y = in_blocks(pieces, n_features, one_based=one_based, is_dense=is_dense)
        y = y.astype("int64") if facts.has_whole_labels else y
        return Rows(X, y, FittedFormat("svmlight", one_based=one_based)), row_bytes

    def _parquet(self, path: Path, how: RowFormat) -> tuple[Rows, float]:
        import dask.dataframe as dd

        frame, n_bytes = dd.read_parquet(path, split_row_groups="adaptive", blocksize="32 MiB"), path.stat().st_size
        # Without the index of pandas, which may be among the columns of the file.
        names = list(frame.columns)
        with path.open("rb") as stream:
            file, place = opened(stream, path, how, None, n_bytes, names)
            assert place is not None
            check_texts(file, names[place], path, n_bytes)
        X = frame.drop(columns=names[place])
        return Rows.of_table("parquet", X, frame[names[place]], place, names), X.shape[1] * BYTES_OF_DENSE

    def fit(self, rows: Rows, parameters: dict[str, Any], verbose: int) -> MarginTreeClassifier:
        """Fit on the workers."""
        from margintree.dask import ClusterLostError, DaskMarginTreeClassifier

        most_rows = max(1000, int(PART_FOR_NODE * self._n_bytes / max(1.0, self._bytes_per_row)))
        model = DaskMarginTreeClassifier(
            **parameters, client=self._client, max_rows_per_node=most_rows, verbose=verbose
        )
        try:
            return model.fit(rows.X, rows.labels).to_local()
        except ClusterLostError as error:
            raise MemoryError("Processes were killed; use a larger --memory or fewer --jobs.") from error
