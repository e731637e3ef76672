"""A tree over the classes that is known beforehand."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import cross_val_score

from margintree import ClassTree, MarginTreeClassifier, load_model, save_model

NAMES = np.array(["setosa", "versicolor", "virginica"])


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, NAMES[y]


def given(tree, **parameters):
    return MarginTreeClassifier(tree=tree, walk="greedy", calibration_folds=0, random_state=0, **parameters)


@pytest.mark.parametrize(
    "tree",
    [
        [["setosa", "virginica"], "versicolor"],
        (("setosa", "virginica"), "versicolor"),
        [[np.str_("setosa"), ["virginica"]], "versicolor"],
        "((setosa,virginica),versicolor);",
        ClassTree.from_nested(((0, 2), 1)),
    ],
    ids=["lists", "tuples", "numpy labels and groups of one", "Newick", "ClassTree"],
)
def test_the_tree_is_the_given_one(iris, tree):
    assert given(tree).fit(*iris).tree_.to_nested() == ((0, 2), 1)


def test_a_group_of_many_is_halved_in_its_order():
    X, y = load_digits(return_X_y=True)
    model = given([9, 8, 7, [6, 5, 4, 3, 2, 1, 0]]).fit(X[:300], y[:300])
    assert model.tree_.to_nested() == ((9, (8, 7)), ((6, (5, 4)), ((3, 2), (1, 0))))


def test_records_describe_the_given_nodes(iris):
    records = given("((setosa,virginica),versicolor);").fit(*iris).node_records_
    assert [(r.classes_left, r.classes_right) for r in records] == [((0, 2), (1,)), ((0,), (2,))]
    assert all(r.lower_bound <= r.objective for r in records)


def test_the_learned_tree_given_again_is_the_same_model(iris):
    X, y = iris
    learned = MarginTreeClassifier(random_state=0).fit(X, y)
    again = MarginTreeClassifier(tree=learned.tree_, random_state=0).fit(X, y)
    assert again.tree_ == learned.tree_
    np.testing.assert_allclose(again.predict_proba(X), learned.predict_proba(X), atol=0.02)
    np.testing.assert_array_equal(again.predict(X), learned.predict(X))


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([["setosa"], "versicolor"], "3 classes at exactly one leaf.*'virginica' is missing in it"),
        (["setosa", ["versicolor", "rose"]], "'virginica' is missing in it; 'rose' is not among the classes"),
        (["setosa", ["setosa", "versicolor", "virginica"]], "'setosa' is in it more than once"),
        (["setosa", []], "Got an empty list"),
        ("(setosa,versicolor;", "parentheses must match"),
        ("(setosa,(Virginica,versicolor));", "'Virginica' is not among the classes"),
        (ClassTree.from_nested((0, 1)), "3 classes in y. Got a ClassTree of 2 classes"),
    ],
)
def test_a_tree_that_does_not_fit_the_classes_is_refused(iris, tree, message):
    with pytest.raises(ValueError, match=message):
        given(tree).fit(*iris)


def test_several_trees_are_refused(iris):
    with pytest.raises(ValueError, match=r"n_trees=3 grows several trees.*Set n_trees=1"):
        MarginTreeClassifier(tree="(setosa,(virginica,versicolor));", n_trees=3).fit(*iris)


def test_clones_and_cross_validation_keep_the_tree(iris):
    model = given(ClassTree.from_nested(((0, 2), 1)))
    assert clone(model).get_params()["tree"] == model.tree
    assert cross_val_score(model, *iris, cv=3, error_score="raise").mean() > 0.6


@pytest.mark.parametrize(
    "tree",
    [[["setosa", "virginica"], "versicolor"], "((setosa,virginica),versicolor);", ClassTree.from_nested(((0, 2), 1))],
)
def test_a_saved_model_has_its_tree(iris, tree, tmp_path):
    model = given(tree).fit(*iris)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.tree == tree
    assert type(loaded.tree) is type(tree)
    np.testing.assert_array_equal(loaded.predict(iris[0]), model.predict(iris[0]))
