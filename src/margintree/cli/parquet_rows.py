"""Rows from Parquet files, by pyarrow (extra ``parquet``)."""

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from margintree.cli.row_format import ALWAYS_UNPACKED, LARGEST_EXPANSION, RowFileError, RowFormat, Rows


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
        file, place = opened(pyarrow.BufferReader(content), path, how, n_features, len(content))
        names = file.schema_arrow.names
        table = file.read()
        # A damaged file may have labels that its dictionary lacks.
        table.validate(full=True)
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(str(error)) from error
    features = [j for j in range(len(names)) if j != place]
    if not features:
        raise RowFileError(f"{path} has a single column, the labels, and no features.")
    X = np.empty((table.num_rows, len(features)))
    for j, column in enumerate(features):
        X[:, j] = _numbers(table.column(column), path, names[column])
    labels = None
    if place is not None and table.num_rows:
        labels = how.labels(path, _texts(table.column(place), path, len(content)), n_features)
    return Rows.of_table("parquet", X, labels, place, names)


def opened(
    source: Any, path: Path, how: RowFormat, n_features: int | None, n_bytes: int, columns: Sequence[str] | None = None
) -> tuple[Any, int | None]:
    """Return a file whose columns and announced size have been checked, and the place of its label column.

    ``columns`` are those that will be used, by default all. No column is read yet: text that is stored once may be
    repeated in millions of rows.
    """
    import pyarrow.parquet

    schema = pyarrow.parquet.read_schema(source)
    if columns is not None:
        schema = pyarrow.schema([schema.field(name) for name in columns])
    place = how.place_of_label(path, schema.names, n_features)
    _check_types(schema, path, place, is_guess=how.label is None and n_features is None)
    texts = [] if place is None else [schema.names[place]]
    file = pyarrow.parquet.ParquetFile(source, read_dictionary=texts)
    _check_size(_announced(file.metadata), path, n_bytes)
    return file, place


def check_texts(file: Any, name: str, path: Path, n_bytes: int) -> None:
    """Refuse labels that decompress to an absurd size, without decompressing them."""
    import pyarrow.compute

    n_characters = 0
    for batch in file.iter_batches(columns=[name]):
        batch.validate(full=True)
        encoded = batch.column(0).dictionary_encode()
        lengths = pyarrow.compute.utf8_length(encoded.dictionary.cast(pyarrow.string()))
        n_characters += pyarrow.compute.sum(lengths.take(encoded.indices)).as_py() or 0
        _check_size(n_characters, path, n_bytes)


def _check_types(schema: Any, path: Path, place: int | None, *, is_guess: bool) -> None:
    """Require numeric features, and labels that are numbers or text.

    ``is_guess`` says that the label column was not given.
    """
    from pyarrow import types

    for j, (name, kind) in enumerate(zip(schema.names, schema.types, strict=True)):
        if j == place:
            kind = kind.value_type if types.is_dictionary(kind) else kind
            are_texts = types.is_string(kind) or types.is_large_string(kind)
            if not (are_texts or types.is_primitive(kind) or types.is_decimal(kind)):
                raise RowFileError(f"{path}, column {name!r}: expected numbers or text as labels, got {kind}.")
        elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            advice = f"If it holds the labels, use --label {name!r}; otherwise drop it." if is_guess else "Drop it."
            raise RowFileError(f"{path}, column {name!r}: expected numbers, got {kind}. {advice}")


def _announced(metadata: Any) -> int:
    """Return the bytes that the numbers of a file take, and its text if none of it is repeated."""
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    return int(max(8 * metadata.num_rows * metadata.num_columns, sum(group.total_byte_size for group in groups)))


def _check_size(needed: int, path: Path, n_bytes: int) -> None:
    """Refuse a file before it decompresses to an absurd size."""
    if needed > max(ALWAYS_UNPACKED, LARGEST_EXPANSION * n_bytes):
        raise RowFileError(
            f"{path} decompresses to more than {LARGEST_EXPANSION} times its size, like a decompression bomb. If you "
            "trust it, write it as CSV."
        )


def _texts(column: Any, path: Path, n_bytes: int) -> list[str]:
    """Return labels as text; missing ones are empty. Equal labels share one Python object."""
    cells: list[str] = []
    for chunk in column.chunks:
        encoded = chunk.dictionary_encode()
        words = [str(value) for value in encoded.dictionary.to_pylist()]
        cells += ["" if code is None else words[code] for code in encoded.indices.to_pylist()]
    _check_size(sum(map(len, cells)), path, n_bytes)
    return cells


def _numbers(column: Any, path: Path, name: str) -> Any:
    """Return the numbers of a column."""
    import pyarrow

    is_boolean = pyarrow.types.is_boolean(column.type)
    values = column.to_numpy() if is_boolean else column.cast(pyarrow.float64(), safe=False).to_numpy()
    values = np.asarray(values, dtype=np.float64)
    # pyarrow turns missing values into NaN.
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0]) + 1
        raise RowFileError(
            f"{path}, row {row}, column {name!r}: a value is missing or not finite. Put a number there, or drop the "
            "row or the column."
        )
    return values
