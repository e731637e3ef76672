"""Atomic writing of files: no incomplete file is ever visible."""

import contextlib
import errno
import glob
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows has no such locks: what is left behind stays.
    fcntl = None

SECONDS_TO_LOCK = 5.0


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a new file in the same directory, which replaces ``path`` if there is no error.

    On any error, including an interrupt, the new file is removed and ``path`` is unchanged. The new file has the same
    suffix as ``path``, because readers infer compression from it, and the mode of the file it replaces. If ``path`` is
    a link, its target is replaced. Files that killed processes left behind while writing ``path`` are removed.
    """
    path = _destination(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    unfinished = _unfinished(path)
    try:
        with _created(unfinished, path) as held:
            yield unfinished
            os.fsync(held)
            # While the lock is held nobody sweeps it away; Windows replaces closed files only.
            if fcntl is not None:
                os.replace(unfinished, path)
        if fcntl is None:
            os.replace(unfinished, path)
        sync_directory(path.parent)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


@contextmanager
def _created(unfinished: Path, path: Path) -> Iterator[int]:
    """Create the new file with the mode of the one that it will replace, and hold a lock on it while it is open.

    A process that is killed leaves the file behind, but not the lock.
    """
    handle = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600 if path.exists() else 0o666)
    try:
        lock(handle)
        if path.exists():
            os.chmod(unfinished, stat.S_IMODE(path.stat().st_mode))
        yield handle
    finally:
        os.close(handle)


def lock(handle: int) -> bool:
    """Try to lock a file; return False if another process holds it, or if locks are not supported."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sweep(path: Path) -> None:
    """Remove files that killed writers of ``path`` left behind: nobody holds their lock."""
    for left in path.parent.glob(f".unfinished-{'?' * 16}-{glob.escape(path.name)}"):
        with contextlib.suppress(OSError):
            # One that is empty may have been made just now, and not yet be locked.
            status = left.stat()
            if status.st_size == 0 and time.time() - status.st_mtime < SECONDS_TO_LOCK:
                continue
            handle = os.open(left, os.O_RDWR)
            try:
                if lock(handle):
                    left.unlink()
            finally:
                os.close(handle)


def check_writable(path: Path) -> None:
    """Raise an OSError if ``path`` cannot be written, before hours of work are wasted."""
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"The directory {path.parent}, where {path.name} is to be saved, does not exist. Create it."
        )
    trial = _unfinished(_destination(path))
    try:
        trial.open("xb").close()
    except OSError as error:
        message = f"{error.strerror}; no file can be made in this directory. Choose another"
        raise type(error)(error.errno, message, str(trial.parent)) from error
    trial.unlink()


def _destination(path: Path) -> Path:
    """Return the file to replace; raise an error for directories, devices and pipes."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a directory; name a file in it", str(path))
    # A device's own name would be replaced by a file, for every program on the machine.
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "is not a regular file, and only those can be replaced", str(path))
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _unfinished(path: Path) -> Path:
    return path.with_name(f".unfinished-{secrets.token_hex(8)}-{path.name}")


def sync_directory(directory: Path) -> None:
    """Sync the directory of a new file, on systems that support it."""
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
