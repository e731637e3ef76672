"""Positions of the nodes in a drawing of a class tree, and how matplotlib draws them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.class_tree import ClassTree

INK, MUTED, EDGE, WHITE = "#1f2933", "#7b8794", "#b8c2cc", "#ffffff"
# Colour maps for colour-blind readers, without the ends that are hard to see on white or black.
COLOUR_MAPS = {"margin": ("YlGnBu", 0.12, 0.95), "accuracy": ("RdYlBu", 0.0, 1.0)}
SHADE_TITLES = {"margin": "margin of the node", "accuracy": "accuracy at the node"}

Array = npt.NDArray[np.float64]


def pyplot(what: str) -> Any:
    """Return ``matplotlib.pyplot``, or raise an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{what} draws with matplotlib. Install it with: pip install matplotlib") from error
    return plt


@dataclass(frozen=True, eq=False)
class TreeLayout:
    """Positions of the nodes that are drawn.

    Ends are at 0, 1, 2, ... across the tree, and a parent is in the middle of its children. Along the tree all ends are
    at 0 and a parent one level above the higher of its children, so that the names of the classes are aligned.
    """

    tree: ClassTree
    ends: tuple[int, ...]
    inner: tuple[int, ...]
    across: dict[int, float]
    level: dict[int, float]

    @classmethod
    def of(cls, tree: ClassTree, ends: Sequence[int]) -> "TreeLayout":
        """Lay out a tree that is drawn down to some nodes."""
        across = {node: float(place) for place, node in enumerate(ends)}
        level = dict.fromkeys(ends, 0.0)
        below_ends = np.zeros(tree.n_nodes, dtype=bool)
        for node in ends:
            below_ends[node + 1 : tree.last_below(node) + 1] = True
        inner = [node for node in tree.internal_nodes.tolist() if node not in across and not below_ends[node]]
        for node in reversed(inner):
            left, right = int(tree.children_left[node]), int(tree.children_right[node])
            across[node] = (across[left] + across[right]) / 2.0
            level[node] = 1.0 + max(level[left], level[right])
        return cls(tree, tuple(ends), tuple(inner), across, level)

    @property
    def groups(self) -> list[int]:
        """The nodes with several classes that are drawn, the collapsed ones last."""
        return [*self.inner, *(node for node in self.ends if not self.tree.is_leaf(node))]

    def is_end(self, node: int) -> bool:
        """Return whether the drawing ends at a node: a leaf or a collapsed group."""
        return self.level[node] == 0.0

    @property
    def height(self) -> float:
        """The level of the root."""
        return self.level[0]

    def points(self, nodes: Sequence[int]) -> tuple[list[float], list[float]]:
        """Return the coordinates of nodes in a drawing from right to left: the ends at 0, the root on the left."""
        return [-self.level[node] for node in nodes], [self.across[node] for node in nodes]

    def edges(self) -> list[tuple[int, int]]:
        """Return pairs of parent and child."""
        sides = (self.tree.children_left, self.tree.children_right)
        return [(node, int(side[node])) for node in self.inner for side in sides]


def draw_edges(ax: Any, layout: TreeLayout, n_classes: npt.NDArray[np.int64], thickness: float = 1.0) -> None:
    """Draw smooth edges from right to left: the ends at 0, the root at minus the height of the tree.

    The width of an edge grows with the square root of the number of classes below it.
    """
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path

    codes = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4, Path.LINETO]
    paths, shares = [], []
    for node, child in layout.edges():
        x, y, below = -layout.level[node], layout.across[node], layout.across[child]
        # The curve spans one level and the rest is straight, so that the curves of siblings look alike.
        knee = min(x + 1.0, -layout.level[child])
        middle = (x + knee) / 2.0
        points = [(x, y), (middle, y), (middle, below), (knee, below), (-layout.level[child], below)]
        paths.append(Path(points, codes))
        shares.append(n_classes[child] / layout.tree.n_classes)
    widths = thickness * (0.8 + 5.0 * np.sqrt(shares))
    ax.add_collection(
        PathCollection(
            paths, facecolors="none", edgecolors=EDGE, linewidths=widths, capstyle="round", zorder=1, clip_on=False
        )
    )


def colours_of(values: Array, by: str) -> tuple[Any, Any]:
    """Return a matplotlib norm and colour map for the finite values."""
    import matplotlib as mpl
    from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize

    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    name, first, last = COLOUR_MAPS[by]
    colours = mpl.colormaps[name](np.linspace(first, last, 256))
    cmap = LinearSegmentedColormap.from_list(f"{name}_part", colours)
    if by == "accuracy":
        # In a tree with few errors, no node is red.
        return Normalize(min(low, 0.9), 1.0), cmap
    # Margins of groups and of pairs differ by orders of magnitude.
    is_flat = low <= 0.0 or high / low < 1.0 + 1e-9
    return (Normalize(low, high + (low == high)) if is_flat else LogNorm(low, high)), cmap


def draw_colour_bar(ax: Any, shown: Any, by: str) -> None:
    """Draw the colour bar of a shading below a tree, with the numbers at its ends and in its middle."""
    bar = ax.figure.colorbar(
        shown, ax=ax, location="bottom", orientation="horizontal", shrink=0.4, aspect=30, pad=0.02, anchor=(0.0, 0.0)
    )
    low, high = shown.norm.vmin, shown.norm.vmax
    middle = float(shown.norm.inverse(0.5))
    bar.minorticks_off()
    bar.set_ticks([low, middle, high], labels=[f"{value:.3g}" for value in (low, middle, high)])
    bar.set_label(SHADE_TITLES[by], fontsize=9, color=MUTED)
    bar.ax.tick_params(labelsize=8, colors=MUTED, length=2)
    bar.outline.set_visible(False)
