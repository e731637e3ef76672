"""The ``margintree`` command. Each command imports what it needs when it runs, so that help is instant.

typer makes an option of every parameter, so these functions have as many parameters as their commands have options.
"""

from enum import StrEnum
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


class Kernel(StrEnum):
    """Kernels that need no code of the user's."""

    LINEAR = "linear"
    RBF = "rbf"
    POLY = "poly"


class Walk(StrEnum):
    """Ways from the root to a leaf."""

    BEAM = "beam"
    GREEDY = "greedy"
    ALL = "all"


class Decide(StrEnum):
    """Who decides between the finalists of a walk."""

    AUTO = "auto"
    PATHS = "paths"
    PAIRS = "pairs"
    REST = "rest"


class Format(StrEnum):
    """Kinds of files with rows."""

    AUTO = "auto"
    SVMLIGHT = "svmlight"
    CSV = "csv"
    PARQUET = "parquet"


FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        help="Kind of file. auto: by its name (.csv, .tsv, .svm, .parquet), else as in the fit, else svmlight; "
        ".gz and .bz2 are unpacked.",
    ),
]
LabelOption = Annotated[
    str | None,
    typer.Option(
        help="Column of the labels in a CSV or Parquet file: its name, or its number; 1 is the first, -1 the last. "
        "Default: as in the fit; in a fit, the first."
    ),
]
OneBasedOption = Annotated[
    bool | None,
    typer.Option(
        "--one-based/--zero-based",
        help="Whether svmlight columns count from 1 or from 0. "
        "Default: as in the fit; in a fit, from 1 if no row has a column 0.",
    ),
]


ClassNamesOption = Annotated[
    Path | None,
    typer.Option(help="Text file with the name of a class on each line, in the sorted order of the labels."),
]
FeatureNamesOption = Annotated[
    Path | None, typer.Option(help="Text file with the name of a feature on each line. Default: as in the fit.")
]


def _number_of_jobs(jobs: int | None) -> int | None:
    if jobs == 0:
        raise typer.BadParameter("0 threads do nothing. Give a number from 1, or -1 for all cores.")
    return jobs


JobsOption = Annotated[
    int | None, typer.Option(callback=_number_of_jobs, help="Threads; -1 takes all cores. Default: one.")
]


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
def fit(
    train: Annotated[Path, typer.Argument(help="Rows to learn from: svmlight, CSV or Parquet; - is standard input.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")],
    test: Annotated[Path | None, typer.Option(help="Rows to test on; prints their accuracy.")] = None,
    kernel: Annotated[Kernel, typer.Option(help="Kernel of the machines.")] = Kernel.LINEAR,
    cost: Annotated[float, typer.Option("--cost", "-C", help="Weight of the loss against the margin.")] = 1.0,
    gamma: Annotated[float | None, typer.Option(help="Of rbf and poly. Default: by the variance of the rows.")] = None,
    balance: Annotated[float, typer.Option(help="By how much the sides of a node may differ: 0 to 1.")] = 0.1,
    walk: Annotated[Walk, typer.Option(help="How to get to a leaf: greedy is the paper's, and fastest.")] = Walk.BEAM,
    decide: Annotated[Decide, typer.Option(help="Who decides between finalists: auto asks validation.")] = Decide.AUTO,
    trees: Annotated[int, typer.Option(min=1, help="Trees whose scores are averaged.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same rows, same model.")] = 0,
    jobs: JobsOption = None,
    label: LabelOption = None,
    one_based: OneBasedOption = None,
    file_format: FormatOption = Format.AUTO,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and the accuracy.")] = False,
) -> None:
    """Learn a tree over the classes of a file of rows, and save it.

    A line of an svmlight file is a label and the columns that are not zero: 3 1:0.5 7:2. A CSV file has a row per line,
    its label in the first column or in the one that --label gives; a line of names is recognised. Files that end in .gz
    or .bz2 are unpacked; Parquet files need pyarrow (extra parquet). The model remembers the column of the labels and
    the kind of file.

    Example: margintree fit letter.bz2 --test letter.t.bz2 -C 10 -o letter.margintree

    Example: margintree fit wine.csv --label -1 -o wine.margintree

    Exit code: 0 if the model is saved, 1 if the rows cannot be used, 2 if the command line is wrong.
    """
    if train == test == Path("-"):
        raise typer.BadParameter("Standard input can be read once: as the rows to learn from, or as --test.")
    from margintree.cli.fit import FitJob, run_fit
    from margintree.cli.row_format import RowFormat

    parameters = {
        "kernel": kernel.value,
        "C": cost,
        "gamma": "scale" if gamma is None else gamma,
        "balance": balance,
        "walk": walk.value,
        "decide": decide.value,
        "n_trees": trees,
        "random_state": seed,
        "n_jobs": jobs,
    }
    run_fit(FitJob(train, test, output, RowFormat(file_format.value, label, one_based), parameters, quiet))


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="Model file of margintree fit or margintree.save_model.")],
    data: Annotated[Path, typer.Argument(help="Rows to classify: svmlight, CSV or Parquet; - is standard input.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the result. Default: print it.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="The K most probable labels with their probabilities.")
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="The probability of every class.")] = False,
    jobs: JobsOption = None,
    label: LabelOption = None,
    one_based: OneBasedOption = None,
    file_format: FormatOption = Format.AUTO,
) -> None:
    """Classify the rows of a file: one label per line, in their order.

    With --top-k or --proba the result is CSV with a line of names. Columns that an svmlight file leaves out are zero;
    those that the model does not know are left out. A CSV file may have a column of labels, where the one of the fit
    had it, or none. Where there are labels, their accuracy is printed to standard error.

    Example: margintree predict letter.margintree letter.t.bz2 --top-k 3 -o best.csv

    Example: head wine.csv | margintree predict wine.margintree -

    Exit code: 0 if all rows are classified, 1 if the model or the rows cannot be used, 2 if the command line is wrong.
    """
    if top_k is not None and proba:
        raise typer.BadParameter("--top-k and --proba are two results; ask for one.")
    from margintree.cli.predict import run_predict
    from margintree.cli.row_format import RowFormat

    how = RowFormat(file_format.value, label, one_based)
    run_predict(model, data, output, how=how, top_k=top_k, proba=proba, jobs=jobs)


