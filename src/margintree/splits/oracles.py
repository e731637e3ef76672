"""The most violated labelling for a dual point: the cutting plane that is added next.

Wanted is max_z |sum_j a_j z_j phi(x_j)|^2 = max_z z'Gz under the balance constraint.

- ``linf`` is section 3.2.2 of the paper: the norm is replaced by the largest coordinate, and each
  coordinate is a knapsack, max_z |sum_k z_k t_k| with t_k the class's sum of a_j x_j there.
- ``gram`` maximises z'Gz itself: by enumeration up to 16 classes, else by flips and swaps that start
  from the leading eigenvectors.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from margintree import compiled
from margintree.solvers.solution import Array
from margintree.splits.bounds import ENUMERATE_UP_TO
from margintree.splits.node import NodeProblem, canonical

Oracle = Callable[[NodeProblem, Array, Array], Array]

SPECTRAL_STARTS = 4


def most_violated_by_coordinate(node: NodeProblem, alpha: Array, gram: Array) -> Array:
    """Return the labelling with the largest single coordinate of sum_j a_j z_j phi(x_j)."""
    vectors = node.rows.class_vectors(alpha)
    # sum_k |t_k| is what a coordinate could give without the constraint: coordinates come in that
    # order, and the search ends where even that falls below the best value found.
    ceilings: Array = np.asarray(abs(vectors).sum(axis=0)).reshape(-1)
    columns = sp.csc_array(vectors) if sp.issparse(vectors) else vectors
    # Where phi has no coordinates at all, every labelling is as violated as any other.
    best, best_value = node.cheapest_labelling(np.zeros(node.n_classes)), -np.inf
    for coordinate in np.argsort(-ceilings, kind="stable"):
        if ceilings[coordinate] <= best_value:
            break
        column = columns[:, [coordinate]]
        sums = (column.toarray() if sp.issparse(column) else column).reshape(-1)
        # z and -z give the same absolute value, and both are feasible or neither is.
        labelling = node.cheapest_labelling(-sums)
        value = abs(float(labelling @ sums))
        if value > best_value:
            best, best_value = labelling, value
    return canonical(best)


def most_violated_by_gram(node: NodeProblem, alpha: Array, gram: Array) -> Array:
    """Return the labelling with the largest z'Gz, exactly up to 16 classes."""
    if node.n_classes <= ENUMERATE_UP_TO:
        return np.asarray(compiled.labellings.largest_quadratic(gram, node.sizes, node.beta))
    _, vectors = np.linalg.eigh(gram)
    found = [
        compiled.labellings.climb_quadratic(gram, node.sizes, node.beta, node.cheapest_labelling(-direction))
        for direction in vectors.T[::-1][:SPECTRAL_STARTS]
    ]
    return canonical(max(found, key=lambda z: float(z @ gram @ z)))


ORACLES: dict[str, Oracle] = {"linf": most_violated_by_coordinate, "gram": most_violated_by_gram}
