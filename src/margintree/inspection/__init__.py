"""Inspect a fitted tree: draw it, convert it, explain a prediction, see where it errs, compare it with a taxonomy.

matplotlib and networkx are imported only by the functions that need them, when they are called.
"""

from margintree.inspection.confusion import ConfusionByTreeDisplay
from margintree.inspection.conversion import to_linkage, to_networkx
from margintree.inspection.explanation import Explanation
from margintree.inspection.page import export_html
from margintree.inspection.row_explanation import explain
from margintree.inspection.taxonomies import TaxonomyComparison, compare_taxonomies, nested_from_paths
from margintree.inspection.text import export_graphviz, export_text
from margintree.inspection.tree_display import ClassTreeDisplay, plot_tree

__all__ = [
    "ClassTreeDisplay",
    "ConfusionByTreeDisplay",
    "Explanation",
    "TaxonomyComparison",
    "compare_taxonomies",
    "explain",
    "export_graphviz",
    "export_html",
    "export_text",
    "nested_from_paths",
    "plot_tree",
    "to_linkage",
    "to_networkx",
]
