"""A conditional probability tree learns on after loading as if it had never been away."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from fitted_models import example_rows

from margintree import ConditionalProbabilityTreeClassifier, load_model, save_model


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("first", [1, 20, 60])
def test_learning_goes_on_as_without_the_file(layout, first, tmp_path):
    X, y = example_rows(120, 9)
    model = ConditionalProbabilityTreeClassifier(random_state=0).partial_fit(layout(X[:first]), y[:first])
    save_model(model, tmp_path / "model")
    loaded, pickled = load_model(tmp_path / "model"), pickle.loads(pickle.dumps(load_model(tmp_path / "model")))
    for one in (model, loaded, pickled):
        one.partial_fit(layout(X[first:90]), y[first:90]).partial_fit(layout(X[90:]), y[90:])
    for one in (loaded, pickled):
        assert one.tree_ == model.tree_
        np.testing.assert_array_equal(one.predict_proba(layout(X)), model.predict_proba(layout(X)))
    save_model(model, tmp_path / "one")
    save_model(loaded, tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
