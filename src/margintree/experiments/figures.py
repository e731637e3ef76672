"""The figures, drawn by matplotlib as SVG: digits and class trees, time against classes, accuracies, ranks, costs."""

import base64
import io
import re
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from margintree.class_tree import ClassTree
from margintree.estimators.margin_tree import MarginTreeClassifier
from margintree.experiments import paper
from margintree.experiments.methods import METHODS, PAPER, USERS
from margintree.experiments.summary import MEASURES, Setting, Summary, setting_title
from margintree.experiments.tables import rank_tests
from margintree.inspection.layout import TreeLayout

# Figure 1 of the paper has these trees; ours stand beside them.
DRAWN_TREES = ("MSM (paper)", "MSM (balanced cut)", "MSM (ours)", "I-BWG (no bias)", "FT (no bias)", "CPT (no bias)")
MARKS = {
    "MSM": ("#2f7fc1", "o"), "I-BWG": ("#1b9e77", "^"), "J-BWG": ("#45a0c9", "v"), "FT": ("#8a8a8a", "s"),
    "CPT": ("#c99700", "h"), "1vs1": ("#d1659f", "P"), "1vsR": ("#8d6fd1", "X"), "DDAG": ("#a1713d", "*"),
    "MSM (ours)": ("#d95f02", "D"), "MSM (balanced cut)": ("#6fb1e0", "p"),
}  # fmt: skip
# Placeholders for the colours of the page, which change in dark mode.
TEXT, SOFT, GROUND = "#010203", "#606770", "#fdfefd"
# In inches of 72 points: letters can still be read when a figure is as narrow as a phone.
WIDTH, LINE = 4.8, 0.3
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "margintree", "font.size": 11.0, "font.family": "sans-serif",
    "text.color": TEXT, "axes.labelcolor": TEXT, "axes.edgecolor": SOFT, "xtick.color": SOFT, "ytick.color": SOFT,
    "xtick.labelcolor": TEXT, "ytick.labelcolor": TEXT, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": SOFT, "grid.alpha": 0.25, "image.composite_image": False,
}  # fmt: skip


class Figure(NamedTuple):
    """A drawing with its place in the report."""

    name: str
    title: str
    svg: str


def all_figures(summary: Summary) -> Iterator[Figure]:
    """Yield the figures for which there are results."""
    for comparison, title in ((PAPER, "the paper's methods, without bias"), (USERS, "methods for users, with bias")):
        for over, test in rank_tests(summary, comparison).items():
            what = f"Mean ranks of {title}, over {test.n_settings} {over.removeprefix('all ')}"
            height = LINE * len(test.mean_ranks) + 1.1
            yield _figure(f"ranks_{comparison}_{over.split()[0]}", what, height, _draw_ranks, test)
    if summary.methods():
        yield _figure("overview", "Accuracy against the cost of a prediction", 3.6, _draw_cost, summary)
    for setting in summary.settings:
        name, height = f"setting_{setting[0]}_{setting[1]}", LINE * len(summary.row(setting)) + 0.9
        yield _figure(name, setting_title(setting), height, _draw_accuracy, summary, setting)
    for measure, how in MEASURES.items():
        if any(measure in costs for curve in summary.curves.values() for costs in curve.values()):
            title = f"Figure 2: cost against the number of classes, in {how}"
            yield _figure(f"figure2_{measure}", title, 3.4, _draw_curves, summary, measure)
    if summary.pictures is not None:
        for name, cell in summary.row(summary.pictures["setting"], DRAWN_TREES).items():
            title, tree = f"Figure 1: class tree of {METHODS[name].title}, first split", cell.trees[0]
            height = 0.55 * tree.max_depth + 0.9
            yield _figure(f"figure1_{name}", title, height, draw_tree, summary.pictures, tree)


def _figure(name: str, title: str, height: float, draw: Callable[..., None], *arguments: Any) -> Figure:
    """Return a drawing as SVG text that follows the colours of the page around it."""
    with matplotlib.rc_context(STYLE):
        canvas = Canvas(figsize=(WIDTH, height), layout="constrained")
        draw(canvas.add_subplot(), *arguments)
        text = io.StringIO()
        canvas.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()[text.getvalue().index("<svg") :]
    # Several drawings share a page, where ids must be unique.
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<g|<use|<image) id="[^"]*"', r"\1", svg)
    for token, colour in ((TEXT, "currentColor"), (SOFT, "var(--soft, #606770)"), (GROUND, "var(--paper, white)")):
        svg = svg.replace(token, colour)
    # A valid file name, whatever the sets of a results file are called.
    name = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return Figure(name, title, svg.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1))


def _mark(method: str) -> tuple[str, str]:
    return MARKS.get(method) or MARKS[METHODS[method].paper_name or method]


