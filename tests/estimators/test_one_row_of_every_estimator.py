"""One row at a time: every estimator gives the label of its batch, and refuses what is no row."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from margintree import (
    AllTogetherSVC,
    ConditionalProbabilityTreeClassifier,
    DecisionDAGClassifier,
    FilterTreeClassifier,
    LabelTreeClassifier,
    OneVsOneSVC,
    OneVsRestSVC,
    OutputCodeSVC,
)

N_TRAIN = 300
ESTIMATORS = {
    "1vsR": (OneVsRestSVC, {}),
    "1vs1": (OneVsOneSVC, {}),
    "graph": (DecisionDAGClassifier, {"class_order": [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]}),
    "code, loss": (OutputCodeSVC, {}),
    "code, hamming": (OutputCodeSVC, {"decoding": "hamming"}),
    "code, attenuated": (OutputCodeSVC, {"code": "sparse", "decoding": "attenuated"}),
    "filter tree": (FilterTreeClassifier, {}),
    "label tree": (LabelTreeClassifier, {"joint": False}),
    "probability tree": (ConditionalProbabilityTreeClassifier, {"node": "svm"}),
}
LAYOUTS = {
    "linear": ("linear", np.asarray),
    "linear, csr": ("linear", sp.csr_array),
    "rbf": ("rbf", np.asarray),
    "rbf, csr": ("rbf", sp.csr_array),
    "poly": ("poly", np.asarray),
    "callable": (lambda A, B: A @ B.T + 1.0, np.asarray),
    "precomputed": ("precomputed", lambda X: rbf_kernel(X, X[:N_TRAIN], gamma=0.05)),
}
CASES = [(name, layout) for name in ESTIMATORS for layout in LAYOUTS]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:1000] / 16.0, y[:1000]


def fitted(digits, name, layout):
    estimator, parameters = ESTIMATORS[name]
    kernel, prepare = LAYOUTS[layout]
    X = prepare(digits[0])
    return estimator(kernel, random_state=0, **parameters).fit(X[:N_TRAIN], digits[1][:N_TRAIN]), X


def row_of(X, i):
    if not sp.issparse(X):
        return (X[i],)
    part = slice(X.indptr[i], X.indptr[i + 1])
    return X.indices[part], X.data[part]


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_labels_are_those_of_the_batch(digits, name, layout):
    model, X = fitted(digits, name, layout)
    # Rows that the model was not trained on lie nearer to its boundaries.
    rows = range(0, X.shape[0], 4 if layout == "rbf, csr" else 1)
    predictor = model.single_instance()
    assert [predictor.predict(*row_of(X, i)) for i in rows] == model.predict(X)[rows].tolist()


@pytest.mark.parametrize("loss", ["crammer_singer", "weston_watkins"])
@pytest.mark.parametrize("layout", ["linear", "linear, csr"])
def test_labels_of_machines_trained_together_are_those_of_the_batch(digits, loss, layout):
    X = LAYOUTS[layout][1](digits[0])
    model = AllTogetherSVC(loss, random_state=0).fit(X[:N_TRAIN], digits[1][:N_TRAIN])
    predictor = model.single_instance()
    assert [predictor.predict(*row_of(X, i)) for i in range(1000)] == model.predict(X).tolist()


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("layout", ["linear", "rbf", "precomputed"])
def test_a_sparse_row_is_the_dense_row(digits, name, layout):
    model, X = fitted(digits, name, layout)
    predictor = model.single_instance()
    for i in range(500, 530):
        columns = np.flatnonzero(X[i])
        assert predictor.predict(columns, X[i, columns]) == predictor.predict(X[i])


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "graph"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_two_classes_follow_the_batch_even_where_no_machine_decides(digits, name, fit_intercept):
    estimator, parameters = ESTIMATORS[name]
    X, y = digits[0][digits[1] < 2], np.array(["zero", "one"])[digits[1][digits[1] < 2]]
    model = estimator(random_state=0, fit_intercept=fit_intercept, **parameters).fit(X[:100], y[:100])
    X = np.vstack([X, np.zeros(64)])
    predictor = model.single_instance()
    assert [predictor.predict(row) for row in X] == model.predict(X).tolist()


def test_machines_that_all_say_nothing_leave_the_same_class_as_in_the_batch(digits):
    nothing = np.zeros((1, 64))
    for name, (estimator, parameters) in ESTIMATORS.items():
        model = estimator(random_state=0, fit_intercept=False, **parameters).fit(*(part[:N_TRAIN] for part in digits))
        assert model.single_instance().predict(nothing[0]) == model.predict(nothing)[0], name


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_graph_evaluates_only_the_machines_on_its_way(digits, kernel):
    X, y = digits
    model = DecisionDAGClassifier(kernel, random_state=0).fit(X[:N_TRAIN], y[:N_TRAIN])
    row, expected = X[700], model.predict(X[[700]])[0]
    values = model._machines.decisions(X[[700]])[0]
    first, last, asked = 0, 9, []
    while first < last:
        asked.append(model._machine_of[first, last])
        first, last = (first, last - 1) if values[asked[-1]] > 0.0 else (first + 1, last)
    # Machines that are not asked may say anything.
    constants = "intercepts" if kernel == "linear" else "constants"
    for answer in (1e9, -1e9):
        changed = np.where(np.isin(np.arange(45), asked), getattr(model._machines, constants), answer)
        model._machines = replace(model._machines, **{constants: changed})
        assert model.single_instance().predict(row) == expected


@pytest.mark.parametrize("layout", ["linear", "rbf", "precomputed"])
@pytest.mark.parametrize("name", ["1vsR", "1vs1", "graph", "code, loss", "filter tree"])
def test_what_is_no_row_is_refused(digits, name, layout):
    model, X = fitted(digits, name, layout)
    predictor, width = model.single_instance(), X.shape[1]
    dense = rf"A dense row must have the shape \({width},\) and finite values. Got shape"
    for bad in (X[0, 1:], X[:2], np.append(X[0], 1.0), np.full(width, np.nan), np.full(width, np.inf)):
        with pytest.raises(ValueError, match=dense):
            predictor.predict(bad)
    sparse = rf"ascending columns from 0 to {width - 1}, and finite values"
    for columns, values in [
        ([3, 2], [1.0, 1.0]),
        ([2, 2], [1.0, 1.0]),
        ([width], [1.0]),
        ([-1], [1.0]),
        ([2**32 + 1], [1.0]),
        ([1, 2], [1.0]),
        ([0.5], [1.0]),
        ([[1]], [[1.0]]),
    ]:
        with pytest.raises(ValueError, match=sparse):
            predictor.predict(np.array(columns), np.array(values))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_model_that_is_not_fitted_has_no_predictor(name):
    estimator, parameters = ESTIMATORS[name]
    with pytest.raises(NotFittedError):
        estimator(**parameters).single_instance()


def test_a_tree_of_online_regressors_says_why_it_has_no_predictor(digits):
    model = ConditionalProbabilityTreeClassifier(random_state=0).fit(*digits)
    with pytest.raises(AttributeError) as error:
        model.single_instance()
    assert "fit with node='svm'" in str(error.value)
    assert not hasattr(model, "single_instance")


def test_a_tree_without_sigmoids_says_who_has_probabilities(digits):
    predictor = FilterTreeClassifier(random_state=0).fit(*digits).single_instance()
    with pytest.raises(AttributeError, match="MarginTreeClassifier has them with calibration_folds='auto'"):
        predictor.predict_proba(digits[0][0])


@pytest.mark.parametrize("name", ["1vs1", "graph", "code, loss", "filter tree"])
@pytest.mark.parametrize("layout", ["linear, csr", "rbf", "precomputed"])
def test_threads_and_other_processes_may_use_it(digits, name, layout):
    model, X = fitted(digits, name, layout)
    predictor = model.single_instance()
    expected = model.predict(X[:100]).tolist()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: predictor.predict(*row_of(X, i % 100)), range(800)))
    assert found == 8 * expected
    again = pickle.loads(pickle.dumps(predictor))
    assert [again.predict(*row_of(X, i)) for i in range(100)] == expected
