"""Lazy predictions for the blocks of a Dask collection.

The model is one task of the graph; Dask sends its bytes once to each worker that needs them, which maps them from a
file.
"""

import hashlib
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import cloudpickle
import dask.array as da
import numpy as np
from dask import delayed
from distributed import get_worker

from margintree.dask.blocks import blocks_of
from margintree.estimators.margin_tree import MarginTreeClassifier
from margintree.model_file.errors import ModelFileError
from margintree.model_file.files import load_model, save_model

# Number of models that a process caches.
KEPT_MODELS = 2
# First byte of a pickle. A model file begins with the length of its header, which is 56 modulo 64.
PICKLE = b"\x80"


def content_of(model: MarginTreeClassifier) -> bytes:
    """Return the bytes of a model file, or of a pickle if the model contains code."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model"
        try:
            save_model(model, path)
        except ModelFileError:
            path.write_bytes(cloudpickle.dumps(model))
        return path.read_bytes()


@lru_cache(KEPT_MODELS)
def opened(content: bytes) -> MarginTreeClassifier:
    """Return the model; the arrays of a model file are mapped."""
    if content.startswith(PICKLE):
        model: MarginTreeClassifier = cloudpickle.loads(content)
        return model
    try:
        directory = get_worker().local_directory
    except ValueError:
        directory = None
    # The content of the file stays available until it is unmapped.
    with tempfile.TemporaryDirectory(prefix="margintree-model-", dir=directory) as own:
        path = Path(own) / "model"
        path.write_bytes(content)
        model = load_model(path)
    return model


def results_of(model: MarginTreeClassifier, method: str, k: int = 0) -> list[tuple[tuple[int, ...], Any]]:
    """Return the shape per row and the dtype of each array that a method returns."""
    labels, numbers = model.classes_.dtype, np.dtype(np.float64)
    if method == "predict":
        return [((), labels)]
    if method == "predict_proba":
        return [((len(model.classes_),), numbers)]
    return [((k,), labels), ((k,), numbers)]


def predict_block(content: bytes, method: str, rows: Any, options: dict[str, Any]) -> Any:
    """Call a method of the model for a block of rows, which may have none; runs on a worker."""
    model = opened(content)
    if rows.shape[0]:
        return getattr(model, method)(rows, **options)
    empty = [np.empty((0, *shape), dtype) for shape, dtype in results_of(model, method, **options)]
    return empty if len(empty) > 1 else empty[0]


def lazily(model: MarginTreeClassifier, method: str, X: Any, **options: Any) -> list[da.Array]:
    """Return the lazy results of a method of the model for the rows of a Dask collection, one array each."""
    blocks = blocks_of(X, "X")
    lengths = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(blocks)
    content = content_of(model)
    task = delayed(content, name=f"margintree-model-{hashlib.sha256(content).hexdigest()}", traverse=False)
    call = delayed(predict_block, pure=True)
    found = [call(task, method, block, options) for block in blocks]
    kinds, arrays = results_of(model, method, **options), []
    for i, (shape, dtype) in enumerate(kinds):
        parts = [one[i] for one in found] if len(kinds) > 1 else found
        blocks_of_result = [
            da.from_delayed(part, (length, *shape), dtype) for part, length in zip(parts, lengths, strict=True)
        ]
        arrays.append(da.concatenate(blocks_of_result, allow_unknown_chunksizes=True))
    return arrays
