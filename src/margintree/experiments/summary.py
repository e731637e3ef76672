"""Summary of a results file by method and setting: means over the splits, times, trees."""

import re
from collections.abc import Collection, Iterable, Iterator
from statistics import fmean, stdev
from typing import Any

from scipy.stats import gmean

from margintree.class_tree import ClassTree
from margintree.datasets import DATA_SETS
from margintree.experiments.job import CURVE, PICTURES, SPLIT, TIME
from margintree.experiments.methods import METHODS, PAPER, READINGS, USERS, Reading
from margintree.experiments.paper import SETTINGS
from margintree.experiments.results import Results, Row

Setting = tuple[str, str]
# The ways to measure what a prediction costs; the first depends on no machine.
MEASURES = {"evaluations": "decision functions", "predict": "µs of predict", "compiled": "µs of single_instance()"}
KERNEL_TITLES = {"rbf": "Gaussian", "linear": "linear"}


class CellSummary:
    """A method on a data set with a kernel, from the rows of its splits and that of its timing."""

    def __init__(self, rows: Iterable[Row], time: Row | None) -> None:
        rows = sorted(rows, key=lambda row: int(row["number"]))
        self.accuracies = [float(row["accuracy"]) for row in rows]  # in %, one per split
        self.mean, self.deviation = fmean(self.accuracies), stdev(self.accuracies) if len(rows) > 1 else 0.0
        self.fit_seconds = fmean(row["fit_seconds"] for row in rows)
        self.costs = _costs(fmean(row["evaluations"] for row in rows), time)  # of a prediction, by each measure
        self.parameters: dict[str, float] = rows[0]["parameters"]
        self.trees = [ClassTree.from_newick(row["tree"]) for row in rows if "tree" in row]  # one per split
        self.facts = rows[0]


class Summary:
    """The input of tables, figures and claims.

    ``cells`` has a summary for each method and setting, ``settings`` the settings in the order of the paper without
    readings, ``curves`` (Figure 2) the costs of a prediction for each method and number of classes, ``pictures``
    (Figure 1) setting, height, width and the grey values of one picture per class.
    """

    def __init__(self, results: Results) -> None:
        self.results = results
        rows: dict[tuple[str, Setting], dict[int, Row]] = {}
        for row in results.of_kind(SPLIT):
            if row["method"] in METHODS and row["kernel"] in KERNEL_TITLES:
                cell = rows.setdefault((row["method"], _setting(row)), {})
                # Rows of a cell that was tuned anew replace those with the old parameters.
                if any(other["parameters"] != row["parameters"] for other in cell.values()):
                    cell.clear()
                cell[row["number"]] = row
        times = {(row["method"], _setting(row)): row for row in results.of_kind(TIME)}
        self.cells = {place: CellSummary(cell.values(), times.get(place)) for place, cell in rows.items()}
        present = {setting for _, setting in self.cells if setting[0] not in READINGS}
        self.settings = [s for s in SETTINGS if s in present] + sorted(present - set(SETTINGS), reverse=True)
        self.curves: dict[str, dict[int, dict[str, float]]] = {}
        for row in results.of_kind(CURVE):
            if row["method"] in METHODS:
                self.curves.setdefault(row["method"], {})[row["number"]] = _costs(row["evaluations"], row)
                self.curve_setting = _setting(row)
        self.pictures = next(({**row, "setting": _setting(row)} for row in results.of_kind(PICTURES)), None)

    def methods(self, comparison: str | None = None) -> list[str]:
        """Return the methods with results in a comparison, or in both, in the order of the tables."""
        present, wanted = {method for method, _ in self.cells}, {comparison} if comparison else {PAPER, USERS}
        return [name for name, method in METHODS.items() if name in present and method.comparison in wanted]

    def row(self, setting: Setting, methods: Iterable[str] | None = None) -> dict[str, CellSummary]:
        """Return the cells of a setting by their methods."""
        names = self.methods() if methods is None else methods
        return {name: self.cells[name, setting] for name in names if (name, setting) in self.cells}

    def settings_with(self, methods: Collection[str]) -> list[Setting]:
        """Return the settings in which all of some methods have results."""
        return [s for s in self.settings if len(self.row(s, methods)) == len(methods)]

    def readings(self) -> Iterator[tuple[Reading, str, CellSummary | None, CellSummary]]:
        """Yield each reading with a method of the paper, its cell in the comparison, and its cell in the reading."""
        for reading in READINGS.values():
            for name in reading.methods:
                if found := self.cells.get((name, (reading.name, reading.kernel))):
                    usual = name if METHODS[name].comparison == PAPER else "MSM (paper)"
                    cell = self.cells.get((usual, (reading.data_set, reading.kernel)))
                    yield reading, METHODS[name].paper_name or "", cell, found

    def means(self, method: str, settings: Iterable[Setting]) -> list[float]:
        """Return a method's accuracy in some settings."""
        return [self.cells[method, setting].mean for setting in settings]

    def overall(self, method: str, settings: Iterable[Setting]) -> tuple[float, float]:
        """Return a method's mean accuracy over settings and the geometric mean of its decision functions."""
        evaluations = [self.cells[method, setting].costs["evaluations"] for setting in settings]
        return fmean(self.means(method, settings)), float(gmean(evaluations))


def _costs(evaluations: float, timed: Row | None) -> dict[str, float]:
    seconds = timed["row_seconds"] if timed else {}
    return {"evaluations": evaluations, **{way: 1e6 * seconds[way] for way in MEASURES if way in seconds}}


def _setting(row: dict[str, Any]) -> Setting:
    return row["set"], row["kernel"]


def set_title(data_set: str) -> str:
    """Return a set's name as the paper writes it."""
    return DATA_SETS[data_set].title if data_set in DATA_SETS else data_set


def escaped(text: str) -> str:
    """Return text as Markdown that shows it in one line: names in a results file may contain anything.

    Underscores inside words need no escape.
    """
    return re.sub(r"[\\`*\[\]|!]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", " ".join(text.split()))


def setting_title(setting: Setting) -> str:
    """Return set and kernel as the paper writes them."""
    return f"{set_title(setting[0])}, {KERNEL_TITLES[setting[1]]}"
