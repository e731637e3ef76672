"""What goes wrong with model files."""


class ModelFileError(ValueError):
    """A file holds no model that can be trusted, or an estimator is none that a model file can hold.

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
