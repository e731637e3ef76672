"""Training of machines: one by one, from the leaves up, jointly, or online."""
