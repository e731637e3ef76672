"""The fitted attributes of each estimator that are stored in a file, and how it is restored."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from margintree.estimators.all_together import AllTogetherSVC
from margintree.estimators.conditional_probability_tree import ConditionalProbabilityTreeClassifier
from margintree.estimators.decision_dag import DecisionDAGClassifier
from margintree.estimators.filter_tree import FilterTreeClassifier
from margintree.estimators.label_tree import LabelTreeClassifier
from margintree.estimators.margin_tree import MarginTreeClassifier
from margintree.estimators.one_vs_one import OneVsOneSVC
from margintree.estimators.one_vs_rest import OneVsRestSVC
from margintree.estimators.output_code import OutputCodeSVC
from margintree.model_file.container import AnyArray
from margintree.model_file.errors import ModelFileError
from margintree.model_file.labels import put_labels, take_labels
from margintree.model_file.machine_sets import put_machines, take_machines
from margintree.model_file.node_records import put_candidates, put_records, take_candidates, take_records
from margintree.model_file.sections import Input, Output
from margintree.model_file.streams import put_state, take_state
from margintree.model_file.tree_models import (
    put_ranker,
    put_tree_model,
    put_trees,
    take_decider,
    take_ranker,
    take_tree_model,
    take_trees,
)
from margintree.prediction.probability_tree import ProbabilityTree

Attributes = dict[str, Any]
# Sparse rows have 32-bit columns. A precomputed kernel has one feature per training row, and its matrix has the square
# of their number of values.
MOST_FEATURES, MOST_TRAINING_ROWS = 2**31 - 1, 2**20


@dataclass(frozen=True)
class Codec:
    """How the attributes that not all estimators share are stored and restored."""

    estimator: type[Any]
    put: Callable[[Output, Any], None]
    take: Callable[[Input, Any], Attributes]


def put_fitted(out: Output, estimator: Any) -> None:
    """Store the fitted attributes of an estimator."""
    check_is_fitted(estimator)
    out.fact("n_features", int(estimator.n_features_in_))
    out.fact("n_iter", int(estimator.n_iter_))
    put_labels(out.section("classes"), estimator.classes_)
    if hasattr(estimator, "feature_names_in_"):
        put_labels(out.section("feature_names"), estimator.feature_names_in_)
    CODECS[type(estimator).__name__].put(out, estimator)


def restore_fitted(source: Input, estimator: Any) -> None:
    """Set the fitted attributes of an estimator, which already has its parameters, from a file."""
    most = MOST_TRAINING_ROWS if getattr(estimator, "kernel", None) == "precomputed" else MOST_FEATURES
    estimator.n_features_in_ = source.integer("n_features", 1, most)
    estimator.n_iter_ = source.integer("n_iter", 0, 2**62)
    estimator.classes_ = take_labels(source.section("classes"))
    if not len(estimator.classes_) or not (estimator.classes_[:-1] < estimator.classes_[1:]).all():
        raise ModelFileError("its classes are not sorted, or there are none")
    if estimator.classes_.dtype.kind == "f" and not all(map(float.is_integer, estimator.classes_.tolist())):
        raise ModelFileError("its classes are numbers that are not integers")
    if source.has("feature_names.type"):
        names = take_labels(source.section("feature_names"), estimator.n_features_in_)
        if names.dtype != object:
            raise ModelFileError("the names of its features are not strings")
        estimator.feature_names_in_ = names
    vars(estimator).update(CODECS[type(estimator).__name__].take(source, estimator))


def _put_tree(out: Output, estimator: Any) -> None:
    put_trees(out.section("trees"), tuple(getattr(estimator, "trees_", [estimator.tree_])))
    put_tree_model(out.section("model"), estimator._model)


def _take_tree(source: Input, estimator: Any) -> Attributes:
    trees = take_trees(source.section("trees"), len(estimator.classes_))
    if len(trees) != 1:
        raise ModelFileError(f"it has {len(trees)} trees instead of one")
    model = take_tree_model(source.section("model"), trees, estimator.n_features_in_, estimator.kernel)
    return {"tree_": trees[0], "_model": model}


def _take_tree_of_machines(source: Input, estimator: Any) -> Attributes:
    found = _take_tree(source, estimator)
    if isinstance(found["_model"], ProbabilityTree):
        raise ModelFileError("its nodes have regressors where machines are expected")
    return found


def _put_margin_tree(out: Output, estimator: Any) -> None:
    _put_tree(out, estimator)
    put_records(out.section("records"), estimator.node_records_)
    if estimator._ranker is not None:
        put_ranker(out.section("ranker"), estimator._ranker)
        put_candidates(out.section("candidates"), estimator.candidates_)


def _take_margin_tree(source: Input, estimator: Any) -> Attributes:
    n_classes, n_features = len(estimator.classes_), estimator.n_features_in_
    is_ranked, n_deciding = source.has("ranker.width"), 0
    if not is_ranked and estimator.walk != "greedy":
        raise ModelFileError(f"walk={estimator.walk!r} ranks classes, but the file has no ranking")
    if is_ranked:
        decider, n_deciding = take_decider(source.section("ranker"), n_classes, n_features, estimator.kernel)
    trees = take_trees(source.section("trees"), n_classes)
    model = take_tree_model(source.section("model"), trees, n_features, estimator.kernel, n_deciding)
    if isinstance(model, ProbabilityTree) or n_classes < 2:
        raise ModelFileError("a margin tree has machines at its nodes, and at least one node")
    ranker = take_ranker(source.section("ranker"), model, decider) if is_ranked else None
    records = take_records(source.section("records"), n_classes - 1, n_classes)
    candidates = take_candidates(source.section("candidates")) if source.has("candidates.decide") else []
    return {
        "tree_": trees[0],
        "trees_": list(trees),
        "node_records_": records,
        "candidates_": candidates,
        "_model": model,
        "_ranker": ranker,
    }


def _put_filter_tree(out: Output, estimator: Any) -> None:
    _put_tree(out, estimator)
    out.array("n_node_rows", np.array([len(rows) for rows in estimator.node_rows_], dtype=np.int64))
    out.array("node_rows", np.concatenate(estimator.node_rows_).astype(np.int64))


def _take_filter_tree(source: Input, estimator: Any) -> Attributes:
    found = _take_tree_of_machines(source, estimator)
    rows = source.indices("node_rows", 2**62, None)
    start = source.starts("n_node_rows", len(estimator.classes_) - 1, len(rows)).tolist()
    return {**found, "node_rows_": [rows[i:j] for i, j in itertools.pairwise(start)]}


def _put_label_tree(out: Output, estimator: Any) -> None:
    _put_tree(out, estimator)
    out.array("confusion", estimator.confusion_)


def _take_label_tree(source: Input, estimator: Any) -> Attributes:
    n_classes = len(estimator.classes_)
    confusion = source.array("confusion", np.float64, n_classes, n_classes)
    return {**_take_tree_of_machines(source, estimator), "confusion_": confusion}


def _put_probability_tree(out: Output, estimator: Any) -> None:
    _put_tree(out, estimator)
    if estimator._stream_tree is not None:
        class_of_label = np.searchsorted(estimator.classes_, estimator._labels)
        put_state(out.section("stream"), estimator._stream_tree, estimator._regressors, class_of_label)


def _take_probability_tree(source: Input, estimator: Any) -> Attributes:
    found = _take_tree(source, estimator)
    if isinstance(found["_model"], ProbabilityTree) != (estimator.node == "online"):
        raise ModelFileError(f"node={estimator.node!r} is not what its machines were trained with")
    if estimator.node != "online":
        return {**found, "_stream_tree": None}
    tree, regressors, class_of_label = take_state(source.section("stream"), found["tree_"], estimator.n_features_in_)
    labels = estimator.classes_[class_of_label]
    return {**found, "_stream_tree": tree, "_regressors": regressors, "_labels": labels}


def _put_machines(out: Output, estimator: Any) -> None:
    put_machines(out.section("machines"), estimator._machines)


def _take_flat(source: Input, estimator: Any, n_machines: int) -> Attributes:
    machines = take_machines(source.section("machines"), n_machines, estimator.n_features_in_, estimator.kernel)
    return {"_machines": machines, "n_machines_": n_machines}


def _take_against_the_rest(source: Input, estimator: Any) -> Attributes:
    n_classes = _at_least_two(estimator)
    # Two classes have one machine.
    return _take_flat(source, estimator, n_classes if n_classes > 2 else 1)


def _take_pairs(source: Input, estimator: Any) -> Attributes:
    n_classes = _at_least_two(estimator)
    found = _take_flat(source, estimator, n_classes * (n_classes - 1) // 2)
    return {**found, "pairs_": np.array(list(itertools.combinations(range(n_classes), 2)))}


def _put_graph(out: Output, estimator: Any) -> None:
    _put_machines(out, estimator)
    out.array("order", estimator.order_.astype(np.int64))


def _take_graph(source: Input, estimator: Any) -> Attributes:
    found = _take_pairs(source, estimator)
    n_classes, pairs = len(estimator.classes_), found["pairs_"]
    machine_of = np.zeros((n_classes, n_classes), dtype=np.int64)
    machine_of[tuple(pairs.T)] = np.arange(len(pairs))
    order = source.permutation("order", n_classes)
    return {"_machines": found["_machines"], "_machine_of": machine_of, "order_": order}


def _put_code(out: Output, estimator: Any) -> None:
    _put_machines(out, estimator)
    out.array("code", estimator.code_)
    out.array("code_weights", estimator.code_weights_)


def _take_code(source: Input, estimator: Any) -> Attributes:
    n_classes = _at_least_two(estimator)
    code: AnyArray = source.array("code", np.int8, n_classes, None)
    n_machines = code.shape[1]
    if n_machines == 0 or code.min() < -1 or code.max() > 1:
        raise ModelFileError("its code has entries other than -1, 0 and 1, or none")
    weights = source.array("code_weights", np.float64, n_classes, n_machines)
    return {**_take_flat(source, estimator, n_machines), "code_": code, "code_weights_": weights}


def _at_least_two(estimator: Any) -> int:
    if len(estimator.classes_) < 2:
        raise ModelFileError("it has fewer than two classes")
    return len(estimator.classes_)


CODECS = {
    codec.estimator.__name__: codec
    for codec in (
        Codec(MarginTreeClassifier, _put_margin_tree, _take_margin_tree),
        Codec(FilterTreeClassifier, _put_filter_tree, _take_filter_tree),
        Codec(LabelTreeClassifier, _put_label_tree, _take_label_tree),
        Codec(ConditionalProbabilityTreeClassifier, _put_probability_tree, _take_probability_tree),
        Codec(OneVsRestSVC, _put_machines, _take_against_the_rest),
        Codec(AllTogetherSVC, _put_machines, _take_against_the_rest),
        Codec(OneVsOneSVC, _put_machines, _take_pairs),
        Codec(DecisionDAGClassifier, _put_graph, _take_graph),
        Codec(OutputCodeSVC, _put_code, _take_code),
    )
}
