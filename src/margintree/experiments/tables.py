"""Tables 1 to 3 with ours beside the paper's, and those that the paper leaves out, as plain data."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from margintree.experiments import paper
from margintree.experiments.methods import METHODS
from margintree.experiments.ranks import RankTest, rank_test
from margintree.experiments.results import Results
from margintree.experiments.summary import CellSummary, Setting, Summary, kernel_title, set_title

MISSING = "—"


@dataclass(frozen=True)
class TableCell:
    """What stands in a cell: ours, and below it the paper's. ``value`` sorts."""

    text: str
    value: float | str | None = None
    is_best: bool = False
    paper_text: str = ""
    paper_value: float | None = None
    is_paper_best: bool = False


@dataclass(frozen=True)
class Table:
    """A table. The first ``n_labels`` columns name a row; the others are numbers, unless ``is_text``."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    notes: tuple[str, ...] = ()
    n_labels: int = 2
    is_text: bool = False

    def is_number(self, column: int) -> bool:
        """Tell whether a column holds numbers."""
        return column >= self.n_labels and not self.is_text


def all_tables(summary: Summary) -> list[Table]:
    """Return the tables in the order of the report."""
    tables = [table_1(summary), table_2(summary), rank_table(summary)]
    tables += [time_table(summary, way) for way in summary.ways]
    tables += [evaluation_table(summary), fit_table(summary), parameter_table(summary)]
    if summary.results.failed:
        tables.append(failure_table(summary.results))
    return tables


def table_1(summary: Summary) -> Table:
    """Return the sizes of the sets, ours and the paper's."""
    rows = []
    for data_set in dict.fromkeys(data_set for data_set, _ in summary.settings):
        facts = next(cell.facts for (_, setting), cell in summary.cells.items() if setting[0] == data_set)
        known = paper.TABLE_1.get(data_set)
        cells = [_label(set_title(data_set))]
        for name in ("n_train", "n_test", "n_classes", "n_features"):
            theirs = getattr(known, name) if known else None
            cells.append(TableCell(str(facts[name]), facts[name], paper_text=_text(theirs, "d"), paper_value=theirs))
        rows.append(tuple(cells))
    notes = (
        "The second number of a cell is the paper's. Where the numbers of rows differ, the data are a substitute or a "
        "part.",
    )
    columns = ("set", "training rows", "test rows", "classes", "features")
    return Table("table1", "Table 1: the data sets", columns, tuple(rows), notes, n_labels=1)


def table_2(summary: Summary) -> Table:
    """Return mean and standard deviation of the accuracy."""

    def cell(found: CellSummary, theirs: tuple[float, float] | None) -> TableCell:
        text = f"{found.mean:.2f} ± {found.deviation:.2f}"
        paper_text = f"{theirs[0]:.2f} ± {theirs[1]:.2f}" if theirs else ""
        return TableCell(text, found.mean, paper_text=paper_text, paper_value=theirs[0] if theirs else None)

    rows = []
    for setting in summary.settings:
        cells = _method_cells(summary, setting, cell, paper.accuracy)
        rows.append((*_labels(setting), *_with_best(cells, max)))
    n_splits = max((len(cell.accuracies) for cell in summary.cells.values()), default=0)
    notes = (
        f"Mean and standard deviation over {n_splits} random splits. The best of each row is bold; the second figure "
        "of a cell is the paper's. MSM (paper) is Algorithm 1 to the letter, MSM (ours) the default of this package.",
    )
    title = "Table 2: mean accuracy over the classes, in %"
    return Table("table2", title, ("set", "kernel", *summary.methods), tuple(rows), notes)


def rank_tests(summary: Summary) -> dict[str, RankTest]:
    """Return the tests of Friedman and Nemenyi: over all settings, and over the linear ones, which J-BWG has too."""
    found = {}
    for name, settings in (
        ("all settings", summary.settings),
        ("linear settings", [s for s in summary.settings if s[1] == "linear"]),
    ):
        rows = [{m: cell.mean for m, cell in summary.row(setting).items()} for setting in settings]
        test = rank_test(rows)
        if test is not None:
            found[name] = test
    return found


def rank_table(summary: Summary) -> Table:
    """Return the mean ranks."""
    rows, notes = [], []
    for name, test in rank_tests(summary).items():
        cells = [
            TableCell(f"{test.mean_ranks[m]:.2f}", test.mean_ranks[m]) if m in test.mean_ranks else TableCell(MISSING)
            for m in summary.methods
        ]
        rows.append((_label(name), _label(str(test.n_settings)), *_with_best(cells, min)))
        if test.p_value is None:
            notes.append(f"{name.capitalize()}: too few settings for a test.")
        else:
            notes.append(
                f"{name.capitalize()}: Friedman's test gives p = {test.p_value:.2g}. Two methods differ at the 5 % "
                f"level (Nemenyi) where their mean ranks lie further apart than {test.critical_difference:.2f}."
            )
    title = "Mean ranks of Table 2, 1 the best"
    return Table("ranks", title, ("over", "settings", *summary.methods), tuple(rows), tuple(notes))


