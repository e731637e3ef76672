"""A file that lacks what prediction needs, or holds what saving cannot, is refused when it is loaded."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from margintree import (
    ConditionalProbabilityTreeClassifier,
    DecisionDAGClassifier,
    FilterTreeClassifier,
    MarginTreeClassifier,
    ModelFileError,
    OneVsOneSVC,
    OneVsRestSVC,
    load_model,
)
from margintree.model_file import container
from margintree.model_file.files import as_contents


def changed_file(tmp_path, estimator, change, *, is_sparse=False):
    """Save a fitted estimator with its description and its arrays changed, and sealed."""
    X, y = load_iris(return_X_y=True)
    X = sp.csr_array(X) if is_sparse else X @ X.T if estimator.kernel == "precomputed" else X
    arrays, metadata = as_contents(estimator.fit(X, y))
    arrays = {name: array.copy() for name, array in arrays.items()}
    description = json.loads(metadata["model"])
    change(description, arrays)
    description["sha256"] = {key: container.digest_of(array) for key, array in arrays.items()}
    path = tmp_path / "model.margintree"
    with path.open("wb") as stream:
        container.write(stream, arrays, {**metadata, "model": json.dumps(description)})
    return path


def test_a_walk_that_ranks_needs_what_ranks(tmp_path):
    def walk_by_beam(description, arrays):
        description["parameters"]["walk"] = "beam"

    model = MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0)
    path = changed_file(tmp_path, model, walk_by_beam)
    with pytest.raises(ModelFileError, match="walk='beam'"):
        load_model(path)


def test_a_file_without_sigmoids_offers_no_probabilities_whatever_its_parameters_say(tmp_path):
    def claim_calibration(description, arrays):
        description["parameters"]["calibration_folds"] = "auto"

    model = MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0)
    loaded = load_model(changed_file(tmp_path, model, claim_calibration))
    for name in ("predict_proba", "predict_top_k", "decision_function"):
        assert not hasattr(loaded, name)


@pytest.mark.parametrize(
    "model",
    [FilterTreeClassifier(random_state=0), ConditionalProbabilityTreeClassifier(node="svm", random_state=0)],
    ids=lambda model: type(model).__name__,
)
def test_methods_of_one_tree_have_one(tmp_path, model):
    def twice(description, arrays):
        n_nodes = arrays["trees.children_left"].shape[1]
        for name in ("children_left", "children_right", "leaf_class"):
            arrays[f"trees.{name}"] = np.repeat(arrays[f"trees.{name}"], 2, axis=0)
        for name in ("n_weights", "scale", "intercept", "cells"):
            arrays[f"model.table.{name}"] = np.tile(arrays[f"model.table.{name}"], 2)
        assert arrays["model.table.scale"].shape == (2 * n_nodes,)

    path = changed_file(tmp_path, model, twice)
    with pytest.raises(ModelFileError, match="2 trees instead of one"):
        load_model(path)


def test_numbers_beyond_their_type_are_refused_as_such(tmp_path):
    def overflow(description, arrays):
        description["parameters"]["class_weight"] = {"array": [2**70], "dtype": "int64"}

    path = changed_file(tmp_path, OneVsRestSVC(random_state=0), overflow)
    with pytest.raises(ModelFileError, match="too large"):
        load_model(path)


@pytest.mark.parametrize("last", [2.5, np.inf])
def test_classes_that_are_numbers_are_whole(tmp_path, last):
    def change(description, arrays):
        arrays["classes.values"] = np.array([0.0, 1.0, last])

    path = changed_file(tmp_path, OneVsRestSVC(random_state=0), change)
    with pytest.raises(ModelFileError, match="not integers"):
        load_model(path)


KERNEL_MODELS = [
    (cls, kernel)
    for cls in (MarginTreeClassifier, OneVsRestSVC, OneVsOneSVC, DecisionDAGClassifier, FilterTreeClassifier)
    for kernel in ("rbf", "poly")
]


@pytest.mark.parametrize(("cls", "kernel"), KERNEL_MODELS)
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308])
def test_support_vectors_have_finite_kernel_values(tmp_path, cls, kernel, is_sparse, value):
    def spoil(description, arrays):
        # 1e308 is finite; its square is not.
        [name] = [name for name in arrays if name.endswith("vectors.data" if is_sparse else "vectors.values")]
        arrays[name].flat[7] = value

    path = changed_file(tmp_path, cls(kernel, random_state=0), spoil, is_sparse=is_sparse)
    with pytest.raises(ModelFileError, match=r"not finite|no finite value"):
        load_model(path)


@pytest.mark.parametrize(("cls", "kernel"), [*KERNEL_MODELS, (OneVsRestSVC, "precomputed")])
def test_coefficients_are_finite(tmp_path, cls, kernel):
    def spoil(description, arrays):
        [name] = [name for name in arrays if name.endswith(("coefficients", "coefficients.data"))]
        arrays[name][3] = np.nan

    path = changed_file(tmp_path, cls(kernel, random_state=0), spoil)
    with pytest.raises(ModelFileError, match=r"coefficients.* not finite"):
        load_model(path)


@pytest.mark.parametrize("fact", [{"gamma": 1e308}, {"degree": 10**6}, {"coef0": -1e6, "degree": 1.5}])
def test_a_polynomial_kernel_has_finite_values(tmp_path, fact):
    def spoil(description, arrays):
        description["facts"].update({f"machines.function.{name}": value for name, value in fact.items()})

    path = changed_file(tmp_path, OneVsOneSVC("poly", random_state=0), spoil)
    with pytest.raises(ModelFileError, match="poly kernel has no finite value"):
        load_model(path)


@pytest.mark.parametrize("cls", [OneVsRestSVC, OneVsOneSVC, DecisionDAGClassifier])
def test_machines_that_overflow_give_one_row_a_label_as_they_do_a_batch(tmp_path, cls):
    def enlarge(description, arrays):
        arrays["machines.coefficients.data"][:] = np.sign(arrays["machines.coefficients.data"]) * 1e307

    X, _ = load_iris(return_X_y=True)
    path = changed_file(tmp_path, cls("precomputed", random_state=0), enlarge)
    model, kernel_values = load_model(path), X @ X.T
    with np.errstate(over="ignore", invalid="ignore"):
        assert set(model.predict(kernel_values[:3])) <= {0, 1, 2}
        assert model.single_instance().predict(kernel_values[0]) in {0, 1, 2}
        assert model.single_instance().predict(np.arange(150), kernel_values[0]) in {0, 1, 2}


def test_a_file_that_does_not_fit_into_memory_is_refused_as_such(tmp_path, monkeypatch):
    def exhausted(*arguments):
        raise MemoryError

    path = changed_file(tmp_path, OneVsRestSVC(random_state=0), lambda description, arrays: None)
    monkeypatch.setattr("margintree.model_file.files.restore_fitted", exhausted)
    with pytest.raises(ModelFileError, match="does not fit into memory"):
        load_model(path)


def test_a_degree_below_one_is_refused(tmp_path):
    def lower(description, arrays):
        description["facts"]["machines.function.degree"] = 0.5

    path = changed_file(tmp_path, OneVsOneSVC("poly", random_state=0), lower)
    with pytest.raises(ModelFileError, match=r"degree.* is 0\.5"):
        load_model(path)
