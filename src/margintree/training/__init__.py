"""Machines in an order: each by itself, or from the leaves up."""
