"""Download one file: with retries, checked before it is stored, and atomically.

scikit-learn has a private function for this. It has no timeout and can only verify a checksum, and there is none for
the files of the LIBSVM site; so the caller of ``download`` passes a check of the content instead.
"""

import bz2
import shutil
import time
import warnings
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from ssl import SSLError
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from margintree.storage import replacing

TIMEOUT = 60.0  # seconds without receiving a byte
# Responses that are worth a retry: timeout, too many requests, and server errors.
_TEMPORARY = {408, 429, 500, 502, 503, 504}


class DownloadError(OSError):
    """A file that could not be downloaded."""


# Not every OSError: a full disk will be full the next time, too.
_NETWORK = (URLError, TimeoutError, ConnectionError, SSLError, HTTPException)


def download(url: str, path: Path, *, check: Callable[[Path], object], n_retries: int = 3, delay: float = 1.0) -> None:
    """Store the file at an address as a bz2 file; it is compressed unless the address ends in .bz2.

    ``check`` gets a path to the complete file, and raises an error if its content is wrong; then nothing is stored.
    Temporary failures are retried after ``delay`` seconds.
    """
    with replacing(path) as unfinished:
        for n_left in range(n_retries, -1, -1):
            try:
                _receive(url, unfinished)
                break
            except _NETWORK as error:
                if n_left == 0 or (isinstance(error, HTTPError) and error.code not in _TEMPORARY):
                    raise failure(url, error) from error
                warnings.warn(f"Retry downloading from url: {url} ({_reason(error)})", stacklevel=2)
                time.sleep(delay)
        check(unfinished)


def failure(url: str, error: Exception) -> DownloadError:
    """Return the error that says why an address could not be downloaded, and what to do."""
    return DownloadError(
        f"{url} could not be downloaded: {_reason(error)}. Check the connection, or put the files into a directory "
        "and name it in MARGINTREE_DATA."
    )


def _receive(url: str, path: Path) -> None:
    """Write the response of an address to a file."""
    opened = open if url.endswith(".bz2") else bz2.open
    with urlopen(url, timeout=TIMEOUT) as answer, opened(path, "wb") as stream:
        shutil.copyfileobj(answer, stream)
        n_bytes, announced = stream.tell(), answer.headers.get("Content-Length")
    if announced is not None and n_bytes != int(announced):
        raise URLError(f"{n_bytes} of {announced} bytes were received")


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"HTTP {error.code} {error.reason}"
    return str(getattr(error, "reason", None) or error or type(error).__name__)
