"""How similar a class tree is to a reference hierarchy over the same classes.

There are two measures, and neither requires binary trees. The *cophenetic correlation* is Pearson's correlation of the
distances of pairs of classes in both trees, where the distance of two classes is the base-2 logarithm of the size of
the smallest group that holds both. The *triplet agreement* looks at three classes at a time: if the reference puts two
of them closer together than the third, does the tree put the same two together? A random binary tree agrees on a third
of the triplets.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.class_tree import ClassTree
from margintree.inspection.labels import Names, checked_names
from margintree.inspection.tree_facts import lowest_common, tree_of
from margintree.structures.given_tree import GivenTree, leaf_labels, preorder

Index = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TaxonomyComparison:
    """Similarity of two hierarchies over the same classes.

    Attributes
    ----------
    cophenetic_correlation : float
        Between -1 and 1; 1 if all distances agree up to scale, about 0 for unrelated trees. NaN if all pairs have the
        same distance in one of the trees.
    triplet_agreement : float
        Share of the triplets resolved by the reference that the tree resolves in the same way; 1 for the same tree,
        about 1/3 for a random binary one. NaN if the reference resolves none.
    n_pairs, n_triplets : int
        Number of pairs and of resolved triplets.
    is_exact : bool
        Whether these are all pairs and triplets, not samples.

    Examples
    --------
    >>> from margintree.inspection import compare_taxonomies
    >>> comparison = compare_taxonomies([["cat", "dog"], "owl"], [["cat", "dog"], ["owl"]])
    >>> comparison.cophenetic_correlation, comparison.triplet_agreement
    (1.0, 1.0)
    """

    cophenetic_correlation: float
    triplet_agreement: float
    n_pairs: int
    n_triplets: int
    is_exact: bool


def compare_taxonomies(
    tree: Any,
    reference: GivenTree,
    *,
    class_names: Names | None = None,
    n_samples: int = 200_000,
    random_state: int | None = 0,
) -> TaxonomyComparison:
    """Compare a class tree with a reference hierarchy over the same classes.

    Parameters
    ----------
    tree : MarginTreeClassifier, another fitted estimator with a tree, ClassTree, Newick str or nested lists
    reference : ClassTree, Newick str or nested lists
        Nodes may have any number of children. Leaves are the labels of the estimator, or ``class_names``; those of a
        ``ClassTree`` number the classes. See also ``nested_from_paths``.
    class_names : sequence of length n_classes, default=None
        Names of the leaves, if a ClassTree is given or the names in the reference differ from the labels.
    n_samples : int, default=200_000
        Number of pairs and triplets beyond which a random sample of this size is used.
    random_state : int or None, default=0
        Controls the samples.

    Returns
    -------
    TaxonomyComparison

    Examples
    --------
    >>> from margintree.inspection import compare_taxonomies
    >>> animals = [["cat", "dog", "fox"], ["owl", "rook"]]
    >>> compare_taxonomies([[["cat", "dog"], "fox"], ["owl", "rook"]], animals).triplet_agreement
    1.0
    >>> compare_taxonomies([["cat", "owl"], [["dog", "rook"], "fox"]], animals).triplet_agreement < 0.5
    True
    """
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1. Got {n_samples}.")
    labels = _labels(tree, reference, class_names)
    given = tree if isinstance(tree, str | list | tuple) else tree_of(tree)
    both = [_Groups.of(preorder(each, labels)) for each in (given, reference)]
    n, random = len(labels), np.random.default_rng(random_state)
    pairs = _drawn(n, 2, n_samples, random)
    distances = [groups.distances(pairs[:, 0], pairs[:, 1]) for groups in both]
    # The correlation is undefined if one of the distances is constant.
    has_spread = all(np.ptp(distance) > 0.0 for distance in distances) if len(pairs) else False
    correlation = float(np.corrcoef(distances[0], distances[1])[0, 1]) if has_spread else float("nan")
    triplets = _drawn(n, 3, n_samples, random)
    found, wanted = (groups.outsiders(triplets) for groups in both)
    is_resolved = wanted >= 0
    agreement = float((found == wanted)[is_resolved].mean()) if is_resolved.any() else float("nan")
    is_exact = comb(n, 2) <= n_samples and comb(n, 3) <= n_samples
    return TaxonomyComparison(correlation, agreement, len(pairs), int(is_resolved.sum()), is_exact)


def nested_from_paths(paths: Sequence[str], *, separator: str = "/", labels: Sequence[Any] | None = None) -> list[Any]:
    """Return a hierarchy that is written as one path from the root for each class, as nested lists.

    A class may be an inner node, such as "animal" above "animal/dog": it becomes a member of that group.

    Parameters
    ----------
    paths : sequence of str
    separator : str, default="/"
    labels : sequence, default=None
        The label of the class of each path. Without them, the paths themselves.

    Returns
    -------
    list
        As ``compare_taxonomies`` and ``MarginTreeClassifier(tree=...)`` take it.

    Examples
    --------
    >>> from margintree.inspection import nested_from_paths
    >>> nested_from_paths(["animal", "animal/cat", "animal/dog", "plant"], labels=["A", "C", "D", "P"])
    [['A', ['C'], ['D']], ['P']]
    """
    labels = list(paths) if labels is None else list(labels)
    if len(labels) != len(paths):
        raise ValueError(f"labels must hold one label for each of the {len(paths)} paths. Got {len(labels)}.")
    root: list[Any] = []
    groups: dict[tuple[str, ...], list[Any]] = {(): root}
    for path, label in zip(paths, labels, strict=True):
        parts = tuple(path.split(separator))
        for depth in range(1, len(parts) + 1):
            if parts[:depth] not in groups:
                groups[parts[:depth]] = []
                groups[parts[: depth - 1]].append(groups[parts[:depth]])
        groups[parts].append(label)
    return root


def _labels(tree: Any, reference: GivenTree, class_names: Names | None) -> list[Any]:
    """Return the labels of the classes in both hierarchies; the classes of a ClassTree are numbered in this order."""
    labels: list[Any]
    if hasattr(tree, "classes_"):
        labels = tree.classes_.tolist()
    elif isinstance(tree, ClassTree):
        labels = list(range(tree.n_classes))
    else:
        labels = leaf_labels(tree)
    if class_names is not None:
        checked_names(class_names, labels)
        labels = [name.item() if isinstance(name, np.generic) else name for name in class_names]
    if isinstance(reference, ClassTree) and reference.n_classes != len(labels):
        raise ValueError(f"Both hierarchies must have the same classes. Got {len(labels)} and {reference.n_classes}.")
    return labels


@dataclass(frozen=True, eq=False)
class _Groups:
    """A hierarchy by the parents of its nodes, numbered in preorder; ``size`` counts the classes below each."""

    parent: Index
    leaf: Index
    size: Index

    @classmethod
    def of(cls, items: list[int]) -> "_Groups":
        """Read nodes in preorder: the number of a class, or minus the number of children."""
        preorder = np.array(items)
        parent, open_nodes = np.empty_like(preorder), [-1]
        for node, item in enumerate(items):
            parent[node] = open_nodes.pop()
            open_nodes += [node] * -item
        size = (preorder >= 0).astype(np.int64)
        for node in range(len(items) - 1, 0, -1):
            size[parent[node]] += size[node]
        leaves = np.flatnonzero(preorder >= 0)
        return cls(parent, leaves[np.argsort(preorder[leaves])], size)

    def distances(self, one: Index, other: Index) -> npt.NDArray[np.float64]:
        """Return the base-2 logarithm of the size of the smallest group that holds both classes."""
        return np.log2(self.size[lowest_common(self.parent, self.leaf[one], self.leaf[other])])

    def outsiders(self, triplets: Index) -> Index:
        """Return which of three classes is apart from the other two, -1 if none is."""
        leaves = self.leaf[triplets].T
        # Entry k is the smallest group that contains the other two. These groups contain each other, and the smaller
        # one has the larger number.
        groups = np.stack([lowest_common(self.parent, leaves[i], leaves[j]) for i, j in ((1, 2), (0, 2), (0, 1))])
        is_tied = (groups == groups.max(axis=0)).sum(axis=0) > 1
        return np.where(is_tied, -1, groups.argmax(axis=0))


def _drawn(n: int, k: int, n_samples: int, random: np.random.Generator) -> Index:
    """Return all sets of k of n classes, or a sample of them with replacement."""
    if comb(n, k) <= n_samples:
        return np.array(list(itertools.combinations(range(n), k)), dtype=np.int64).reshape(-1, k)
    drawn = random.integers(n, size=(n_samples, k))
    while (repeats := (np.sort(drawn, axis=1)[:, 1:] == np.sort(drawn, axis=1)[:, :-1]).any(axis=1)).any():
        drawn[repeats] = random.integers(n, size=(int(repeats.sum()), k))
    return drawn
