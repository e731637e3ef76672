"""The ``margintree`` command. Each command imports what it needs when it runs, so that help is instant."""

from pathlib import Path
from typing import Annotated

import typer

from margintree import __version__
from margintree.cli.options import JobsOption, ModelOptions, NameOptions, RowOptions, grouped

app = typer.Typer(
    name="margintree",
    no_args_is_help=True,
    add_completion=False,
    # Joins the lines of a paragraph, which fill a terminal of any width.
    rich_markup_mode="markdown",
)
ModelArgument = Annotated[Path, typer.Argument(help="Model file written by margintree fit or margintree.save_model.")]


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
    """Learn a tree over classes by maximum separating margin, and classify with it."""


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Random seed of the train-test split and of the fits.")] = 0,
) -> None:
    """Fit the digits that ship with scikit-learn, draw the class tree, and compare it with 1vsR and a random tree."""
    from margintree.cli.demo import run_demo

    run_demo(seed)


@app.command()
@grouped
def fit(
    train: Annotated[Path, typer.Argument(help="Training rows: svmlight, CSV or Parquet; - is standard input.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")],
    test: Annotated[Path | None, typer.Option(help="Test rows; prints the accuracy on them.")] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            help="Memory for all processes together, such as 2GB: read the file in pieces, and train large nodes on "
            "samples (extra dask). Default: all rows in memory."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors and the accuracy.")] = False,
    *,
    model: ModelOptions,
    reading: RowOptions,
) -> None:
    """Fit a tree to the rows of a file and save the model.

    A line of an svmlight file holds a label and the nonzero columns: 3 1:0.5 7:2. A CSV file has one row per line, with
    the label in the first column or in the column given by --label; a header row is detected. Files that end in .gz or
    .bz2 are decompressed; Parquet files need pyarrow (extra parquet). The model file stores the label column and the
    file format for later commands.

    Example: margintree fit letter.bz2 --test letter.t.bz2 -C 10 -o letter.margintree

    Example: margintree fit wine.csv --label -1 -o wine.margintree

    Exit code: 0 if the model is saved, 1 if the rows cannot be used, 2 if the command line is wrong.
    """
    if train == test == Path("-"):
        raise typer.BadParameter("Standard input can be read only once: use it for the training rows or for --test.")
    from margintree.cli.fit import run_fit

    run_fit(train, test, output, how=reading.format, parameters=model.parameters, memory=memory, quiet=quiet)


@app.command()
@grouped
def predict(
    model: ModelArgument,
    data: Annotated[Path, typer.Argument(help="Rows to classify: svmlight, CSV or Parquet; - is standard input.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the result. Default: -, standard output.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Print the K most probable labels with their probabilities.")
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Print the probability of every class.")] = False,
    jobs: JobsOption = None,
    *,
    reading: RowOptions,
) -> None:
    """Classify the rows of a file: one label per line, in the order of the rows.

    With --top-k or --proba the result is CSV with a header row. Columns that an svmlight file leaves out are zero;
    columns that the model does not know are ignored. A CSV file may have a label column, in the same place as in the
    fit, or none. If there are labels, the accuracy is printed to standard error.

    Example: margintree predict letter.margintree letter.t.bz2 --top-k 3 -o best.csv

    Example: head wine.csv | margintree predict wine.margintree -

    Exit code: 0 if all rows are classified, 1 if the model or the rows cannot be used, 2 if the command line is wrong.
    """
    if top_k is not None and proba:
        raise typer.BadParameter("--top-k and --proba cannot be used together.")
    from margintree.cli.predict import run_predict

    run_predict(model, data, output, how=reading.format, top_k=top_k, proba=proba, jobs=jobs)


@app.command()
@grouped
def show(
    model: ModelArgument,
    depth: Annotated[int | None, typer.Option(min=0, help="Print the tree down to this depth.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare all contents with their checksums.")] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write an interactive page of the tree to this file instead of printing it.")
    ] = None,
    rows: Annotated[
        Path | None, typer.Option(help="With --html: rows to show on the page, with labels for accuracies.")
    ] = None,
    *,
    names: NameOptions,
    reading: RowOptions,
) -> None:
    """Print what a model file contains: parameters, sizes, and the tree over the classes.

    With --html it writes a page for the browser, which needs no network; with --rows the page shows the paths of single
    rows, the accuracy of each node and the confusion matrix. Nothing in a model file is executed, so it is safe to show
    a file from an untrusted source.

    Example: margintree show letter.margintree --depth 3

    Example: margintree show letter.margintree --html letter.html --rows letter.t.bz2

    Exit code: 0, 1 if the model or the rows cannot be used, 2 if the command line is wrong.
    """
    if html is None:
        for option, given in (("--rows", rows), ("--feature-names", names.feature_names)):
            if given is not None:
                raise typer.BadParameter(f"{option} is for the page. Name its file with --html.")
    from margintree.cli.show import run_show, run_show_page

    if html is None:
        run_show(model, depth=depth, names=names, verify=verify)
    else:
        run_show_page(model, html, rows, how=reading.format, names=names, verify=verify)


@app.command()
@grouped
def explain(
    model: ModelArgument,
    data: Annotated[Path, typer.Argument(help="Rows: svmlight, CSV or Parquet; - is standard input.")],
    row: Annotated[int, typer.Option(min=1, help="Number of the row to explain; the first is 1.")] = 1,
    features: Annotated[int, typer.Option(min=0, help="Number of features per side (linear kernel).")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Also save a figure to this file: .png, .svg or .pdf.")] = None,
    *,
    names: NameOptions,
    reading: RowOptions,
) -> None:
    """Explain the prediction for one row: its path, the classes given up on it, and what decided in the end.

    Example: margintree explain letter.margintree letter.t.bz2 --row 3 --class-names letters.txt --plot why.png

    Exit code: 0, 1 if the model or the rows cannot be used, 2 if the command line is wrong.
    """
    from margintree.cli.explain import run_explain

    run_explain(model, data, row, how=reading.format, names=names, n_features=features, as_json=as_json, plot=plot)


@app.command()
def reproduce(
    full: Annotated[
        bool | None,
        typer.Option(
            "--full/--quick",
            help="The paper's eight data sets, or the digits that ship with scikit-learn. "
            "Default: --full if MARGINTREE_DATA names a data directory, else --quick.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Directory for results and report. Default: reproduction/full or /quick.")
    ] = None,
    only_method: Annotated[list[str] | None, typer.Option(help="Run only this method; can be repeated.")] = None,
    only_set: Annotated[list[str] | None, typer.Option(help="Run only this data set; can be repeated.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Number of processes. Default: one per core.")] = None,
) -> None:
    """Run the experiment of the paper, resuming an earlier run, and write tables, figures and a page."""
    from margintree.cli.reproduce import run_reproduce

    run_reproduce(full=full, output=output, only_methods=only_method or [], only_sets=only_set or [], n_workers=jobs)
