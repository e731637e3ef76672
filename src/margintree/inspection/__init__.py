"""Look at a fitted tree: draw it, convert it, explain a prediction, see where it errs, compare it with a taxonomy.

matplotlib and networkx are imported by what draws with them, when it does.
"""

from margintree.inspection.conversion import to_linkage, to_networkx
from margintree.inspection.explain import explain
from margintree.inspection.explanation import Explanation
from margintree.inspection.text import export_graphviz, export_text
from margintree.inspection.tree_display import ClassTreeDisplay, plot_tree

__all__ = [
    "ClassTreeDisplay",
    "Explanation",
    "explain",
    "export_graphviz",
    "export_text",
    "plot_tree",
    "to_linkage",
    "to_networkx",
]
