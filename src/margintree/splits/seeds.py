"""Labellings to start from, made from the class means alone.

Principal directions of the class means put distant classes on different sides; balanced 2-means groups close ones. Both
need only products with the matrix of the class means, which is sparse where the data are.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from margintree.solvers.node_rows import Matrix
from margintree.solvers.solution import Array
from margintree.solvers.training_set import SOLVER_SEED
from margintree.splits.node import NodeProblem

# Up to this many classes the matrix of inner products is small enough for a full decomposition.
DENSE_CLASSES = 128
TWO_MEANS_ROUNDS = 20


def mean_seeds(node: NodeProblem, n_directions: int) -> list[Array]:
    """Return labellings made from the class means: principal directions, then balanced 2-means."""
    means = node.rows.class_means()
    scores = principal_scores(means, node.sizes, n_directions)
    seeds = [node.cheapest_labelling(-node.sizes * score) for score in scores]
    return [*seeds, two_means(node, means, seeds[0])]


def principal_scores(means: Matrix, sizes: Array, n_directions: int) -> Array:
    """Return the classes' coordinates along the leading principal directions, one row per direction.

    The classes are weighted by their sizes and centred.
    """
    n_classes = len(sizes)
    n_directions = min(n_directions, n_classes - 1)
    root = np.sqrt(sizes)
    centre = np.asarray(sizes @ means / sizes.sum()).reshape(-1)
    if n_classes <= DENSE_CLASSES:
        inner = means @ means.T
        gram = inner.toarray() if sp.issparse(inner) else np.asarray(inner)
        cross = np.asarray(means @ centre).reshape(-1)
        gram = gram - cross[:, None] - cross[None, :] + centre @ centre
        _, vectors = np.linalg.eigh(root[:, None] * gram * root[None, :])
        vectors = vectors[:, ::-1][:, :n_directions]
    else:

        def weighted_gram(v: Array) -> Array:
            scaled = root * v.reshape(-1)
            direction = np.asarray(means.T @ scaled).reshape(-1) - centre * scaled.sum()
            return np.asarray(root * (means @ direction - centre @ direction))

        operator = LinearOperator((n_classes, n_classes), matvec=weighted_gram, dtype=np.float64)
        random = np.random.default_rng(SOLVER_SEED)
        start = random.standard_normal(n_classes)
        try:
            _, vectors = eigsh(operator, k=n_directions, v0=start, tol=1e-2, which="LA")
        except ArpackError:
            # Class means that coincide have no directions; any order of the classes is as good.
            vectors = random.standard_normal((n_classes, n_directions))
        vectors = vectors[:, ::-1]
    return np.asarray((vectors / root[:, None]).T)


def two_means(node: NodeProblem, means: Matrix, labelling: Array) -> Array:
    """Return the labelling that balanced 2-means of the class means reaches from ``labelling``."""
    for _ in range(TWO_MEANS_ROUNDS):
        plus, minus = np.where(labelling > 0.0, node.sizes, 0.0), np.where(labelling < 0.0, node.sizes, 0.0)
        centre_plus = np.asarray(plus @ means).reshape(-1) / plus.sum()
        centre_minus = np.asarray(minus @ means).reshape(-1) / minus.sum()
        # |m - c+|^2 - |m - c-|^2, in which |m|^2 cancels.
        closer = 2.0 * np.asarray(means @ (centre_minus - centre_plus)).reshape(-1)
        closer += centre_plus @ centre_plus - centre_minus @ centre_minus
        moved = node.cheapest_labelling(node.sizes * closer)
        if np.array_equal(moved, labelling):
            break
        labelling = moved
    return labelling
