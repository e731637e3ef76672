"""The results file: one JSON line per finished job, which survives any end of the run.

The first line names the protocol and the code that made the file, and a run with others is refused; each run adds a
line with its versions and machine, and every result names its run. A line is appended, flushed and synced before the
next job starts, so that killing the run loses at most the jobs that were running. An incomplete last line is removed
when the file is opened again, or at once if the disk is full.
"""

import hashlib
import io
import json
import math
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from margintree.class_tree import ClassTree
from margintree.experiments.protocol import Protocol
from margintree.storage import fcntl, lock, sync_directory

Row = dict[str, Any]

DONE, FAILED = "done", "failed"
# What each kind of line has, with its type; those of jobs that were done have what the job measured beside it.
NUMBERS, TEXTS = dict[str, float], list[str]
JOB = {"key": str, "status": str, "run": str}
CELL = {"method": str, "set": str, "kernel": str, "parameters": NUMBERS}
SPLIT_NUMBERS = dict.fromkeys(("number", "n_train", "n_test", "n_features", "n_classes"), int)
FIELDS: dict[str, dict[str, Any]] = {
    "protocol": {"name": str, "fingerprint": str},
    "run": {"run": str, "date": str, "machine": str, "versions": dict},
    "failed": {**JOB, "error": str},
    "tune": {**JOB, **CELL, "best": NUMBERS},
    "split": {**JOB, **CELL, **SPLIT_NUMBERS, **dict.fromkeys(("accuracy", "evaluations", "fit_seconds"), float)},
    "time": {**JOB, **CELL, "row_seconds": NUMBERS},
    "curve": {**JOB, **CELL, "number": int, "evaluations": float, "row_seconds": NUMBERS},
    "pictures": {**JOB, "set": str, "kernel": str, "height": int, "width": int, "pictures": TEXTS},
}
PACKAGES = ("margintree", "numpy", "scipy", "scikit-learn", "numba")
# Parts of the package that no result depends on, and those of this room that results do depend on.
ONLY_SHOW = {"__main__.py", "cli", "dask", "inspection", "model_file", "onnx_export.py", "onnx_graph.py"}
COMPUTE = {"data", "job", "methods", "plan", "protocol", "timing", "tuning"}


class ResultsError(RuntimeError):
    """A results file that cannot be used or written; the message says what to do."""


class Results:
    """The rows of a results file, read."""

    def __init__(self, rows: list[Row]) -> None:
        self.protocol: Row = {}
        self.runs, self.done, self.failed = {}, {}, {}  # type: dict[str, Row], dict[str, Row], dict[str, Row]
        for row in rows:
            self.add(row)

    def add(self, row: Row) -> None:
        """Add a row; a later row of the same job replaces an earlier one, unless only the later one failed."""
        if row["kind"] == "protocol":
            self.protocol = row
        elif row["kind"] == "run":
            self.runs[row["run"]] = row
        elif row["status"] == DONE:
            # The order of the mapping is that of the file: what was done last comes last.
            self.done.pop(row["key"], None)
            self.done[row["key"]] = row
            self.failed.pop(row["key"], None)
        elif row["key"] not in self.done:
            self.failed[row["key"]] = row

    def of_kind(self, *kinds: str) -> Iterator[Row]:
        """Yield the rows of done jobs of some kinds, in the order of the file."""
        return (row for row in self.done.values() if row["kind"] in kinds)


def read(path: Path) -> Results:
    """Return the rows of a results file, without an incomplete last line."""
    return Results(_whole_lines(path)[0])


class ResultsFile:
    """A results file that one run writes to; ``opened_results`` opens it."""

    def __init__(self, path: Path, file: IO[bytes], rows: list[Row]) -> None:
        self.path, self.results, self.run, self._file = path, Results(rows), uuid4().hex[:8], file

    def add(self, row: Row) -> None:
        """Append the row of a finished job, safe on disk when this returns."""
        if self.run not in self.results.runs:
            facts = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "versions": _versions(), "machine": _machine()}
            self.append({"kind": "run", "run": self.run, **facts})
        self.append({**row, "run": self.run})

    def append(self, row: Row) -> None:
        """Append a line unchanged."""
        line = json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        end = os.fstat(self._file.fileno()).st_size
        try:
            # Unbuffered: nothing is left to be written later when this fails.
            if self._file.write(line) != len(line):
                raise OSError(None, "only a part of a line could be written")
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(end)
            advice = "Earlier results are kept. Free some space and run the same command again to resume."
            raise ResultsError(f"Could not write to {self.path}: {error.strerror}. {advice}") from error
        self.results.add(row)


