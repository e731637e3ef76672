"""A tree that keeps easily confused classes together: the structure of Bengio, Weston and Grangier.

From the root down, each node divides its classes into the two groups S and S' of small normalised cut,

    cut(S, S') / volume(S) + cut(S, S') / volume(S'),

where cut is the affinity between the groups and the volume of a group is all affinity of its classes within the
node, that of a class to itself included. The spectral relaxation (Shi & Malik 2000; Ng, Jordan & Weiss 2001) orders the
classes by the Fiedler vector: the second eigenvector of the normalised Laplacian, divided by the root of the
degrees.
"""

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components

from margintree.class_tree import ClassTree
from margintree.structures.preorder import divided

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Each side of a cut gets at least this share of a node's classes, so that no tree is deeper than a few times the
# logarithm of its classes.
SMALLEST_SHARE = 0.25
# Values that agree to this many digits differ by rounding alone; the order of the classes decides between them.
DIGITS = 9


def confusion_tree(affinity: Array) -> ClassTree:
    """Return the tree of repeated binary cuts.

    Parameters
    ----------
    affinity : ndarray of shape (n_classes, n_classes)
        How easily two classes are confused: symmetric, not negative.

    Returns
    -------
    ClassTree

    Examples
    --------
    >>> import numpy as np
    >>> affinity = np.array([[9, 0, 3, 1], [0, 9, 1, 4], [3, 1, 9, 0], [1, 4, 0, 9.0]])
    >>> confusion_tree(affinity).to_nested()
    ((0, 2), (1, 3))
    """
    return divided(len(affinity), lambda classes: cut_in_two(affinity[np.ix_(classes, classes)]))


def cut_in_two(affinity: Array) -> Mask:
    """Return which of at least two classes go left; the first one always does.

    Cutting between classes without any path of affinity costs nothing. So if the graph has several connected
    components, these stay whole: the largest first, each goes to the side with fewer classes. A connected graph is cut
    at the place in the order of the Fiedler vector at which the normalised cut is lowest; among equal cuts the most
    balanced one is taken.

    Examples
    --------
    >>> import numpy as np
    >>> cut_in_two(np.zeros((4, 4))).tolist()
    [True, False, True, False]
    """
    n_components, component = connected_components(affinity > 0.0, directed=False)
    left = _divide_components(component, n_components) if n_components > 1 else _sweep(affinity)
    return left if left[0] else ~left


def _divide_components(component: npt.NDArray[np.int32], n_components: int) -> Mask:
    sizes = np.bincount(component, minlength=n_components)
    goes_left = np.zeros(n_components, dtype=bool)
    n_left = n_right = 0
    for c in np.argsort(-sizes, kind="stable"):
        if n_left <= n_right:
            goes_left[c] = True
            n_left += sizes[c]
        else:
            n_right += sizes[c]
    return np.asarray(goes_left[component])


def _sweep(affinity: Array) -> Mask:
    n_classes = len(affinity)
    order = np.lexsort((np.arange(n_classes), np.round(_fiedler_vector(affinity), DIGITS)))
    ordered = affinity[np.ix_(order, order)] / affinity.max()
    volume = np.cumsum(ordered.sum(axis=1))
    within = ordered.cumsum(axis=0).cumsum(axis=1).diagonal()
    fewest = max(1, int(SMALLEST_SHARE * n_classes))
    n_left = np.arange(min(fewest, n_classes // 2), n_classes - min(fewest, n_classes // 2) + 1)
    # Rounding errors must not make an empty cut negative.
    cut = np.maximum(0.0, volume - within)[n_left - 1]
    normalised_cut = cut / volume[n_left - 1] + cut / (volume[-1] - volume[n_left - 1])
    ties = n_left[normalised_cut <= normalised_cut.min() + 10.0**-DIGITS]
    best = ties[np.argmin(np.abs(2 * ties - n_classes))]
    left = np.zeros(n_classes, dtype=bool)
    left[order[:best]] = True
    return left


def _fiedler_vector(affinity: Array) -> Array:
    """Return the vector of a connected graph, scaled to a largest entry of 1."""
    scaled = affinity / affinity.max()
    root = np.sqrt(scaled.sum(axis=1))
    normalised = scaled / np.outer(root, root)
    # The eigenvalue of the known first eigenvector is moved from 1 to -1, below all others: weakly connected graphs
    # have a second eigenvalue close to 1, too.
    first = root / np.linalg.norm(root)
    normalised -= 2.0 * np.outer(first, first)
    last = len(affinity) - 1
    vector = eigh(normalised, subset_by_index=[last, last])[1][:, 0] / root
    vector /= np.abs(vector).max()
    # The sign of an eigenvector is arbitrary.
    return np.asarray(vector * np.sign(vector[np.argmax(np.abs(vector) >= 1.0 - 10.0**-DIGITS)]))
