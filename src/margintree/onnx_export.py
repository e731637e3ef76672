"""A fitted tree as an ONNX graph of plain operators, for runtimes that have no Python.

No node is walked. One matrix product gives the decision values of all nodes; with the path matrix P, whose entry for a
node and a class is +1 where the class lies to the left of the node, -1 to the right and 0 elsewhere:

- the greedy walk ends at the one class whose path agrees with the signs of all nodes on it: sign(D) P - depth = 0;
- the score of a path is a sum of log probabilities, log p(left) max(P, 0) + log p(right) max(-P, 0).

So a row costs as many decision functions as the tree has nodes, where margintree evaluates one per level. A model whose
few classes are ranked by their scorers alone is one matrix product.
"""

import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from margintree.class_tree import ClassTree
from margintree.estimators.base import MachineClassifier
from margintree.prediction.kernel_tree import KernelTree
from margintree.prediction.linear_tree import LinearTree
from margintree.prediction.ranker import Ranker
from margintree.prediction.weight_table import WeightTable
from margintree.storage import replacing

OPSET = 17
# Of the format itself; the oldest that has the operators, for the sake of older runtimes.
IR_VERSION = 8
# Protocol buffers hold no more.
MOST_BYTES = 2**31 - 2**20
WALKS = ("greedy", "all")


def to_onnx(estimator: Any, path: str | os.PathLike[str], *, walk: str | None = None) -> None:
    """Write a fitted tree as an ONNX model, which gives the same predictions in onnxruntime.

    The model takes ``X``, double precision, of shape (n_rows, n_features), and gives ``label`` and, where the tree is
    calibrated, ``probabilities``. It needs the extra ``margintree[onnx]``. See docs/onnx.md for what it costs.

    Parameters
    ----------
    estimator : a fitted MarginTreeClassifier, LabelTreeClassifier or FilterTreeClassifier
        With the linear or the rbf kernel.
    path : str or path-like
        The file appears whole or not at all.
    walk : {"greedy", "all"} or None, default=None
        None is the estimator's own. A beam depends on the row at every step, which these operators cannot follow: a
        model with ``walk="beam"`` is written with "all", which looks at every path that the beam might have left out,
        or with "greedy". Where it ranks its classes by their scorers alone, no path is followed and None will do.

    Raises
    ------
    ValueError
        If the estimator has no ONNX form. The message says why.
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
    graph = Graph()
    if walk == "all" and ranker is not None and ranker.flat is not None:
        best = _flat(graph, ranker)
    else:
        best = _walk(graph, model, ranker, walk)
    graph.add("Gather", graph.constant(_plain_labels(estimator.classes_)), best, output="label", axis=0)
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
        raise ValueError(f"{name} has no ONNX form; trees of support vector machines have, as MarginTreeClassifier's.")
    if isinstance(model, KernelTree) and model.function.kernel != "rbf":
        raise ValueError(f"kernel={model.function.kernel!r} has no ONNX form; kernel='linear' and 'rbf' have.")
    return model, getattr(estimator, "_ranker", None)


def _checked_walk(estimator: Any, ranker: Ranker | None, walk: str | None) -> str:
    if walk is None:
        walk = getattr(estimator, "walk", "greedy")
        if walk == "beam" and ranker is not None and ranker.flat is not None:
            walk = "all"
        if walk == "beam":
            raise ValueError(
                "A beam has no ONNX form. Write the model with walk='all', which ranks by every path and gives the "
                "same probabilities but for the paths that the beam leaves out, or with walk='greedy'."
            )
    if walk not in WALKS:
        raise ValueError(f"walk must be one of {', '.join(WALKS)} or None. Got {walk!r}.")
    if walk == "all" and ranker is None:
        raise ValueError(
            "walk='all' needs calibrated sigmoids. Fit with calibration_folds='auto', or use walk='greedy'."
        )
    return walk


class Graph:
    """An ONNX graph in the making: every operator gives the name of its result."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._n_bytes = 0

    def constant(self, array: npt.ArrayLike) -> str:
        """Add an array."""
        from onnx import numpy_helper

        array = np.asarray(array)
        self._n_bytes += array.nbytes
        if self._n_bytes > MOST_BYTES:
            raise ValueError(
                "The weights of all nodes as one dense matrix take more than the 2 GB that an ONNX file holds. Use "
                "margintree.save_model, whose files are sparse."
            )
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add an operator with one result."""
        return self.add_many(operator, inputs, [output or f"value_{len(self._nodes)}"], **attributes)[0]

    def add_many(self, operator: str, inputs: Sequence[str], outputs: list[str], **attributes: Any) -> list[str]:
        """Add an operator with several results."""
        from onnx import helper

        self._nodes.append(helper.make_node(operator, list(inputs), outputs, **attributes))
        return outputs

    def model(self, estimator: Any, *, has_probabilities: bool) -> Any:
        """Return the model with its inputs and outputs."""
        from onnx import TensorProto, helper

        n_features, n_classes = int(estimator.n_features_in_), len(estimator.classes_)
        label = helper.np_dtype_to_tensor_dtype(_plain_labels(estimator.classes_).dtype)
        outputs = [helper.make_tensor_value_info("label", label, ["n_rows"])]
        if has_probabilities:
            shape: list[str | int | None] = ["n_rows", n_classes]
            outputs.append(helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, shape))
        inputs = [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["n_rows", n_features])]
        graph = helper.make_graph(self._nodes, type(estimator).__name__, inputs, outputs, self._constants)
        return helper.make_model(
            graph,
            producer_name="margintree",
            producer_version=version("margintree"),
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )


def _walk(graph: Graph, model: LinearTree | KernelTree, ranker: Ranker | None, walk: str) -> str:
    """Return the class at the end of a walk; where the tree is calibrated, give the probabilities, too."""
    decisions = _decisions(graph, model)
    paths = _path_matrix(model.trees)
    if ranker is None:
        return _greedy(graph, decisions, model.trees[0], paths)
    scores = _path_scores(graph, decisions, model, paths)
    if walk == "greedy":
        _probabilities(graph, scores, None, None)
        return _greedy(graph, decisions, model.trees[0], paths)
    ranking, candidates = _ranking(graph, scores, ranker)
    _probabilities(graph, scores, ranking, candidates)
    return graph.add("ArgMax", ranking, axis=1, keepdims=0)


def _flat(graph: Graph, ranker: Ranker) -> str:
    """Return the class whose scorer has the largest value, and give the probabilities: no path is followed."""
    assert ranker.scorers is not None
    values = _linear_values(graph, ranker.scorers.table, np.arange(ranker.n_classes))
    scaled = graph.add("Mul", values, graph.constant(float(ranker.scorers.temperature)))
    graph.add("Softmax", scaled, output="probabilities", axis=1)
    return graph.add("ArgMax", values, axis=1, keepdims=0)


def _plain_labels(classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels of a type that ONNX has."""
    kind = classes.dtype.kind
    if kind in "iu":
        return classes.astype(np.int64)
    if kind in "bf":
        return classes.astype(np.float64 if kind == "f" else np.bool_)
    if all(isinstance(label, str) for label in classes.tolist()):
        return classes.astype(object)
    raise ValueError(f"ONNX has no labels of type {classes.dtype}; fit with numbers or text.")


