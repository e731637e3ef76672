"""A tree over the classes given by the user: a ``ClassTree``, a Newick string, or nested lists of labels.

Taxonomies are rarely binary. A group with one member is that member; one with more than two is halved in the order of
its members, where the numbers of classes on both sides are most equal.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from margintree import newick
from margintree.class_tree import ClassTree

GivenTree: TypeAlias = ClassTree | str | Sequence[Any]
# Labels that an error lists.
NAMED_LABELS = 5


def class_tree_of(given: GivenTree, classes: npt.NDArray[Any]) -> ClassTree:
    """Return a given tree as a binary one whose leaves number ``classes``.

    Examples
    --------
    >>> class_tree_of([["cat", "dog"], "owl"], np.array(["cat", "dog", "owl"])).to_nested()
    ((0, 1), 2)
    >>> class_tree_of("(owl,cat,dog);", np.array(["cat", "dog", "owl"])).to_nested()
    (2, (0, 1))
    """
    if isinstance(given, ClassTree):
        if given.n_classes != len(classes):
            raise ValueError(
                f"tree must have one leaf for each of the {len(classes)} classes in y. Got a ClassTree of "
                f"{given.n_classes} classes; its leaves number the sorted classes."
            )
        return given
    return ClassTree.from_preorder(_in_pairs(preorder(given, classes.tolist())))


def preorder(given: GivenTree, labels: Sequence[Any]) -> list[int]:
    """Return the nodes of a tree in preorder: the number of a leaf's label, or minus the number of a node's children.

    Each label must be at exactly one leaf. The leaves of a Newick text are labels as ``str`` writes them; those of a
    ``ClassTree`` number the labels.

    Examples
    --------
    >>> preorder([["cat", "dog", "owl"], "fox"], ["cat", "dog", "fox", "owl"])
    [-2, -3, 0, 1, 3, 2]
    """
    if isinstance(given, ClassTree):
        return [-2 if k < 0 else k for k in given.leaf_class.tolist()]
    is_text = isinstance(given, str)
    number: dict[Any, int] = {str(label) if is_text else label: k for k, label in enumerate(labels)}
    if len(number) < len(labels):
        raise ValueError(
            "Some labels have the same text, so that Newick leaves are ambiguous. Pass the tree as nested lists."
        )
    n_children, leaves = _read_newick(given) if isinstance(given, str) else _read_nested(given)
    _check_leaves(leaves, number)
    following = iter(leaves)
    return [-n if n else number[next(following)] for n in n_children]


def leaf_labels(given: str | Sequence[Any]) -> list[Any]:
    """Return the labels at the leaves of a Newick text or of nested lists, in their order."""
    return (_read_newick(given) if isinstance(given, str) else _read_nested(given))[1]


def _read_newick(text: str) -> tuple[list[int], list[Any]]:
    items = newick.items_in_preorder(text)
    return [i if isinstance(i, int) else 0 for i in items], [i for i in items if isinstance(i, str)]


def _read_nested(nested: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """Return how many members each node has, in preorder, and the labels of those that have none."""
    n_children: list[int] = []
    leaves: list[Any] = []
    stack: list[Any] = [nested]
    while stack:
        item = stack.pop()
        if isinstance(item, list | tuple | np.ndarray):
            if len(item) == 0:
                raise ValueError("The groups of a tree must have members. Got an empty list.")
            n_children.append(len(item))
            stack += reversed(item)
        else:
            n_children.append(0)
            leaves.append(item.item() if isinstance(item, np.generic) else item)
    return n_children, leaves


def _check_leaves(leaves: list[Any], number: dict[Any, int]) -> None:
    seen: set[Any] = set()
    unknown, repeated = [], []
    for leaf in leaves:
        if leaf not in number:
            unknown.append(leaf)
        elif leaf in seen:
            repeated.append(leaf)
        seen.add(leaf)
    missing = [label for label in number if label not in seen]
    problems = [
        f"{_listed(found)} {what}"
        for found, what in (
            (missing, "missing in it"),
            (unknown, "not among the classes"),
            (repeated, "in it more than once"),
        )
        if found
    ]
    if problems:
        raise ValueError(
            f"A given tree must have each of the {len(number)} classes at exactly one leaf. Got a tree of "
            f"{len(leaves)} leaves: {'; '.join(problems)}. Leaves are labels as in y; in a Newick string, as "
            "str writes them."
        )


def _listed(labels: list[Any]) -> str:
    names = ", ".join(repr(label) for label in labels[:NAMED_LABELS])
    more = f" and {len(labels) - NAMED_LABELS} more" if len(labels) > NAMED_LABELS else ""
    return f"{names}{more} {'is' if len(labels) == 1 else 'are'}"


def _in_pairs(items: list[int]) -> list[int]:
    """Return a tree in preorder with -1 for internal nodes, each of which has two children."""
    done: list[list[int]] = []
    for item in reversed(items):
        if item >= 0:
            done.append([item])
        else:
            done[item:] = [_halved(done[item:][::-1])]
    return done[0]


def _halved(parts: list[list[int]]) -> list[int]:
    if len(parts) == 1:
        return parts[0]
    # A part of k leaves has 2 k - 1 nodes.
    sizes = np.cumsum([(len(part) + 1) // 2 for part in parts])
    cut = 1 + int(np.abs(2 * sizes[:-1] - sizes[-1]).argmin())
    return [-1, *_halved(parts[:cut]), *_halved(parts[cut:])]
