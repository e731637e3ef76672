"""A small picture of a class tree for notebooks: one inline SVG, without scripts, fonts or requests."""

from html import escape
from typing import Any

from margintree.inspection.tree_facts import TreeFacts

LONGEST_SVG_NAME, MOST_SVG_LEAVES = 40, 16
# Pixels.
ROW_PIXELS, STEP, LETTER_PIXELS, MARGIN = 18.0, 34.0, 7.0, 10.0
# currentColor follows the theme of the notebook; unicode-bidi lets each name keep its own direction.
_STYLE = "fill:currentColor;font:12px system-ui,sans-serif;unicode-bidi:plaintext"


def tree_svg(estimator: Any) -> str:
    """Return the tree of a fitted estimator as SVG, with the largest groups expanded.

    Examples
    --------
    >>> from margintree import ClassTree
    >>> tree_svg(ClassTree.from_nested((0, 1)))[:29]
    '<svg role="img" aria-label="C'
    """
    facts = TreeFacts.of(estimator)
    layout = facts.layout(max_leaves=MOST_SVG_LEAVES)
    names = [facts.short_name(node, LONGEST_SVG_NAME) for node in layout.ends]
    right = MARGIN + STEP * layout.height
    x = {node: right - STEP * level for node, level in layout.level.items()}
    y = {node: MARGIN / 2.0 + ROW_PIXELS * (place + 0.5) for node, place in layout.across.items()}
    curves = ""
    for node, child in layout.edges():
        middle, knee = x[node] + STEP / 2.0, x[node] + STEP
        curves += f"M{x[node]:.0f} {y[node]:.1f}C{middle:.0f} {y[node]:.1f} {middle:.0f} {y[child]:.1f} "
        curves += f"{knee:.0f} {y[child]:.1f}H{x[child]:.0f}"
    edges = f'<path d="{curves}" fill="none" stroke="currentColor" stroke-opacity=".35" stroke-width="1.5"/>'
    nodes = "".join(f'<circle cx="{x[node]:.0f}" cy="{y[node]:.1f}" r="3.5" fill="#2b6cb0"/>' for node in layout.inner)
    texts = "".join(
        f'<text x="{right + 7.0:.0f}" y="{y[node] + 4.0:.1f}" style="{_STYLE}">{escape(name)}</text>'
        for node, name in zip(layout.ends, names, strict=True)
    )
    width = right + 14.0 + LETTER_PIXELS * max(map(len, names))
    height = ROW_PIXELS * len(names) + MARGIN
    title = f"Class tree of {facts.tree.n_classes:,} classes, depth {facts.tree.max_depth}"
    return (
        f'<svg role="img" aria-label="{title}" xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">{edges}{nodes}{texts}</svg>'
    )


def html_with_tree(box: str, estimator: Any) -> str:
    """Return scikit-learn's diagram of an estimator with the tree below it."""
    tree = estimator.tree_
    summary = f"Class tree: {tree.n_classes:,} classes, depth {tree.max_depth}"
    head = f'<details open style="font:13px system-ui,sans-serif"><summary style="cursor:pointer">{summary}</summary>'
    return f"{box}{head}{tree_svg(estimator)}</details>"
