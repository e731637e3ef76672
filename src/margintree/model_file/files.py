"""Save a fitted estimator, and load it again."""

import json
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from margintree.model_file import container
from margintree.model_file.container import Contents
from margintree.model_file.errors import ModelFileError
from margintree.model_file.estimators import CODECS, put_fitted, restore_fitted
from margintree.model_file.format_1 import from_format_1
from margintree.model_file.parameters import decode_parameters, encode_parameters
from margintree.model_file.sections import Input, Output
from margintree.storage import check_writable, replacing

# A change that this reader would misread gets the next number; its reader is added to READERS, and this one is kept.
FORMAT = 2
FORMAT_KEY = "margintree_format"
RECORDED_LIBRARIES = ("margintree", "numpy", "scipy", "scikit-learn")


def save_model(estimator: Any, path: str | os.PathLike[str], *, metadata: Mapping[str, str] | None = None) -> None:
    """Write a fitted estimator to one file, which ``load_model`` reads.

    The file is in the safetensors format: a header with checksums, followed by arrays. It contains no code, no pickle,
    and neither ``n_jobs``, ``verbose`` nor training times, so that the same model always gives the same bytes. The file
    is written completely or not at all.

    Parameters
    ----------
    estimator : a fitted estimator of margintree
        Callable kernels cannot be saved, because they are code.
    path : str or path-like
    metadata : mapping of str to str, default=None
        Strings to store in the file, for ``read_metadata``.

    Raises
    ------
    ModelFileError
        If the estimator has something that a model file cannot store.
    OSError
        If the file cannot be written, for instance because the disk is full. An earlier file is then unchanged.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from margintree import OneVsRestSVC, load_model, save_model
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsRestSVC(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "iris.margintree"
    ...     save_model(model, path)
    ...     loaded = load_model(path, mmap=False)
    >>> bool((loaded.predict(X) == model.predict(X)).all())
    True
    """
    path = Path(path)
    arrays, of_model = as_contents(estimator)
    metadata = dict(metadata or {})
    if not all(isinstance(text, str) for text in (*metadata, *metadata.values())):
        raise TypeError(f"metadata must be a mapping of str to str. Got {metadata!r:.80}.")
    if taken := sorted({*of_model, container.SEAL} & set(metadata)):
        raise ModelFileError(f"The metadata name {taken[0]!r} is reserved for the model. Choose another one.")
    check_writable(path)
    try:
        with replacing(path) as unfinished:
            with unfinished.open("wb") as stream:
                container.write(stream, arrays, {**metadata, **of_model})
            # A file that cannot be loaded must not replace one that can.
            load_model(unfinished)
    except OSError as error:
        n_bytes = sum(array.nbytes for array in arrays.values())
        raise type(error)(
            error.errno,
            f"The model could not be saved: {error.strerror}. It takes about {n_bytes} bytes; an earlier file "
            "is unchanged. Free some space, or save elsewhere",
            str(path),
        ) from error


