"""Large svmlight files as Dask arrays of CSR blocks."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask import delayed
from dask.base import compute
from dask.utils import parse_bytes
from sklearn.datasets import load_svmlight_file

# Wider than any file: pieces of a file are loaded with this width, and cut to the width of the file afterwards.
WIDEST = 2**31 - 2
BLOCK = "32 MiB"


@dataclass(frozen=True)
class SvmlightPiece:
    """Lines of a file from the first that begins after ``offset``, or at 0, to the one that passes the length."""

    path: str
    offset: int
    length: int

    def load(self) -> tuple[sp.csr_array, Any]:
        """Return the rows, whose columns count from 0 as they are written, and the labels."""
        X, y = load_svmlight_file(self.path, n_features=WIDEST, zero_based=True, offset=self.offset, length=self.length)
        return sp.csr_array(X), y


@dataclass(frozen=True)
class SvmlightFacts:
    """Facts about a file that all its pieces need; columns are None if nothing is stored."""

    n_rows: int
    n_stored: int
    first_column: int | None
    last_column: int | None
    has_whole_labels: bool

    @classmethod
    def of_piece(cls, piece: SvmlightPiece) -> "SvmlightFacts":
        """Scan a piece of a file."""
        X, y = piece.load()
        first, last = (int(X.indices.min()), int(X.indices.max())) if X.nnz else (None, None)
        is_whole = bool(np.isfinite(y).all() and (np.rint(y) == y).all() and (np.abs(y) < 2.0**53).all())
        return cls(len(y), X.nnz, first, last, is_whole)

    @classmethod
    def of(cls, pieces: list[SvmlightPiece]) -> "SvmlightFacts":
        """Scan all pieces of a file, with the current Dask scheduler."""
        facts = compute(*(delayed(cls.of_piece)(piece) for piece in pieces))
        columns = [(one.first_column, one.last_column) for one in facts if one.first_column is not None]
        return cls(
            sum(one.n_rows for one in facts),
            sum(one.n_stored for one in facts),
            min((first for first, _ in columns), default=None),
            max((last for _, last in columns), default=None),
            all(one.has_whole_labels for one in facts),
        )


def pieces_of(path: str | os.PathLike[str], blocksize: int | str = BLOCK) -> list[SvmlightPiece]:
    """Divide a file into pieces of about the given size."""
    if Path(path).suffix.lower() in (".gz", ".bz2"):
        raise ValueError(f"A compressed file cannot be read in pieces. Decompress {path} first.")
    step, size = int(parse_bytes(blocksize)), Path(path).stat().st_size
    if step < 1:
        raise ValueError(f"blocksize must be positive. Got {blocksize!r}.")
    return [SvmlightPiece(str(Path(path).resolve()), first, step) for first in range(0, max(1, size), step)]


def load_rows(piece: SvmlightPiece, n_features: int, one_based: bool, is_dense: bool) -> tuple[Any, Any]:
    """Return the rows of a piece and their labels; columns beyond the width are ignored."""
    X, y = piece.load()
    X = X[:, int(one_based) : n_features + int(one_based)]
    return (X.toarray() if is_dense else X), y


def in_blocks(
    pieces: list[SvmlightPiece], n_features: int, *, one_based: bool, is_dense: bool = False
) -> tuple[da.Array, da.Array]:
    """Return the rows of pieces and their labels."""
    meta = np.empty((0, n_features)) if is_dense else sp.csr_array((0, n_features))
    load = delayed(load_rows, nout=2)
    loaded = [load(piece, n_features, one_based, is_dense) for piece in pieces]
    rows = [da.from_delayed(X, (np.nan, n_features), np.float64, meta=meta) for X, _ in loaded]
    labels = [da.from_delayed(y, (np.nan,), np.float64) for _, y in loaded]
    return tuple(da.concatenate(blocks, allow_unknown_chunksizes=True) for blocks in (rows, labels))


def read_svmlight(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    blocksize: int | str = BLOCK,
) -> tuple[da.Array, da.Array]:
    """Return the rows of an svmlight file, which may be larger than memory, as lazy CSR blocks, and their labels.

    Parameters
    ----------
    path : str or path-like
        An uncompressed file that all workers can read.
    n_features : int or None, default=None
        Columns of X; further columns are ignored. None looks for the last column, which reads the file once.
    zero_based : bool or "auto", default="auto"
        Whether column indices start at 0. "auto" takes them to start at 1 if no row has a column 0, which reads the
        file once.
    blocksize : int or str, default="32 MiB"
        Bytes of the file per block.

    Returns
    -------
    X : Dask array of shape (n_samples, n_features)
    y : Dask array of shape (n_samples,)

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from margintree.dask import read_svmlight
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "rows.svm"
    ...     _ = path.write_text("0 1:0.5 3:2")
    ...     X, y = read_svmlight(path)
    ...     y.compute(scheduler="synchronous")
    array([0.])
    """
    pieces = pieces_of(path, blocksize)
    if n_features is None or zero_based == "auto":
        facts = SvmlightFacts.of(pieces)
        if facts.last_column is None:
            raise ValueError(f"{path} stores no value, so its width is unknown. Give n_features and zero_based.")
        if zero_based == "auto":
            zero_based = facts.first_column == 0
        n_features = n_features or facts.last_column + int(bool(zero_based))
    return in_blocks(pieces, n_features, one_based=not zero_based)
