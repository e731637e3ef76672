"""``margintree reproduce``: the experiment of the paper, section 4."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import joblib
import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from margintree.cli.reporting import shown
from margintree.experiments import run as runner
from margintree.experiments.data import download
from margintree.experiments.plan import Plan, chosen_plan
from margintree.experiments.protocol import PROTOCOLS
from margintree.experiments.report import Report
from margintree.experiments.results import Results, ResultsError, Row
from margintree.experiments.summary import setting_title

SECONDS_BETWEEN_LOG_LINES = 30.0
# Tables to print; the page has all of them.
SHOWN_TABLES = {"accuracy_paper", "ranks_paper", "accuracy_users", "ranks_users", "cost_evaluations", "failures"}


def run_reproduce(
    *,
    full: bool | None,
    output: Path | None,
    only_methods: Sequence[str],
    only_sets: Sequence[str],
    n_workers: int | None,
) -> None:
    """Run the missing jobs, then print and write the report."""
    console = Console()
    if full is None:
        full = "MARGINTREE_DATA" in os.environ
    protocol = PROTOCOLS["full" if full else "quick"]
    directory = output or Path("reproduction") / protocol.name
    try:
        plan = chosen_plan(protocol, only_methods, only_sets)
        results = _run(console, plan, directory, n_workers or joblib.cpu_count())
        report = Report(results)
        written = report.write(directory)
    except (ValueError, ResultsError, OSError) as error:
        _say(console, f"[red]{type(error).__name__}[/red]: {shown(error)}")
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        console.print(f"\nStopped. Finished jobs are saved in {shown(directory)}; the same command resumes the run.")
        raise typer.Exit(130) from None
    _show(console, report)
    _say(console, f"\nThe page: {shown(written[0])} ({len(written)} files in {shown(directory)})")
    if results.failed:
        console.print(f"[red]{len(results.failed)} jobs failed[/red]; run the same command to retry them.")
        raise typer.Exit(1)


def _run(console: Console, plan: Plan, directory: Path, n_workers: int) -> Results:
    """Run the plan and show its progress."""
    _say(
        console,
        f"{len(plan.cells)} cells of Table 2 ({len(plan.methods)} methods), {n_workers} processes, results in "
        f"{shown(directory)}. You can stop at any time; the same command resumes the run. The first run compiles "
        "for a minute.",
    )
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[job]}"))
    bar = Progress(*columns, console=console, disable=not console.is_terminal)
    line, last_logged = bar.add_task("", job=""), time.monotonic()

    def fetch(names: set[str]) -> None:
        for name, problem in download(sorted(names)).items():
            _say(console, f"[yellow]{name} is not available[/yellow]: {shown(problem)}")

    def show(row: Row, n_done: int, n_left: int) -> None:
        nonlocal last_logged
        job = row["key"].replace("|", " ").strip()
        text = f"{n_done} jobs done, {n_left} left"
        bar.update(line, completed=n_done, total=n_done + n_left, description=text, job=job)
        # Without a terminal there is no bar, but a line every half minute.
        if bar.disable and time.monotonic() - last_logged > SECONDS_BETWEEN_LOG_LINES:
            _say(console, f"{text}: {shown(job)}")
            last_logged = time.monotonic()
        if "error" in row:
            _say(console, f"[red]failed[/red] {shown(job)}: {shown(row['error'])}")

    with bar:
        return runner.run(plan, directory, n_workers=n_workers, on_result=show, on_start=fetch)


def _show(console: Console, report: Report) -> None:
    pictures = report.summary.pictures
    cell = report.summary.cells.get(("MSM (ours)", pictures["setting"])) if pictures else None
    if pictures is not None and cell is not None:
        title = setting_title(pictures["setting"])
        console.print(f"\n[bold]The class tree of MSM (ours)[/bold] on {title}, first split\n")
        tree = cell.trees[0]
        console.print(tree.to_text([f"digit {k}" for k in range(tree.n_classes)]), highlight=False, markup=False)
    for table in report.tables:
        if table.name in SHOWN_TABLES:
            table.print(console)
    if report.claims:
        console.print(Markdown(report.sections()["The paper's claims"]))
    console.print(f"\n{shown(report.answer)}", highlight=False)


def _say(console: Console, message: str) -> None:
    console.print(message, highlight=False, soft_wrap=True)
