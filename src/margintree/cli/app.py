"""The ``margintree`` command. Each command imports what it needs when it runs, so that help is instant."""

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


def main() -> None:
    """Run the command line."""
    app()
