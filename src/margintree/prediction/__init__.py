"""Fitted models as flat arrays, and the walk from the root to a leaf."""
