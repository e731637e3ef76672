"""Balanced 2-means of the class means: the trees of Parabel (Prabhu et al. 2018)."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from margintree.solvers.node_rows import Matrix
from margintree.splits.bounds import conclude
from margintree.splits.node import NodeProblem, SplitResult, canonical
from margintree.splits.seeds import two_means


@dataclass(frozen=True)
class CentroidSplit:
    """Divide the classes by spherical 2-means of their means, from two classes drawn at random.

    Read more in the :doc:`user guide </splits/centroid>`.

    Parabel requires two halves of equal size; here the node's balance constraint replaces that.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import MarginTreeClassifier
    >>> from margintree.splits import CentroidSplit
    >>> X, y = load_iris(return_X_y=True)
    >>> MarginTreeClassifier(split=CentroidSplit(), random_state=0).fit(X, y).tree_.to_nested()
    (0, (1, 2))
    """

    def divide(self, node: NodeProblem) -> SplitResult:
        """Return the labelling to which 2-means converges."""
        means = normalised(node.rows.class_means())
        first, second = np.random.default_rng(node.seed).choice(node.n_classes, 2, replace=False)
        contrast = np.asarray(means @ _dense_row(means, second) - means @ _dense_row(means, first)).reshape(-1)
        labelling = canonical(two_means(node, means, node.cheapest_labelling(node.sizes * contrast)))
        return conclude(node, labelling)


def normalised(means: Matrix) -> Matrix:
    """Return the class means scaled to unit length (a mean of zero stays zero)."""
    squares = means.multiply(means) if sp.issparse(means) else means * means
    norms = np.sqrt(np.asarray(squares.sum(axis=1)).reshape(-1))
    scale = 1.0 / np.where(norms > 0.0, norms, 1.0)
    return sp.csr_array(means.multiply(scale[:, None])) if sp.issparse(means) else np.asarray(means * scale[:, None])


def _dense_row(means: Matrix, k: int) -> np.ndarray:
    row = means[[k]]
    return (row.toarray() if sp.issparse(row) else np.asarray(row)).reshape(-1)
