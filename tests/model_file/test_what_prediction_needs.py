"""A file that lacks what prediction needs, or holds what saving cannot, is refused when it is loaded."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_iris

from margintree import (
    ConditionalProbabilityTreeClassifier,
    FilterTreeClassifier,
    MarginTreeClassifier,
    ModelFileError,
    OneVsRestSVC,
    load_model,
)
from margintree.model_file import container
from margintree.model_file.files import as_contents


def changed_file(tmp_path, estimator, change):
    """Save a fitted estimator with its description and its arrays changed, and sealed."""
    X, y = load_iris(return_X_y=True)
    arrays, metadata = as_contents(estimator.fit(X, y))
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
    with pytest.raises(ModelFileError, match="2 trees where there is one"):
        load_model(path)


def test_numbers_beyond_their_type_are_refused_as_such(tmp_path):
    def overflow(description, arrays):
        description["parameters"]["class_weight"] = {"array": [2**70], "dtype": "int64"}

    path = changed_file(tmp_path, OneVsRestSVC(random_state=0), overflow)
    with pytest.raises(ModelFileError, match="too large"):
        load_model(path)
