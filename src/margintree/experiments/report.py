"""Everything that is made of a results file: tables, figures, claims, and one page, all written beside it."""

import csv
import io
import os
from pathlib import Path
from tempfile import NamedTemporaryFile

from margintree.experiments.claims import Claim, all_claims
from margintree.experiments.figures import Figure, all_figures
from margintree.experiments.page import page
from margintree.experiments.render import claims_to_markdown, to_csv, to_markdown
from margintree.experiments.results import Results
from margintree.experiments.summary import Summary
from margintree.experiments.svg import as_file
from margintree.experiments.tables import Table, all_tables

PAGE_NAME = "index.html"
MARKDOWN_NAME = "report.md"


class Report:
    """What a results file says.

    Parameters
    ----------
    results : Results
    """

    def __init__(self, results: Results) -> None:
        self.results = results
        self.summary = Summary(results)
        self.tables: list[Table] = all_tables(self.summary)
        self.figures: list[Figure] = all_figures(self.summary)
        self.claims: list[Claim] = all_claims(self.summary)

    def markdown(self) -> str:
        """Return all tables and claims in Markdown, with the facts of the runs."""
        parts = ["# The paper, reproduced", "", *_run_lines(self.results), ""]
        parts.append(claims_to_markdown(self.claims))
        parts += [to_markdown(table) for table in self.tables]
        return "\n".join(parts).rstrip() + "\n"

    def page(self) -> str:
        """Return the report as one HTML page."""
        return page(self.results, self.summary.methods, self.tables, self.figures, self.claims)

    def write(self, directory: Path) -> list[Path]:
        """Write page, Markdown, tables as CSV and figures as SVG; return what was written, the page first."""
        contents = {PAGE_NAME: self.page(), MARKDOWN_NAME: self.markdown(), "results.csv": rows_as_csv(self.results)}
        contents |= {f"tables/{table.name}.csv": to_csv(table) for table in self.tables}
        contents |= {f"figures/{figure.name}.svg": as_file(figure.svg) for figure in self.figures}
        written = []
        for name, text in contents.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
            written.append(path)
        return written


def rows_as_csv(results: Results) -> str:
    """Return one line per method, set, kernel and split, with parameters, versions and machine."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    measured = ("accuracy", "evaluations", "fit_seconds", "batch_seconds", "n_train", "n_test")
    writer.writerow(["method", "set", "kernel", "split", *measured, "parameters", "versions", "machine", "date"])
    for row in results.of_kind("split"):
        run = results.runs[row["run"]]
        parameters = " ".join(f"{name}={value:g}" for name, value in row["parameters"].items())
        versions = " ".join(f"{name}={number}" for name, number in run["versions"].items())
        facts = [row["method"], row["set"], row["kernel"], row["number"], *(row[name] for name in measured)]
        writer.writerow([*facts, parameters, versions, run["machine"], run["date"]])
    return buffer.getvalue()


def write_whole(path: Path, text: str) -> None:
    """Write a file so that at any moment either the old or the new one is there, whole."""
    with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8") as file:
        temporary = Path(file.name)
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            file.close()
            # Temporary files are for their owner only; a report is for all whom the directory lets in.
            temporary.chmod(0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _run_lines(results: Results) -> list[str]:
    protocol = results.protocol
    lines = [f"- protocol: {protocol.get('name')} ({protocol.get('fingerprint')})"]
    for run in results.runs.values():
        versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
        lines.append(f"- run {run['run']}, {run['date']}: {versions}; {run['machine']}")
    return lines
