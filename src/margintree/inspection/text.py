"""A class tree as text: an outline for the terminal, and DOT for Graphviz."""

from typing import Any

import numpy as np

from margintree.inspection.labels import Names, first_names
from margintree.inspection.tree_facts import TreeFacts

# Greens of ColorBrewer's YlGn, light enough for black text.
_SHADES = ("#ffffe5", "#f7fcb9", "#d9f0a3", "#addd8e", "#78c679")


def export_text(
    estimator: Any,
    *,
    class_names: Names | None = None,
    max_depth: int | None = None,
    decimals: int = 3,
    show_rows: bool = False,
    X: Any = None,
    y: Any = None,
) -> str:
    """Return the class tree as an outline, with what is known of each node.

    Parameters
    ----------
    estimator : MarginTreeClassifier, another fitted estimator with a tree, a pipeline that ends in one, or ClassTree
    class_names : sequence of length n_classes, default=None
        Names to show instead of the labels.
    max_depth : int, default=None
        Groups at this depth are collapsed.
    decimals : int, default=3
        Significant digits of margins.
    show_rows : bool, default=False
        Show how many rows the classes of each node have.
    X, y : array-like, default=None
        Rows and labels. Each node then shows how many rows take the wrong side there.

    Returns
    -------
    str

    Examples
    --------
    >>> from margintree import ClassTree
    >>> from margintree.inspection import export_text
    >>> print(export_text(ClassTree.from_nested((0, (2, 1))), class_names=["cat", "dog", "fox"]))
    [0] 3 classes
    ├── cat
    └── [2] 2 classes
        ├── fox
        └── dog
    """
    facts = TreeFacts.of(estimator, class_names, X, y)
    layout = facts.layout(max_depth)
    lead, indent = {0: ""}, {0: ""}
    for node, child in layout.edges():
        fork, line = ("├── ", "│   ") if child == node + 1 else ("└── ", "    ")
        lead[child], indent[child] = indent[node] + fork, indent[node] + line
    # Nodes are numbered in the order of the lines.
    return "\n".join(lead[node] + _line(facts, node, layout.is_end(node), decimals, show_rows) for node in sorted(lead))


def _line(facts: TreeFacts, node: int, is_end: bool, decimals: int, show_rows: bool) -> str:
    if facts.tree.is_leaf(node):
        parts = facts.names_below(node)
    elif is_end:
        parts = [f"[{node}] … {facts.n_classes[node]:,} classes ({first_names(facts.names_below(node))})"]
    else:
        parts = [f"[{node}] {facts.n_classes[node]:,} classes"]
    # Leaves have neither margins nor errors.
    if show_rows and not np.isnan(facts.n_rows[node]):
        parts.append(f"{facts.n_rows[node]:,.0f} rows")
    if not np.isnan(facts.margin[node]):
        parts.append(f"margin {facts.margin[node]:.{decimals}g}")
    if facts.n_errors[node] > 0:
        verb = "row takes" if facts.n_errors[node] == 1 else "rows take"
        parts.append(f"{facts.n_errors[node]:,.0f} {verb} the wrong side")
    return ", ".join(parts)


def export_graphviz(
    estimator: Any,
    *,
    class_names: Names | None = None,
    max_depth: int | None = None,
    max_leaves: int | None = None,
    rotate: bool = True,
    X: Any = None,
    y: Any = None,
) -> str:
    r"""Return the class tree in DOT, the language of Graphviz.

    Parameters
    ----------
    estimator : MarginTreeClassifier, another fitted estimator with a tree, a pipeline that ends in one, or ClassTree
    class_names : sequence of length n_classes, default=None
        Names to show instead of the labels.
    max_depth : int, default=None
        Groups at this depth are collapsed.
    max_leaves : int, default=None
        Expand the largest groups until there are this many, and collapse the others.
    rotate : bool, default=True
        Draw from left to right instead of from top to bottom.
    X, y : array-like, default=None
        Rows and labels. Nodes are then shaded by their accuracy, else by their margin.

    Returns
    -------
    str
        To be drawn, for example, by ``graphviz.Source(text)`` or ``dot -Tsvg``.

    Examples
    --------
    >>> from margintree import ClassTree
    >>> from margintree.inspection import export_graphviz
    >>> print(export_graphviz(ClassTree.from_nested((0, 1)), class_names=["cat", 'a "fox"']))
    digraph ClassTree {
      graph [rankdir=LR, ranksep=0.4, nodesep=0.08];
      node [shape=box, style="rounded,filled", fillcolor="white", color="#7b8794", fontname="Helvetica", fontsize=11];
      edge [arrowhead=none, color="#9aa5b1"];
      0 [label="[0]\n2 classes"];
      1 [label="cat", shape=plain, style=""];
      2 [label="a \"fox\"", shape=plain, style=""];
      0 -> 1;
      0 -> 2;
    }
    """
    facts = TreeFacts.of(estimator, class_names, X, y)
    layout = facts.layout(max_depth, max_leaves)
    colours = _fill_colours(*facts.shading())
    lines = [
        "digraph ClassTree {",
        f"  graph [rankdir={'LR' if rotate else 'TB'}, ranksep=0.4, nodesep=0.08];",
        '  node [shape=box, style="rounded,filled", fillcolor="white", color="#7b8794", fontname="Helvetica", '
        "fontsize=11];",
        '  edge [arrowhead=none, color="#9aa5b1"];',
    ]
    for node in sorted(layout.across):
        lines.append(f"  {node} [{_attributes(facts, node, layout.is_end(node), colours.get(node))}];")
    lines += [f"  {node} -> {child};" for node, child in layout.edges()]
    return "\n".join([*lines, "}"])


def _attributes(facts: TreeFacts, node: int, is_end: bool, colour: str | None) -> str:
    if facts.tree.is_leaf(node):
        return f'label="{_in_dot(facts.names_below(node)[0])}", shape=plain, style=""'
    texts = [f"[{node}]", f"{facts.n_classes[node]:,} classes"]
    if is_end:
        texts = [first_names(facts.names_below(node)), f"{facts.n_classes[node]:,} classes"]
    if not np.isnan(facts.margin[node]):
        texts.append(f"margin {facts.margin[node]:.3g}")
    if facts.n_errors[node] > 0:
        texts.append(f"{facts.n_errors[node]:,.0f} {'error' if facts.n_errors[node] == 1 else 'errors'}")
    label = "\\n".join(_in_dot(text) for text in texts)
    return f'label="{label}"' + (f', fillcolor="{colour}"' if colour else "") + (", shape=folder" if is_end else "")


def _in_dot(text: str) -> str:
    """Return a text for a quoted string in DOT, where a backslash starts an escape.

    A reference such as &amp; is read as one character there, so the ampersand is written as a reference itself.
    """
    return text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')


def _fill_colours(shade: str | None, values: Any) -> dict[int, str]:
    known = np.flatnonzero(np.isfinite(values))
    if not len(known):
        return {}
    level = np.log(np.maximum(values[known], 1e-300)) if shade == "margin" else values[known]
    span = max(float(np.ptp(level)), 1e-12)
    step = ((level - level.min()) / span * (len(_SHADES) - 1)).round().astype(int)
    return {int(node): _SHADES[s] for node, s in zip(known, step, strict=True)}
