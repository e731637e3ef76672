"""Rows from Parquet files, by pyarrow (extra ``parquet``)."""

from pathlib import Path
from typing import IO, Any

import numpy as np

from margintree.cli.row_format import FittedFormat, RowFileError, RowFormat, Rows, is_number, labels_of

# A column of the same value over and over takes a few bytes. Files of more numbers than this, and than so many times
# their size, are made to fill the memory.
ALWAYS_READ, LARGEST_EXPANSION = 2**26, 200


def read_parquet(stream: IO[bytes], path: Path, how: RowFormat, n_features: int | None) -> Rows:
    """Return the rows of a Parquet file: a column of labels, and columns of numbers."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise RowFileError(
            f"{path} is read as Parquet, which needs pyarrow: pip install 'margintree[parquet]'."
        ) from error
    content = stream.read()
    try:
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(content))
        _check_size(file.metadata, path, len(content))
        table = file.read()
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(str(error)) from error
    names = table.column_names
    place = how.place_of_label(path, names, n_features)
    features = tuple(name for j, name in enumerate(names) if j != place)
    if not features:
        raise RowFileError(f"{path} has one column, the label, and nothing to tell it from.")
    asks = how.label is None and n_features is None
    X = np.empty((table.num_rows, len(features)))
    for j, column in enumerate(j for j in range(len(names)) if j != place):
        X[:, j] = _numbers(table.column(column), path, names[column], asks=asks)
    is_named = all(features) and len(set(features)) == len(features)
    if place is None:
        return Rows(X, None, FittedFormat("parquet"), features if is_named else None)
    cells = ["" if value is None else str(value) for value in table.column(place).to_pylist()]
    if cells:
        how.check_guess(path, cells, n_features)
    label = None if is_number(names[place]) else names[place]
    labels = labels_of(path, cells) if cells else None
    return Rows(X, labels, FittedFormat("parquet", label, place), features if is_named else None)


def _check_size(metadata: Any, path: Path, n_bytes: int) -> None:
    """Refuse files that unpack without bounds before they do."""
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    needed = max(8 * metadata.num_rows * metadata.num_columns, sum(group.total_byte_size for group in groups))
    if needed > max(ALWAYS_READ, LARGEST_EXPANSION * n_bytes):
        raise RowFileError(
            f"{path} unpacks to more than {LARGEST_EXPANSION} times its size, as a file does that is made to fill the "
            "memory. If you trust it, write it as CSV."
        )


def _numbers(column: Any, path: Path, name: str, *, asks: bool) -> Any:
    """Return the numbers of a column; with ``asks`` the label may be in it."""
    import pyarrow

    kind = column.type
    if not any(is_kind(kind) for is_kind in (pyarrow.types.is_integer, pyarrow.types.is_floating, _is_boolean)):
        advice = f"If it holds the labels, say --label {name!r}; otherwise drop it." if asks else "Drop it."
        raise RowFileError(f"{path}, column {name!r}: {kind} where numbers belong. {advice}")
    values = column.cast(pyarrow.float64(), safe=False).to_numpy() if not _is_boolean(kind) else column.to_numpy()
    values = np.asarray(values, dtype=np.float64)
    # pyarrow turns values that are missing into NaN.
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0]) + 1
        raise RowFileError(
            f"{path}, row {row}, column {name!r}: a value is missing or not finite. Fill in or drop such values."
        )
    return values


def _is_boolean(kind: Any) -> bool:
    return str(kind) == "bool"
