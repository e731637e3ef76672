"""A tree over the labels that is grown online (Beygelzimer et al., UAI 2009).

A row whose label has a leaf trains the regressors on its path. A row with a new label walks from the root: at a
node with L leaves on the left, R on the right and the output f in [0, 1], it goes right when

    (1 - alpha) 2 (f - 1/2) + alpha log2(L / R) > 0

and trains the node to do so. The leaf it ends at becomes a node with the old label on its left and the new one on
its right. As |2 (f - 1/2)| <= 1, a side can only gain a leaf while it has at most r = 2^((1 - alpha) / alpha) times
the leaves of the other; with n leaves below a node, no child then has more than 1 + r (n - 1) / (1 + r), so that
the depth of a tree grows with the logarithm of its leaves.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from margintree import compiled
from margintree.class_tree import ClassTree
from margintree.solvers.node_rows import Matrix
from margintree.solvers.online import OnlineRegressors, lengthened
from margintree.solvers.row_layout import layout
from margintree.solvers.solution import Array
from margintree.structures.preorder import preorder_of

Index = npt.NDArray[np.int64]


class GrowingTree(NamedTuple):
    """Nodes in order of creation, -1 where there is none; node 0 is the root."""

    children_left: Index
    children_right: Index
    parent: Index
    leaf_class: Index
    n_leaves: Index
    leaf_of_class: Index
    n_nodes: Index


class Stream(NamedTuple):
    """The order of the rows, each with its label and its weight."""

    rows: Index
    labels: Index
    weight: Array

    @classmethod
    def in_order_of_content(cls, X: Matrix, labels: Index, weight: Array, seed: int) -> "Stream":
        """Return a random order that depends on the content of the rows, not on their positions.

        Equal rows of a label are merged into one row with the sum of their weights, so that weight 2 is the same as a
        row that occurs twice. Different rows share a code once in 2^64 pairs.
        """
        codes = compiled.stream.content_codes(layout(X), X.shape[0], seed)
        order = np.lexsort((labels, codes))
        is_new = np.ones(len(order), dtype=bool)
        is_new[1:] = (np.diff(codes[order]) != 0) | (np.diff(labels[order]) != 0)
        first = np.flatnonzero(is_new)
        return cls(order[first], labels[order[first]], np.add.reduceat(weight[order], first))


class StreamTree:
    """A growing binary tree with one leaf per label seen so far; labels are 0, 1, 2 and so on.

    Examples
    --------
    >>> import numpy as np
    >>> from margintree.structures.stream_tree import Stream, StreamTree
    >>> from margintree.solvers.online import OnlineRegressors
    >>> X, labels = np.eye(4), np.arange(4)
    >>> tree = StreamTree(alpha=1.0)
    >>> regressors = OnlineRegressors(4, learning_rate=0.5, fit_intercept=True)
    >>> tree.absorb(X, Stream(labels, labels, np.ones(4)), regressors)
    >>> tree.class_tree(np.arange(4))[0].to_nested()
    ((0, 2), (1, 3))
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha
        nothing = np.empty(0, dtype=np.int64)
        self._nodes = GrowingTree(nothing, nothing, nothing, nothing, nothing, nothing, np.zeros(1, dtype=np.int64))

    @classmethod
    def from_class_tree(cls, tree: ClassTree, number: Index, class_of_label: Index, alpha: float) -> "StreamTree":
        """Return the growing tree from the results of ``class_tree``.

        Examples
        --------
        >>> import numpy as np
        >>> from margintree.class_tree import ClassTree
        >>> tree = ClassTree.from_nested((0, (1, 2)))
        >>> growing = StreamTree.from_class_tree(tree, np.array([0, 1, 2, 3, 4]), np.arange(3), alpha=0.4)
        >>> growing.class_tree(np.arange(3))[0] == tree
        True
        """
        growing = cls(alpha)
        growing._reserve(tree.n_classes)
        nodes = growing._nodes
        inner, leaves = tree.internal_nodes, tree.leaf_of_class[class_of_label]
        nodes.children_left[number[inner]] = number[tree.children_left[inner]]
        nodes.children_right[number[inner]] = number[tree.children_right[inner]]
        nodes.parent[number[1:]] = number[tree.parent[1:]]
        nodes.leaf_class[number[leaves]] = np.arange(tree.n_classes)
        nodes.leaf_of_class[:] = number[leaves]
        n_leaves = np.ones(tree.n_nodes, dtype=np.int64)
        for node in inner[::-1].tolist():
            n_leaves[node] = n_leaves[tree.children_left[node]] + n_leaves[tree.children_right[node]]
        nodes.n_leaves[number] = n_leaves
        nodes.n_nodes[0] = tree.n_nodes
        return growing

    def absorb(self, X: Matrix, stream: Stream, regressors: OnlineRegressors) -> None:
        """Process the rows of the stream one by one."""
        self._reserve(int(stream.labels.max(initial=-1)) + 1)
        regressors.reserve(len(self._nodes.parent))
        done, rate, has_constant = 0, regressors.learning_rate, regressors.fit_intercept
        while True:
            model = regressors.arrays()
            done = compiled.stream.absorb(layout(X), stream, done, self._nodes, model, self.alpha, rate, has_constant)
            if done == len(stream.rows):
                return
            regressors.make_room()

    def class_tree(self, class_of_label: Index) -> tuple[ClassTree, Index]:
        """Return the current tree, and the number that each of its nodes has here.

        ``class_of_label`` names the class of each label: a permutation of 0 .. n_labels - 1.
        """
        nodes = self._nodes
        pairs = zip(nodes.children_left.tolist(), nodes.children_right.tolist(), strict=True)
        number = np.array(preorder_of({node: pair for node, pair in enumerate(pairs) if pair[0] >= 0}))
        is_leaf = nodes.children_left[number] < 0
        tree = ClassTree.from_preorder(np.where(is_leaf, class_of_label[nodes.leaf_class[number]], -1).tolist())
        return tree, number

    def _reserve(self, n_labels: int) -> None:
        *of_nodes, leaf_of_class, n_nodes = self._nodes
        longer = (lengthened(array, 2 * n_labels - 1, -1) for array in of_nodes)
        self._nodes = GrowingTree._make([*longer, lengthened(leaf_of_class, n_labels, -1), n_nodes])
