"""Trees in onnxruntime: the same labels and probabilities as ours, and clear words where there is no such form."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, load_svmlight_files, make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from margintree import (
    ConditionalProbabilityTreeClassifier,
    FilterTreeClassifier,
    LabelTreeClassifier,
    MarginTreeClassifier,
    OneVsRestSVC,
    to_onnx,
)
from margintree.compiled import ranking

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

N_ROWS = 5000
DECIDERS = ("paths", "pairs", "rest")


def answers(path, X):
    """Return label and probabilities, or the label alone, from a session of its own."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {"X": np.ascontiguousarray(X, dtype=np.float64)})


def generated(n_classes):
    def load():
        X, y = make_classification(
            N_ROWS + 1200,
            20,
            n_informative=12,
            n_classes=n_classes,
            n_clusters_per_class=1,
            class_sep=1.2,
            random_state=0,
        )
        return X[:1200], y[:1200], X[-N_ROWS:]

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


def fitted(kernel, X, y, **options):
    """Return a model of two folds and a wide tolerance, which is faster."""
    return MarginTreeClassifier(kernel, calibration_folds=2, tol=1e-2, random_state=0, **options).fit(X, y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_greedy_walk_has_our_labels_and_probabilities(rows, kernel, tmp_path):
    X, y, X_test = rows
    check(fitted(kernel, X, y, walk="greedy"), X_test, tmp_path / "m.onnx")


@pytest.mark.parametrize("decide", DECIDERS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_labels_and_probabilities_of_every_decider_are_ours(rows, kernel, decide, tmp_path):
    X, y, X_test = rows
    model = fitted(kernel, X, y, walk="all", decide=decide)
    assert model.decide_ == decide
    check(model, X_test, tmp_path / "m.onnx")


@pytest.mark.parametrize("name", ["letter", "pendigits", "satimage"])
def test_labels_and_probabilities_are_ours_on_real_rows(data_directory, name, tmp_path):
    X, y, X_test = real_rows(data_directory, name)
    for kernel in ("linear", "rbf"):
        for walk in ("greedy", "all"):
            model = MarginTreeClassifier(kernel, C=10.0, walk=walk, tol=1e-2, random_state=0).fit(X, y)
            check(model, X_test, tmp_path / "m.onnx")


@pytest.mark.parametrize("decide", DECIDERS)
def test_few_finalists_many_and_several_trees(decide, tmp_path):
    X, y, X_test = SETS["generated, 40 classes"]()
    for options in (
        {"n_finalists": 1},
        {"n_finalists": 2, "beam_gap": 0.1},
        {"n_finalists": 40, "beam_gap": 20.0},
        {"n_trees": 2},
    ):
        model = fitted("linear", X, y, walk="all", decide=decide, **options)
        assert model._ranker.size == options.get("n_finalists", model._ranker.size)
        check(model, X_test, tmp_path / "m.onnx")


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_finalists_who_have_lost_clearly_are_not_compared_any_more(kernel, tmp_path, monkeypatch):
    X, y, X_test = SETS["generated, 6 classes"]()
    model = fitted(kernel, X, y, walk="all", decide="pairs", n_finalists=6, beam_gap=5.0)
    check(model, X_test, tmp_path / "m.onnx")
    # With all finalists compared to the end the answers are others, so that the check above can tell.
    monkeypatch.setattr(ranking, "CLEARLY", np.inf)
    to_onnx(model, tmp_path / "all.onnx")
    label, probabilities = answers(tmp_path / "all.onnx", X_test)
    assert np.mean(np.abs(probabilities - model.predict_proba(X_test)).max(axis=1) > 1e-3) > 0.01
    assert np.sum(label != model.predict(X_test)) > 0


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_pairs_without_a_machine_go_by_their_paths(kernel, tmp_path):
    X, y, X_test = SETS["generated, 6 classes"]()
    model = fitted(kernel, X, y, walk="all", decide="pairs", n_finalists=2)
    decider = model._ranker.decider
    one, n_classes = np.repeat(np.arange(6), np.diff(decider.pair_start)), 6
    # Few of the rows have other finalists than those that met in training, so machines are taken away.
    for kept in (np.arange(len(one)) % 3 == 0, np.zeros(len(one), dtype=bool)):
        start = np.concatenate([[0], np.cumsum(np.bincount(one[kept], minlength=n_classes))])
        fewer = replace(decider, pair_start=start, pair_other=decider.pair_other[kept])
        full = model._ranker
        model._ranker = replace(full, decider=fewer)
        check(model, X_test, tmp_path / "m.onnx")
        assert (model.predict(X_test) != full.winners(X_test)[0]).any()
        model._ranker = full


@pytest.mark.parametrize(
    ("kernel", "decide"), [("linear", "paths"), ("linear", "pairs"), ("linear", "rest"), ("rbf", "pairs")]
)
def test_a_beam_is_written_with_the_finalists_of_all_paths(kernel, decide, tmp_path):
    X, y, X_test = SETS["generated, 40 classes"]()
    model = fitted(kernel, X, y, decide=decide, **({} if decide == "paths" else {"n_finalists": 8}))
    # A narrow beam does leave out paths that win; one wider than the finalists hardly does, even of rows as hard as
    # these.
    for width, least, most in ((2, 0.0, 0.99), (10, 0.995, 1.0)):
        model._ranker = replace(model._ranker, width=width)
        to_onnx(model, tmp_path / "m.onnx")
        to_onnx(model, tmp_path / "all.onnx", walk="all")
        assert (tmp_path / "m.onnx").read_bytes() == (tmp_path / "all.onnx").read_bytes()
        label, probabilities = answers(tmp_path / "m.onnx", X_test)
        assert least <= np.mean(label == model.predict(X_test)) <= most
        model._ranker = replace(model._ranker, width=0)
        np.testing.assert_array_equal(label, model.predict(X_test))
        np.testing.assert_allclose(probabilities, model.predict_proba(X_test), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_beam_is_written_greedily_when_asked_for(kernel, tmp_path):
    X, y, X_test = SETS["generated, 6 classes"]()
    model = fitted(kernel, X, y, decide="pairs", n_finalists=3)
    to_onnx(model, tmp_path / "m.onnx", walk="greedy")
    label, probabilities = answers(tmp_path / "m.onnx", X_test)
    np.testing.assert_array_equal(label, model.set_params(walk="greedy").predict(X_test))
    # Those of the paths, whatever the decider says.
    model._ranker = replace(model._ranker, decider=replace(model._ranker.decider, kind="paths"), width=0)
    np.testing.assert_allclose(probabilities, model.predict_proba(X_test), rtol=1e-7, atol=1e-12)
    if kernel == "rbf":
        # Support vectors of deciding machines alone are not written.
        constants = [onnx.numpy_helper.to_array(one) for one in onnx.load(tmp_path / "m.onnx").graph.initializer]
        n_nodes = model.tree_.n_nodes
        n_vectors = len(np.unique(model._model.support[: model._model.start[n_nodes]]))
        assert (X.shape[1], n_vectors) in [constant.shape for constant in constants]
        assert n_vectors < len(model._model.vectors)


def test_the_example_of_the_readme_agrees_on_nearly_all_rows(tmp_path):
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
    model = MarginTreeClassifier("rbf", C=10, random_state=0).fit(X_train, y_train)
    to_onnx(model, tmp_path / "m.onnx")
    label, probabilities = answers(tmp_path / "m.onnx", X_test)
    assert np.mean(label == model.predict(X_test)) >= 0.995
    np.testing.assert_array_equal(label, model.classes_[probabilities.argmax(axis=1)])
    assert np.mean(label == y_test) > 0.97


@pytest.mark.parametrize("options", [{"walk": "greedy"}, *({"walk": "all", "decide": decide} for decide in DECIDERS)])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_no_rows_give_no_answers(kernel, options, tmp_path):
    X, y = load_iris(return_X_y=True)
    to_onnx(fitted(kernel, X, y, **options), tmp_path / "m.onnx")
    label, probabilities = answers(tmp_path / "m.onnx", X[:0])
    assert label.shape == (0,)
    assert probabilities.shape == (0, 3)


def test_classes_ranked_by_their_machines_alone_need_no_walk(tmp_path):
    X, y, X_test = SETS["generated, 6 classes"]()
    model = fitted("linear", X, y, decide="rest", n_finalists=6)
    model._ranker = replace(model._ranker, decider=replace(model._ranker.decider, path_weight=0.0))
    assert model._ranker.flat is not None
    check(model, X_test, tmp_path / "m.onnx")
    check(model, X_test, tmp_path / "all.onnx", walk="all")
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert sum(node.op_type == "MatMul" for node in graph.node) == 1
    # With a weight of the path there is a walk.
    model._ranker = replace(model._ranker, decider=replace(model._ranker.decider, path_weight=0.2), width=0)
    check(model, X_test, tmp_path / "m.onnx")


def test_trees_without_probabilities_give_labels_alone(tmp_path):
    X, y = load_iris(return_X_y=True)
    for model in (
        MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0),
        LabelTreeClassifier(random_state=0),
        FilterTreeClassifier("rbf", random_state=0),
        ConditionalProbabilityTreeClassifier("linear", node="svm", random_state=0),
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


@pytest.mark.parametrize("decide", DECIDERS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_extreme_rows_give_finite_probabilities(kernel, decide, tmp_path):
    X, y = load_iris(return_X_y=True)
    extreme = np.array([[1e6] * 4, [-1e6] * 4, [0.0] * 4])
    model = MarginTreeClassifier(kernel, walk="all", decide=decide, n_finalists=3, random_state=0).fit(X, y)
    check(model, extreme, tmp_path / "m.onnx")
    assert np.isfinite(answers(tmp_path / "m.onnx", extreme)[1]).all()


def test_what_has_no_onnx_form_is_refused_with_a_reason(tmp_path):
    X, y = load_iris(return_X_y=True)
    greedy = MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0).fit(X, y)
    cases = [
        (OneVsRestSVC(random_state=0).fit(X, y), {}, "OneVsRestSVC cannot be exported to ONNX"),
        (ConditionalProbabilityTreeClassifier(random_state=0).fit(X, y), {}, "cannot be exported to ONNX"),
        (MarginTreeClassifier("poly", walk="all").fit(X, y), {}, "kernel='poly' cannot be exported to ONNX"),
        (StandardScaler().fit(X), {}, "Got StandardScaler"),
        (greedy, {"walk": "all"}, "needs calibrated sigmoids"),
        (greedy, {"walk": "sideways"}, "walk must be one of greedy, all"),
    ]
    for model, options, message in cases:
        with pytest.raises(ValueError, match=message):
            to_onnx(model, tmp_path / "m.onnx", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_model_for_float32_rows_takes_them_and_agrees(tmp_path):
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)
    for kernel in ("linear", "rbf"):
        model = MarginTreeClassifier(kernel, walk="all", random_state=0).fit(X[:300], y[:300])
        to_onnx(model, tmp_path / "model.onnx", dtype="float32")
        session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
        label, probabilities = session.run(None, {"X": X})
        assert np.mean(label == model.predict(X)) > 0.999
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        assert session.run(None, {"X": X[:0]})[0].shape == (0,)
    with pytest.raises(ValueError, match="'float64' or 'float32'"):
        to_onnx(model, tmp_path / "model.onnx", dtype="float16")


def test_labels_that_would_come_back_as_others_are_refused(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = MarginTreeClassifier(random_state=0).fit(X, y.astype(np.uint64) + np.uint64(2**63 - 1))
    with pytest.raises(ValueError, match="9223372036854775809"):
        to_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_what_has_no_room_in_a_file_is_refused_before_it_takes_memory(tmp_path):
    n_classes, n_features = 4000, 2**22
    X = sp.csr_array((np.ones(n_classes), (np.arange(n_classes), np.arange(n_classes))), shape=(n_classes, n_features))
    model = MarginTreeClassifier(split="random", walk="greedy", calibration_folds=0, random_state=0)
    model.fit(X, np.arange(n_classes))
    with pytest.raises(ValueError, match="2 GB"):
        to_onnx(model, tmp_path / "model.onnx")
