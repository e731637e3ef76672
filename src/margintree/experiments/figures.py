"""Figure 1 (digits and class trees), Figure 2 (time against classes), and accuracy against evaluations."""

import base64
import re
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from margintree.class_tree import ClassTree
from margintree.experiments.summary import Pictures, Setting, Summary, set_title, setting_title
from margintree.experiments.svg import MARKS, Axis, drawing, frame, mark

# Figure 1 of the paper has these trees; ours stands beside them.
TREE_FIGURE_METHODS = ("MSM (paper)", "MSM (ours)", "I-BWG", "FT", "CPT")
# Sizes that can still be read when a drawing is as narrow as a phone.
LEAF_STEP, LEAF_SIZE, LEVEL_HEIGHT = 36.0, 30.0, 46.0
CHART_WIDTH, CHART_HEIGHT = 420.0, 300.0
LETTER_WIDTH, LABEL_HEIGHT = 6.2, 12.0

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Figure:
    """A drawing with its place in the report."""

    name: str
    title: str
    svg: str


def all_figures(summary: Summary) -> list[Figure]:
    """Return the figures for which there are results."""
    figures = []
    if summary.pictures is not None:
        figures.append(sample_figure(summary.pictures))
        for method in TREE_FIGURE_METHODS:
            cell = summary.cells.get((method, summary.pictures.setting))
            if cell is not None and cell.trees:
                figures.append(tree_figure(method, cell.trees[0], summary.pictures))
    if summary.curves and summary.common_way is not None:
        figures.append(curve_figure(summary, summary.common_way))
    return figures + [accuracy_figure(summary, setting) for setting in summary.settings]


def sample_figure(pictures: Pictures) -> Figure:
    """Return Figure 1 (a): one picture of each class."""
    parts = [_leaf(k, (k + 0.5) * LEAF_STEP + 10.0, 4.0, pictures) for k in range(len(pictures.pictures))]
    width = len(pictures.pictures) * LEAF_STEP + 20.0
    svg = drawing(width, LEAF_SIZE + 28.0, parts, "One picture of each digit")
    return Figure(
        "figure1_samples", f"Figure 1 (a): a typical picture of each class of {set_title(pictures.setting[0])}", svg
    )


def tree_figure(method: str, tree: ClassTree, pictures: Pictures) -> Figure:
    """Return a class tree with pictures at its leaves."""
    x = _leaf_centred(tree)
    y = [12.0 + LEVEL_HEIGHT * depth for depth in tree.depth.tolist()]
    edges, nodes = [], []
    for node in tree.internal_nodes.tolist():
        for child in (int(tree.children_left[node]), int(tree.children_right[node])):
            middle = (y[node] + y[child]) / 2.0
            top = y[child] - (2.0 if tree.is_leaf(child) else 9.0)
            edges.append(f'<path class="edge" d="M{x[node]:.1f} {y[node]:.1f}V{middle:.1f}H{x[child]:.1f}V{top:.1f}"/>')
        group = " ".join(str(k) for k in tree.classes_below(node).tolist())
        width = LETTER_WIDTH * len(group) * 0.9 + 12.0
        nodes.append(
            f'<rect class="group" x="{x[node] - width / 2:.1f}" y="{y[node] - 10:.1f}" width="{width:.1f}" '
            f'height="18" rx="9"/><text x="{x[node]:.1f}" y="{y[node] + 3:.1f}" text-anchor="middle" '
            f'font-size="11">{group}</text>'
        )
    leaves = [_leaf(int(tree.leaf_class[n]), x[n], y[n] - 2.0, pictures) for n in tree.leaf_of_class.tolist()]
    width = tree.n_classes * LEAF_STEP + 20.0
    height = 12.0 + LEVEL_HEIGHT * tree.max_depth + LEAF_SIZE + 20.0
    svg = drawing(width, height, [*edges, *nodes, *leaves], f"Class tree of {method}: {tree.to_newick()}")
    name = re.sub(r"[^a-z0-9]+", "_", method.lower()).strip("_")
    return Figure(f"figure1_{name}", f"Figure 1: class tree of {method}, first split", svg)


def curve_figure(summary: Summary, way: str) -> Figure:
    """Return Figure 2: prediction time against the number of classes."""
    curves = {m: [(p.n_classes, 1e6 * p.row_seconds[way]) for p in found] for m, found in summary.curves.items()}
    points = [point for found in curves.values() for point in found]
    x = Axis(0.0, 1.02 * max(c for c, _ in points), 48.0, CHART_WIDTH - 78.0)
    low, high = min(t for _, t in points), max(t for _, t in points)
    y = Axis(low / 1.3, high * 1.3, CHART_HEIGHT - 42.0, 26.0, is_log=True)
    parts = frame(x, y, "number of classes", "microseconds per prediction")
    ends = sorted((y.place(found[-1][1]), method) for method, found in curves.items())
    for (_, method), at in zip(ends, _spread([place for place, _ in ends], LABEL_HEIGHT), strict=True):
        found = [(x.place(c), y.place(t)) for c, t in curves[method]]
        line = "L".join(f"{a:.1f} {b:.1f}" for a, b in found)
        colour = MARKS[method][0]
        parts.append(f'<path d="M{line}" stroke="{colour}" stroke-width="2" fill="none"/>')
        parts += [
            mark(method, a, b, 3.5, f"{method}: {t:.1f} µs with {c} classes")
            for (a, b), (c, t) in zip(found, curves[method], strict=True)
        ]
        parts.append(f'<text x="{x.last + 8:.1f}" y="{at + 4:.1f}" font-size="11">{escape(method)}</text>')
    assert summary.curve_setting is not None
    title = f"Figure 2: time of one prediction against the number of classes ({setting_title(summary.curve_setting)})"
    return Figure("figure2", title, drawing(CHART_WIDTH, CHART_HEIGHT, parts, title))


