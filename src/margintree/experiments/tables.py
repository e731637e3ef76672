"""Tables 1 to 3 with the paper's figures beside ours, and further ones; as data, in Markdown, or printed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from margintree.datasets import DATA_SETS
from margintree.experiments import paper
from margintree.experiments.methods import METHODS, PAPER, USERS
from margintree.experiments.ranks import RankTest, rank_test
from margintree.experiments.summary import KERNEL_TITLES, MEASURES, CellSummary, Summary, escaped, set_title

MISSING = "—"
TITLES = {
    PAPER: "Comparison with the paper: mean accuracy over the classes in %, every method without bias",
    USERS: "Comparison for users: mean accuracy over the classes in %, every method with bias",
}
NOTES = {
    PAPER: "The paper's problem (2) and its solver have no bias, so no method has one here. MSM (paper) is Algorithm 1 "
    "as printed; MSM (balanced cut) cuts the spanning tree at its weakest edge that meets the balance constraint.",
    USERS: "MSM (ours) is MarginTreeClassifier with its defaults. All methods have a bias, as is usual in practice.",
}
BEST = "Mean and sample standard deviation over the random splits; the best of each row is bold."
THEIRS = "The paper's figure is in parentheses, or below ours."
ONE_ROW = (
    "One row at a time, nothing else running; predict mostly validates, single_instance() is compiled. 1vs1 and 1vsR "
    "compute a kernel value once for all machines. The paper's figure is its time over its number of test rows."
)
READ = "Accuracy in %. A reading explains a figure if it comes much closer to the paper's than the comparison does."
# Columns of Table 1: ours in the results, and the paper's in the facts about a set.
SIZES = {
    "training rows": ("n_train", "n_train_paper"),
    "test rows": ("n_test", "n_test_paper"),
    "classes": ("n_classes", "n_classes"),
    "features": ("n_features", "n_features"),
}


@dataclass(frozen=True)
class Entry:
    """Content of a cell: our figure, then the paper's."""

    text: str
    is_best: bool = False
    paper_text: str = ""

    def to_markdown(self) -> str:
        text = escaped(self.text)
        text = f"**{text}**" if self.is_best else text
        return f"{text} ({self.paper_text})" if self.paper_text else text

    def to_rich(self) -> Text:
        text = Text(self.text, style="bold" if self.is_best else "")
        return text.append(f"\n{self.paper_text}", style="dim") if self.paper_text else text


