"""The results file: one JSON line per finished job, which survives whatever ends the run.

The first line tells the protocol that made the file; each run adds a line with its versions and machine, and every
result names its run. A line is appended, flushed and synced before the next job is taken on, so that a kill loses at
most the jobs that were running. A torn last line is cut off when the file is opened again; where the disk is full,
the torn part is taken back at once.
"""

import contextlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self
from uuid import uuid4

from margintree.experiments.protocol import Protocol
from margintree.storage import sync_directory

Row = dict[str, Any]

DONE, FAILED = "done", "failed"
# What each kind of line has; all others are of jobs.
FIELDS = {"protocol": ("name", "fingerprint"), "run": ("run", "date", "machine", "versions")}
FIELDS_OF_JOBS = ("key", "status", "run")
PACKAGES = ("margintree", "numpy", "scipy", "scikit-learn", "numba")


class ResultsError(RuntimeError):
    """A results file that cannot be used or written; the message says what to do."""


class Results:
    """The rows of a results file, read.

    Examples
    --------
    >>> from margintree.experiments.results import Results
    >>> rows = [{"kind": "split", "key": "a", "status": "failed"}, {"kind": "split", "key": "a", "status": "done"}]
    >>> results = Results(rows)
    >>> results.done["a"]["status"], results.failed
    ('done', {})
    """

    def __init__(self, rows: list[Row]) -> None:
        self.protocol: Row = next((row for row in rows if row["kind"] == "protocol"), {})
        self.runs: dict[str, Row] = {row["run"]: row for row in rows if row["kind"] == "run"}
        self.done: dict[str, Row] = {}
        self.failed: dict[str, Row] = {}
        for row in rows:
            if row["kind"] not in ("protocol", "run"):
                self.add(row)

    def add(self, row: Row) -> None:
        """Take a row in; a later row of the same job replaces an earlier one, unless that was done and this failed."""
        key = row["key"]
        if row["status"] == DONE:
            # The order of the mapping is that of the file: what was done last comes last.
            self.done.pop(key, None)
            self.done[key] = row
            self.failed.pop(key, None)
        elif key not in self.done:
            self.failed[key] = row

    def of_kind(self, *kinds: str) -> Iterator[Row]:
        """Yield the rows of done jobs of some kinds, in the order of the file."""
        return (row for row in self.done.values() if row["kind"] in kinds)


def read(path: Path) -> Results:
    """Return the rows of a results file; a torn last line is left out.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Results
    """
    rows, _ = _whole_lines(path)
    return Results(rows)


class ResultsFile:
    """A results file that one run writes to. Use it in a ``with`` statement.

    Parameters
    ----------
    path : Path
        Made if it is not there.
    protocol : Protocol
        A file of another protocol is refused.
    """

    def __init__(self, path: Path, protocol: Protocol) -> None:
        self.path = path
        self.protocol = protocol
        self.run = uuid4().hex[:8]
        self.results = Results([])
        self._file: IO[bytes]
        self._good_end = 0

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("ab")
        try:
            _lock(self._file, self.path)
            rows, self._good_end = _whole_lines(self.path)
            self._file.truncate(self._good_end)
            self._check_protocol(rows)
            self.results = Results(rows)
            if not rows:
                self._append({"kind": "protocol", "name": self.protocol.name, "fingerprint": self.protocol.fingerprint})
                sync_directory(self.path.parent)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, row: Row) -> None:
        """Append the row of a finished job, safe on disk when this returns."""
        if self.run not in self.results.runs:
            facts = {"kind": "run", "run": self.run, **facts_of_this_run()}
            self._append(facts)
            self.results.runs[self.run] = facts
        row = {**row, "run": self.run}
        self._append(row)
        self.results.add(row)

    def _append(self, row: Mapping[str, Any]) -> None:
        line = json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            self._take_back()
            raise ResultsError(
                f"Could not write to {self.path}: {error.strerror}. What was there before is kept. Make room for it "
                "and run the same command again: it goes on from there."
            ) from error
        self._good_end += len(line)

    def _take_back(self) -> None:
        """Cut off what a failed write left, and drop what waits in the buffer."""
        # Closing tries to write the rest of the buffer once more, and may fail as the write did.
        with contextlib.suppress(OSError):
            self._file.close()
        self._file = self.path.open("ab")
        self._file.truncate(self._good_end)

    def _check_protocol(self, rows: list[Row]) -> None:
        if not rows:
            return
        first = rows[0]
        if first.get("kind") != "protocol":
            raise ResultsError(
                f"{self.path} is not a results file: its first line names no protocol. Give another --output."
            )
        if first["fingerprint"] != self.protocol.fingerprint:
            raise ResultsError(
                f"{self.path} holds results of the protocol {first['name']!r} ({first['fingerprint']}); this run has "
                f"{self.protocol.name!r} ({self.protocol.fingerprint}), and their results do not mix. Give another "
                "--output, or delete the file."
            )


def facts_of_this_run() -> Row:
    """Return date, versions and machine."""
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown processor"


def _whole_lines(path: Path) -> tuple[list[Row], int]:
    """Return the rows of a file and where the last whole one ends."""
    if not path.exists():
        return [], 0
    content = path.read_bytes()
    rows: list[Row] = []
    end = 0
    for number, line in enumerate(content.splitlines(keepends=True), start=1):
        is_last = end + len(line) == len(content)
        try:
            row = json.loads(line)
        except ValueError as error:
            if is_last:
                break
            raise ResultsError(
                f"Line {number} of {path} is not JSON ({error}). Delete that line, or the file."
            ) from error
        if is_last and not line.endswith(b"\n"):
            break
        if problem := _problem_of(row):
            raise ResultsError(f"Line {number} of {path} {problem}. Delete that line, or the file.")
        rows.append(row)
        end += len(line)
    return rows, end


def _problem_of(row: Any) -> str | None:
    """Return what is wrong with a line: the fields that every reader of the file takes for granted."""
    if not isinstance(row, dict):
        return "is no JSON object"
    kind = row.get("kind")
    needed = FIELDS.get(kind, FIELDS_OF_JOBS) if isinstance(kind, str) else ("kind",)
    missing = [name for name in needed if not isinstance(row.get(name), dict if name == "versions" else str)]
    if missing:
        return f"has no {missing[0]!r}"
    if "status" in needed and row["status"] not in (DONE, FAILED):
        return f"has the unknown status {row['status']!r:.40}"
    return None


def _lock(file: IO[bytes], path: Path) -> None:
    """Keep a second run from writing to the same file. Windows has no such lock and does without."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ResultsError(f"Another run is writing to {path}. Wait for it, or give another --output.") from error
