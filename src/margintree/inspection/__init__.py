"""Looking into fitted trees."""

from margintree.inspection.page import export_html

__all__ = ["export_html"]
