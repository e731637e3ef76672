"""Class trees drawn with matplotlib."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from margintree.inspection.labels import PLAIN_TEXT, Names
from margintree.inspection.layout import (
    INK,
    MUTED,
    WHITE,
    TreeLayout,
    colours_of,
    draw_colour_bar,
    draw_edges,
    pyplot,
)
from margintree.inspection.tree_facts import TreeFacts

# With this many ends, all names on a page are legible.
MAX_LEAVES = 60
LONGEST_NAME = 48
# Inches.
ROW, ROW_WITH_PICTURE, LEVEL_WIDTH, LETTER = 0.24, 0.52, 0.62, 0.075
LEAST_WIDTH, MOST_TREE_WIDTH = 5.0, 9.0


@dataclass(eq=False)
class ClassTreeDisplay:
    """A drawing of a class tree, from the root on the left to the classes on the right.

    The more classes lie below an edge, the wider it is. Nodes are shaded by their accuracy on test rows, or else by
    their margin. A collapsed group is shown by its first classes and its size. Made by ``from_estimator``.

    Parameters
    ----------
    facts : TreeFacts
        The tree and what is known of its nodes.
    layout : TreeLayout
        Positions of the nodes that are drawn.
    thumbnails : array-like of shape (n_classes, height, width) or (n_classes, height, width, 3 or 4), default=None

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    nodes_ : matplotlib PathCollection
        The internal nodes.
    texts_ : list of matplotlib Text
        The names at the ends.

    Examples
    --------
    >>> from margintree import ClassTree
    >>> from margintree.inspection import ClassTreeDisplay
    >>> tree = ClassTree.from_nested(((0, 3), (1, 2)))
    >>> display = ClassTreeDisplay.from_estimator(tree, class_names=["cat", "owl", "rook", "dog"])
    >>> [text.get_text() for text in display.texts_]
    ['cat', 'dog', 'owl', 'rook']
    """

    facts: TreeFacts
    layout: TreeLayout
    thumbnails: Any = None
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)
    nodes_: Any = field(default=None, init=False, repr=False)
    texts_: list[Any] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        class_names: Names | None = None,
        max_depth: int | None = None,
        max_leaves: int | None = MAX_LEAVES,
        thumbnails: Any = None,
        X: Any = None,
        y: Any = None,
        ax: Any = None,
    ) -> Self:
        """Draw the class tree of a fitted estimator.

        Parameters
        ----------
        estimator : MarginTreeClassifier, other fitted estimator with a tree, pipeline that ends in one, or ClassTree
        class_names : sequence of length n_classes, default=None
            Names to show instead of the labels.
        max_depth : int, default=None
            Groups at this depth are collapsed.
        max_leaves : int or None, default=60
            Expand the largest groups until there are this many; collapse the others. None expands all.
        thumbnails : array-like of shape (n_classes, height, width) or (..., 3 or 4), default=None
            An image of each class, such as the mean of its rows.
        X, y : array-like, default=None
            Rows and labels. Nodes are then shaded by their accuracy, else by their margin.
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a new figure of the size that the tree needs.

        Returns
        -------
        ClassTreeDisplay

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from margintree import MarginTreeClassifier
        >>> from margintree.inspection import plot_tree
        >>> iris = load_iris()
        >>> model = MarginTreeClassifier(random_state=0).fit(iris.data, iris.target)
        >>> display = plot_tree(model, class_names=iris.target_names)
        """
        facts = TreeFacts.of(estimator, class_names, X, y)
        if thumbnails is not None and len(thumbnails) != facts.tree.n_classes:
            raise ValueError(
                f"thumbnails must hold one picture for each of the {facts.tree.n_classes} classes. "
                f"Got {len(thumbnails)}."
            )
        return cls(facts, facts.layout(max_depth, max_leaves), thumbnails).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the tree.

        Parameters
        ----------
        ax : matplotlib Axes, default=None

        Returns
        -------
        ClassTreeDisplay
        """
        plt = pyplot("ClassTreeDisplay")
        layout, ends = self.layout, self.layout.ends
        names = [self.facts.short_name(node, LONGEST_NAME) for node in ends]
        if ax is None:
            _, ax = plt.subplots(figsize=self._figure_size(names), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        ax.set_axis_off()
        # Inches for each end.
        row = float(ax.get_window_extent().height) / ax.figure.dpi / max(1, len(ends))
        ax.set_xlim(-layout.height - 0.15, 0.08)
        ax.set_ylim(len(ends) - 0.4, -0.6)
        draw_edges(ax, layout, self.facts.n_classes)
        self.nodes_ = self._draw_nodes()
        pictures = self._draw_thumbnails(row)
        size = min(10.0, max(3.0, 0.62 * 72.0 * row)) if self.thumbnails is None else 10.0
        self.texts_ = [
            ax.annotate(
                name,
                (0.0, place),
                xytext=(pictures + 6.0, 0.0),
                textcoords="offset points",
                va="center",
                fontsize=size,
                color=INK if self.facts.tree.is_leaf(node) else MUTED,
                annotation_clip=False,
                **PLAIN_TEXT,
            )
            for place, (node, name) in enumerate(zip(ends, names, strict=True))
        ]
        return self

    def _figure_size(self, names: list[str]) -> tuple[float, float]:
        tree = min(MOST_TREE_WIDTH, LEVEL_WIDTH * self.layout.height + 0.6)
        picture = 0.0 if self.thumbnails is None else ROW_WITH_PICTURE
        bar = 0.0 if self.facts.shading()[0] is None else 0.55
        width = tree + LETTER * max(map(len, names)) + picture + 0.3
        return max(LEAST_WIDTH, width), 0.5 + (picture or ROW) * len(names) + bar

    def _draw_nodes(self) -> Any:
        nodes = self.layout.groups
        x, y = self.layout.points(nodes)
        size = 26.0 + 150.0 * np.sqrt(self.facts.n_classes[nodes] / self.facts.tree.n_classes)
        shade, values = self.facts.shading()
        if shade is None:
            return self.ax_.scatter(x, y, s=size, c=WHITE, edgecolors=MUTED, linewidths=1.0, zorder=3, clip_on=False)
        norm, cmap = colours_of(values[nodes], shade)
        colours = {"c": np.where(np.isfinite(values[nodes]), values[nodes], norm.vmax), "norm": norm, "cmap": cmap}
        shown = self.ax_.scatter(x, y, s=size, **colours, edgecolors=INK, linewidths=0.6, zorder=3, clip_on=False)
        draw_colour_bar(self.ax_, shown, shade)
        return shown

    def _draw_thumbnails(self, row: float) -> float:
        """Draw the pictures of the classes; return their width in points."""
        if self.thumbnails is None:
            return 0.0
        from matplotlib.offsetbox import AnnotationBbox, OffsetImage

        pictures = np.asarray(self.thumbnails)
        side = 0.84 * 72.0 * row
        zoom = side / max(pictures.shape[1:3])
        leaves = [node for node in self.layout.ends if self.facts.tree.is_leaf(node)]
        for node, k in zip(leaves, self.facts.tree.leaf_class[leaves], strict=True):
            box = AnnotationBbox(
                OffsetImage(pictures[k], zoom=zoom, cmap="gray_r", interpolation="nearest"),
                (0.0, self.layout.across[node]),
                xybox=(4.0, 0.0),
                boxcoords="offset points",
                box_alignment=(0.0, 0.5),
                pad=0.0,
                bboxprops={"edgecolor": "#d5dbe1", "linewidth": 0.6},
                annotation_clip=False,
            )
            self.ax_.add_artist(box)
        return side + 4.0


plot_tree = ClassTreeDisplay.from_estimator
