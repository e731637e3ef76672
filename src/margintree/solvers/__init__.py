"""Solvers: each takes a stated problem and returns its solution with a convergence record."""
