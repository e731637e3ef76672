"""Many dense rows: as accurate as flat peers, in little memory, whatever their precision, place and scale."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning

from margintree import MarginTreeClassifier
from margintree.estimators import margin_tree
from margintree.solvers import training_set
from margintree.training import defaults

N_CLASSES, PER_CLASS, N_FEATURES, N_NEW = 150, 40, 200, 3000


@pytest.fixture(scope="module")
def gaussian():
    """Return rows of Gaussian classes whose shared covariance is far from round, and new rows."""
    random = np.random.default_rng(0)
    deviations = np.geomspace(3.0, 0.2, N_FEATURES)
    root = deviations[:, None] * np.linalg.qr(random.normal(size=(N_FEATURES, N_FEATURES)))[0]
    means = 0.3 * random.normal(size=(N_CLASSES, N_FEATURES)) @ root

    def draw(n_rows):
        y = random.permutation(np.arange(n_rows) % N_CLASSES)
        return (means[y] + random.normal(size=(n_rows, N_FEATURES)) @ root).astype(np.float32), y

    X, y = draw(N_CLASSES * PER_CLASS)
    assert X.size * N_CLASSES > defaults.DENSE_SPEED * defaults.WORK_OF_ALL / 4
    return X, y, *draw(N_NEW)


@pytest.fixture(scope="module")
def fitted(gaussian):
    return MarginTreeClassifier(random_state=0).fit(*gaussian[:2])


@pytest.fixture
def on_lists(monkeypatch):
    """Let machines of few rows, too, learn from lists."""
    monkeypatch.setattr(defaults, "WORK_OF_ALL", 0)


def test_gaussian_classes_are_told_no_worse_than_by_discriminant_analysis(gaussian, fitted):
    X, y, X_new, y_new = gaussian
    peer = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(X, y)
    # Two standard errors of a difference on 3000 rows.
    assert fitted.score(X_new, y_new) >= peer.score(X_new, y_new) - 0.02


@pytest.mark.parametrize("copied_values", [training_set.COPIED_VALUES, 0], ids=["copied", "in place"])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_the_order_of_the_rows_plays_no_part(monkeypatch, copied_values, is_sparse):
    monkeypatch.setattr(training_set, "COPIED_VALUES", copied_values)
    monkeypatch.setattr(margin_tree, "COPIED_VALUES", copied_values)
    random = np.random.default_rng(0)
    means, y = random.normal(size=(12, 30)), np.repeat(np.arange(12), 15)
    X = means[y] + 1.5 * random.normal(size=(len(y), 30))
    X[np.abs(X) < 0.5] = 0.0
    order = random.permutation(len(y))
    make = sp.csr_array if is_sparse else np.asarray
    one = MarginTreeClassifier(random_state=0).fit(make(X), y)
    other = MarginTreeClassifier(random_state=0).fit(make(X[order]), y[order])
    assert one.tree_ == other.tree_
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_the_defaults_give_the_same_model_for_every_seed(is_sparse):
    random = np.random.default_rng(1)
    X, y = random.normal(size=(600, 300)), np.arange(600) % 20
    X[np.arange(600), y] += 2.0
    X[np.abs(X) < 1.0] = 0.0
    X = sp.csr_array(X) if is_sparse else X
    one, other = (MarginTreeClassifier(random_state=seed).fit(X, y) for seed in (0, 1))
    assert one.tree_ == other.tree_
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.filterwarnings("ignore:.* nodes stopped")
def test_logistic_regression_that_ends_too_early_is_warned_of(monkeypatch):
    logistic = replace(defaults.LOGISTIC[1], n_finalists=8)
    monkeypatch.setattr(defaults, "against_the_rest", lambda training_set: [logistic])
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(8), 40)
    X = random.normal(size=(8, 20))[y] + 2.0 * random.normal(size=(len(y), 20))
    with pytest.warns(ConvergenceWarning, match="1 of 1 deciders stopped with a relative duality gap"):
        MarginTreeClassifier(max_iter=1, decide="rest", random_state=0).fit(X, y)


@pytest.mark.slow
def test_single_and_double_precision_give_the_same_predictions(gaussian, fitted):
    X, y, X_new, _ = gaussian
    assert X.dtype == np.float32
    double = MarginTreeClassifier(random_state=0).fit(X.astype(np.float64), y)
    assert np.mean(double.predict(X_new) == fitted.predict(X_new)) >= 0.995


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("copied_values", [2**22, 0], ids=["copied", "in place"])
def test_rows_are_neither_changed_nor_needed_after_the_fit(monkeypatch, copied_values, dtype):
    for module in (training_set, margin_tree):
        monkeypatch.setattr(module, "COPIED_VALUES", copied_values)
    X, y = load_digits(return_X_y=True)
    X = (X / 16.0).astype(dtype)
    given, new = X[:600].copy(), X[600:]
    given.flags.writeable = False
    model = MarginTreeClassifier(random_state=0).fit(given, y[:600])
    np.testing.assert_array_equal(given, X[:600])
    expected = model.predict_proba(new)
    given.flags.writeable = True
    given[:] = 77.0
    np.testing.assert_array_equal(model.predict_proba(new), expected)


@pytest.mark.parametrize("layout", ["column-major", "strided", "list"])
def test_rows_in_place_may_have_any_layout(monkeypatch, layout):
    for module in (training_set, margin_tree):
        monkeypatch.setattr(module, "COPIED_VALUES", 0)
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16.0, y[:300]
    given = {"column-major": np.asfortranarray(X), "strided": np.repeat(X, 2, axis=1)[:, ::2], "list": X.tolist()}
    expected = MarginTreeClassifier(random_state=0).fit(X, y).predict_proba(X)
    found = MarginTreeClassifier(random_state=0).fit(given[layout], y).predict_proba(X)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_rows_of_weight_zero_count_as_absent_also_where_rows_stay_in_place(monkeypatch):
    for module in (training_set, margin_tree):
        monkeypatch.setattr(module, "COPIED_VALUES", 0)
    X, y = load_digits(return_X_y=True)
    X, y = X[:400] / 16.0, y[:400]
    weight = np.where(np.random.default_rng(0).random(400) < 0.7, 1.0, 0.0)
    poisoned = np.where(weight[:, None] > 0.0, X, 9.0)
    one = MarginTreeClassifier(random_state=0).fit(poisoned, y, weight)
    other = MarginTreeClassifier(random_state=0).fit(X[weight > 0.0], y[weight > 0.0])
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-9)


@pytest.mark.usefixtures("on_lists")
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_rows_that_are_all_the_same_give_a_model(value):
    X, y = np.full((60, 5), value), np.repeat(np.arange(12), 5)
    model = MarginTreeClassifier(decide="rest", random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


MEASURE = """
import json, sys
from pathlib import Path
import numpy as np
from margintree import MarginTreeClassifier
from margintree.solvers.training_set import COPIED_VALUES