def accuracy_figure(summary: Summary, setting: Setting) -> Figure:
    """Return accuracy against decision functions evaluated per prediction, for one setting."""
    row = summary.row(setting)
    lows = [cell.mean - cell.deviation for cell in row.values()]
    highs = [cell.mean + cell.deviation for cell in row.values()]
    room = max(0.08 * (max(highs) - min(lows)), 0.5)
    counts = [cell.evaluations for cell in row.values()]
    x = Axis(min(counts) / 1.4, max(counts) * 2.2, 42.0, CHART_WIDTH - 10.0, is_log=True)
    y = Axis(min(lows) - room, max(highs) + room, CHART_HEIGHT - 42.0, 26.0)
    parts = frame(x, y, "decision functions per prediction", "mean accuracy over the classes, %")
    places = {m: (x.place(cell.evaluations), y.place(cell.mean)) for m, cell in row.items()}
    taken: list[Box] = [(a - 6.0, b - 6.0, a + 6.0, b + 6.0) for a, b in places.values()]
    for method, (a, b) in places.items():
        cell = row[method]
        low, high = y.place(cell.mean - cell.deviation), y.place(cell.mean + cell.deviation)
        colour = MARKS[method][0]
        parts.append(f'<path d="M{a:.1f} {low:.1f}V{high:.1f}" stroke="{colour}" stroke-width="1.2" opacity="0.6"/>')
        hint = f"{method}: {cell.mean:.2f} ± {cell.deviation:.2f} %, {cell.evaluations:.1f} evaluations"
        parts.append(mark(method, a, b, 5.0, hint))
        left, top = _free_place(a, b, LETTER_WIDTH * len(method), taken, (x.first, y.last, x.last, y.first))
        taken.append((left, top, left + LETTER_WIDTH * len(method), top + LABEL_HEIGHT))
        parts.append(f'<text x="{left:.1f}" y="{top + 10:.1f}" font-size="11">{escape(method)}</text>')
    title = f"{setting_title(setting)}"
    label = f"Accuracy against decision functions per prediction: {title}"
    return Figure(f"accuracy_{setting[0]}_{setting[1]}", title, drawing(CHART_WIDTH, CHART_HEIGHT, parts, label))


def _leaf_centred(tree: ClassTree) -> list[float]:
    """Return where each node stands: leaves side by side, parents above the middle of their children."""
    x = [0.0] * tree.n_nodes
    n_leaves = 0
    for node in range(tree.n_nodes):
        if tree.is_leaf(node):
            x[node] = 10.0 + LEAF_STEP * (n_leaves + 0.5)
            n_leaves += 1
    for node in reversed(tree.internal_nodes.tolist()):
        x[node] = (x[tree.children_left[node]] + x[tree.children_right[node]]) / 2.0
    return x


def _leaf(k: int, x: float, top: float, pictures: Pictures) -> str:
    uri = _picture_uri(pictures, k)
    return (
        f'<image href="{uri}" x="{x - LEAF_SIZE / 2:.1f}" y="{top:.1f}" width="{LEAF_SIZE:g}" height="{LEAF_SIZE:g}"/>'
        f'<text x="{x:.1f}" y="{top + LEAF_SIZE + 14:.1f}" text-anchor="middle" font-size="13">{k}</text>'
    )


def _picture_uri(pictures: Pictures, k: int) -> str:
    """Return a picture as a PNG of grey values inside a data address."""
    grey = base64.b64decode(pictures.pictures[k])
    width, height = pictures.width, pictures.height
    rows = b"".join(b"\0" + grey[r * width : (r + 1) * width] for r in range(height))

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    png = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _spread(places: Sequence[float], distance: float) -> list[float]:
    """Return sorted places pushed apart until neighbours have a distance, and centred on the old ones."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + distance) if moved else place)
    shift = (sum(moved) - sum(places)) / max(len(moved), 1)
    return [place - shift for place in moved]


def _free_place(a: float, b: float, width: float, taken: Sequence[Box], inside: Box) -> tuple[float, float]:
    """Return the top left corner of a label near a mark, where it hides least."""
    choices = [(a + 8.0, b - 6.0), (a - 8.0 - width, b - 6.0)]
    for lift in (9.0, 20.0, 31.0):
        choices += [(a - width / 2, b - lift - LABEL_HEIGHT + 2.0), (a - width / 2, b + lift - 2.0)]
        choices += [(a + 8.0, b - lift - 6.0), (a + 8.0, b + lift - 6.0)]

    def cost(number: int) -> float:
        left, top = choices[number]
        box = (left, top, left + width, top + LABEL_HEIGHT)
        hidden = sum(_overlap(box, other) for other in taken)
        outside = width * LABEL_HEIGHT - _overlap(box, inside)
        return 10.0 * outside + 3.0 * hidden + number

    return choices[min(range(len(choices)), key=cost)]


def _overlap(one: Box, other: Box) -> float:
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return max(wide, 0.0) * max(high, 0.0)
