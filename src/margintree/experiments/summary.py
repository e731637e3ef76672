"""What the results file says, by method and setting: means over the splits, times, trees."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, stdev
from typing import Any

from margintree.class_tree import ClassTree
from margintree.datasets import DATA_SETS
from margintree.experiments.job import CURVE, PICTURES, SPLIT, TIME
from margintree.experiments.methods import METHODS
from margintree.experiments.paper import SETTINGS
from margintree.experiments.results import Results, Row

Setting = tuple[str, str]


@dataclass(frozen=True)
class CellSummary:
    """A method on a set with a kernel.

    Accuracies are in %, ``row_seconds`` are seconds per prediction by the way of predicting, ``trees`` one per split.
    """

    method: str
    setting: Setting
    accuracies: tuple[float, ...]
    evaluations: float
    fit_seconds: float
    row_seconds: dict[str, float]
    parameters: dict[str, float]
    trees: tuple[ClassTree, ...]
    facts: Row

    @property
    def mean(self) -> float:
        """Mean accuracy over the splits."""
        return fmean(self.accuracies)

    @property
    def deviation(self) -> float:
        """Standard deviation of the accuracy over the splits."""
        return stdev(self.accuracies) if len(self.accuracies) > 1 else 0.0


@dataclass(frozen=True)
class CurvePoint:
    """A point of Figure 2."""

    n_classes: int
    row_seconds: dict[str, float]
    evaluations: float


@dataclass(frozen=True)
class Pictures:
    """One picture per class, as base64 of its grey values row by row."""

    setting: Setting
    height: int
    width: int
    pictures: tuple[str, ...]


@dataclass(frozen=True)
class Summary:
    """All that tables, figures and claims need.

    Parameters
    ----------
    results : Results
    """

    results: Results
    cells: dict[tuple[str, Setting], CellSummary] = field(init=False)

    def __post_init__(self) -> None:
        rows: dict[tuple[str, Setting], dict[int, Row]] = {}
        for row in self.results.of_kind(SPLIT):
            cell = rows.setdefault((row["method"], _setting(row)), {})
            # Rows of a cell that was tuned anew replace those with the old parameters.
            if any(other["parameters"] != row["parameters"] for other in cell.values()):
                cell.clear()
            cell[row["number"]] = row
        found = {place: self._cell(*place, [cell[n] for n in sorted(cell)]) for place, cell in rows.items()}
        object.__setattr__(self, "cells", found)

    @cached_property
    def methods(self) -> list[str]:
        """Methods with results, in the order of the tables."""
        present = {method for method, _ in self.cells}
        return [name for name in METHODS if name in present]

    @cached_property
    def settings(self) -> list[Setting]:
        """Settings with results, the paper's first and in its order."""
        present = list(dict.fromkeys(setting for _, setting in self.cells))
        return [s for s in SETTINGS if s in present] + sorted((s for s in present if s not in SETTINGS), reverse=True)

    def row(self, setting: Setting) -> dict[str, CellSummary]:
        """Return the cells of a setting by their methods."""
        return {name: self.cells[name, setting] for name in self.methods if (name, setting) in self.cells}

    @cached_property
    def ways(self) -> list[str]:
        """Ways of predicting one row that were timed, the fastest first."""
        found = {way for cell in self.cells.values() for way in cell.row_seconds}
        return [way for way in ("compiled", "predict") if way in found]

    @cached_property
    def common_way(self) -> str | None:
        """The fastest way that every timed method has: times of different ways do not compare."""
        timed = [cell.row_seconds for cell in self.cells.values() if cell.row_seconds]
        return next((way for way in self.ways if all(way in seconds for seconds in timed)), None)

    @cached_property
    def curves(self) -> dict[str, list[CurvePoint]]:
        """Figure 2: for each method its points in the order of the number of classes."""
        found: dict[str, dict[int, CurvePoint]] = {}
        for row in self.results.of_kind(CURVE):
            point = CurvePoint(row["number"], row["row_seconds"], row["evaluations"])
            found.setdefault(row["method"], {})[row["number"]] = point
        return {m: [found[m][n] for n in sorted(found[m])] for m in METHODS if m in found}

    @cached_property
    def curve_setting(self) -> Setting | None:
        """The setting of Figure 2."""
        return next((_setting(row) for row in self.results.of_kind(CURVE)), None)

    @cached_property
    def pictures(self) -> Pictures | None:
        """The pictures of Figure 1."""
        for row in self.results.of_kind(PICTURES):
            return Pictures(_setting(row), row["height"], row["width"], tuple(row["pictures"]))
        return None

    def _cell(self, method: str, setting: Setting, rows: Sequence[Row]) -> CellSummary:
        times = [r for r in self.results.of_kind(TIME) if (r["method"], _setting(r)) == (method, setting)]
        first = rows[0]
        return CellSummary(
            method,
            setting,
            tuple(row["accuracy"] for row in rows),
            fmean(row["evaluations"] for row in rows),
            fmean(row["fit_seconds"] for row in rows),
            times[-1]["row_seconds"] if times else {},
            first["parameters"],
            tuple(ClassTree.from_newick(row["tree"]) for row in rows if "tree" in row),
            {name: first[name] for name in ("n_train", "n_test", "n_features", "n_classes")},
        )


def set_title(data_set: str) -> str:
    """Return a set's name as the paper writes it.

    Examples
    --------
    >>> from margintree.experiments.summary import set_title
    >>> set_title("caltech101"), set_title("digits")
    ('Caltech 101', 'digits')
    """
    return DATA_SETS[data_set].title if data_set in DATA_SETS else data_set


def kernel_title(kernel: str) -> str:
    """Return a kernel's name as the paper writes it.

    Examples
    --------
    >>> from margintree.experiments.summary import kernel_title
    >>> kernel_title("rbf")
    'Gaussian'
    """
    return {"rbf": "Gaussian", "linear": "linear"}.get(kernel, kernel)


def setting_title(setting: Setting) -> str:
    """Return set and kernel.

    Examples
    --------
    >>> from margintree.experiments.summary import setting_title
    >>> setting_title(("usps", "rbf"))
    'usps, Gaussian'
    """
    return f"{set_title(setting[0])}, {kernel_title(setting[1])}"


def _setting(row: dict[str, Any]) -> Setting:
    return row["set"], row["kernel"]