@contextmanager
def opened_results(path: Path, protocol: Protocol) -> Iterator[ResultsFile]:
    """Open a results file to resume it, or create one; raise an error for another protocol or other code."""
    path.parent.mkdir(parents=True, exist_ok=True)
    first = {"kind": "protocol", "name": protocol.name, "fingerprint": protocol.fingerprint, "code": code_hash()}
    with path.open("ab", buffering=0) as file:
        # Windows has no such lock and does without.
        if fcntl is not None and not lock(file.fileno()):
            raise ResultsError(f"Another run is writing to {path}. Wait for it, or use another --output.")
        rows, end = _whole_lines(path)
        if rows:
            _refuse_others(rows[0], first, path)
        file.truncate(end)
        results = ResultsFile(path, file, rows)
        if not rows:
            results.append(first)
            sync_directory(path.parent)
        yield results


def _refuse_others(first: Row, ours: Row, path: Path) -> None:
    if first.get("kind") != "protocol":
        raise ResultsError(f"{path} is not a results file: its first line has no protocol. Use another --output.")
    theirs, this = (f"{row['name']!r} ({row['fingerprint']}), code {row.get('code')}" for row in (first, ours))
    for name, what in (("fingerprint", "protocol"), ("code", "code")):
        if first.get(name) != ours[name]:
            raise ResultsError(
                f"{path} holds results of the protocol {theirs}; this run has {this}. Results of another {what} cannot "
                "be mixed with these. Use another --output, or delete the file."
            )


@cache
def code_hash() -> str:
    """Return a digest of all code that computes results, with the versions of this package and of those it builds on.

    Code that only displays results is left out, so that a better page needs no new run.
    """
    root = Path(__file__).parents[1]
    digest = hashlib.sha256(json.dumps(_versions(), sort_keys=True).encode())
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        is_used = name.stem in COMPUTE if name.parts[0] == "experiments" else name.parts[0] not in ONLY_SHOW
        if is_used:
            digest.update(name.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def _machine() -> str:
    info = Path("/proc/cpuinfo")
    name = re.search(r"^model name\s*: (.*)$", info.read_text() if info.exists() else "", re.MULTILINE)
    processor = name[1] if name else platform.processor() or "unknown processor"
    return f"{processor}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def _whole_lines(path: Path) -> tuple[list[Row], int]:
    """Return the rows of a file and where the last complete one ends."""
    rows: list[Row] = []
    end = 0
    content = path.read_bytes() if path.exists() else b""
    # Iterated, a stream ends lines at line feeds only.
    for number, line in enumerate(io.BytesIO(content), start=1):
        if not line.endswith(b"\n"):
            break
        try:
            row = json.loads(line)
            # Halves of characters, which JSON can name, cannot be written to a page.
            json.dumps(row, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise ResultsError(f"Line {number} of {path} is not JSON: {error}. Delete it, or the file.") from error
        problem = _problem(row)
        if problem:
            raise ResultsError(f"Line {number} of {path} {problem}. Delete it, or the file.")
        rows.append(row)
        end += len(line)
    return rows, end


def _problem(row: Any) -> str:
    """Return what is wrong with the value of a line; an empty text if nothing is."""
    if not isinstance(row, dict):
        return "is not an object with fields"
    kind, status = row.get("kind"), row.get("status")
    if not isinstance(kind, str):
        return "has no 'kind', which must be a text"
    if status not in (None, DONE, FAILED):
        return "has an invalid 'status'"
    for name, type_ in FIELDS.get("failed" if status == FAILED else kind, JOB).items():
        if name not in row:
            return f"has no {name!r}"
        if not _is_of(row[name], type_):
            return f"has an invalid {name!r}"
    return "" if "tree" not in row or _is_tree(row["tree"]) else "has an invalid 'tree'"


def _is_tree(text: Any) -> bool:
    try:
        return isinstance(text, str) and ClassTree.from_newick(text).n_classes > 1
    except ValueError:
        return False


def _is_of(value: Any, kind: Any) -> bool:
    """Return whether a value of a row is of a type."""
    if kind is NUMBERS:
        return isinstance(value, dict) and all(_is_of(number, float) for number in value.values())
    if kind is TEXTS:
        return isinstance(value, list) and all(isinstance(text, str) for text in value)
    if not isinstance(value, kind):
        return False
    return math.isfinite(value) if kind is float else kind is not int or abs(value) < 2**31