def _decisions(graph: Graph, model: LinearTree | KernelTree) -> str:
    """Return the decision values of the internal nodes of all trees, one column each."""
    internal = np.flatnonzero(np.concatenate([tree.children_left for tree in model.trees]) >= 0)
    if isinstance(model, LinearTree):
        return _linear_values(graph, model.table, internal)
    used = np.unique(np.concatenate([model.support[model.start[i] : model.start[i + 1]] for i in internal]))
    vectors = model.vectors[used]
    vectors = vectors.toarray() if sp.issparse(vectors) else np.asarray(vectors)
    coefficients = np.zeros((len(used), len(internal)))
    for column, node in enumerate(internal.tolist()):
        part = slice(model.start[node], model.start[node + 1])
        coefficients[np.searchsorted(used, model.support[part]), column] = model.coefficients[part]
    # |x - v|^2 = |x|^2 - 2 x'v + |v|^2, which rounding may bring below zero.
    products = graph.add("MatMul", "X", graph.constant(np.ascontiguousarray(-2.0 * vectors.T)))
    shifted = graph.add("Add", products, graph.constant((vectors**2).sum(axis=1)))
    length = graph.add("ReduceSumSquare", "X", axes=[1], keepdims=1)
    distance = graph.add("Relu", graph.add("Add", shifted, length))
    kernel = graph.add("Exp", graph.add("Mul", distance, graph.constant(-model.function.gamma)))
    # k + 1 where there is an intercept: a constant for each node.
    intercept = coefficients.sum(axis=0) if model.function.fit_intercept else np.zeros(len(internal))
    values = graph.add("MatMul", kernel, graph.constant(coefficients))
    return graph.add("Add", values, graph.constant(intercept + model.constants[internal]))


