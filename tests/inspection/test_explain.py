"""``explain`` tells what ``predict`` does."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hostile_labels import HOSTILE
from matplotlib.text import Text
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler, scale

from margintree import ConditionalProbabilityTreeClassifier, LabelTreeClassifier, MarginTreeClassifier
from margintree.inspection import Explanation, explain
from margintree.prediction.decider import Decider

WALKS = [
    {"walk": "greedy"},
    {"walk": "greedy", "calibration_folds": 0},
    {"decide": "paths"},
    {"decide": "pairs"},
    {"decide": "rest"},
    {"walk": "all", "decide": "pairs", "n_finalists": 4},
]


def test_set(name):
    X, y = {"digits": load_digits, "iris": load_iris, "wine": load_wine}[name](return_X_y=True)
    X = X / 16.0 if name == "digits" else scale(X)
    return train_test_split(X[:600], y[:600], test_size=0.4, random_state=0, stratify=y[:600])


test_set.__test__ = False


@pytest.mark.parametrize("name", ["digits", "iris", "wine"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: "-".join(map(str, walk.values())))
def test_every_row_is_explained_as_it_is_predicted(name, kernel, walk):
    X, X_test, y, _ = test_set(name)
    model = MarginTreeClassifier(kernel, C=10, random_state=0, **walk).fit(X, y)
    explanations = [model.explain(row, n_features=0) for row in X_test]
    np.testing.assert_array_equal([e.prediction for e in explanations], model.predict(X_test))
    if walk.get("walk") == "greedy":
        assert all(e.decided_by == "walk" for e in explanations)
        return
    np.testing.assert_allclose(
        [e.probability for e in explanations], model.predict_proba(X_test).max(axis=1), rtol=1e-6
    )
    assert {e.decided_by for e in explanations} == {walk["decide"]}
    for e in explanations:
        scores = np.array([f.score for f in e.finalists])
        shares = np.array([f.probability for f in e.finalists])
        # What is said to have decided is what the probabilities are made of.
        np.testing.assert_allclose(shares / shares[0], np.exp(scores - scores[0]), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("kernel", ["poly", "precomputed", "callable", "sparse rbf", "sparse linear"])
def test_rows_of_every_kernel_and_layout_are_explained(kernel):
    X, X_test, y, _ = test_set("wine")
    if kernel == "precomputed":
        X, X_test = X @ X.T, X_test @ X.T
    elif kernel.startswith("sparse"):
        X, X_test = sp.csr_matrix(X), sp.csr_matrix(X_test)
    name = {"callable": lambda A, B: A @ B.T}.get(kernel, kernel.removeprefix("sparse "))
    model = MarginTreeClassifier(name, decide="pairs", random_state=0).fit(X, y)
    explanations = [model.explain(X_test[[i]]) for i in range(X_test.shape[0])]
    np.testing.assert_array_equal([e.prediction for e in explanations], model.predict(X_test))
    assert all(bool(step.features) == (kernel == "sparse linear") for e in explanations for step in e.path)


def test_numbers_that_make_no_sense_are_refused(digits):
    with pytest.raises(ValueError, match=r"n_listed must be at least 1\. Got 0"):
        digits[0].explain(digits[1][0], n_listed=0)
    with pytest.raises(ValueError, match=r"n_features must be at least 0\. Got -1"):
        digits[0].explain(digits[1][0], n_features=-1)


def test_rest_on_lists_is_explained_as_it_is_predicted():
    X, X_test, y, _ = test_set("digits")
    model = MarginTreeClassifier(C=10, decide="rest", n_finalists=3, random_state=0).fit(X, y)
    explanations = [model.explain(row) for row in X_test[:100]]
    np.testing.assert_array_equal([e.prediction for e in explanations], model.predict(X_test[:100]))
    assert all(e.is_path_followed and e.n_finalists <= 3 for e in explanations)
    assert all(e.comparisons[0].source == "scores" for e in explanations if e.n_finalists > 1)


def test_no_path_is_said_to_be_followed_where_none_is():
    X, X_test, y, _ = test_set("digits")
    model = MarginTreeClassifier(decide="rest", random_state=0).fit(X, y)
    is_flat = model._ranker.flat is not None
    explanation = model.explain(X_test[0])
    assert explanation.is_path_followed != is_flat
    assert ("not followed" in str(explanation)) == is_flat


def test_several_trees_are_explained_as_they_are_predicted():
    X, X_test, y, _ = test_set("digits")
    model = MarginTreeClassifier(C=10, decide="pairs", n_trees=3, random_state=0).fit(X, y)
    explanations = [model.explain(row) for row in X_test[:100]]
    np.testing.assert_array_equal([e.prediction for e in explanations], model.predict(X_test[:100]))
    assert "path in the first of 3 trees" in str(explanations[0])


def test_the_path_has_the_values_sides_and_classes_of_its_nodes(digits):
    model, X, _ = digits
    tree = model.tree_
    for row, path in zip(X[:50], model.decision_path(X[:50]).toarray(), strict=True):
        explanation = model.explain(row, n_features=64)
        steps = explanation.path
        assert [s.node for s in steps] == np.flatnonzero(path)[:-1].tolist()
        for step in steps:
            value = row @ model.node_coef(step.node) + model.node_intercept(step.node)
            assert step.decision_value == pytest.approx(value, abs=1e-5)
            sign = 1.0 if step.side == "left" else -1.0
            total = sum(f.contribution for f in step.features) + sign * model.node_intercept(step.node)
            assert total == pytest.approx(sign * step.decision_value, abs=1e-5)
            child = (tree.children_left if step.side == "left" else tree.children_right)[step.node]
            assert step.kept == tree.classes_below(child).tolist()
            assert sorted(step.kept + step.given_up) == tree.classes_below(step.node).tolist()
            assert step.margin == model.node_records_[np.searchsorted(tree.internal_nodes, step.node)].margin
        product = np.prod([step.probability for step in steps])
        assert explanation.finalists[0].path_probability == pytest.approx(product, rel=1e-6)


def test_comparisons_of_pairs_are_those_that_machines_were_asked_for(digits):
    model, X, _ = digits
    n_compared = [sum(c.source == "machine" for c in model.explain(row).comparisons) for row in X[:100]]
    ranker = replace(model._ranker, decider=Decider("paths"))
    n_nodes = ranker.winners(X[:100])[1]
    np.testing.assert_array_equal(n_compared, model.n_evaluations(X[:100]) - n_nodes)
    assert sum(n_compared) > 0


def test_the_scores_of_pairs_are_those_that_the_comparisons_make(digits):
    model, X, _ = digits
    for row in X[:100]:
        explanation = model.explain(row)
        against = dict.fromkeys([f.label for f in explanation.finalists], 0.0)
        for c in explanation.comparisons:
            against[c.winner] += np.exp(-c.log_odds)
            against[c.loser] += np.exp(c.log_odds)
        weight = model._ranker.decider.path_weight
        for f in explanation.finalists if explanation.n_finalists > 1 else ():
            assert f.score == pytest.approx(weight * np.log(f.path_probability) - np.log1p(against[f.label]), rel=1e-6)


def test_features_have_the_names_of_the_frame_the_vectorizer_or_the_caller():
    iris = load_iris(as_frame=True)
    model = MarginTreeClassifier(random_state=0).fit(iris.data, iris.target)
    for row in (iris.data.iloc[[0]], iris.data.iloc[0]):
        assert {f.feature for f in model.explain(row).path[0].features} <= set(iris.feature_names)
    renamed = model.explain(iris.data.iloc[[0]], feature_names=list("abcd"))
    assert {f.feature for f in renamed.path[0].features} <= set("abcd")

    texts = ["red apple", "green apple", "fast car", "slow car", "tall tree", "old tree"] * 5
    words = CountVectorizer()
    model = MarginTreeClassifier(random_state=0).fit(
        words.fit_transform(texts), ["fruit", "fruit", "car", "car", "tree", "tree"] * 5
    )
    explanation = model.explain(words.transform(["fast car"]), feature_names=words)
    assert explanation.prediction == "car"
    assert explanation.path[0].features[0].feature in {"fast", "car"}
    with pytest.raises(ValueError, match=r"one name for each of the 9 features\. Got 2 names"):
        model.explain(words.transform(["fast car"]), feature_names=["a", "b"])


def test_a_pipeline_explains_what_it_is_given():
    texts = ["red apple", "green apple", "fast car", "slow car", "tall tree", "old tree"] * 5
    labels = ["fruit", "fruit", "car", "car", "tree", "tree"] * 5
    pipeline = make_pipeline(CountVectorizer(), MarginTreeClassifier(random_state=0)).fit(texts, labels)
    explanation = explain(pipeline, "fast car")
    assert explanation.prediction == "car"
    assert explanation.path[0].features[0].feature in {"fast", "car"}

    iris = load_iris(as_frame=True)
    scaled = make_pipeline(StandardScaler(), MarginTreeClassifier(random_state=0)).fit(iris.data, iris.target)
    explanations = [explain(scaled, iris.data.iloc[[i]]) for i in range(0, 150, 10)]
    np.testing.assert_array_equal([e.prediction for e in explanations], scaled.predict(iris.data[::10]))
    assert {f.feature for f in explanations[0].path[0].features} <= set(iris.feature_names)

    unnamed = make_pipeline(FunctionTransformer(np.log1p), MarginTreeClassifier(random_state=0)).fit(
        iris.data.values, iris.target
    )
    assert explain(unnamed, iris.data.values[0]).path[0].features[0].feature.startswith("x")
    alone = make_pipeline(MarginTreeClassifier(random_state=0)).fit(iris.data, iris.target)
    assert explain(alone, iris.data.iloc[[0]]).prediction == 0


def test_rows_come_dense_sparse_and_as_lists(digits):
    model, X, _ = digits
    wanted = model.predict(X[:1])[0]
    for row in (X[0], X[:1], X[0].tolist(), sp.csr_matrix(X[:1]), sp.csr_array(X[:1])):
        assert model.explain(row).prediction == wanted


@pytest.mark.parametrize("rows", [np.zeros((2, 64)), np.zeros((0, 64)), np.zeros((1, 1, 64))])
def test_several_rows_are_refused(digits, rows):
    with pytest.raises(ValueError, match=r"explain takes one row. Got an array of shape \([\d, ]+\)"):
        digits[0].explain(rows)


def test_other_trees_of_machines_are_explained_and_regressors_refused():
    X, y = load_iris(return_X_y=True)
    model = LabelTreeClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal([explain(model, row).prediction for row in X], model.predict(X))
    with pytest.raises(TypeError, match="support vector machines at the nodes"):
        explain(ConditionalProbabilityTreeClassifier(random_state=0).fit(X, y), X[0])


def test_the_table_names_every_node_and_finalist(digits):
    model, X, _ = digits
    explanation = max((model.explain(row) for row in X[:100]), key=lambda e: e.n_finalists)
    text = str(explanation)
    assert text.startswith(f"prediction: {explanation.prediction}, probability {explanation.probability:.3f}")
    for step in explanation.path:
        assert f"[{step.node}] {step.side}: decision value {step.decision_value:+.3g}" in text
    for finalist in explanation.finalists:
        assert f"\n  {finalist.label} " in text
    assert "decided by one-vs-one machines" in text


def test_names_of_classes_are_shown_and_labels_stay(digits):
    model, X, _ = digits
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    explanation = max((model.explain(row, class_names=names) for row in X[:100]), key=lambda e: e.n_finalists)
    assert str(explanation).startswith(f"prediction: {names[explanation.prediction]}, ")
    assert set(explanation.path[0].kept) <= set(range(10))
    assert "class_names" not in explanation.to_dict()
    figure = explanation.plot()
    shown = [text.get_text() for text in figure.axes[1].get_yticklabels()]
    assert shown == [names[f.label] for f in explanation.finalists[:8]]
    with pytest.raises(ValueError, match=r"one name for each of the 10 classes\. Got 1"):
        model.explain(X[0], class_names=["zero"])


def test_json_holds_the_dictionary(digits):
    model, X, _ = digits
    explanation = model.explain(X[0])
    again = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
    assert again["prediction"] == explanation.prediction
    assert again["path"][0]["given_up"] == explanation.path[0].given_up
    assert isinstance(explanation, Explanation)


def test_the_picture_has_a_panel_for_each_part(digits):
    model, X, _ = digits
    explanation = max((model.explain(row) for row in X[:100]), key=lambda e: e.n_finalists)
    figure = explanation.plot()
    assert len(figure.axes) == 3
    assert [t.get_text() for t in figure.axes[1].get_yticklabels()] == [str(f.label) for f in explanation.finalists[:8]]
    with pytest.raises(ValueError, match=r"has 3 panels: give as many axes\. Got 1"):
        explanation.plot(axes=figure.axes[:1])


def test_long_names_do_not_leave_the_picture(digits):
    model, X, _ = digits
    names = [f"a class with quite a long name, number {k}" for k in range(10)]
    features = [f"a feature with quite a long name, number {j}" for j in range(64)]
    explanations = [model.explain(row, feature_names=features, class_names=names) for row in X[:100]]
    figure = max(explanations, key=lambda e: e.n_finalists).plot()
    figure.canvas.draw()
    # Ticks beyond the limits of an axis have texts, too, which are not drawn.
    ticks = [label for ax in figure.axes for label in ax.get_xticklabels()]
    shown = [text for text in figure.findobj(Text) if text.get_text() and text not in ticks]
    boxes = np.array([text.get_window_extent().extents for text in shown])
    assert len(shown) > 20
    assert boxes[:, 0].min() >= 0
    assert boxes[:, 2].max() <= figure.bbox.width


def test_hostile_labels_are_text(hostile):
    model, X, _ = hostile
    figure_texts = []
    for row in X[:4]:
        explanation = model.explain(row, feature_names=[f"${j}_{{" for j in range(64)])
        assert "\u202e" not in str(explanation)
        assert "two\nlines" not in str(explanation)
        figure = explanation.plot()
        figure.canvas.draw()
        figure_texts += [text for ax in figure.axes for text in [*ax.texts, *ax.get_yticklabels()]]
    dollars = [text for text in figure_texts if "$" in text.get_text()]
    assert dollars
    assert not any(text.get_parse_math() or text.get_usetex() for text in dollars)


def test_frames_of_one_row_and_unfitted_models():
    with pytest.raises(AttributeError, match="not fitted"):
        MarginTreeClassifier().explain([0.0])
    X = pd.DataFrame({"length": [0.0, 1.0, 4.0, 5.0]})
    model = MarginTreeClassifier(random_state=0).fit(X, HOSTILE[[0, 0, 1, 1]])
    assert model.explain(X.iloc[3]).prediction == HOSTILE[1]
