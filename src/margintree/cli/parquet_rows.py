"""Rows from Parquet files, by pyarrow (extra ``parquet``)."""

from pathlib import Path
from typing import IO, Any

import numpy as np

from margintree.cli.row_format import RowFileError, RowFormat, Rows

# A column of one repeated value takes a few bytes. A file that decompresses to more bytes than this, and to more
# than so many times its size, is a decompression bomb.
ALWAYS_READ, LARGEST_EXPANSION = 2**26, 200


def read_parquet(stream: IO[bytes], path: Path, how: RowFormat, n_features: int | None) -> Rows:
    """Return the rows of a Parquet file: numeric columns, and a label column."""
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
    features = [j for j in range(len(names)) if j != place]
    if not features:
        raise RowFileError(f"{path} has a single column, the labels, and no features.")
    asks = how.label is None and n_features is None
    X = np.empty((table.num_rows, len(features)))
    for j, column in enumerate(features):
        X[:, j] = _numbers(table.column(column), path, names[column], asks=asks)
    labels = None
    if place is not None and table.num_rows:
        cells = ["" if value is None else str(value) for value in table.column(place).to_pylist()]
        labels = how.labels(path, cells, n_features)
    return Rows.of_table("parquet", X, labels, place, names)


def _check_size(metadata: Any, path: Path, n_bytes: int) -> None:
    """Refuse files that decompress to an absurd size before they do."""
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    needed = max(8 * metadata.num_rows * metadata.num_columns, sum(group.total_byte_size for group in groups))
    if needed > max(ALWAYS_READ, LARGEST_EXPANSION * n_bytes):
        raise RowFileError(
            f"{path} decompresses to more than {LARGEST_EXPANSION} times its size, like a decompression bomb. If you "
            "trust it, write it as CSV."
        )


def _numbers(column: Any, path: Path, name: str, *, asks: bool) -> Any:
    """Return the numbers of a column; ``asks`` is whether the label column was only guessed."""
    import pyarrow

    kind = column.type
    if not any(is_kind(kind) for is_kind in (pyarrow.types.is_integer, pyarrow.types.is_floating, _is_boolean)):
        advice = f"If it holds the labels, use --label {name!r}; otherwise drop it." if asks else "Drop it."
        raise RowFileError(f"{path}, column {name!r}: expected numbers, got {kind}. {advice}")
    values = column.cast(pyarrow.float64(), safe=False).to_numpy() if not _is_boolean(kind) else column.to_numpy()
    values = np.asarray(values, dtype=np.float64)
    # pyarrow turns missing values into NaN.
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0]) + 1
        raise RowFileError(
            f"{path}, row {row}, column {name!r}: a value is missing or not finite. Fill in or drop such values."
        )
    return values


def _is_boolean(kind: Any) -> bool:
    return str(kind) == "bool"
