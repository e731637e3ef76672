"""Parameters of splits, the weights of a node, and what a method says that is not there."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV

from margintree import LabelTreeClassifier, MarginTreeClassifier
from margintree.splits import SPLITS, AlternatingSplit, BestFirstSplit

X, y = load_iris(return_X_y=True)


@pytest.mark.parametrize("split", ["best_first", BestFirstSplit(list_up_to=7)])
def test_a_grid_search_tries_parameters_of_the_split(split):
    search = GridSearchCV(
        MarginTreeClassifier(split=split, walk="greedy", calibration_folds=0), {"split__patience": [2, None]}, cv=2
    )
    search.fit(X, y)
    assert {params["split__patience"] for params in search.cv_results_["params"]} == {2, None}
    assert search.best_estimator_.split.patience == search.best_params_["split__patience"]
    assert search.best_estimator_.split.list_up_to == (11 if split == "best_first" else 7)
    assert SPLITS["best_first"].patience == 25, "the split that all estimators share was changed"


def test_a_split_and_its_parameters_can_be_set_together():
    model = MarginTreeClassifier().set_params(split=AlternatingSplit(), split__n_directions=7, C=3)
    assert (model.split, model.C) == (AlternatingSplit(n_directions=7), 3)


def test_deep_parameters_are_those_of_the_split_and_survive_a_clone():
    model = clone(MarginTreeClassifier(split=BestFirstSplit(patience=9)))
    assert model.get_params()["split__patience"] == 9
    assert "split__patience" not in model.get_params(deep=False)
    assert not any(name.startswith("split__") for name in MarginTreeClassifier().get_params())


def test_an_unknown_parameter_of_a_split_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'depth' for the split BestFirstSplit.*list_up_to"):
        MarginTreeClassifier().set_params(split__depth=3)
    with pytest.raises(ValueError, match="at least 1"):
        MarginTreeClassifier().set_params(split__patience=0)


def test_probabilities_without_calibration_say_what_to_do():
    model = MarginTreeClassifier(walk="greedy", calibration_folds=0).fit(X, y)
    for name in ("predict_proba", "predict_top_k", "decision_function"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match="Set calibration_folds='auto' and fit again"):
            getattr(model, name)


def test_top_k_has_a_default():
    model = MarginTreeClassifier(random_state=0).fit(X, y)
    classes, probabilities = model.predict_top_k(X)
    assert classes.shape == probabilities.shape == (len(X), 3)
    one, _ = model.single_instance().predict_top_k(X[0])
    np.testing.assert_array_equal(one, classes[0])


@pytest.mark.parametrize("estimator", [MarginTreeClassifier, LabelTreeClassifier])
def test_weights_of_the_nodes_lead_every_row_to_its_leaf(estimator):
    model = estimator(random_state=0, **({"walk": "greedy"} if estimator is MarginTreeClassifier else {})).fit(X, y)
    node = np.zeros(len(X), dtype=int)
    for i in range(len(X)):
        while not model.tree_.is_leaf(node[i]):
            value = X[i] @ model.node_coef(node[i]) + model.node_intercept(node[i])
            node[i] = (model.tree_.children_left if value > 0 else model.tree_.children_right)[node[i]]
    np.testing.assert_array_equal(model.classes_[model.tree_.leaf_class[node]], model.predict(X))


def test_weights_of_leaves_kernels_and_unknown_nodes_are_refused():
    model = MarginTreeClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="Got the leaf"):
        model.node_coef(int(model.tree_.leaf_of_class[0]))
    with pytest.raises(IndexError, match="node must be in"):
        model.node_intercept(99)
    with pytest.raises(AttributeError, match="fit with kernel='linear'"):
        MarginTreeClassifier("rbf", random_state=0).fit(X, y).node_coef(0)