@app.command()
def show(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    depth: Annotated[int | None, typer.Option(min=0, help="Cut the tree off at this depth.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare everything with the checksums.")] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write an interactive page of the tree to this file instead of printing it.")
    ] = None,
    rows: Annotated[
        Path | None, typer.Option(help="With --html: rows to show in the page, with labels for accuracies.")
    ] = None,
    class_names: ClassNamesOption = None,
    feature_names: FeatureNamesOption = None,
    label: LabelOption = None,
    one_based: OneBasedOption = None,
    file_format: FormatOption = Format.AUTO,
) -> None:
    """Print what a model file holds: parameters, sizes, and the tree over the classes.

    With --html it writes a page for the browser, which needs no network; with --rows the page shows the paths of single
    rows, the accuracy of each node and the confusion matrix. Nothing in a model file is run, so a file from a stranger
    can be looked at.

    Example: margintree show letter.margintree --depth 3

    Example: margintree show letter.margintree --html letter.html --rows letter.t.bz2

    Exit code: 0, 1 if the model or the rows cannot be used, 2 if the command line is wrong.
    """
    if html is None:
        for option, given in (("--rows", rows), ("--feature-names", feature_names)):
            if given is not None:
                raise typer.BadParameter(f"{option} is for the page. Name a file for it with --html.")
        from margintree.cli.show import run_show

        run_show(model, depth=depth, verify=verify, class_names=class_names)
        return
    from margintree.cli.model_rows import NameFiles
    from margintree.cli.row_format import RowFormat
    from margintree.cli.show import run_show_page

    how, names = RowFormat(file_format.value, label, one_based), NameFiles(class_names, feature_names)
    run_show_page(model, html, rows, how=how, names=names, verify=verify)


@app.command()
def explain(
    model: Annotated[Path, typer.Argument(help="Model file of margintree fit or margintree.save_model.")],
    data: Annotated[Path, typer.Argument(help="Rows: svmlight, CSV or Parquet; - is standard input.")],
    row: Annotated[int, typer.Option(min=1, help="Which row to explain; the first is 1.")] = 1,
    features: Annotated[int, typer.Option(min=0, help="Features to list for each side (linear kernel).")] = 5,
    class_names: ClassNamesOption = None,
    feature_names: FeatureNamesOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw it to this file, too: .png, .svg or .pdf.")] = None,
    label: LabelOption = None,
    one_based: OneBasedOption = None,
    file_format: FormatOption = Format.AUTO,
) -> None:
    """Explain the prediction of one row: its path, what was given up on it, and what decided in the end.

    Example: margintree explain letter.margintree letter.t.bz2 --row 3 --class-names letters.txt --plot why.png

    Exit code: 0, 1 if the model or the rows cannot be used, 2 if the command line is wrong.
    """
    from margintree.cli.explain import run_explain
    from margintree.cli.model_rows import NameFiles
    from margintree.cli.row_format import RowFormat

    how, names = RowFormat(file_format.value, label, one_based), NameFiles(class_names, feature_names)
    run_explain(model, data, row, how=how, names=names, n_features=features, as_json=as_json, plot=plot)


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
