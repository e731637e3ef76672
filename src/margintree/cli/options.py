"""Options that several commands share, as dataclasses: a command has one parameter for each group of options."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

if TYPE_CHECKING:
    from margintree.cli.row_format import RowFormat


def _number_of_jobs(jobs: int | None) -> int | None:
    if jobs == 0:
        raise typer.BadParameter("The number of threads must be positive, or -1 for all cores. Got 0.")
    return jobs


JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        callback=_number_of_jobs,
        help="Number of threads; -1 uses all cores. Default: one. With fit --memory: of processes, one per core.",
    ),
]


@dataclass(frozen=True)
class RowOptions:
    """How to read a file of rows."""

    label: Annotated[
        str | None,
        typer.Option(
            help="Column of the labels in a CSV or Parquet file, by name or by number; 1 is the first, -1 the last. "
            "Default: as in the fit; in a fit, the first column."
        ),
    ] = None
    one_based: Annotated[
        bool | None,
        typer.Option(
            "--one-based/--zero-based",
            help="Whether svmlight column indices start at 1 or at 0. "
            "Default: as in the fit; in a fit, at 1 if no row has a column 0.",
        ),
    ] = None
    file_format: Annotated[
        Literal["auto", "svmlight", "csv", "parquet"],
        typer.Option(
            "--format",
            help="File format. auto: by the file name (.csv, .tsv, .svm, .parquet), else as in the fit, else svmlight; "
            ".gz and .bz2 files are decompressed.",
        ),
    ] = "auto"

    @property
    def format(self) -> "RowFormat":
        """The options as the format that the readers of files expect."""
        from margintree.cli.row_format import RowFormat

        return RowFormat(self.file_format, self.label, self.one_based)


@dataclass(frozen=True)
class NameOptions:
    """Text files with the names of classes and features, one per line."""

    class_names: Annotated[
        Path | None, typer.Option(help="Text file with one class name per line, in the sorted order of the labels.")
    ] = None
    feature_names: Annotated[
        Path | None, typer.Option(help="Text file with one feature name per line. Default: as in the fit.")
    ] = None


@dataclass(frozen=True)
class ModelOptions:
    """Parameters of the estimator, under its names."""

    kernel: Annotated[Literal["linear", "rbf", "poly"], typer.Option(help="Kernel of the machines.")] = "linear"
    C: Annotated[float, typer.Option("--cost", "-C", help="Weight of the loss against the margin.")] = 1.0
    gamma: Annotated[
        float | None, typer.Option(help="Coefficient of rbf and poly. Default: from the variance of the rows.")
    ] = None
    balance: Annotated[
        float, typer.Option(help="Largest difference between the sides of a node, from 0 to 1, as a share of its rows.")
    ] = 0.1
    walk: Annotated[
        Literal["beam", "greedy", "all"], typer.Option(help="How to reach a leaf; greedy is the paper's and fastest.")
    ] = "beam"
    decide: Annotated[
        Literal["auto", "paths", "pairs", "rest"],
        typer.Option(help="What decides between the finalists; auto chooses by cross-validation."),
    ] = "auto"
    n_trees: Annotated[int, typer.Option("--trees", min=1, help="Number of trees whose scores are averaged.")] = 1
    random_state: Annotated[
        int, typer.Option("--seed", min=0, help="Random seed; the same seed and rows give the same model.")
    ] = 0
    n_jobs: JobsOption = None

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters as the estimator takes them."""
        return asdict(self) | {"gamma": "scale" if self.gamma is None else self.gamma}


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command in which each field of a parameter that is a dataclass is a parameter of its own, for typer."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if parameter.name in groups:
            types = get_type_hints(kind, include_extras=True)
            parameters += [
                parameter.replace(name=f.name, default=f.default, annotation=types[f.name]) for f in fields(kind)
            ]
        else:
            parameters.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def flat(**values: Any) -> None:
        options = {name: kind(**{f.name: values.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
        command(**values, **options)

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat
