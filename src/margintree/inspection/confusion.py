"""A confusion matrix with the classes in the order of the tree, drawn beside the tree: where errors arise."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree.inspection.labels import PLAIN_TEXT, Names
from margintree.inspection.layout import EDGE, INK, MUTED, WHITE, TreeLayout, draw_edges, pyplot
from margintree.inspection.tree_facts import TreeFacts

LONGEST_TICK_LABEL = 36
# Counts are written into the cells of matrices up to this size, and errors beside this many nodes.
WRITTEN_CELLS, WRITTEN_NODES = 16, 12
ERROR = "#c05621"


@dataclass(eq=False)
class ConfusionByTreeDisplay:
    """The confusion matrix with the classes in the order of the tree, and the tree beside it.

    Classes that the tree keeps together are blocks on the diagonal; the lines around a block belong to a node. An
    error between two classes lies in the block of the last node on both of their paths: there the row took the wrong
    side. Made by ``from_estimator``.

    Parameters
    ----------
    facts : TreeFacts
        The tree, with the confusion matrix of some rows.
    layout : TreeLayout
        The nodes that are drawn; a collapsed group is one row and one column.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_ends, n_ends)
        The counts that are drawn: in the order of the tree, with groups collapsed.
    ax_ : matplotlib Axes
        Axes of the matrix.
    tree_ax_ : matplotlib Axes
        Axes of the tree.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import MarginTreeClassifier
    >>> from margintree.inspection import ConfusionByTreeDisplay
    >>> iris = load_iris()
    >>> model = MarginTreeClassifier(random_state=0).fit(iris.data, iris.target)
    >>> display = ConfusionByTreeDisplay.from_estimator(model, iris.data, iris.target, class_names=iris.target_names)
    >>> int(display.matrix_.sum())
    150
    >>> [record["node"] for record in display.worst_nodes(1)]
    [2]
    """

    facts: TreeFacts
    layout: TreeLayout
    matrix_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)
    tree_ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        class_names: Names | None = None,
        max_depth: int | None = None,
        max_leaves: int | None = 40,
        ax: Any = None,
    ) -> Self:
        """Predict rows and draw their confusion matrix.

        Parameters
        ----------
        estimator : MarginTreeClassifier, another fitted estimator with a tree, or a pipeline that ends in one
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        class_names : sequence of length n_classes, default=None
            Names to show instead of the labels.
        max_depth : int, default=None
            Groups at this depth are collapsed.
        max_leaves : int or None, default=40
            Expand the largest groups until there are this many rows and columns; collapse the others.
        ax : matplotlib Axes, default=None
            Axes to draw on, divided between the tree and the matrix. None makes a new figure.

        Returns
        -------
        ConfusionByTreeDisplay
        """
        facts = TreeFacts.of(estimator, class_names, X, y)
        return cls(facts, facts.layout(max_depth, max_leaves)).plot(ax=ax)

    def worst_nodes(self, n: int = 10) -> list[dict[str, Any]]:
        """Return the nodes at which most rows take the wrong side, the worst first.

        Returns
        -------
        list of dict
            ``node``, ``n_errors``, ``n_rows`` (of its classes), ``accuracy`` at the node, ``share`` of all errors, and
            the names of the classes on the ``left`` and on the ``right``.
        """
        facts, order = self.facts, np.argsort(-self.facts.n_errors, kind="stable")
        total = max(float(facts.n_errors.sum()), 1.0)
        return [
            {
                "node": node,
                "n_errors": int(facts.n_errors[node]),
                "n_rows": int(facts.n_rows[node]),
                "accuracy": float(facts.accuracy[node]),
                "share": float(facts.n_errors[node]) / total,
                "left": facts.names_below(int(facts.tree.children_left[node])),
                "right": facts.names_below(int(facts.tree.children_right[node])),
            }
            for node in order[:n].tolist()
            if facts.n_errors[node] > 0
        ]

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the matrix and the tree.

        Parameters
        ----------
        ax : matplotlib Axes, default=None

        Returns
        -------
        ConfusionByTreeDisplay
        """
        plt = pyplot("ConfusionByTreeDisplay")
        layout, n = self.layout, len(self.layout.ends)
        if ax is None:
            side = float(np.clip(0.27 * n + 1.0, 4.0, 9.0))
            tree_side = float(np.clip(0.5 * layout.height, 1.8, 4.0))
            names_side = 0.075 * max(len(self.facts.short_name(node, LONGEST_TICK_LABEL)) for node in layout.ends)
            size = (tree_side + side + names_side + 0.4, side + 0.8)
            self.figure_, axes = plt.subplots(
                1, 2, figsize=size, layout="constrained", width_ratios=[tree_side, side + names_side]
            )
            self.tree_ax_, self.ax_ = axes
        else:
            self.figure_ = ax.figure
            ax.set_axis_off()
            self.tree_ax_, self.ax_ = ax.inset_axes((0.0, 0.0, 0.3, 1.0)), ax.inset_axes((0.31, 0.0, 0.69, 1.0))
        self._draw_matrix()
        self._draw_tree()
        return self

    def _collapsed(self) -> npt.NDArray[np.int64]:
        """Return the confusion matrix of the ends, in the order of the tree."""
        assert self.facts.confusion_matrix is not None
        leaf_class, ends = self.facts.tree.leaf_class, self.layout.ends
        place = np.repeat(np.arange(len(ends)), self.facts.n_classes[list(ends)])
        group_of = sp.csr_array((np.ones_like(place), (place, leaf_class[leaf_class >= 0])))
        return np.asarray((group_of @ self.facts.confusion_matrix @ group_of.T).toarray())

    def _draw_matrix(self) -> None:
        from matplotlib.colors import PowerNorm

        ax, ends = self.ax_, self.layout.ends
        n = len(ends)
        self.matrix_ = self._collapsed()
        share = self.matrix_ / np.maximum(self.matrix_.sum(axis=1, keepdims=True), 1)
        # The square root makes rare errors visible.
        norm = PowerNorm(0.5, 0.0, 1.0)
        for cells, colours in ((np.eye(n, dtype=bool), "Blues"), (~np.eye(n, dtype=bool), "Oranges")):
            shown = np.ma.array(share, mask=~cells | (share == 0.0))
            ax.imshow(shown, cmap=colours, norm=norm, aspect="auto", interpolation="nearest")
        self._draw_blocks()
        if n <= WRITTEN_CELLS:
            for i, j in zip(*np.nonzero(self.matrix_), strict=True):
                colour = WHITE if share[i, j] > 0.45 else INK
                ax.text(j, i, f"{self.matrix_[i, j]:,}", ha="center", va="center", fontsize=8, color=colour)
        names = [self.facts.short_name(node, LONGEST_TICK_LABEL) for node in ends]
        ax.set_yticks(range(n), names, fontsize=9 if n <= 30 else 7, color=INK, **PLAIN_TEXT)
        ax.yaxis.tick_right()
        ax.set_xticks([])
        ax.tick_params(length=0)
        ax.set_xlabel("predicted, in the same order", fontsize=9, color=MUTED)
        for spine in ax.spines.values():
            spine.set_color(EDGE)

    def _draw_blocks(self) -> None:
        """Draw a square around the classes of each group, thinner at each level."""
        from matplotlib.patches import Rectangle

        across, tree = self.layout.across, self.facts.tree
        for node in self.layout.inner[1:]:
            below = [across[end] for end in self.layout.ends if node <= end <= tree.last_below(node)]
            corner, n = (below[0] - 0.5, below[0] - 0.5), len(below)
            width = max(0.35, 1.6 / int(tree.depth[node]))
            self.ax_.add_patch(Rectangle(corner, n, n, fill=False, edgecolor=MUTED, linewidth=width))

    def _draw_tree(self) -> None:
        from matplotlib.patheffects import withStroke

        ax, facts, layout = self.tree_ax_, self.facts, self.layout
        ax.set_axis_off()
        ax.set_xlim(-layout.height - 0.3, 0.05)
        ax.set_ylim(len(layout.ends) - 0.5, -0.5)
        draw_edges(ax, layout, facts.n_classes, thickness=0.7)
        # Errors inside a collapsed group belong to it.
        nodes = layout.groups
        last = [facts.tree.last_below(node) if layout.is_end(node) else node for node in nodes]
        errors = np.array([facts.n_errors[node : end + 1].sum() for node, end in zip(nodes, last, strict=True)])
        share = errors / max(1.0, errors.max(initial=0.0))
        x, y = layout.points(nodes)
        colours, outlines = np.where(errors, ERROR, WHITE), np.where(errors, WHITE, MUTED)
        size = 18.0 + 320.0 * share
        ax.scatter(x, y, s=size, c=colours, edgecolors=outlines, linewidths=0.8, zorder=3, clip_on=False)
        for k in np.argsort(-errors, kind="stable")[:WRITTEN_NODES]:
            if errors[k]:
                ax.annotate(
                    f"{errors[k]:,.0f}",
                    (x[k], y[k]),
                    xytext=(-5.0 - 9.0 * share[k] ** 0.5, 0.0),
                    textcoords="offset points",
                    ha="right",
                    va="center",
                    fontsize=8,
                    color=ERROR,
                    annotation_clip=False,
                    path_effects=[withStroke(linewidth=2.0, foreground=WHITE)],
                    zorder=4,
                )
        total, n_rows = facts.n_errors.sum(), self.matrix_.sum()
        text = f"rows that take the wrong side: {total:,.0f} of {n_rows:,}"
        ax.set_title(text, loc="left", fontsize=9, color=MUTED)