def _draw_ranks(axes: Axes, test: Any) -> None:
    """Draw mean ranks; methods within the band do not differ from the best at the 5 % level."""
    names = sorted(test.mean_ranks, key=lambda m: -test.mean_ranks[m])
    best = min(test.mean_ranks.values())
    axes.axvspan(best, best + test.critical_difference, color=SOFT, alpha=0.15, linewidth=0)
    for place, name in enumerate(names):
        (colour, marker), rank = _mark(name), test.mean_ranks[name]
        axes.plot([0.8, rank], [place, place], color=SOFT, alpha=0.4, linewidth=1)
        axes.plot(rank, place, marker=marker, color=colour, markersize=9)
        axes.annotate(f"{rank:.2f}", (rank, place), (9, -4), textcoords="offset points")
    axes.set_yticks(range(len(names)), [METHODS[m].title for m in names])
    axes.set(xlim=(0.8, len(names) + 0.3), ylim=(-0.6, len(names) - 0.4))
    axes.set_xlabel("mean rank (band: level with the best)", fontsize=10)
    axes.grid(visible=False, axis="y")


def _draw_cost(axes: Axes, summary: Summary) -> None:
    """Draw mean accuracy over the settings that all methods have, against decision functions."""
    names = [m for m in summary.methods() if METHODS[m].kernels != ("linear",)]
    settings = summary.settings_with(names) or summary.settings[:1]
    points = {m: summary.overall(m, settings) for m in names if all((m, s) in summary.cells for s in settings)}
    for name, (accuracy, cost) in points.items():
        colour, marker = _mark(name)
        fill = colour if METHODS[name].comparison == USERS else "none"
        axes.plot(cost, accuracy, marker, color=colour, markersize=9, markerfacecolor=fill, label=name)
    axes.set_xscale("log")
    axes.margins(0.08, 0.12)
    axes.set(xlabel="decision functions (geometric mean)", ylabel="mean accuracy, %")
    _plain_log_ticks(axes, axes.xaxis, [cost for _, cost in points.values()])


def _draw_accuracy(axes: Axes, summary: Summary, setting: Setting) -> None:
    """Draw the accuracy of each method with its standard deviation, and the paper's figure beside it."""
    row = summary.row(setting)
    for place, (name, cell) in enumerate(reversed(row.items())):
        colour, marker = _mark(name)
        theirs = paper.accuracy(METHODS[name].paper_name or "", *setting)
        if theirs is not None:
            axes.plot([theirs[0], cell.mean], [place, place], color=SOFT, alpha=0.4, linewidth=1)
            axes.plot(theirs[0], place, marker="o", color=SOFT, fillstyle="none", markersize=6)
        axes.errorbar(cell.mean, place, xerr=cell.deviation, marker=marker, color=colour, markersize=7, capsize=2)
    axes.set_yticks(range(len(row)), list(reversed(row)))
    axes.set(ylim=(-0.6, len(row) - 0.4), xlabel="mean accuracy over the classes, %")
    axes.grid(visible=False, axis="y")


def _draw_curves(axes: Axes, summary: Summary, measure: str) -> None:
    """Draw Figure 2 by one measure."""
    values: list[float] = []
    for name, curve in summary.curves.items():
        if METHODS[name].comparison == PAPER or METHODS[name].estimator is MarginTreeClassifier:
            points = {n: costs[measure] for n, costs in sorted(curve.items()) if measure in costs}
            values += points.values()
            (colour, marker), label = _mark(name), METHODS[name].title
            axes.plot([*points], [*points.values()], color=colour, marker=marker, markersize=4, label=label)
    axes.set_yscale("log")
    axes.set(xlabel="number of classes")
    _plain_log_ticks(axes, axes.yaxis, values)


def _plain_log_ticks(axes: Axes, axis: Any, values: list[float]) -> None:
    """Label a logarithmic axis by plain numbers, every decade and more where there are few; add the legend."""
    decades = np.log10(max(values) / min(values))
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.5 else (1.0,)))
    axis.set_major_formatter(ScalarFormatter())
    axis.set_minor_formatter(NullFormatter())
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=10, handletextpad=0.5)


def draw_tree(axes: Axes, pictures: Mapping[str, Any], tree: ClassTree) -> None:
    """Draw a class tree with a picture at each leaf, parents above the middle of their children."""
    leaves = np.flatnonzero(tree.children_left < 0).tolist()
    x, y = TreeLayout.of(tree, leaves).across, -tree.depth.astype(float)
    for node in reversed(tree.internal_nodes.tolist()):
        for child in (int(tree.children_left[node]), int(tree.children_right[node])):
            axes.plot([x[node], x[child], x[child]], [y[node], y[node], y[child]], color=SOFT, linewidth=1.3, zorder=1)
        group = " ".join(str(k) for k in tree.classes_below(node).tolist())
        box = {"boxstyle": "round,pad=0.3", "facecolor": GROUND, "edgecolor": SOFT, "linewidth": 0.8}
        axes.text(x[node], y[node], group, ha="center", va="center", fontsize=10, bbox=box)
    for leaf in leaves:
        k, left, top = int(tree.leaf_class[leaf]), x[leaf] - 0.38, y[leaf]
        grey = np.frombuffer(base64.b64decode(pictures["pictures"][k]), np.uint8)
        picture = grey.reshape(pictures["height"], pictures["width"])
        shown = axes.imshow(picture, cmap="gray", vmin=0, vmax=255, aspect="auto", interpolation="none", zorder=2)
        shown.set_extent((left, left + 0.76, top - 0.72, top))
        axes.text(x[leaf], top - 0.76, str(k), ha="center", va="top", fontsize=11)
    axes.set(xlim=(-0.6, len(leaves) - 0.4), ylim=(y.min() - 1.2, 0.3))
    axes.set_axis_off()
