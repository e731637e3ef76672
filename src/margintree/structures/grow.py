"""Grow a class tree from the root: split a node, then each of its sides (Algorithm 1).

The result does not depend on the order in which nodes are worked on: every node draws from a seed
that follows from its parent's, and the tree is numbered in preorder once it is complete.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.class_tree import ClassTree
from margintree.solvers.classifier import NodeClassifier
from margintree.solvers.training_set import SOLVER_SEED, TrainingSet
from margintree.splits.node import NodeProblem, Split, SplitResult
from margintree.structures.preorder import preorder_of
from margintree.worker_threads import elsewhere, in_any_order

Index = npt.NDArray[np.int64]

# Classes that an error names; a large node would fill the screen.
NAMED_CLASSES = 10


@dataclass(frozen=True)
class NodeRecord:
    """Facts about one internal node.

    Attributes
    ----------
    objective : float
        P of the node's labelling, smaller is better.
    margin : float
        2 / |w|^2, the paper's J.
    lower_bound : float
        Lower bound on P of every feasible labelling of the node.
    lower_bound_is_exact : bool
        Whether the largest z'Gz behind the bound was found by enumeration.
    restricted_value : float
        Value of the multiple kernel problem over the planes found; NaN for splits without planes.
    imbalance : float
        |sum_k n_k z_k| / N of the labelling.
    balance_was_widened : bool
        Whether a class outweighs what ``balance`` allows, so that its weight was used instead.
    n_planes : int
        Cutting planes found.
    n_iter : int
        Passes over the rows, summed over all SVMs that were solved for the node.
    duality_gap : float
        Relative duality gap of the node's SVM.
    seconds : float
        Time spent on the node.
    n_rows : int
        Training rows that the node sees.
    classes_left, classes_right : tuple of int
        Indices into ``classes_``.
    """

    objective: float
    margin: float
    lower_bound: float
    lower_bound_is_exact: bool
    restricted_value: float
    imbalance: float
    balance_was_widened: bool
    n_planes: int
    n_iter: int
    duality_gap: float
    seconds: float
    n_rows: int
    classes_left: tuple[int, ...]
    classes_right: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class GrownTree:
    """A tree with the record and the classifier of each internal node, in preorder."""

    tree: ClassTree
    records: list[NodeRecord]
    classifiers: list[NodeClassifier]


@dataclass(frozen=True)
class NodeSettings:
    """What the problems of all nodes have in common; see ``NodeProblem``."""

    balance: float
    tol: float
    max_iter: int


@dataclass(frozen=True, eq=False)
class NodeTask:
    """A node to divide; its seed follows from its path alone."""

    position: int
    classes: Index
    seed: int
    path: str = ""

    def child(self, side: int, classes: Index, position: int) -> "NodeTask":
        """Return the task of a child."""
        return NodeTask(position, classes, child_seed(self.seed, side), self.path + "LR"[side])


@dataclass(frozen=True, eq=False)
class NodeDone:
    """The result of a node: its record, its machine, and the classes of its sides."""

    record: NodeRecord
    classifier: NodeClassifier
    left: Index
    right: Index


def grow(
    training_set: TrainingSet,
    split: Split,
    settings: NodeSettings,
    *,
    seed: int,
    n_threads: int = 1,
    on_node: Callable[[NodeRecord, int], None] | None = None,
    class_names: Sequence[Any] | npt.NDArray[Any] | None = None,
    keep: Callable[[NodeClassifier], NodeClassifier] | None = None,
) -> GrownTree:
    """Grow a tree over the classes of ``training_set``.

    ``on_node`` is called in this thread after each node with its record and the number of nodes done;
    there are ``n_classes - 1`` in all. An error in a node ends the fit; a note says which node it was, by
    ``class_names`` if given. ``keep`` returns what is kept of a node's machine.
    """

    def work(task: NodeTask) -> NodeDone:
        try:
            done = _split_node(training_set, split, task, settings)
            return done if keep is None else replace(done, classifier=keep(done.classifier))
        except Exception as error:
            error.add_note(_where(task, training_set, class_names))
            raise

    tasks = [NodeTask(0, np.arange(training_set.n_classes), seed)]
    # Work positions are handed out as nodes appear; preorder numbers follow at the end.
    leaf_class, children, done = [-1], {}, {}
    others = elsewhere.get()
    growing = in_any_order(work, tasks, n_threads) if others is None else others.nodes_done(work, tasks)
    with closing(growing):
        for task, result in growing:
            done[task.position] = result
            children[task.position] = (len(leaf_class), len(leaf_class) + 1)
            for side, classes in enumerate((result.left, result.right)):
                if len(classes) > 1:
                    tasks.append(task.child(side, classes, len(leaf_class)))
                leaf_class.append(-1 if len(classes) > 1 else int(classes[0]))
            if on_node is not None:
                on_node(result.record, len(done))
    order = preorder_of(children)
    nodes = [done[position] for position in order if position in done]
    tree = ClassTree.from_preorder([leaf_class[position] for position in order])
    return GrownTree(tree, [node.record for node in nodes], [node.classifier for node in nodes])


def child_seed(seed: int, side: int) -> int:
    """Return the seed of a child (splitmix64): it depends on the path alone, never on timing."""
    mask = 2**64 - 1
    x = (seed + (side + 1) * 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    # 63 bits: the compiled loops take a signed integer.
    return (x ^ (x >> 31)) >> 1


def _split_node(training_set: TrainingSet, split: Split, task: NodeTask, settings: NodeSettings) -> NodeDone:
    began = time.perf_counter()
    rows = training_set.node_rows(task.classes, SOLVER_SEED)
    sizes, share = training_set.sizes[task.classes], rows.n_rows / training_set.n_rows
    node = NodeProblem(rows, sizes, **vars(settings), seed=task.seed, share=share, classes=task.classes)
    result = _checked(split.divide(node), split, node)
    left, right = task.classes[result.labelling > 0.0], task.classes[result.labelling < 0.0]
    solution = result.solution
    record = NodeRecord(
        objective=float(solution.objective),
        margin=2.0 / solution.squared_norm if solution.squared_norm > 0.0 else np.inf,
        lower_bound=result.lower_bound,
        lower_bound_is_exact=result.lower_bound_is_exact,
        restricted_value=result.restricted_value,
        imbalance=node.imbalance(result.labelling),
        balance_was_widened=node.balance_was_widened,
        n_planes=result.n_planes,
        n_iter=node.n_iter,
        duality_gap=float(solution.duality_gap),
        seconds=time.perf_counter() - began,
        n_rows=rows.n_rows,
        classes_left=tuple(left.tolist()),
        classes_right=tuple(right.tolist()),
    )
    return NodeDone(record, training_set.classifier(rows, solution), left, right)


def _where(task: NodeTask, training_set: TrainingSet, class_names: Sequence[Any] | npt.NDArray[Any] | None) -> str:
    """Return a note that says which node a task is about."""
    names = [str(k if class_names is None else class_names[k]) for k in task.classes[:NAMED_CLASSES].tolist()]
    more = f" and {len(task.classes) - len(names)} more" if len(task.classes) > len(names) else ""
    lengths = np.diff(training_set.class_start)[task.classes]
    place = f"at depth {len(task.path)}, path {task.path} from the root" if task.path else "the root"
    return (
        f"This happened while margintree divided a node of {len(task.classes)} classes ({', '.join(names)}{more}) "
        f"with {lengths.sum()} rows: {place}."
    )


def _checked(result: SplitResult, split: Split, node: NodeProblem) -> SplitResult:
    """Return the result of a split, or raise an error that says what a custom split did wrong."""
    name = type(split).__name__
    if not isinstance(result, SplitResult):
        raise TypeError(
            f"{name}.divide must return a SplitResult, for example conclude(node, labelling). "
            f"Got {type(result).__name__}."
        )
    signs = set(np.unique(result.labelling).tolist())
    if np.shape(result.labelling) != (node.n_classes,) or signs != {-1.0, 1.0}:
        raise ValueError(
            f"{name}.divide must label each of the {node.n_classes} classes of the node with +1 or -1 and use both. "
            f"Got {np.asarray(result.labelling).tolist()}."
        )
    return result
