"""Trees with machines at their nodes, and the ranking of their classes.

Compiled loops index these arrays without checks. Values that can be computed, such as where the cells of a machine
begin, are not in the file; the others are checked here once, before they are used.
"""

import numpy as np
import numpy.typing as npt

from margintree.class_tree import ClassTree
from margintree.model_file.errors import ModelFileError
from margintree.model_file.matrices import put_function, put_matrix, take_function, take_kind, take_vectors
from margintree.model_file.sections import Input, Output
from margintree.prediction.decider import KINDS, Decider
from margintree.prediction.kernel_tree import KernelTree
from margintree.prediction.linear_tree import LinearTree, Sigmoids
from margintree.prediction.probability_tree import ProbabilityTree
from margintree.prediction.ranker import Ranker
from margintree.prediction.weight_table import WeightTable, n_cells

Trees = tuple[ClassTree, ...]
TreeModel = LinearTree | KernelTree | ProbabilityTree
TREE_ARRAYS = ("children_left", "children_right", "leaf_class")


def put_trees(out: Output, trees: Trees) -> None:
    """Store trees over the same classes, one per row."""
    for name in TREE_ARRAYS:
        out.array(name, np.stack([getattr(tree, name) for tree in trees]))


def take_trees(source: Input, n_classes: int) -> Trees:
    """Return the trees; their constructor checks that they are trees."""
    left, right, leaf_class = (source.array(name, np.int32, None, 2 * n_classes - 1) for name in TREE_ARRAYS)
    if not len(left) == len(right) == len(leaf_class) > 0:
        raise ModelFileError("its trees are not complete")
    return tuple(ClassTree(*arrays) for arrays in zip(left, right, leaf_class, strict=True))


def put_tree_model(out: Output, model: TreeModel) -> None:
    """Store the machines of the nodes."""
    if isinstance(model, ProbabilityTree):
        out.fact("kind", "probabilities")
        lengths = np.diff(model.start)
        # In the order of the columns, not in that of the hash tables which they come from.
        order = np.lexsort((model.columns, np.repeat(np.arange(len(lengths)), lengths)))
        out.array("n_weights", lengths)
        out.array("columns", model.columns[order])
        out.array("weights", model.weights[order])
        out.array("intercepts", model.intercepts)
        return
    if isinstance(model, LinearTree):
        out.fact("kind", "linear")
        put_table(out.section("table"), model.table)
    else:
        out.fact("kind", "kernel")
        put_function(out.section("function"), model.function)
        out.array("n_support", np.diff(model.start))
        for name in ("support", "coefficients", "constants"):
            out.array(name, getattr(model, name))
        if model.vectors is not None:
            out.fact("n_vectors", int(model.vectors.shape[0]))
            put_matrix(out.section("vectors"), model.vectors)
    if model.sigmoids is not None:
        out.array("slope", model.sigmoids.slope)
        out.array("shift", model.sigmoids.shift)


def take_tree_model(source: Input, trees: Trees, n_features: int, kernel: str, n_deciding: int = 0) -> TreeModel:
    """Return the machines of the nodes of these trees; with a kernel, ``n_deciding`` deciding machines follow them."""
    kind = take_kind(source, ["linear", "kernel", "probabilities"], kernel)
    n_nodes = sum(tree.n_nodes for tree in trees)
    if kind == "probabilities":
        return take_probability_tree(source, trees, n_features)
    sigmoids = None
    if source.has("slope"):
        sigmoids = Sigmoids(source.finite("slope", n_nodes), source.finite("shift", n_nodes))
    if kind == "linear":
        return LinearTree(trees, take_table(source.section("table"), n_nodes, n_features), sigmoids)
    function = take_function(source.section("function"), kernel)
    coefficients = source.finite("coefficients", None)
    n_machines = n_nodes + n_deciding
    start = source.starts("n_support", n_machines, len(coefficients))
    n_vectors, vectors = n_features, None
    if kernel != "precomputed":
        n_vectors = source.integer("n_vectors", 0, 2**62)
        vectors = take_vectors(source.section("vectors"), function, n_vectors, n_features)
    support = source.indices("support", n_vectors, len(coefficients))
    constants = source.finite("constants", n_machines)
    return KernelTree(trees, function, vectors, start, support, coefficients, constants, sigmoids)


