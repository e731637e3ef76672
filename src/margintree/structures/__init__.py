"""Whole trees: grown from the root by a split."""
