"""Trees in onnxruntime: the same labels and probabilities as ours, and clear words where there is no such form."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_svmlight_files, make_classification
from sklearn.preprocessing import StandardScaler

from margintree import (
    ConditionalProbabilityTreeClassifier,
    FilterTreeClassifier,
    LabelTreeClassifier,
    MarginTreeClassifier,
    OneVsRestSVC,
    to_onnx,
)

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

N_ROWS = 5000


def answers(path, X):
    """Return label and probabilities, or the label alone, from a session of its own."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {"X": np.ascontiguousarray(X, dtype=np.float64)})


def generated(n_classes):
    def load():
        X, y = make_classification(
            7000, 20, n_informative=12, n_classes=n_classes, n_clusters_per_class=1, class_sep=1.2, random_state=0
        )
        return X[:2000], y[:2000], X[2000:]

    return load


def digits():
    X, y = load_digits(return_X_y=True)
    noise = np.random.default_rng(0).normal(size=(N_ROWS, 64))
    return X[:1500], y[:1500], X[np.arange(N_ROWS) % len(X)] + noise


SETS = {"digits": digits, "generated, 6 classes": generated(6), "generated, 40 classes": generated(40)}


@pytest.fixture(scope="module", params=list(SETS))
def rows(request):
    X, y, X_test = SETS[request.param]()
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test)


def real_rows(data_directory, name):
    files = [str(data_directory / f"{name}{ending}.bz2") for ending in ("", ".t")]
    X, y, X_test, _ = load_svmlight_files(files)
    scaler = StandardScaler().fit(X.toarray())
    # The test parts have 5,000, 3,498 and 2,000 rows; training rows that were not learned from fill them up.
    rest = np.vstack([X_test.toarray(), X[1400:].toarray()])[:N_ROWS]
    assert len(rest) == N_ROWS
    return scaler.transform(X[:1400].toarray()), y[:1400].astype(np.int64), scaler.transform(rest)


def check(model, X_test, path, **options):
    to_onnx(model, path, **options)
    label, probabilities = answers(path, X_test)
    np.testing.assert_array_equal(label, model.predict(X_test))
    np.testing.assert_allclose(probabilities, model.predict_proba(X_test), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("walk", ["greedy", "all"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_labels_and_probabilities_are_ours(rows, kernel, walk, tmp_path):
    X, y, X_test = rows
    check(MarginTreeClassifier(kernel, walk=walk, random_state=0).fit(X, y), X_test, tmp_path / "m.onnx")


@pytest.mark.parametrize("name", ["letter", "pendigits", "satimage"])
def test_labels_and_probabilities_are_ours_on_real_rows(data_directory, name, tmp_path):
    X, y, X_test = real_rows(data_directory, name)
    for kernel in ("linear", "rbf"):
        for walk in ("greedy", "all"):
            model = MarginTreeClassifier(kernel, C=10.0, walk=walk, tol=1e-2, random_state=0).fit(X, y)
            check(model, X_test, tmp_path / "m.onnx")


def test_a_shortlist_smaller_than_the_classes_and_one_without_scorers(tmp_path):
    X, y, X_test = SETS["generated, 40 classes"]()
    for options in ({"shortlist": 5, "beam_width": 5}, {"shortlist": 0}, {"n_trees": 2}):
        model = MarginTreeClassifier(walk="all", random_state=0, **options).fit(X, y)
        check(model, X_test, tmp_path / "m.onnx")


def test_a_beam_is_written_as_all_paths_or_greedily_when_asked_for(tmp_path):
    X, y, X_test = SETS["generated, 40 classes"]()
    model = MarginTreeClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="A beam has no ONNX form"):
        to_onnx(model, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []
    to_onnx(model, tmp_path / "all.onnx", walk="all")
    label, probabilities = answers(tmp_path / "all.onnx", X_test)
    assert np.mean(label == model.predict(X_test)) > 0.99
    model._ranker = replace(model._ranker, width=0)
    np.testing.assert_array_equal(label, model.predict(X_test))
    np.testing.assert_allclose(probabilities, model.predict_proba(X_test), rtol=1e-7, atol=1e-12)
    to_onnx(model, tmp_path / "greedy.onnx", walk="greedy")
    expected = model.set_params(walk="greedy").predict(X_test)
    np.testing.assert_array_equal(answers(tmp_path / "greedy.onnx", X_test)[0], expected)


def test_classes_ranked_by_their_scorers_alone_need_no_walk(tmp_path):
    X, y, X_test = SETS["generated, 6 classes"]()
    model = MarginTreeClassifier(random_state=0).fit(X, y)
    model._ranker = replace(model._ranker, scorers=replace(model._ranker.scorers, path_weight=0.0))
    assert model._ranker.flat is not None
    check(model, X_test, tmp_path / "m.onnx")
    check(model, X_test, tmp_path / "all.onnx", walk="all")
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert sum(node.op_type == "MatMul" for node in graph.node) == 1


def test_trees_without_probabilities_give_labels_alone(tmp_path):
    X, y = load_iris(return_X_y=True)
    for model in (
        MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0),
        LabelTreeClassifier(random_state=0),
        FilterTreeClassifier("rbf", random_state=0),
    ):
        to_onnx(model.fit(X, y), tmp_path / "m.onnx")
        [label] = answers(tmp_path / "m.onnx", X)
        np.testing.assert_array_equal(label, model.predict(X))


@pytest.mark.parametrize("names", [["ä", "b c", "three"], [-5, 0, 2**40], [True, False, True], [0.5, 1.0, 7.0]])
def test_labels_of_every_type_come_back(names, tmp_path):
    X, y = load_iris(return_X_y=True)
    labels = np.array(names)[y] if names[0] != 0.5 else np.array([1.0, 2.0, 7.0])[y]
    model = MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0).fit(X, labels)
    to_onnx(model, tmp_path / "m.onnx")
    assert answers(tmp_path / "m.onnx", X)[0].tolist() == model.predict(X).tolist()


def test_extreme_rows_give_finite_probabilities(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = MarginTreeClassifier("rbf", walk="all", random_state=0).fit(X, y)
    linear = MarginTreeClassifier(walk="all", random_state=0).fit(X, y)
    extreme = np.array([[1e6] * 4, [-1e6] * 4, [0.0] * 4])
    for one in (model, linear):
        check(one, extreme, tmp_path / "m.onnx")


def test_what_has_no_onnx_form_is_refused_with_a_reason(tmp_path):
    X, y = load_iris(return_X_y=True)
    greedy = MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0).fit(X, y)
    cases = [
        (OneVsRestSVC(random_state=0).fit(X, y), {}, "OneVsRestSVC has no ONNX form"),
        (ConditionalProbabilityTreeClassifier(random_state=0).fit(X, y), {}, "has no ONNX form"),
        (MarginTreeClassifier("poly", walk="all").fit(X, y), {}, "kernel='poly' has no ONNX form"),
        (StandardScaler().fit(X), {}, "Got StandardScaler"),
        (greedy, {"walk": "all"}, "needs calibrated sigmoids"),
        (greedy, {"walk": "sideways"}, "walk must be one of greedy, all"),
    ]
    for model, options, message in cases:
        with pytest.raises(ValueError, match=message):
            to_onnx(model, tmp_path / "m.onnx", **options)
    assert list(tmp_path.iterdir()) == []
