"""Checks of a client and its workers before any work starts."""

import os
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from distributed import Client, default_client

from margintree.dask.array_files import ArrayFiles

# Libraries whose versions affect what is computed, or how it is sent.
LIBRARIES = ("margintree", "numpy", "scipy", "scikit-learn", "numba", "dask", "distributed", "cloudpickle")
SECONDS_FOR_WORKERS = 60


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and the libraries in this process."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"Python": python, **{library: version(library) for library in LIBRARIES}}


def worker_facts(path: str) -> tuple[dict[str, str], bool]:
    """Return the versions on a worker, and whether it sees a directory and may write there."""
    return versions(), os.access(path, os.W_OK)


def usable_client(client: Client | None) -> Client:
    """Return the client to use, or raise an error that says why there is none."""
    if client is None:
        try:
            client = default_client()
        except ValueError as error:
            raise ValueError(
                "There is no Dask client. Make one, for example with distributed.Client(n_workers=2), or give "
                "client= the one to use."
            ) from error
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client or None. Got {type(client).__name__}.")
    if client.asynchronous:
        raise ValueError("client must not be asynchronous, since fit waits for the workers. Use a synchronous one.")
    if client.status != "running":
        raise ValueError(
            f"The Dask client is {client.status!r}, so it cannot run tasks. Make a new one, or leave client= "
            "out to use the current one."
        )
    return client


def check_workers(client: Client, files: ArrayFiles) -> None:
    """Raise an error for workers with other versions, or that do not see the directory of the fit."""
    try:
        client.wait_for_workers(1, timeout=SECONDS_FOR_WORKERS)
    except TimeoutError as error:
        raise RuntimeError(
            f"The cluster at {client.scheduler.address} has had no worker for {SECONDS_FOR_WORKERS} s. Start some, for "
            "example with cluster.scale(2)."
        ) from error
    own = versions()
    for worker, facts in client.run(worker_facts, str(files.path), on_error="return").items():
        if isinstance(facts, ImportError):
            raise RuntimeError(
                f"The worker {worker} cannot import what a fit needs: {facts}. Install margintree[dask] there, in the "
                f"version of the client ({own['margintree']})."
            ) from facts
        if isinstance(facts, BaseException):
            raise facts
        theirs, sees_directory = facts
        different = [f"{name} {theirs[name]} instead of {own[name]}" for name in own if theirs[name] != own[name]]
        if different:
            raise RuntimeError(
                f"The worker {worker} has {', '.join(different)}. Other versions may compute another model; install "
                "the same ones for the client and all workers."
            )
        if not sees_directory:
            raise RuntimeError(
                f"The worker {worker} cannot write to {files.path}. Rows are kept in files that all workers map; give "
                "directory= a path on a file system that the client and all workers share."
            )


def check_parameters(estimator: Any, files: ArrayFiles) -> None:
    """Raise an error for parameters that cannot be sent to a worker."""
    if isinstance(estimator.kernel, str) and estimator.kernel == "precomputed":
        raise ValueError(
            "kernel='precomputed' needs the kernel values of all pairs of rows in one place. Use "
            "margintree.MarginTreeClassifier, or a kernel of rows."
        )
    for name, value in estimator.get_params(deep=False).items():
        if name == "client":
            continue
        try:
            files.pickled(value)
        except Exception as error:
            raise TypeError(
                f"The parameter {name}={value!r:.80} cannot be sent to workers: {error} Give it a value that can be "
                "pickled, without open files, locks or connections."
            ) from error


def checked_directory(directory: str | os.PathLike[str] | None) -> Path | None:
    """Return the directory for files of rows, or raise an error if it does not exist."""
    if directory is not None and not Path(directory).is_dir():
        raise ValueError(f"directory must be an existing directory or None. Got {str(directory)!r}.")
    return None if directory is None else Path(directory).resolve()
