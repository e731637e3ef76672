"""Errors of model files."""


class ModelFileError(ValueError):
    """A file is not a valid model file, or an estimator cannot be stored in one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from margintree import ModelFileError, load_model
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "model.margintree"
    ...     _ = path.write_bytes(b"something else")
    ...     try:
    ...         load_model(path)
    ...     except ModelFileError:
    ...         print("refused")
    refused
    """