def _linear_values(graph: Graph, table: WeightTable, machines: npt.NDArray[np.int64]) -> str:
    from onnx import TensorProto

    # Single precision, as margintree keeps them: half the file, and no value changes.
    weights = graph.add("Cast", graph.constant(table.relative_weights(machines)), to=TensorProto.DOUBLE)
    products = graph.add("Mul", graph.add("MatMul", "X", weights), graph.constant(table.scale[machines]))
    return graph.add("Add", products, graph.constant(table.intercept[machines]))


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
    from onnx import TensorProto

    first = graph.add("Slice", decisions, *(graph.constant([n]) for n in (0, len(tree.internal_nodes), 1)))
    goes_left = graph.add("Greater", first, graph.constant(0.0))
    sign = graph.add("Cast", goes_left, to=TensorProto.FLOAT)
    # sign(D) P = 2 left P - 1'P for left in {0, 1}.
    own = paths[: len(tree.internal_nodes)]
    depth = tree.depth[tree.leaf_of_class]
    agreement = graph.add("MatMul", sign, graph.constant((2.0 * own).astype(np.float32)))
    missing = graph.add("Sub", agreement, graph.constant((own.sum(axis=0) + depth).astype(np.float32)))
    return graph.add("ArgMax", missing, axis=1, keepdims=0)


def _path_scores(graph: Graph, decisions: str, model: LinearTree | KernelTree, paths: npt.NDArray[np.float64]) -> str:
    """Return the mean over the trees of the log probability of each class's path."""
    assert model.sigmoids is not None
    internal = np.flatnonzero(np.concatenate([tree.children_left for tree in model.trees]) >= 0)
    scaled = graph.add("Mul", decisions, graph.constant(model.sigmoids.slope[internal]))
    odds = graph.add("Add", scaled, graph.constant(model.sigmoids.shift[internal]))
    # log p = min(o, 0) - log(1 + exp(-|o|)), which neither overflows nor loses digits; log p(right) is less by o.
    tail = graph.add("Exp", graph.add("Neg", graph.add("Abs", odds)))
    rest = graph.add("Log", graph.add("Add", tail, graph.constant(1.0)))
    negative = graph.add("Relu", graph.add("Neg", odds))
    left = graph.add("Neg", graph.add("Add", negative, rest))
    n_trees = len(model.trees)
    to_either = graph.add("MatMul", left, graph.constant(np.abs(paths) / n_trees))
    to_right = graph.add("MatMul", odds, graph.constant(np.maximum(-paths, 0.0) / n_trees))
    scores = graph.add("Sub", to_either, to_right)
    # Means of several logarithms are those of no distribution until they are scaled to sum to one.
    return scores if n_trees == 1 else graph.add("LogSoftmax", scores, axis=1)


def _ranking(graph: Graph, scores: str, ranker: Ranker) -> tuple[str, str | None]:
    """Return what ranks the classes, and which of them are candidates; None where all are."""
    if ranker.scorers is None:
        return scores, None
    scorers, n_classes = ranker.scorers, ranker.n_classes
    own = _linear_values(graph, scorers.table, np.arange(n_classes))
    path_part = graph.add("Mul", scores, graph.constant(float(scorers.path_weight)))
    temperature = graph.constant(float(scorers.temperature))
    ranking = graph.add("Mul", graph.add("Add", path_part, own), temperature)
    _, size = ranker.size_for(1)
    if size == n_classes:
        return ranking, None
    _, places = graph.add_many("TopK", [scores, graph.constant([size])], ["listed_scores", "listed"], axis=1)
    from onnx import numpy_helper

    zero = numpy_helper.from_array(np.zeros(1, dtype=np.float32))
    nothing = graph.add("ConstantOfShape", graph.add("Shape", scores), value=zero)
    one = numpy_helper.from_array(np.ones(1, dtype=np.float32))
    marks = graph.add("ConstantOfShape", graph.add("Shape", places), value=one)
    listed = graph.add("ScatterElements", nothing, places, marks, axis=1)
    candidates = graph.add("Greater", listed, graph.constant(np.float32(0.5)))
    return graph.add("Where", candidates, ranking, graph.constant(-np.inf)), candidates


def _probabilities(graph: Graph, scores: str, ranking: str | None, candidates: str | None) -> None:
    """Give the candidates the probability of their paths, in parts by their ranking; the others keep their own."""
    if candidates is None:
        graph.add("Softmax", scores if ranking is None else ranking, output="probabilities", axis=1)
        return
    assert ranking is not None
    of_paths = graph.add("Exp", scores)
    zero, one, rows = graph.constant(0.0), graph.constant(1.0), graph.constant([1])
    inside = graph.add("Where", candidates, of_paths, zero)
    outside = graph.add("Where", candidates, zero, of_paths)
    taken = graph.add("Min", graph.add("ReduceSum", inside, rows, keepdims=1), one)
    left_over = graph.add("Relu", graph.add("Sub", one, taken))
    # The smallest positive number keeps 0 / 0 away; what it is a part of is 0 then.
    rest = graph.add("Max", graph.add("ReduceSum", outside, rows, keepdims=1), graph.constant(np.finfo(float).tiny))
    others = graph.add("Mul", outside, graph.add("Div", left_over, rest))
    ranked = graph.add("Mul", graph.add("Softmax", ranking, axis=1), taken)
    together = graph.add("Add", ranked, others)
    graph.add("Div", together, graph.add("ReduceSum", together, rows, keepdims=1), output="probabilities")
