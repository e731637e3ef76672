"""Whole trees: grown by a split, drawn at random, cut from a confusion matrix, or grown online."""
