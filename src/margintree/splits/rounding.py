"""From weighted planes to one labelling (section 3.2.4)."""

import numpy as np

from margintree.solvers.solution import Array
from margintree.splits.node import canonical


def kruskal_cut(planes: Array, mu: Array) -> Array:
    """Cut the maximum spanning tree of A = sum_m mu_m z^m z^m' at its weakest edge.

    Kruskal's algorithm adds edges by falling weight and stops at two components. Equal edges are
    taken in class order. The cut knows nothing of the balance constraint.

    Examples
    --------
    >>> planes = np.array([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, -1.0, -1.0]])
    >>> kruskal_cut(planes, np.array([0.7, 0.3]))
    array([ 1.,  1., -1., -1.])
    """
    n_classes = planes.shape[1]
    affinity = (planes.T * mu) @ planes
    first, second = np.triu_indices(n_classes, k=1)
    component = np.arange(n_classes)
    n_components = n_classes
    # Weights that differ only by the rounding of a sum are equal edges.
    for edge in np.argsort(-np.round(affinity[first, second], 9), kind="stable"):
        if n_components == 2:
            break
        one, other = component[first[edge]], component[second[edge]]
        if one != other:
            component[component == other] = one
            n_components -= 1
    return canonical(np.where(component == component[0], 1.0, -1.0))