def take_probability_tree(source: Input, trees: Trees, n_features: int) -> ProbabilityTree:
    """Return a tree of regressors."""
    weights = source.array("weights", np.float64, None)
    if len(trees) != 1:
        raise ModelFileError("it has several trees of regressors")
    start = source.starts("n_weights", trees[0].n_nodes, len(weights))
    columns = source.indices("columns", n_features, len(weights))
    return ProbabilityTree(trees[0], n_features, start, columns, weights, source.finite("intercepts", len(start) - 1))


def put_table(out: Output, table: WeightTable) -> None:
    """Store the weights of linear machines."""
    for name in ("n_weights", "cells", "scale", "intercept"):
        out.array(name, getattr(table, name))


def take_table(source: Input, n_machines: int, n_features: int) -> WeightTable:
    """Return the weights of linear machines.

    The cells, which are most of the file, are not checked. Whatever they contain, compiled loops stay within the cells
    of the machine and within the row.
    """
    n_weights = source.array("n_weights", np.int64, n_machines)
    if n_weights.size and not (n_weights.min() >= -1 and n_weights.max() <= n_features):
        raise ModelFileError(f"its machines have numbers of weights outside of -1..{n_features}")
    if n_machines * 4 * (n_features + 1) > np.iinfo(np.int64).max:
        raise ModelFileError(f"{n_machines} machines over {n_features} features are too many")
    start = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(n_cells(n_weights, n_features))])
    cells = source.array("cells", np.uint32, int(start[-1]))
    scale, intercept = source.finite("scale", n_machines), source.finite("intercept", n_machines)
    return WeightTable(n_features, start.astype(np.uint64), n_weights, cells, scale, intercept)


def put_ranker(out: Output, ranker: Ranker) -> None:
    """Store how classes are ranked; the beam is at most as wide as the number of classes."""
    decider = ranker.decider
    out.fact("width", min(int(ranker.width), ranker.n_classes))
    out.fact("gap", float(ranker.gap))
    out.fact("n_finalists", ranker.size)
    out.fact("kind", decider.kind)
    out.fact("slope", float(decider.slope))
    out.fact("path_weight", float(decider.path_weight))
    if decider.table is not None:
        put_table(out.section("table"), decider.table)
    if decider.kind == "pairs":
        out.array("n_pairs", np.diff(decider.pair_start))
        out.array("pair_other", decider.pair_other)


def take_decider(source: Input, n_classes: int, n_features: int, kernel: str) -> tuple[Decider, int]:
    """Return the decider, and the number of its machines."""
    kind, n_machines = source.choice("kind", KINDS), 0
    slope, path_weight = source.number("slope"), source.number("path_weight")
    pairs: dict[str, npt.NDArray[np.int64]] = {}
    if kind == "rest":
        n_machines = n_classes
    elif kind == "pairs":
        other = source.indices("pair_other", n_classes, None)
        start = source.starts("n_pairs", n_classes, len(other))
        pairs, n_machines = {"pair_start": start, "pair_other": other}, len(other)
        # Compiled loops find a pair by binary search: the partners of a class are larger, and ascend.
        keys = np.repeat(np.arange(n_classes), np.diff(start)) * n_classes + other
        if not ((np.diff(keys) > 0).all() and (other > keys // n_classes).all()):
            raise ModelFileError("its pairs of classes are not sorted")
    table = None
    if kernel == "linear" and kind != "paths":
        table = take_table(source.section("table"), n_machines, n_features)
    return Decider(kind, table, slope, path_weight, **pairs), n_machines


def take_ranker(source: Input, model: LinearTree | KernelTree, decider: Decider) -> Ranker:
    """Return the ranker of the classes of a tree."""
    if model.sigmoids is None:
        raise ModelFileError("its classes are ranked by sigmoids that it does not have")
    n_classes, gap = model.trees[0].n_classes, source.number("gap", 0.0)
    width, n_finalists = source.integer("width", 0, n_classes), source.integer("n_finalists", 1, n_classes)
    return Ranker(model, decider, width, gap, n_finalists)
