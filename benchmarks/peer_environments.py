"""A virtual environment for each peer that is not part of ours, made at first use.

They live in the directory that MARGINTREE_PEERS names, or else in the user's cache directory.
"""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path


class CannotInstall(Exception):  # noqa: N818 - says what happened, as the row of the table does
    """A peer could not be installed; the message is the reason that pip gives."""


def environments() -> Path:
    if "MARGINTREE_PEERS" in os.environ:
        return Path(os.environ["MARGINTREE_PEERS"])
    if sys.platform == "win32":
        caches = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        caches = Path.home() / "Library" / "Caches"
    else:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "margintree" / "peers"


def interpreter(name: str, requirements: Sequence[str], alone: Sequence[str] = ()) -> str:
    """Return the interpreter of a peer's environment; ``alone`` are packages to install without what they require."""
    directory = environments() / f"{name}-py{sys.version_info.major}.{sys.version_info.minor}"
    python = directory / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    finished = directory / "installed.txt"
    wanted = "\n".join([*requirements, *(f"{package} (alone)" for package in alone)])
    if not finished.exists() or finished.read_text() != wanted:
        # What an interrupted installation left behind is of no use.
        shutil.rmtree(directory, ignore_errors=True)
        print(f"making an environment for {name} in {directory}", flush=True)
        venv.create(directory, with_pip=True)
        _install(python, [*requirements])
        if alone:
            _install(python, ["--no-deps", *alone])
        finished.write_text(wanted)
    return str(python)


def _install(python: Path, arguments: Sequence[str]) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise CannotInstall((reasons or done.stderr.splitlines() or ["pip failed"])[-1].removeprefix("ERROR: "))
