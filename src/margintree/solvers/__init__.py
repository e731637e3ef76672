"""Solvers: a stated problem in, its solution and a convergence record out."""
