"""From weighted planes to one labelling (section 3.2.4)."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from margintree.solvers.solution import Array
from margintree.splits.node import NodeProblem, canonical

Edges = npt.NDArray[np.int64]


def kruskal_cut(planes: Array, mu: Array) -> Array:
    """Cut the maximum spanning tree of A = sum_m mu_m z^m z^m' at its weakest edge.

    Kruskal's algorithm adds edges by falling weight and stops at two components. Equal edges are
    taken in class order. The cut ignores the balance constraint.

    Examples
    --------
    >>> planes = np.array([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, -1.0, -1.0]])
    >>> kruskal_cut(planes, np.array([0.7, 0.3]))
    array([ 1.,  1., -1., -1.])
    """
    return _sides(spanning_tree(planes, mu)[:-1], planes.shape[1])


def balanced_kruskal_cut(node: NodeProblem, planes: Array, mu: Array) -> Array:
    """Cut the maximum spanning tree of A at the weakest edge whose cut meets the balance constraint.

    Equal edges are cut in the reverse order of Kruskal's algorithm, so that the result is ``kruskal_cut`` wherever
    that is feasible. If no edge gives a feasible cut, the labelling is the plane with the largest weight.
    """
    edges = spanning_tree(planes, mu)
    for left_out in reversed(range(len(edges))):
        labelling = _sides(np.delete(edges, left_out, axis=0), node.n_classes)
        if node.is_feasible(labelling):
            return labelling
    return heaviest_plane(planes, mu)


def heaviest_plane(planes: Array, mu: Array) -> Array:
    """Return the plane with the largest weight, the first of equal ones."""
    return np.asarray(planes[np.argmax(mu)])


def spanning_tree(planes: Array, mu: Array) -> Edges:
    """Return the edges of the maximum spanning tree of A in the order in which Kruskal's algorithm takes them.

    Examples
    --------
    >>> planes = np.array([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, -1.0, -1.0]])
    >>> spanning_tree(planes, np.array([0.7, 0.3])).tolist()
    [[2, 3], [0, 1], [1, 2]]
    """
    n_classes = planes.shape[1]
    affinity = (planes.T * mu) @ planes
    first, second = np.triu_indices(n_classes, k=1)
    component = np.arange(n_classes)
    taken: list[tuple[int, int]] = []
    # Weights that differ only by the rounding of a sum are equal edges.
    for edge in np.argsort(-np.round(affinity[first, second], 9), kind="stable"):
        if len(taken) == n_classes - 1:
            break
        one, other = component[first[edge]], component[second[edge]]
        if one != other:
            component[component == other] = one
            taken.append((first[edge], second[edge]))
    return np.array(taken, dtype=np.int64).reshape(-1, 2)


def _sides(edges: Edges, n_classes: int) -> Array:
    """Return the labelling of a spanning tree without one of its edges."""
    graph = coo_array((np.ones(len(edges)), edges.T), shape=(n_classes, n_classes))
    component = connected_components(graph, directed=False)[1]
    return canonical(np.where(component == component[0], 1.0, -1.0))
