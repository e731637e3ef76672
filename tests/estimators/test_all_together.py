"""AllTogetherSVC: liblinear's machine, the binary machine, and what every estimator promises."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from margintree import AllTogetherSVC
from margintree.estimators.one_vs_rest import OneVsRestSVC

LOSSES = ["crammer_singer", "weston_watkins"]

every_loss = pytest.mark.parametrize("loss", LOSSES)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_crammer_singer_is_the_machine_of_liblinear(digits, fit_intercept, make, C):
    X, y = digits
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y))
    model = AllTogetherSVC(C=C, fit_intercept=fit_intercept, tol=1e-7, random_state=0)
    model.fit(make(X[::2]), y[::2], weight[::2])
    expected = LinearSVC(
        C=C, multi_class="crammer_singer", fit_intercept=fit_intercept, tol=1e-6, max_iter=100_000, random_state=0
    )
    expected.fit(X[::2], y[::2], weight[::2])
    np.testing.assert_allclose(model.decision_function(make(X)), expected.decision_function(X), atol=1e-3)
    # On training rows scores may be equal at the optimum, and rounding then decides.
    new = X[1::2]
    assert np.mean(model.predict(make(new)) == expected.predict(new)) >= 0.999


def test_two_classes_have_liblinears_decision_values():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    model = AllTogetherSVC(random_state=0).fit(X, y)
    expected = LinearSVC(multi_class="crammer_singer", tol=1e-8, max_iter=1_000_000, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_weston_watkins_on_two_classes_is_the_binary_machine_at_the_same_C(C):
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    model = AllTogetherSVC("weston_watkins", C=C, random_state=0).fit(X, y)
    expected = OneVsRestSVC(C=C, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(model.n_evaluations(X), 1)


@every_loss
def test_digits_are_learned(digits, loss):
    X, y = digits
    model = AllTogetherSVC(loss, random_state=0).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.94
    assert model.n_machines_ == 10
    assert model.n_iter_ > 1
    np.testing.assert_array_equal(model.n_evaluations(X[:4]), 10)


@every_loss
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_weight_two_is_a_row_that_stands_there_twice(loss, make):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(15, 30)) * (random.random((15, 30)) < 0.08), np.arange(15) % 3
    weight = random.integers(0, 4, size=15)
    repeated = np.repeat(np.arange(15), weight)
    model = AllTogetherSVC(loss, random_state=0)
    weighted, doubled = clone(model).fit(make(X), y, weight), clone(model).fit(make(X[repeated]), y[repeated])
    np.testing.assert_allclose(weighted.decision_function(X), doubled.decision_function(X), rtol=1e-7, atol=1e-9)


@every_loss
def test_class_weight_is_a_sample_weight(digits, loss):
    X, y = digits[0][:300], digits[1][:300]
    by_class = AllTogetherSVC(loss, class_weight={3: 5.0}, tol=1e-6, random_state=0).fit(X, y)
    by_row = AllTogetherSVC(loss, tol=1e-6, random_state=0).fit(X, y, np.where(y == 3, 5.0, 1.0))
    np.testing.assert_allclose(by_class.decision_function(X), by_row.decision_function(X))


@every_loss
def test_sparse_input_gives_the_same_values(digits, loss):
    X, y = digits[0][:400], digits[1][:400]
    dense = AllTogetherSVC(loss, tol=1e-7, random_state=0).fit(X, y)
    for given in (sp.csr_array(X), sp.csc_matrix(X)):
        model = AllTogetherSVC(loss, tol=1e-7, random_state=0).fit(given, y)
        np.testing.assert_allclose(model.decision_function(given), dense.decision_function(X), atol=2e-3)


@every_loss
def test_the_same_seed_gives_the_same_model(digits, loss):
    X, y = digits
    first, again, other = (AllTogetherSVC(loss, random_state=s).fit(X, y).decision_function(X) for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@every_loss
def test_renaming_classes_renames_predictions(loss):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[[2, 0, 1]]
    model = AllTogetherSVC(loss, C=0.1, random_state=0).fit(X, y)
    renamed = AllTogetherSVC(loss, C=0.1, random_state=0).fit(X, names[y])
    np.testing.assert_array_equal(renamed.predict(X), names[model.predict(X)])


@every_loss
def test_a_fit_that_does_not_converge_warns_once_and_names_the_gap(digits, loss):
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap of up to .*max_iter=2") as caught:
        AllTogetherSVC(loss, C=100, max_iter=2, random_state=0).fit(*digits)
    assert len([w for w in caught if w.category is ConvergenceWarning]) == 1


@every_loss
def test_a_fit_that_converges_warns_of_nothing(digits, loss):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AllTogetherSVC(loss, random_state=0).fit(*digits)
        AllTogetherSVC(loss, random_state=0).fit(*load_iris(return_X_y=True))


@every_loss
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_rows_that_are_all_equal_or_all_zero_do_no_harm(loss, fit_intercept):
    y = np.repeat(np.arange(4), 3)
    for X in (np.ones((12, 3)), np.zeros((12, 3)), sp.csr_array((12, 3))):
        model = AllTogetherSVC(loss, fit_intercept=fit_intercept, random_state=0).fit(X, y)
        assert len(set(model.predict(X))) == 1
        assert np.isfinite(model.decision_function(X)).all()


def test_read_only_and_strided_arrays_compile_nothing_new():
    from margintree.compiled import all_together

    X, y = load_iris(return_X_y=True)
    AllTogetherSVC(random_state=0).fit(X, y)
    before = len(all_together.solve.signatures), len(all_together.refine.signatures)
    frozen = X.copy()
    frozen.flags.writeable = False
    for given in (np.repeat(X, 2, axis=1)[:, ::2], frozen, np.asfortranarray(X), X.astype(np.float32)):
        AllTogetherSVC(random_state=0).fit(given, y)
    assert (len(all_together.solve.signatures), len(all_together.refine.signatures)) == before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "hinge"}, "The 'loss' parameter of AllTogetherSVC must be a str among"),
        ({"C": 0.0}, "The 'C' parameter of AllTogetherSVC must be a float in the range"),
    ],
)
def test_a_parameter_out_of_range_is_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        AllTogetherSVC(**parameters).fit(*load_iris(return_X_y=True))


@every_loss
def test_pickled_models_keep_their_word(loss):
    X, y = load_iris(return_X_y=True)
    model = AllTogetherSVC(loss, random_state=0).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@every_loss
def test_sparse_rows_with_many_columns_give_the_weights_of_dense_ones(loss):
    X = sp.random_array((60, 500), density=0.02, rng=np.random.default_rng(0), format="csr")
    y = np.arange(60) % 5
    sparse, dense = (AllTogetherSVC(loss, tol=1e-8, random_state=0).fit(rows, y) for rows in (X, X.toarray()))
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), atol=1e-5)