def time_table(summary: Summary, way: str) -> Table:
    """Return the prediction times of one way of predicting, in microseconds for one row."""

    def cell(found: CellSummary, theirs: float | None) -> TableCell:
        ours = found.row_seconds.get(way)
        facts = paper.TABLE_1.get(found.setting[0])
        per_row = 1e6 * theirs / facts.n_test if theirs is not None and facts is not None else None
        value = 1e6 * ours if ours is not None else None
        return TableCell(_text(value, ".1f") or MISSING, value, False, _text(per_row, ".1f"), per_row)

    rows = []
    for setting in summary.settings:
        cells = _method_cells(summary, setting, cell, paper.seconds)
        rows.append((*_labels(setting), *_with_best(cells, min)))
    how = {"predict": "through predict, mostly validation", "compiled": "through single_instance(), compiled"}[way]
    title = f"Table 3: microseconds to predict one row, {how}"
    notes = (
        "One row at a time, nothing else running. The second figure of a cell is the paper's time over its number "
        "of test rows, on a machine of its day. Here 1vs1 and 1vsR compute a kernel value once for all machines.",
    )
    return Table(f"table3_{way}", title, ("set", "kernel", *summary.methods), tuple(rows), notes)


def evaluation_table(summary: Summary) -> Table:
    """Return how many decision functions a prediction evaluates."""
    rows = [
        (*_labels(s), *_with_best(_numbers(summary, s, lambda c: c.evaluations, ".1f"), min)) for s in summary.settings
    ]
    title = "Decision functions evaluated per prediction"
    return Table("evaluations", title, ("set", "kernel", *summary.methods), tuple(rows))


def fit_table(summary: Summary) -> Table:
    """Return the training times."""
    rows = [
        (*_labels(s), *_with_best(_numbers(summary, s, lambda c: c.fit_seconds, ".3g"), min)) for s in summary.settings
    ]
    notes = ("With the tuned parameters, mean over the splits, one thread, other jobs running beside it.",)
    return Table("fit_seconds", "Seconds to train", ("set", "kernel", *summary.methods), tuple(rows), notes)


def parameter_table(summary: Summary) -> Table:
    """Return the parameters that were chosen."""
    short = {"C": "C", "gamma": "η", "balance": "β"}
    rows = []
    for setting in summary.settings:
        found = summary.row(setting)
        texts = [
            ", ".join(f"{short[k]} {v:g}" for k, v in found[m].parameters.items()) if m in found else MISSING
            for m in summary.methods
        ]
        rows.append((*_labels(setting), *(_label(text) for text in texts)))
    notes = ("C, the Gaussian kernel's η and MSM's balance β, chosen by cross-validation on the first split.",)
    columns = ("set", "kernel", *summary.methods)
    return Table("parameters", "Chosen parameters", columns, tuple(rows), notes, is_text=True)


def failure_table(results: Results) -> Table:
    """Return the jobs that failed."""
    rows = tuple((_label(row["key"]), _label(row["error"])) for row in results.failed.values())
    notes = ("The next run tries them again.",)
    return Table("failures", "Jobs that failed", ("job", "error"), rows, notes)


def _method_cells(
    summary: Summary,
    setting: Setting,
    cell: Callable[[CellSummary, Any], TableCell],
    theirs: Callable[[str, str, str], Any],
) -> list[TableCell]:
    found = summary.row(setting)
    cells = []
    for name in summary.methods:
        paper_name = METHODS[name].paper_name
        value = theirs(paper_name, *setting) if paper_name else None
        cells.append(cell(found[name], value) if name in found else TableCell(MISSING))
    return cells


def _numbers(summary: Summary, setting: Setting, value: Callable[[CellSummary], float], form: str) -> list[TableCell]:
    found = summary.row(setting)
    return [
        TableCell(format(value(found[m]), form), value(found[m])) if m in found else TableCell(MISSING)
        for m in summary.methods
    ]


def _with_best(cells: list[TableCell], best: Callable[..., float]) -> list[TableCell]:
    """Mark the best of ours and of the paper's; what prints alike is equally good."""

    def printed(cell: TableCell) -> float | None:
        return float(cell.text.split()[0]) if isinstance(cell.value, float) else None

    ours = [value for cell in cells if (value := printed(cell)) is not None]
    theirs = [cell.paper_value for cell in cells if cell.paper_value is not None]
    return [
        replace(
            cell,
            is_best=bool(ours) and printed(cell) == best(ours),
            is_paper_best=bool(theirs) and cell.paper_value == best(theirs),
        )
        for cell in cells
    ]


def _labels(setting: Setting) -> tuple[TableCell, TableCell]:
    return _label(set_title(setting[0])), _label(kernel_title(setting[1]))


def _label(text: str) -> TableCell:
    return TableCell(text, text)


def _text(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