def problem(n_classes, per_class, n_features, apart):
    random = np.random.default_rng(0)
    y = random.permutation(np.repeat(np.arange(n_classes), per_class))
    X = random.standard_normal((len(y), n_features), dtype=np.float32)
    X *= np.geomspace(3.0, 0.3, n_features, dtype=np.float32)
    means = apart * random.standard_normal((n_classes, n_features)).astype(np.float32)
    for row, label in enumerate(y):
        X[row] += means[label]
    assert X.size > COPIED_VALUES
    return X, y

def memory(name):
    lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[name].split()[0]) * 1024

decide, apart, *shape = json.loads(sys.argv[1])
MarginTreeClassifier(decide=decide, random_state=0).fit(*problem(10, 700, 620, 1.0))  # compiles
X, y = problem(*shape, apart)
before = memory("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
model = MarginTreeClassifier(decide=decide, random_state=0).fit(X, y)
peak = memory("VmHWM")
accuracy = float(np.mean(model.predict(X[:2000]) == y[:2000]))
print(json.dumps({"accuracy": accuracy, "data": X.nbytes, "bytes": peak - before}))
"""


@pytest.mark.usefixtures("on_lists")
@pytest.mark.parametrize(("factor", "shift"), [(1 / 16, 0.0), (1.0, 0.0), (16.0, 0.0), (1 / 16, 30.0)])
def test_rows_of_another_scale_are_told_no_worse_than_by_machines_of_all_rows(monkeypatch, factor, shift):
    X, y = load_digits(return_X_y=True)
    X = factor * X + shift
    model = MarginTreeClassifier(decide="rest", random_state=0).fit(X[:900], y[:900])
    monkeypatch.setattr(defaults, "WORK_OF_ALL", 2**40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        other = MarginTreeClassifier(decide="rest", random_state=0).fit(X[:900], y[:900]).score(X[900:], y[900:])
    # Two standard errors.
    assert model.score(X[900:], y[900:]) >= other - 2.0 * np.sqrt(other * (1.0 - other) / len(y[900:]))


@pytest.mark.usefixtures("on_lists")
@pytest.mark.parametrize("n_finalists", ["auto", 30])
@pytest.mark.parametrize("spread", [0.0, 1.0], ids=["rows repeat", "rows vary"])
def test_classes_far_apart_are_told_by_every_candidate(spread, n_finalists):
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(30), 40)
    X = 30.0 * random.normal(size=(30, 20))[y] + spread * random.normal(size=(len(y), 20))
    model = MarginTreeClassifier(decide="rest", n_finalists=n_finalists, random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0
    assert [record.accuracy for record in model.candidates_] == [1.0] * len(model.candidates_)
    assert np.isfinite(model.predict_proba(X)).all()
