"""A fitted tree as an ONNX graph of standard operators, for runtimes without Python.

No node is walked. One matrix product gives the decision values of all nodes; with the path matrix P, whose entry for a
node and a class is +1 where the class lies to the left of the node, -1 to the right and 0 elsewhere:

- the greedy walk ends at the one class whose path agrees with the signs of all nodes on it: sign(D) P - depth = 0;
- the score of a path is a sum of log probabilities, log p(left) max(P, 0) + log p(right) max(-P, 0).

The finalists are the best scores (``TopK``) within the gap. One more matrix product gives the values of all deciding
machines, of which each row takes those of its finalists. So a row costs as many decision functions as there are nodes
and deciding machines. A model whose classes are ranked by one machine each is one matrix product.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree import compiled
from margintree.class_tree import ClassTree
from margintree.estimators.base import MachineClassifier
from margintree.onnx_graph import Graph, plain_labels
from margintree.prediction.kernel_tree import KernelTree
from margintree.prediction.linear_tree import LinearTree
from margintree.prediction.ranker import Ranker
from margintree.prediction.weight_table import WeightTable
from margintree.storage import replacing

WALKS = ("greedy", "all")


def to_onnx(estimator: Any, path: str | os.PathLike[str], *, walk: str | None = None, dtype: str = "float64") -> None:
    """Write a fitted tree as an ONNX model, which gives the same predictions in onnxruntime.

    The model has the input ``X`` of shape (n_rows, n_features) and the outputs ``label`` and, if the tree is
    calibrated, ``probabilities``. Needs the extra ``margintree[onnx]``.

    Parameters
    ----------
    estimator : a fitted MarginTreeClassifier, LabelTreeClassifier or FilterTreeClassifier
        With the linear or the rbf kernel. Also a ConditionalProbabilityTreeClassifier with ``node="svm"``.
    path : str or path-like
        The file is written completely or not at all.
    walk : {"greedy", "all"} or None, default=None
        None uses that of the estimator. Standard operators cannot express a beam, so a model with ``walk="beam"`` is
        exported with "all", whose finalists come from every path. A few predictions may therefore differ; with "greedy"
        and "all" none does. The probabilities of "greedy" are those of the paths.
    dtype : {"float64", "float32"}, default="float64"
        Type of ``X``. The model computes in double precision either way.

    Raises
    ------
    ValueError
        If the estimator cannot be exported; the message says why.
    ImportError
        If the package onnx is missing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from margintree import MarginTreeClassifier, to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MarginTreeClassifier("rbf", walk="all", random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as directory:  # doctest: +SKIP
    ...     to_onnx(model, Path(directory) / "iris.onnx")
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError("to_onnx needs the package onnx: pip install 'margintree[onnx]'.") from error
    model, ranker = _exportable(estimator)
    walk = _checked_walk(estimator, ranker, walk)
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype must be 'float64' or 'float32'. Got {dtype!r}.")
    graph = Graph(is_single=dtype == "float32")
    if walk == "all" and ranker is not None and ranker.flat is not None:
        best = _flat(graph, ranker)
    else:
        best = _walk(graph, model, ranker, walk)
    graph.add("Gather", plain_labels(estimator.classes_), best, output="label", axis=0)
    proto = graph.model(estimator, has_probabilities=ranker is not None)
    onnx.checker.check_model(proto)
    with replacing(Path(path)) as unfinished:
        unfinished.write_bytes(proto.SerializeToString())


def _exportable(estimator: Any) -> tuple[LinearTree | KernelTree, Ranker | None]:
    name = type(estimator).__name__
    if not isinstance(estimator, MachineClassifier):
        raise ValueError(f"to_onnx writes trees of margintree. Got {name}.")
    estimator._check_fitted()
    model = getattr(estimator, "_model", None)
    if not isinstance(model, LinearTree | KernelTree):
        raise ValueError(f"{name} cannot be exported to ONNX; use a MarginTreeClassifier, for example.")
    if isinstance(model, KernelTree) and model.function.kernel != "rbf":
        raise ValueError(f"kernel={model.function.kernel!r} cannot be exported to ONNX; use kernel='linear' or 'rbf'.")
    return model, getattr(estimator, "_ranker", None)


def _checked_walk(estimator: Any, ranker: Ranker | None, walk: str | None) -> str:
    if walk is None:
        # Trees without probabilities walk greedily, whatever they were asked for.
        walk = "greedy" if ranker is None else estimator.walk
        # Finalists of all paths are those of a beam, but for paths that the beam leaves out.
        walk = "all" if walk == "beam" else walk
    if walk not in WALKS:
        raise ValueError(f"walk must be one of {', '.join(WALKS)} or None. Got {walk!r}.")
    if walk == "all" and ranker is None:
        raise ValueError(
            "walk='all' needs calibrated sigmoids. Fit with calibration_folds='auto', or use walk='greedy'."
        )
    return walk


def _walk(graph: Graph, model: LinearTree | KernelTree, ranker: Ranker | None, walk: str) -> str:
    """Return the class at the end of a walk and, if the tree is calibrated, add the probabilities."""
    internal = np.flatnonzero(np.concatenate([tree.children_left for tree in model.trees]) >= 0)
    graph.check_room(8 * len(internal) * model.trees[0].n_classes)
    paths = _path_matrix(model.trees)
    if ranker is None or walk == "greedy":
        [decisions] = _machine_values(graph, model, internal)
        if ranker is not None:
            graph.add("Softmax", _path_scores(graph, decisions, model, paths), output="probabilities", axis=1)
        return _greedy(graph, decisions, model.trees[0], paths)
    decisions, deciding = _decisions(graph, model, internal, ranker)
    scores = _path_scores(graph, decisions, model, paths)
    finalists = _finalists(graph, scores, ranker)
    ranking = _ranking(graph, finalists, deciding, ranker)
    _probabilities(graph, scores, ranking, finalists)
    nobody = graph.add("ConstantOfShape", graph.add("Shape", scores), value=_one_value(-np.inf))
    ranked = graph.add("ScatterElements", nobody, finalists.classes, ranking, axis=1)
    return graph.add("ArgMax", ranked, axis=1, keepdims=0)


def _flat(graph: Graph, ranker: Ranker) -> str:
    """Return the class whose machine has the largest value, and add the probabilities; no path is followed."""
    assert ranker.decider.table is not None
    values = _linear_values(graph, ranker.decider.table, np.arange(ranker.n_classes))
    scaled = graph.add("Mul", values, float(ranker.decider.slope))
    graph.add("Softmax", scaled, output="probabilities", axis=1)
    return graph.add("ArgMax", values, axis=1, keepdims=0)


def _one_value(value: float) -> Any:
    """Return what ``ConstantOfShape`` fills an array with."""
    from onnx import numpy_helper

    return numpy_helper.from_array(np.array([value]))


def _decisions(
    graph: Graph, model: LinearTree | KernelTree, internal: npt.NDArray[np.int64], ranker: Ranker
) -> tuple[str, str | None]:
    """Return the values of the internal nodes and of the deciding machines, one column each; None if there are none."""
    decider = ranker.decider
    n_deciding = {"paths": 0, "pairs": len(decider.pair_other), "rest": ranker.n_classes}[decider.kind]
    if n_deciding == 0:
        return _machine_values(graph, model, internal)[0], None
    machines = np.arange(n_deciding)
    if decider.table is not None:
        return _machine_values(graph, model, internal)[0], _linear_values(graph, decider.table, machines)
    # Those of a kernel follow the nodes.
    behind = sum(tree.n_nodes for tree in model.trees) + machines
    decisions, deciding = _machine_values(graph, model, internal, behind)
    return decisions, deciding


def _machine_values(graph: Graph, model: LinearTree | KernelTree, *parts: npt.NDArray[np.int64]) -> list[str]:
    """Return the values of some machines of the model, one column each, in parts; they share the kernel values."""
    if isinstance(model, LinearTree):
        return [_linear_values(graph, model.table, part) for part in parts]
    used = np.unique(np.concatenate([model.support[_support(model, i)] for part in parts for i in part.tolist()]))
    kernel = _kernel(graph, model, used)
    return [_kernel_values(graph, model, kernel, used, part) for part in parts]


def _support(model: KernelTree, machine: int) -> slice:
    return slice(int(model.start[machine]), int(model.start[machine + 1]))


def _kernel(graph: Graph, model: KernelTree, used: npt.NDArray[np.int64]) -> str:
    """Return the kernel values with some support vectors, one column each."""
    vectors = model.vectors[used]
    vectors = vectors.toarray() if sp.issparse(vectors) else np.asarray(vectors)
    # |x - v|^2 = |x|^2 - 2 x'v + |v|^2, which rounding may bring below zero.
    products = graph.add("MatMul", graph.rows, np.ascontiguousarray(-2.0 * vectors.T))
    shifted = graph.add("Add", products, (vectors**2).sum(axis=1))
    length = graph.add("ReduceSumSquare", graph.rows, axes=[1], keepdims=1)
    distance = graph.add("Relu", graph.add("Add", shifted, length))
    return graph.add("Exp", graph.add("Mul", distance, -model.function.gamma))


def _kernel_values(
    graph: Graph, model: KernelTree, kernel: str, used: npt.NDArray[np.int64], machines: npt.NDArray[np.int64]
) -> str:
    coefficients = np.zeros((len(used), len(machines)))
    for column, machine in enumerate(machines.tolist()):
        part = _support(model, machine)
        np.add.at(coefficients[:, column], np.searchsorted(used, model.support[part]), model.coefficients[part])
    # k + 1 where there is an intercept: a constant for each machine.
    intercept = coefficients.sum(axis=0) if model.function.fit_intercept else np.zeros(len(machines))
    values = graph.add("MatMul", kernel, coefficients)
    return graph.add("Add", values, intercept + model.constants[machines])


def _linear_values(graph: Graph, table: WeightTable, machines: npt.NDArray[np.int64]) -> str:
    # Single precision, as margintree keeps them: half the file, and no value changes.
    graph.check_room(4 * table.n_features * len(machines))
    weights = graph.cast(table.relative_weights(machines), "DOUBLE")
    products = graph.add("Mul", graph.add("MatMul", graph.rows, weights), table.scale[machines])
    return graph.add("Add", products, table.intercept[machines])


def _path_matrix(trees: Sequence[ClassTree]) -> npt.NDArray[np.float64]:
    """Return +1 where a class lies to the left of an internal node, -1 to the right, else 0; nodes of all trees."""
    parts = []
    for tree in trees:
        part = np.zeros((len(tree.internal_nodes), tree.n_classes))
        for row, node in enumerate(tree.internal_nodes.tolist()):
            part[row, tree.classes_below(int(tree.children_left[node]))] = 1.0
            part[row, tree.classes_below(int(tree.children_right[node]))] = -1.0
        parts.append(part)
    return np.concatenate(parts)


def _greedy(graph: Graph, decisions: str, tree: ClassTree, paths: npt.NDArray[np.float64]) -> str:
    """Return the class whose path agrees with all signs."""
    first = graph.add("Slice", decisions, [0], [len(tree.internal_nodes)], [1])
    sign = graph.cast(graph.add("Greater", first, 0.0), "FLOAT")
    # sign(D) P = 2 left P - 1'P for left in {0, 1}.
    own = paths[: len(tree.internal_nodes)]
    depth = tree.depth[tree.leaf_of_class]
    agreement = graph.add("MatMul", sign, (2.0 * own).astype(np.float32))
    missing = graph.add("Sub", agreement, (own.sum(axis=0) + depth).astype(np.float32))
    return graph.add("ArgMax", missing, axis=1, keepdims=0)


def _path_scores(graph: Graph, decisions: str, model: LinearTree | KernelTree, paths: npt.NDArray[np.float64]) -> str:
    """Return the mean over the trees of the log probability of each class's path."""
    assert model.sigmoids is not None
    internal = np.flatnonzero(np.concatenate([tree.children_left for tree in model.trees]) >= 0)
    scaled = graph.add("Mul", decisions, model.sigmoids.slope[internal])
    odds = graph.add("Add", scaled, model.sigmoids.shift[internal])
    # log p = min(o, 0) - log(1 + exp(-|o|)), which neither overflows nor loses digits; log p(right) is less by o.
    tail = graph.add("Exp", graph.add("Neg", graph.add("Abs", odds)))
    rest = graph.add("Log", graph.add("Add", tail, 1.0))
    negative = graph.add("Relu", graph.add("Neg", odds))
    left = graph.add("Neg", graph.add("Add", negative, rest))
    n_trees = len(model.trees)
    to_either = graph.add("MatMul", left, np.abs(paths) / n_trees)
    to_right = graph.add("MatMul", odds, np.maximum(-paths, 0.0) / n_trees)
    scores = graph.add("Sub", to_either, to_right)
    # Means of several logarithms are those of no distribution until they are scaled to sum to one.
    return scores if n_trees == 1 else graph.add("LogSoftmax", scores, axis=1)


@dataclass(frozen=True)
class Finalists:
    """Names of arrays with a column for each position on the list, the best path first."""

    classes: str
    scores: str
    is_within_gap: str


def _finalists(graph: Graph, scores: str, ranker: Ranker) -> Finalists:
    """Return the classes with the best paths. Those beyond the gap are on the list, but are not finalists."""
    listed, classes = graph.add_many("TopK", [scores, [ranker.size]], ["path_scores", "finalists"], axis=1)
    best = graph.add("ReduceMax", listed, axes=[1], keepdims=1)
    lowest = graph.add("Sub", best, float(ranker.gap))
    return Finalists(classes, listed, graph.add("GreaterOrEqual", listed, lowest))


def _ranking(graph: Graph, finalists: Finalists, deciding: str | None, ranker: Ranker) -> str:
    """Return the scores of the finalists; minus infinity for those beyond the gap."""
    decider, ranking = ranker.decider, finalists.scores
    path_part = graph.add("Mul", finalists.scores, float(decider.path_weight))
    if decider.kind == "rest":
        assert deciding is not None
        own = graph.add("GatherElements", deciding, finalists.classes, axis=1)
        ranking = graph.add("Mul", graph.add("Add", path_part, own), float(decider.slope))
    elif decider.kind == "pairs" and ranker.size > 1:
        values = None if deciding is None else graph.add("Mul", deciding, float(decider.slope))
        ranking = graph.add("Add", path_part, _coupled(graph, finalists, values, ranker))
    return graph.add("Where", finalists.is_within_gap, ranking, -np.inf)


def _coupled(graph: Graph, finalists: Finalists, values: str | None, ranker: Ranker) -> str:
    """Return log p of the finalists from the machines between pairs of them, up to a constant."""
    odds = _log_odds(graph, finalists, values, ranker)
    compared = graph.cast(_compared(graph, odds, finalists, ranker.size), "DOUBLE")
    against_first = graph.add("Mul", compared, graph.add("Exp", graph.add("Neg", odds)))
    against_second = graph.add("Mul", compared, graph.add("Exp", odds))
    total = graph.add(
        "Add",
        graph.add("ReduceSum", against_first, [2], keepdims=0),
        graph.add("ReduceSum", against_second, [1], keepdims=0),
    )
    return graph.add("Neg", graph.add("Log", graph.add("Add", total, 1.0)))


def _log_odds(graph: Graph, finalists: Finalists, values: str | None, ranker: Ranker) -> str:
    """Return the log odds of the finalist at each position against that at each other position."""
    decider, c, s = ranker.decider, ranker.n_classes, ranker.size
    scores, classes = finalists.scores, finalists.classes
    odds = graph.add("Sub", graph.add("Unsqueeze", scores, [2]), graph.add("Unsqueeze", scores, [1]))
    if values is not None:
        n_pairs = len(decider.pair_other)
        smaller = np.repeat(np.arange(c), np.diff(decider.pair_start))
        # Which column of (values, -values) is the log odds of a class against another; beyond them, where none is.
        place = np.full((c, c), 2 * n_pairs)
        place[smaller, decider.pair_other] = np.arange(n_pairs)
        place[decider.pair_other, smaller] = n_pairs + np.arange(n_pairs)
        first = graph.add("Mul", graph.add("Unsqueeze", classes, [2]), c)
        pair = graph.add("Add", first, graph.add("Unsqueeze", classes, [1]))
        column = graph.add("Gather", place.ravel(), pair)
        # Any one column more, so that there is something to gather where no machine is.
        columns = graph.add("Concat", values, graph.add("Neg", values), scores, axis=1)
        flat = graph.add("Reshape", column, [0, s * s])
        known = graph.add("Reshape", graph.add("GatherElements", columns, flat, axis=1), [0, s, s])
        is_missing = graph.add("Equal", column, 2 * n_pairs)
        odds = graph.add("Where", is_missing, odds, known)
    largest = compiled.ranking.LARGEST_EXPONENT
    return graph.add("Clip", odds, -largest, largest)


def _compared(graph: Graph, odds: str, finalists: Finalists, size: int) -> str:
    """Return which positions are compared with which later ones: neither has clearly lost before."""
    clearly = compiled.ranking.CLEARLY
    loses = graph.add("Less", odds, -clearly)
    wins = graph.add("Greater", odds, clearly)
    is_in, rounds = finalists.is_within_gap, []
    for place in range(size):
        opponents = graph.add("And", is_in, np.arange(size)[None] > place)
        opponents = graph.add("And", opponents, graph.add("Gather", is_in, [place], axis=1))
        # It is compared with the others in turn, until it clearly loses.
        lost = graph.add("And", opponents, graph.add("Gather", loses, place, axis=1))
        before = graph.add("CumSum", graph.cast(lost, "INT32"), 1, exclusive=1)
        met = graph.add("And", opponents, graph.add("Less", before, np.int32(1)))
        beaten = graph.add("And", met, graph.add("Gather", wins, place, axis=1))
        is_in = graph.add("And", is_in, graph.add("Not", beaten))
        rounds.append(graph.add("Unsqueeze", met, [1]))
    return graph.add("Concat", *rounds, axis=1)


def _probabilities(graph: Graph, scores: str, ranking: str, finalists: Finalists) -> None:
    """Divide the probability of the finalists' paths among them by their scores; other classes keep their own."""
    listed = graph.add("Exp", finalists.scores)
    inside = graph.add("Where", finalists.is_within_gap, listed, 0.0)
    beyond = graph.add("Where", finalists.is_within_gap, 0.0, listed)
    outside = graph.add("ScatterElements", graph.add("Exp", scores), finalists.classes, beyond, axis=1)
    taken = graph.add("Min", graph.add("ReduceSum", inside, [1], keepdims=1), 1.0)
    own = graph.add("Mul", graph.add("Softmax", ranking, axis=1), taken)
    left_over = graph.add("Relu", graph.add("Sub", 1.0, taken))
    # The smallest positive number avoids a division by zero; everything outside is 0 in that case.
    rest = graph.add("Max", graph.add("ReduceSum", outside, [1], keepdims=1), np.finfo(float).tiny)
    others = graph.add("Mul", outside, graph.add("Div", left_over, rest))
    most = graph.add("Mul", graph.add("ReduceMax", own, axes=[1], keepdims=1), compiled.ranking.BELOW_THE_BEST)
    others = graph.add("Min", others, most)
    together = graph.add("ScatterElements", others, finalists.classes, own, axis=1, reduction="add")
    graph.add("Div", together, graph.add("ReduceSum", together, [1], keepdims=1), output="probabilities")
