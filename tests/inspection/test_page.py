"""What is written into the page: the tree as it was fitted, and rows as the estimator sees them."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from reading_pages import data_of, exported
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from margintree import (
    ClassTree,
    ConditionalProbabilityTreeClassifier,
    FilterTreeClassifier,
    LabelTreeClassifier,
    MarginTreeClassifier,
    OneVsRestSVC,
)
from margintree.inspection import export_html
from margintree.inspection.labels import one_line
from margintree.inspection.page_rows import N_ROWS

HOSTILE = [
    "</script><script>document.title='broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    "<!--",
    "a & b &amp; c",
    'quote " and \\ and \\u003c',
    "line\nbreak\ttab",
    "\x1b[31mred",
    "line\u2028separator",
    "שלום עולם",
    "\u202eoverride",
    "lone \ud800 surrogate",
    "",
]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    return X[:600], y[:600], X[600:900], y[600:900]


@pytest.fixture(scope="module")
def model(digits):
    X, y, _, _ = digits
    return MarginTreeClassifier(walk="all", decide="paths", random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def data(model, digits, tmp_path_factory):
    return exported(tmp_path_factory.mktemp("digits"), model, *digits[2:])


def test_the_tree_and_its_records_are_those_of_the_estimator(model, data):
    assert data["leaves"] == model.tree_.leaf_class.tolist()
    assert data["classes"] == [str(k) for k in range(10)]
    for name, field in (("margin", "margin"), ("bound", "lower_bound"), ("objective", "objective")):
        expected = [getattr(record, field) for record in model.node_records_]
        np.testing.assert_allclose(data["nodes"][name], expected, rtol=1e-3)


def test_the_confusion_matrix_counts_all_rows(model, data, digits):
    _, _, X, y = digits
    given = np.zeros((10, 10), dtype=int)
    for own, predicted, count in np.reshape(data["confusion"], (-1, 3)):
        given[own, predicted] = count
    np.testing.assert_array_equal(given, confusion_matrix(y, model.predict(X)))


def node_values(model, X):
    """Return the decision values of all nodes, from the weights alone."""
    table, nodes = model._model.table, model.tree_.internal_nodes.astype(np.int64)
    return X @ table.relative_weights(nodes) * table.scale[nodes] + table.intercept[nodes]


def test_sides_count_the_rows_of_a_node_by_their_own_side_and_the_side_that_its_machine_gives(model, data, digits):
    _, _, X, y = digits
    values, tree = node_values(model, X), model.tree_
    for place, node in enumerate(tree.internal_nodes.tolist()):
        counts = []
        for child in (tree.children_left[node], tree.children_right[node]):
            below = np.isin(y, tree.classes_below(child))
            counts += [int((values[below, place] > 0).sum()), int((values[below, place] <= 0).sum())]
        assert data["sides"][place] == counts


def ways(data, tree):
    """Yield, for each row of a page, its number, its path and where its values stand."""
    place = 0
    for number, predicted in zip(data["rows"]["number"], data["rows"]["predicted"], strict=True):
        path = [int(tree.leaf_of_class[predicted])]
        while tree.parent[path[0]] >= 0:
            path.insert(0, int(tree.parent[path[0]]))
        yield number, path, slice(place, place + len(path) - 1)
        place += len(path) - 1
    assert place == len(data["rows"]["value"])


def test_the_probabilities_on_the_way_of_a_row_multiply_to_that_of_its_class(model, data, digits):
    _, _, X, _ = digits
    best = model.predict_proba(X).max(axis=1)
    for number, path, part in ways(data, model.tree_):
        goes_left = model.tree_.children_left[path[:-1]] == path[1:]
        left = np.array(data["rows"]["left"][part])
        assert np.prod(np.where(goes_left, left, 1 - left)) == pytest.approx(best[number], abs=0.02)


def test_the_values_on_the_way_of_a_row_are_those_of_the_machines(model, data, digits):
    _, _, X, _ = digits
    values, place = node_values(model, X), {node: k for k, node in enumerate(model.tree_.internal_nodes.tolist())}
    for number, path, part in ways(data, model.tree_):
        expected = values[number, [place[node] for node in path[:-1]]]
        np.testing.assert_allclose(data["rows"]["value"][part], expected, rtol=0.01, atol=1e-3)


def test_ranked_classes_are_those_of_predict_top_k(model, data, digits):
    classes, probabilities = model.predict_top_k(digits[2], 5)
    assert data["rows"]["ranked"]["class"] == classes.ravel().tolist()
    np.testing.assert_allclose(data["rows"]["ranked"]["probability"], probabilities.ravel(), rtol=0.01)


def test_the_telling_features_of_a_node_are_those_with_the_largest_weights(model, data):
    weights = model._model.table.relative_weights(np.array([0]))[:, 0] * model._model.table.scale[0]
    order = np.argsort(-weights)
    names = data["features"]["names"]
    left, right = data["features"]["left"][0], data["features"]["right"][0]
    assert [names[j] for j in left[::2]] == [f"x{j}" for j in order[:8]]
    assert [names[j] for j in right[::2]] == [f"x{j}" for j in order[::-1][:8]]
    np.testing.assert_allclose(left[1::2], weights[order[:8]], rtol=0.01)


GREEDY = {
    "linear": MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0),
    "calibrated": MarginTreeClassifier(walk="greedy", random_state=0),
    "rbf": MarginTreeClassifier("rbf", walk="greedy", random_state=0),
    "callable": MarginTreeClassifier(lambda A, B: (A @ B.T) ** 2, walk="greedy", calibration_folds=0, random_state=0),
    "precomputed": MarginTreeClassifier("precomputed", walk="greedy", calibration_folds=0, random_state=0),
    "label tree": LabelTreeClassifier(random_state=0),
    "filter tree": FilterTreeClassifier("rbf", random_state=0),
    "online": ConditionalProbabilityTreeClassifier(walk="greedy", random_state=0),
}


@pytest.mark.parametrize("name", GREEDY)
def test_a_greedy_way_goes_left_where_the_value_is_positive_for_every_kind_of_model(name, digits, tmp_path):
    X, y, X_test, y_test = (part[:200] for part in digits)
    if name == "precomputed":
        X, X_test = X @ X.T, X_test @ X.T
    model = GREEDY[name].fit(X, y)
    data = exported(tmp_path, model, X_test, y_test)
    for _, path, part in ways(data, model.tree_):
        goes_left = model.tree_.children_left[path[:-1]] == path[1:]
        np.testing.assert_array_equal(np.array(data["rows"]["value"][part]) > 0, goes_left)
    is_linear = name in ("linear", "calibrated", "label tree", "online")
    assert (data["features"] is not None) == is_linear
    assert (data["rows"]["left"] is not None) == (name in ("calibrated", "rbf", "online"))
    assert np.sum(data["sides"][0]) == len(y_test)


def test_a_beam_and_several_trees_show_the_first_one(digits, tmp_path):
    X, y, X_test, y_test = (part[:200] for part in digits)
    model = MarginTreeClassifier(n_trees=2, random_state=0).fit(X, y)
    data = exported(tmp_path, model, X_test, y_test)
    assert data["leaves"] == model.trees_[0].leaf_class.tolist()
    assert ["trees", "the first of 2 is shown"] in data["facts"]


def test_without_rows_and_without_labels_the_page_says_less(model, digits, tmp_path):
    assert exported(tmp_path, model)["rows"] is None
    data = exported(tmp_path, model, digits[2])
    assert (data["rows"]["true"], data["sides"], data["confusion"]) == (None, None, None)
    assert len(data["rows"]["predicted"]) == 300


def test_a_page_holds_some_of_many_rows_from_the_first_to_the_last(model, digits, tmp_path):
    X = np.tile(digits[2], (10, 1))
    y = np.tile(digits[3], 10)
    data = exported(tmp_path, model, X, y)
    numbers = data["rows"]["number"]
    assert (len(numbers), numbers[0], numbers[-1], data["rows"]["total"]) == (N_ROWS, 0, 2999, 3000)
    assert sum(data["confusion"][2::3]) == 3000
    expected = model.predict(X[numbers])
    np.testing.assert_array_equal(data["rows"]["predicted"], expected)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.coo_matrix, sp.csr_array])
def test_sparse_rows_give_the_page_of_dense_ones(model, data, digits, tmp_path, form):
    assert exported(tmp_path, model, form(digits[2]), digits[3])["confusion"] == data["confusion"]


def test_names_of_a_data_frame_are_names_of_features_and_give_no_warning(tmp_path):
    iris = load_iris(as_frame=True)
    model = MarginTreeClassifier(random_state=0).fit(iris.data, iris.target)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = exported(tmp_path, model, iris.data, iris.target)
    assert set(data["features"]["names"]) == set(iris.data.columns)


def test_a_pipeline_gives_its_rows_and_the_words_of_its_vectorizer(tmp_path):
    texts = ["red apple", "green apple", "fast car", "slow car", "tall tree", "old tree"] * 5
    labels = ["fruit", "fruit", "vehicle", "vehicle", "plant", "plant"] * 5
    pipeline = make_pipeline(TfidfVectorizer(), MarginTreeClassifier(random_state=0)).fit(texts, labels)
    data = exported(tmp_path, pipeline, texts, labels)
    assert {"apple", "car", "tree"} <= set(data["features"]["names"])
    assert sum(data["confusion"][2::3]) == 30


def test_a_pipeline_of_one_step_and_steps_without_names_give_a_page(digits, tmp_path):
    X, y, X_test, y_test = (part[:200] for part in digits)
    for steps in ([], ["passthrough"], [FunctionTransformer(np.sqrt)]):
        pipeline = make_pipeline(*steps, MarginTreeClassifier(walk="greedy", calibration_folds=0)).fit(X, y)
        data = exported(tmp_path, pipeline, X_test, y_test)
        right = sum(count for own, predicted, count in np.reshape(data["confusion"], (-1, 3)) if own == predicted)
        assert right == np.sum(pipeline.predict(X_test) == y_test)
        assert data["features"]["names"][0].startswith("x")


def test_a_pipeline_that_is_not_fitted_or_has_no_tree_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        export_html(make_pipeline(TfidfVectorizer(), MarginTreeClassifier()), tmp_path / "page.html")
    with pytest.raises(TypeError, match="Got TfidfVectorizer"):
        export_html(make_pipeline(TfidfVectorizer()), tmp_path / "page.html")


def test_hostile_labels_and_names_stay_data(digits, tmp_path):
    X, y, X_test, _ = digits
    labels = np.array(HOSTILE[:10], dtype=object)
    model = MarginTreeClassifier(random_state=0).fit(X, labels[y])
    page = tmp_path / "page.html"
    export_html(model, page, X_test, labels[digits[3]], (HOSTILE * 6)[:64])
    text = page.read_bytes().decode("utf-8")
    body = text[text.index('<script id="data"') :]
    data = body[: body.index("</script>")].split(">", 1)[1]
    assert not re.search(r"[<>&\u0080-\uffff]", data)
    assert text.count("</script>") == 2
    shown = data_of(page)["classes"]
    assert set(shown) == {one_line(label) for label in labels}


def test_the_browser_is_told_to_run_this_program_only_and_to_ask_the_network_for_nothing(model, tmp_path):
    exported(tmp_path, model)
    text = (tmp_path / "page.html").read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert policy.startswith("default-src &#x27;none&#x27;; img-src data:; script-src &#x27;sha256-")
    assert "unsafe" not in policy
    assert not re.findall(r"(?:src|href)=\"(?!data:|#)", text)
    assert "http" not in re.sub(r"http-equiv", "", text)


def test_an_estimator_that_is_not_fitted_or_has_no_tree_is_refused(digits, tmp_path):
    with pytest.raises(NotFittedError):
        export_html(MarginTreeClassifier(), tmp_path / "page.html")
    flat = OneVsRestSVC(random_state=0).fit(digits[0], digits[1])
    with pytest.raises(TypeError, match="Got OneVsRestSVC"):
        export_html(flat, tmp_path / "page.html")
    with pytest.raises(TypeError, match="Got a ClassTree"):
        export_html(ClassTree.from_nested((0, 1)), tmp_path / "page.html")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: {"X": X[:, :5], "y": y}, "5 features"),
        (lambda X, y: {"X": X, "y": y[:7]}, "Got 300 and 7"),
        (lambda X, y: {"X": X, "y": y + 5}, r"classes that the model was fitted with.*the first is 1\d"),
        (lambda X, y: {"X": X, "y": y.astype(str)}, "of other classes or types; the first is '"),
        (lambda X, y: {"y": y}, "y was given without X"),
        (lambda X, y: {"feature_names": ["a", "b"]}, "each of the 64 features. Got 2 names"),
        (lambda X, y: {"feature_names": "pixels"}, "Got the string 'pixels'"),
    ],
)
def test_what_does_not_fit_is_refused_and_an_earlier_page_stays(model, digits, tmp_path, change, message):
    page = tmp_path / "page.html"
    page.write_text("earlier")
    with pytest.raises(ValueError, match=message):
        export_html(model, page, **change(*digits[2:]))
    assert page.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [page]
