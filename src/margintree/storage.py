"""Writing files so that nothing half-written is ever seen."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a new file in the same directory, which takes the place of ``path`` if all goes well.

    On any error, an interrupt included, the new file is removed and ``path`` stays as it was. The name of the
    new file ends as that of ``path`` does, because readers tell compression from it. Where ``path`` is a link, the
    file that it leads to is replaced.
    """
    path = _destination(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = _unfinished(path)
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


def check_writable(path: Path) -> None:
    """Raise an OSError now if ``path`` could not be written later, so that hours of work are not done in vain."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no directory {path.parent}, where {path.name} was to be saved. Create it.")
    trial = _unfinished(_destination(path))
    try:
        trial.open("xb").close()
    except OSError as error:
        message = f"{error.strerror}; no file can be made in this directory. Choose another"
        raise type(error)(error.errno, message, str(trial.parent)) from error
    trial.unlink()


def _destination(path: Path) -> Path:
    """Return the file to replace, which is no directory, and no device or pipe, whose place nothing can take."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a directory; name a file in it", str(path))
    # A device's own name would be replaced by a file, for every program on the machine.
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "is no regular file, and only those are replaced as a whole", str(path))
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _unfinished(path: Path) -> Path:
    return path.with_name(f".unfinished-{secrets.token_hex(8)}-{path.name}")


def sync_directory(directory: Path) -> None:
    """Make a new file's name as durable as its content, where the system knows how."""
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