@dataclass(frozen=True)
class Table:
    """A table. The first ``n_labels`` columns name a row; the others are numbers, unless ``is_text``."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    notes: tuple[str, ...] = ()
    n_labels: int = 2
    is_text: bool = False

    def to_markdown(self) -> str:
        """Return the table in Markdown, with the paper's figures in parentheses after ours."""
        align = ["---" if k < self.n_labels or self.is_text else "--:" for k in range(len(self.columns))]
        rows = [self.columns, *([entry.to_markdown() for entry in row] for row in self.rows)]
        lines = [f"| {' | '.join(row)} |" for row in rows]
        lines.insert(1, f"|{'|'.join(align)}|")
        return "\n".join([f"### {self.title}", "", *(f"{note}\n" for note in self.notes), *lines])

    def print(self, console: Console) -> None:
        """Print the table with the methods as rows, in parts if it is too wide; the paper's figures are dim."""
        console.print(Text(f"\n{self.title}", style="bold"))
        first = max(len(name) for name in self.columns[self.n_labels :]) + 4
        width = max([12, *(len(e.text) + 3 for row in self.rows for e in row)])
        step = max(1, (console.width - first) // width)
        for start in range(0, len(self.rows), step):
            rows = self.rows[start : start + step]
            shown = RichTable("")
            for row in rows:
                shown.add_column("\n".join(entry.text for entry in row[: self.n_labels]), justify="right")
            for k in range(self.n_labels, len(self.columns)):
                shown.add_row(self.columns[k], *(row[k].to_rich() for row in rows))
            console.print(shown)
        for note in self.notes:
            console.print(Text(note, style="dim"))


def all_tables(summary: Summary) -> list[Table]:
    """Return the tables for which there are results, in the order of the report."""
    comparisons = [c for c in (PAPER, USERS) if summary.methods(c)]
    tables = [table for c in comparisons for table in (accuracy_table(summary, c), rank_table(summary, c))]
    tables += [cost_table(summary, measure) for measure in MEASURES]
    note = "With the tuned parameters, mean over the splits, one thread, other jobs running beside it."
    seconds = _method_table(summary, "fit_seconds", "Seconds to train", lambda c: f"{c.fit_seconds:.3g}", min, (note,))
    note = "C, the Gaussian kernel's η and MSM's balance β, chosen by cross-validation on the first split."
    chosen = _method_table(summary, "parameters", "Chosen parameters", _parameters, None, (note,))
    tables += [seconds, reading_table(summary), table_1(summary), replace(chosen, is_text=True)]
    failed = tuple((Entry(row["key"]), Entry(row["error"])) for row in summary.results.failed.values())
    title = "Jobs that failed; the next run tries them again"
    tables.append(Table("failures", title, ("job", "error"), failed, n_labels=1, is_text=True))
    return [table for table in tables if table.rows]


def table_1(summary: Summary) -> Table:
    """Return the sizes of the sets, ours and the paper's."""
    rows = []
    for data_set in dict.fromkeys(data_set for data_set, _ in summary.settings):
        facts = next(cell.facts for (_, setting), cell in summary.cells.items() if setting[0] == data_set)
        sizes = [(facts[ours], getattr(DATA_SETS.get(data_set), theirs, "")) for ours, theirs in SIZES.values()]
        entries = [Entry(str(ours), paper_text=str(theirs)) for ours, theirs in sizes]
        rows.append((Entry(set_title(data_set)), *entries))
    note = "Where the numbers of rows differ from the paper's, the data are a substitute or a part."
    return Table("table1", "Table 1: the data sets", ("set", *SIZES), tuple(rows), (note,), n_labels=1)


def accuracy_table(summary: Summary, comparison: str) -> Table:
    """Return Table 2 for one of the comparisons: mean and standard deviation of the accuracy."""
    name, title, notes = f"accuracy_{comparison}", TITLES[comparison], (NOTES[comparison], BEST)
    return _method_table(summary, name, title, _accuracy, max, notes, _paper_accuracy, comparison)


def rank_tests(summary: Summary, comparison: str) -> dict[str, RankTest]:
    """Return the tests of Friedman and Nemenyi: over all settings, and over the linear ones, which J-BWG has too."""
    methods = summary.methods(comparison)
    means = {s: {m: cell.mean for m, cell in summary.row(s, methods).items()} for s in summary.settings}
    rows = {"all settings": list(means.values())}
    if comparison == PAPER:
        rows["linear settings"] = [row for (_, kernel), row in means.items() if kernel == "linear"]
    return {name: test for name, found in rows.items() if (test := rank_test(found))}


def rank_table(summary: Summary, comparison: str) -> Table:
    """Return the mean ranks, with a row for each test."""
    rows, notes, methods = [], [], summary.methods(comparison)
    for name, test in rank_tests(summary, comparison).items():
        entries = [Entry(f"{test.mean_ranks[m]:.2f}" if m in test.mean_ranks else MISSING) for m in methods]
        rows.append((Entry(name), Entry(str(test.n_settings)), *_with_best(entries, min)))
        notes.append(
            f"{name.capitalize()}: Friedman's test gives p = {test.p_value:.2g}. Two methods differ at the 5 % "
            f"level (Nemenyi) where their mean ranks lie further apart than {test.critical_difference:.2f}."
        )
    columns = ("over", "settings", *(METHODS[m].title for m in methods))
    return Table(f"ranks_{comparison}", "Mean ranks, 1 the best", columns, tuple(rows), tuple(notes))


def cost_table(summary: Summary, measure: str) -> Table:
    """Return the cost of one prediction: decision functions, or Table 3 by one of the ways to predict a row."""

    def ours(cell: CellSummary) -> str:
        return f"{cell.costs[measure]:.1f}" if measure in cell.costs else MISSING

    name, title = f"cost_{measure}", f"One prediction, in {MEASURES[measure]}"
    if measure == "evaluations":
        return _method_table(summary, name, title, ours, min, ("Mean over the test rows.",))
    return _method_table(summary, name, f"Table 3: {title.lower()}", ours, min, (ONE_ROW,), _paper_microseconds)


def reading_table(summary: Summary) -> Table:
    """Return the results of other readings of the experiment, beside the paper's figures."""
    rows = []
    for reading, label, usual, found in summary.readings():
        texts = _accuracy(usual), _accuracy(found), _paper_accuracy(label, reading.data_set, reading.kernel)
        rows.append(tuple(map(Entry, (reading.name, label, *texts, reading.change))))
    columns = ("reading", "method", "in the comparison", "in this reading", "the paper", "what is changed")
    return Table("readings", "Other readings beside the paper's figures", columns, tuple(rows), (READ,), is_text=True)


def _method_table(
    summary: Summary,
    name: str,
    title: str,
    ours: Callable[[CellSummary], str],
    best: Callable[..., float] | None,
    notes: tuple[str, ...],
    theirs: Callable[[str, str, str], str] = lambda method, data_set, kernel: "",
    comparison: str | None = None,
) -> Table:
    """Return a table with a row for each setting and a column for each method."""
    rows, methods = [], summary.methods(comparison)
    for setting in summary.settings:
        found = summary.row(setting, methods)
        entries = [
            Entry(ours(found[m]), paper_text=theirs(METHODS[m].paper_name or "", *setting))
            if m in found
            else Entry(MISSING)
            for m in methods
        ]
        labels = Entry(set_title(setting[0])), Entry(KERNEL_TITLES[setting[1]])
        rows.append((*labels, *(_with_best(entries, best) if best else entries)))
    titles = [METHODS[m].title if comparison else m for m in methods]
    if any(entry.paper_text for row in rows for entry in row):
        notes = (*notes, THEIRS)
    return Table(name, title, ("set", "kernel", *titles), tuple(rows), notes)


def _parameters(cell: CellSummary) -> str:
    short = {"C": "C", "gamma": "η", "balance": "β"}
    return ", ".join(f"{short.get(k, k)} {v:g}" for k, v in cell.parameters.items())


def _accuracy(cell: CellSummary | None) -> str:
    return f"{cell.mean:.2f} ± {cell.deviation:.2f}" if cell else ""


def _paper_accuracy(method: str, data_set: str, kernel: str) -> str:
    return " ± ".join(f"{value:.2f}" for value in paper.accuracy(method, data_set, kernel) or ())


def _paper_microseconds(method: str, data_set: str, kernel: str) -> str:
    seconds = paper.seconds(method, data_set, kernel)
    return f"{1e6 * seconds / (DATA_SETS[data_set].n_test_paper or 1):.1f}" if seconds else ""


def _with_best(entries: Sequence[Entry], best: Callable[..., float]) -> list[Entry]:
    """Mark the best; values that print the same are equally good."""
    values = [float(entry.text.split()[0]) if entry.text != MISSING else None for entry in entries]
    winner = best((value for value in values if value is not None), default=None)
    return [replace(e, is_best=v is not None and v == winner) for e, v in zip(entries, values, strict=True)]