def as_contents(estimator: Any) -> tuple[dict[str, container.AnyArray], dict[str, str]]:
    """Return the arrays and the metadata of a fitted estimator's file."""
    name = type(estimator).__name__
    if name not in CODECS or type(estimator) is not CODECS[name].estimator:
        raise ModelFileError(
            f"A model file stores a fitted {', '.join(sorted(CODECS))}. Got {estimator!r:.80}. Save the steps of "
            "a pipeline separately, or use joblib."
        )
    out = Output()
    put_fitted(out, estimator)
    model = {
        "versions": {library: version(library) for library in RECORDED_LIBRARIES},
        "estimator": name,
        "parameters": encode_parameters(estimator),
        "facts": out.facts,
        "sha256": {key: container.digest_of(array) for key, array in sorted(out.arrays.items())},
    }
    text = json.dumps(model, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return out.arrays, {FORMAT_KEY: str(FORMAT), "model": text}


def load_model(path: str | os.PathLike[str], mmap: bool = True, verify: bool = False) -> Any:
    """Return the estimator of a file that ``save_model`` wrote, ready to predict.

    Nothing in a file is executed or imported. Header, trees and everything that prediction uses as an index are always
    checked, so that no file can make it read outside of its memory or run forever. Weights are checked only with
    ``verify``; without it, damaged weights give wrong predictions, but nothing worse.

    Parameters
    ----------
    path : str or path-like
    mmap : bool, default=True
        Memory-map the file instead of reading it: a large model is ready at once, and processes share its memory. The
        file must not be modified while the model is in use; ``save_model`` replaces files and never modifies them.
    verify : bool, default=False
        Read the whole file and verify the checksums.

    Returns
    -------
    estimator
        With the same parameters (``n_jobs`` and ``verbose`` have their defaults) and the same predictions, bit for bit.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model file, or has a newer format.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from margintree import MarginTreeClassifier, load_model, save_model
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "iris.margintree"
    ...     save_model(MarginTreeClassifier(C=10, random_state=0).fit(X, y), path)
    ...     load_model(path, mmap=False, verify=True)
    MarginTreeClassifier(C=10, random_state=0)
    """
    path = Path(path)
    try:
        contents = container.read(path, is_mapped=mmap)
        return READERS[_format_of(contents)](contents, verify)
    except ModelFileError as error:
        raise ModelFileError(f"{path} cannot be loaded: {error}.") from error


def read_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the metadata that were passed to ``save_model``.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    dict of str to str
        Empty if there are none.

    Raises
    ------
    ModelFileError
        If the file is damaged or not a model file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from margintree import OneVsRestSVC, read_metadata, save_model
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "iris.margintree"
    ...     model = OneVsRestSVC(random_state=0).fit(*load_iris(return_X_y=True))
    ...     save_model(model, path, metadata={"licence": "CC0"})
    ...     read_metadata(path)
    {'licence': 'CC0'}
    """
    try:
        contents = container.read(Path(path), is_mapped=True)
        _format_of(contents)
        _check_seal(contents)
    except ModelFileError as error:
        raise ModelFileError(f"{path} cannot be loaded: {error}.") from error
    return {key: text for key, text in contents.metadata.items() if key not in (FORMAT_KEY, "model", container.SEAL)}


def _check_seal(contents: Contents) -> None:
    if contents.metadata.get(container.SEAL) != container.seal_of(contents.header):
        raise ModelFileError("its header is damaged: the checksum does not match")


def _format_of(contents: Contents) -> int:
    text = contents.metadata.get(FORMAT_KEY, "")
    if re.fullmatch("[1-9][0-9]{0,5}", text) is None:
        raise ModelFileError(container.NO_MODEL)
    if int(text) > max(READERS):
        raise ModelFileError(
            f"it has format {text}, but margintree {version('margintree')} reads formats up to {max(READERS)}; upgrade "
            "margintree to load it"
        )
    return int(text)


def read_format_2(contents: Contents, verify: bool, update: Callable[..., None] | None = None) -> Any:
    """Return the estimator of a file of format 2; ``update`` converts the content of an older file."""
    _check_seal(contents)
    model = container.parse_json(contents.metadata.get("model", ""), "description")
    facts, digests, name = model.get("facts"), model.get("sha256"), model.get("estimator")
    if not isinstance(facts, dict) or not isinstance(digests, dict) or digests.keys() != contents.arrays.keys():
        raise ModelFileError("its description is not complete")
    if not isinstance(name, str) or name not in CODECS:
        raise ModelFileError(f"it holds the unknown estimator {name!r:.40}")
    if verify:
        for key, array in contents.arrays.items():
            if digests[key] != container.digest_of(array):
                raise ModelFileError(f"array {key!r} is damaged: the checksum does not match")
    try:
        cls = CODECS[name].estimator
        arrays, facts, parameters = dict(contents.arrays), dict(facts), model.get("parameters")
        if update is not None and isinstance(parameters, dict):
            update(arrays, facts, parameters)
        estimator = cls(**decode_parameters(cls, parameters))
        estimator._validate_params()
        source = Input(arrays, facts)
        restore_fitted(source, estimator)
        source.finish()
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{error}".rstrip(".")) from error
    except MemoryError as error:
        raise ModelFileError("its content does not fit into memory") from error
    return estimator


READERS: dict[int, Callable[[Contents, bool], Any]] = {
    1: partial(read_format_2, update=from_format_1),
    2: read_format_2,
}
