"""Fitted models of every kind, small, and the rows that they are asked about."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from margintree import (
    AllTogetherSVC,
    ConditionalProbabilityTreeClassifier,
    DecisionDAGClassifier,
    FilterTreeClassifier,
    LabelTreeClassifier,
    MarginTreeClassifier,
    OneVsOneSVC,
    OneVsRestSVC,
    OutputCodeSVC,
)
from margintree.splits import AlternatingSplit, RelaxationSplit

WITH_KERNELS = (
    MarginTreeClassifier,
    FilterTreeClassifier,
    LabelTreeClassifier,
    OneVsRestSVC,
    OneVsOneSVC,
    DecisionDAGClassifier,
    OutputCodeSVC,
)
CASES = {
    **{
        f"{cls.__name__} {kernel}": cls(kernel, random_state=0)
        for kernel in ("linear", "rbf", "poly", "precomputed")
        for cls in WITH_KERNELS
    },
    **{
        f"CPT svm {kernel}": ConditionalProbabilityTreeClassifier(kernel, node="svm", random_state=0)
        for kernel in ("linear", "rbf", "poly", "precomputed")
    },
    "CPT online": ConditionalProbabilityTreeClassifier(random_state=0),
    "CPT greedy": ConditionalProbabilityTreeClassifier(walk="greedy", random_state=0),
    "all together": AllTogetherSVC(random_state=0),
    "joint": LabelTreeClassifier(joint=True, random_state=0),
    **{
        f"{decide} {kernel}": MarginTreeClassifier(kernel, decide=decide, random_state=0)
        for decide in ("paths", "pairs", "rest")
        for kernel in ("linear", "rbf", "precomputed")
    },
    "two trees": MarginTreeClassifier(n_trees=2, beam_width=2, beam_gap=2, decide="rest", random_state=0),
    "two trees pairs": MarginTreeClassifier("rbf", n_trees=2, beam_width=2, decide="pairs", random_state=0),
    "all paths": MarginTreeClassifier(walk="all", decide="rest", n_finalists=3, random_state=0),
    "all paths pairs": MarginTreeClassifier(walk="all", decide="pairs", random_state=0),
    "all paths rbf": MarginTreeClassifier("rbf", walk="all", decide="rest", random_state=0),
    "greedy": MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0),
    "wide beam": MarginTreeClassifier(beam_width=10**6, random_state=0),
    "split object": MarginTreeClassifier(
        split=AlternatingSplit(relaxation=RelaxationSplit(max_planes=3)), random_state=0
    ),
    "class weights": OneVsRestSVC(class_weight={0: 1.5, 1: 1, 2: 2.0, 3: 1, 4: 1}, random_state=0),
    "class order": DecisionDAGClassifier(class_order=np.array([4, 2, 0, 1, 3]), random_state=0),
    "code": OutputCodeSVC(code=np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [0, 1]]), random_state=0),
}


def example_rows(n_rows: int = 60, n_classes: int = 5, n_features: int = 40) -> tuple[Any, Any]:
    """Return rows in which every class has columns of its own among many that it lacks."""
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % n_classes
    own = rng.permuted(np.tile(np.arange(n_features), (n_classes, 1)), axis=1)[:, :4]
    X = np.zeros((n_rows, n_features))
    X[np.arange(n_rows)[:, None], own[y]] = rng.random((n_rows, 4)) + 0.5
    X[rng.random(X.shape) < 2.0 / n_features] = 0.3
    return X, y


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted estimator, and rows that it can predict."""

    model: Any
    X: Any
    y: Any


@cache
def fitted_case(name: str, layout: str = "dense") -> Fitted:
    """Return the fitted model of a case, trained on rows of a layout; "wide" ones are sparse with many columns."""
    model = clone(CASES[name])
    X, y = example_rows(n_features=400 if layout == "wide" else 40)
    if model.kernel == "precomputed":
        X = (X @ X.T + 1.0) ** 2
    elif layout != "dense":
        X = (sp.csr_matrix if layout == "csr_matrix" else sp.csr_array)(X)
    return Fitted(model.fit(X, y), X, y)


def answers(model: Any, X: Any) -> dict[str, Any]:
    """Return what a model says of rows, in every way that it can."""
    found = {"predict": model.predict(X), "n_evaluations": model.n_evaluations(X)}
    for name in ("predict_proba", "decision_function"):
        if hasattr(model, name):
            found[name] = getattr(model, name)(X)
    if hasattr(model, "decision_path"):
        found["decision_path"] = model.decision_path(X).toarray()
    if hasattr(model, "predict_top_k"):
        found["top classes"], found["top probabilities"] = model.predict_top_k(X, 3)
    if hasattr(model, "single_instance"):
        one = model.single_instance()
        rows = X.toarray() if sp.issparse(X) else X
        found["one by one"] = np.array([one.predict(row) for row in rows[:10]])
    return found
