"""One peer in one process: start it on one core, wait for its result, keep the result in a file."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from peer_environments import CannotInstall, interpreter

RUNNERS = Path(__file__).parent / "peer_runners"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Peer:
    """A runner script with its parameters, and what to install for it (nothing: it runs in our environment)."""

    runner: str
    parameters: dict[str, Any] = field(default_factory=dict)
    requirements: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()

    def python(self) -> str:
        if not self.requirements:
            return sys.executable
        return interpreter(self.runner, self.requirements, self.alone)


def measured(peer: Peer, directory: Path, seconds: float) -> dict[str, Any]:
    """Run a peer on the rows in a directory; a failure becomes a result that says why."""
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
    result = directory / "result.json"
    result.unlink(missing_ok=True)
    try:
        command = [peer.python(), str(RUNNERS / f"run_{peer.runner}.py"), str(directory), json.dumps(peer.parameters)]
        done = subprocess.run(
            [*command, str(result)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            env={**os.environ, **ONE_THREAD},
            preexec_fn=_on_one_core if hasattr(os, "sched_setaffinity") else None,
        )
    except CannotInstall as reason:
        return {"failed": f"cannot be installed: {reason}", "date": now}
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {seconds:g} s", "over_limit": True, "date": now}
    if done.returncode or not result.exists():
        lines = done.stderr.strip().splitlines() or ["no message"]
        return {"failed": f"exit code {done.returncode}: {lines[-1]}", "date": now}
    return {**json.loads(result.read_text()), "date": now}


def _on_one_core() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def read_kept(path: Path) -> dict[str, Any]:
    """Return the results that earlier runs left."""
    return json.loads(path.read_text()) if path.exists() else {}


def keep(kept: dict[str, Any], path: Path) -> None:
    """Write all results, so that a run that ends here can go on."""
    path.parent.mkdir(exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(kept, indent=1) + "\n")
    os.replace(new, path)


def formatted(row: dict[str, Any], columns: dict[str, tuple[str, str]]) -> list[str]:
    """Return the cells of a result; ``columns`` gives the key and the format of each."""
    if "failed" in row:
        return [row["failed"].replace("|", "/"), *[""] * (len(columns) - 1)]
    return ["—" if row[key] is None else format(row[key], form) for key, form in columns.values()]
