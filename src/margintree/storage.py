"""Writing files so that nothing half-written is ever seen."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a new file in the same directory, which takes the place of ``path`` if all goes well.

    On any error, an interrupt included, the new file is removed and ``path`` stays as it was. The name of the
    new file ends as that of ``path`` does, because readers tell compression from it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".unfinished-{secrets.token_hex(8)}-{path.name}")
    try:
        unfinished.open("xb").close()
        yield unfinished
        with unfinished.open("rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(unfinished, path)
        sync_directory(path.parent)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def sync_directory(directory: Path) -> None:
    """Make a new file's name as durable as its content, where the system knows how."""
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
