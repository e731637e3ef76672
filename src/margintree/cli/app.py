"""The ``margintree`` command. Each command imports what it needs when it runs, so that help is instant."""

from pathlib import Path
from typing import Annotated

import typer

from margintree import __version__

app = typer.Typer(
    name="margintree",
    help="Learn a tree over classes by maximum separating margin, and classify by walking it.",
    no_args_is_help=True,
    add_completion=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"margintree {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Learn a tree over classes by maximum separating margin, and classify by walking it."""


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Seed of the split into training and test rows, and of the fits.")] = 0,
) -> None:
    """Fit the digits that ship with scikit-learn, draw the class tree, and compare it with 1vsR and a random tree."""
    from margintree.cli.demo import run_demo

    run_demo(seed)


@app.command()
def reproduce(
    full: Annotated[
        bool | None,
        typer.Option(
            "--full/--quick",
            help="The paper's eight data sets, or the digits that ship with scikit-learn. "
            "Without either: --full where MARGINTREE_DATA names a data directory, else --quick.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Directory of results and report. Default: reproduction/full or /quick.")
    ] = None,
    only_method: Annotated[list[str] | None, typer.Option(help="Only this method; may be given again.")] = None,
    only_set: Annotated[list[str] | None, typer.Option(help="Only this data set; may be given again.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes. Default: one per core.")] = None,
) -> None:
    """Run the paper's experiment, go on where an earlier run stopped, and write tables, figures and a page."""
    from margintree.cli.reproduce import run_reproduce

    run_reproduce(full=full, output=output, only_methods=only_method or [], only_sets=only_set or [], n_workers=jobs)


def main() -> None:
    """Run the command line."""
    app()
