"""Generated rows of classes with a hierarchy behind them, for any number of classes.

The classes are the leaves of a random tree with about ten children per node. Every node of it owns a few features. A
row holds features of its class, features that the class inherits from its ancestors, and noise whose frequencies
follow Zipf's law, as those of words do. All rows have the same number of draws, and the vocabulary grows with the
classes, so that what changes with the number of classes is the number of classes.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

Index = npt.NDArray[np.int64]

BRANCHING = 10
ROWS_PER_CLASS = 10
TEST_ROWS = 5000
# Draws per row. Those on the path are of the class itself with this probability, else of a random node of the path.
PATH_DRAWS = 10
NOISE_DRAWS = 14
OWN_SHARE = 0.2
FEATURES_PER_NODE = 8
FEATURES_PER_CLASS = 4
FEWEST_FEATURES = 1000


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """For each class its nodes from the class up (one row per class), and the features that each node owns."""

    path: npt.NDArray[np.int32]
    features: npt.NDArray[np.int32]
    n_features: int


def random_hierarchy(n_classes: int, rng: np.random.Generator) -> Hierarchy:
    # Levels from the leaves up; sorted draws keep the children of a node side by side.
    path, first, size = [np.arange(n_classes)], n_classes, n_classes
    while size > BRANCHING:
        parents = max(2, round(size / BRANCHING))
        parent_of = np.sort(rng.integers(parents, size=size))
        below = path[-1] - (first - size)
        path.append(first + parent_of[below])
        first, size = first + parents, parents
    n_features = max(FEWEST_FEATURES, FEATURES_PER_CLASS * n_classes)
    features = rng.integers(n_features, size=(first, FEATURES_PER_NODE), dtype=np.int32)
    return Hierarchy(np.stack(path, axis=1).astype(np.int32), features, n_features)


def drawn_rows(hierarchy: Hierarchy, y: Index, rng: np.random.Generator) -> sp.csr_matrix:
    """Return one row of feature counts for each class of ``y``."""
    n, (_, depth) = len(y), hierarchy.path.shape
    draws = np.empty((n, PATH_DRAWS + NOISE_DRAWS), dtype=np.int32)
    # Column by column: no temporary array is larger than one column.
    for j in range(PATH_DRAWS):
        level = np.where(rng.random(n) < OWN_SHARE, 0, rng.integers(depth, size=n))
        draws[:, j] = hierarchy.features[hierarchy.path[y, level], rng.integers(FEATURES_PER_NODE, size=n)]
    for j in range(PATH_DRAWS, draws.shape[1]):
        # The inverse of the distribution function of 1/rank over the ranks up to n_features.
        draws[:, j] = np.minimum(hierarchy.n_features ** rng.random(n), hierarchy.n_features) - 1
    start = np.arange(n + 1, dtype=np.int32) * draws.shape[1]
    X = sp.csr_matrix((np.ones(draws.size, dtype=np.float32), draws.ravel(), start), (n, hierarchy.n_features))
    X.sum_duplicates()
    return X


def generated(n_classes: int, seed: int = 0) -> tuple[sp.csr_matrix, Index, sp.csr_matrix, Index]:
    """Return training and test rows with their classes; tf-idf is fitted on the training rows."""
    rng = np.random.default_rng(seed)
    hierarchy = random_hierarchy(n_classes, rng)
    y = np.repeat(np.arange(n_classes), ROWS_PER_CLASS)
    y_test = rng.integers(n_classes, size=TEST_ROWS)
    X, X_test = drawn_rows(hierarchy, y, rng), drawn_rows(hierarchy, y_test, rng)
    scaling = TfidfTransformer(sublinear_tf=True).fit(X)
    return scaling.transform(X, copy=False), y, scaling.transform(X_test, copy=False), y_test
