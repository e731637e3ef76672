"""Results with the facts that make them mean something: date, command, versions, machine."""

import os
import platform
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
DEVIATION = "The figure after ± is the sample standard deviation over the splits."


def heading(title: str, arguments: str | None = None) -> list[str]:
    """Return the first lines of a result; ``arguments`` are those of this run unless the whole needs others."""
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("margintree", "numpy", "scipy", "scikit-learn", "numba")
    )
    if arguments is None:
        arguments = " ".join(sys.argv[1:])
    return [
        f"# {title}",
        "",
        f"- date: {datetime.now(UTC):%Y-%m-%d}",
        f"- command: `python benchmarks/{Path(sys.argv[0]).name}{' ' + arguments if arguments else ''}`",
        f"- versions: Python {platform.python_version()}, {packages}",
        f"- machine: {platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "",
    ]


def commit() -> str:
    """Return the commit that runs, for results that are kept while the code goes on."""
    if shutil.which("git") is None:
        return "an unknown commit"
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "an unknown commit"


def mean_and_deviation(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.2f} ± {statistics.stdev(values):.2f}"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = ["| " + " | ".join(header) + " |", "|" + "|".join("---" for _ in header) + "|"]
    return [*lines, *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows), ""]


def write(name: str, lines: Sequence[str]) -> None:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.md"
    path.write_text("\n".join(lines).rstrip() + "\n")
    print("\n".join(lines))
    print(f"written to {path}")


def write_campaign(title: str, name: str, kind: str, campaign: Any) -> None:
    """Write what became of many hostile files, and leave with exit code 1 if one of them did harm."""
    from fuzzing import OUTCOMES

    n_sealed = sum(count for (kind, _), count in campaign.counts.items() if kind.endswith("sealed again"))
    sealed = f" ({n_sealed} sealed again)" if n_sealed else ""
    lines = [
        *heading(title),
        f"{campaign.n_files} files{sealed} in {campaign.seconds:.0f} s; {campaign.n_failed} failed; a worker took at "
        f"most {campaign.peak_bytes / 2**20:.0f} MB of memory, libraries and compiling included.",
        "",
        *table([kind, *OUTCOMES], campaign.rows()),
        *(f"- {failure}" for failure in campaign.failures),
    ]
    write(name, lines)
    sys.exit(1 if campaign.n_failed else 0)
