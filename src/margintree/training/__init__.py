"""Machines in an order: each by itself, from the leaves up, jointly, online."""
