"""OutputCodeSVC: every code with every decoding, and codes that are other methods in disguise."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from margintree import OutputCodeSVC
from margintree.estimators.one_vs_one import OneVsOneSVC
from margintree.estimators.one_vs_rest import OneVsRestSVC
from margintree.structures.codes import dense_code

CODES = ["dense", "sparse", "one_vs_one", "one_vs_rest"]
DECODINGS = ["hamming", "attenuated", "loss_weighted"]
KERNELS = ["linear", "rbf"]

every_code = pytest.mark.parametrize("code", CODES)
every_decoding = pytest.mark.parametrize("decoding", DECODINGS)
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def blobs(n_classes, per_class, spread=0.6, seed=0):
    random = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), per_class)
    return random.normal(size=(n_classes, 5))[y] + spread * random.normal(size=(len(y), 5)), y


@every_kernel
@every_code
@every_decoding
def test_digits_are_learned(digits, kernel, code, decoding):
    X, y = digits
    model = OutputCodeSVC(kernel, C=10, code=code, decoding=decoding, random_state=0).fit(X[::3], y[::3])
    assert model.score(X[1::3], y[1::3]) > (0.85 if kernel == "linear" else 0.94)
    assert model.code_.shape == (10, model.n_machines_)
    np.testing.assert_array_equal(model.n_evaluations(X[:5]), model.n_machines_)


def test_loss_weighted_decoding_is_better_than_hamming_on_linear_dense_codes(digits):
    X, y = digits
    hamming, weighted = (
        OutputCodeSVC(C=10, decoding=decoding, random_state=0).fit(X[::3], y[::3]).score(X[1::3], y[1::3])
        for decoding in ("hamming", "loss_weighted")
    )
    assert weighted > hamming


@every_kernel
@every_code
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_few_classes_work(kernel, code, n_classes):
    X, y = blobs(n_classes, 12, spread=0.1)
    for decoding in DECODINGS:
        model = OutputCodeSVC(kernel, C=10, code=code, decoding=decoding, random_state=0).fit(X, y)
        assert model.score(X, y) == 1.0
        assert model.decision_function(X).shape == ((len(y),) if n_classes == 2 else (len(y), n_classes))


@every_kernel
@every_code
@every_decoding
def test_two_classes_are_one_machine(kernel, code, decoding):
    X, y = blobs(2, 20, spread=1.5)
    model = OutputCodeSVC(kernel, code=code, decoding=decoding, random_state=0).fit(X, y)
    expected = OneVsRestSVC(kernel, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), rtol=1e-6, atol=1e-9)


@every_kernel
def test_machines_of_the_named_codes_are_those_of_the_named_methods(kernel):
    X, y = blobs(5, 20)
    for code, method in (("one_vs_one", OneVsOneSVC), ("one_vs_rest", OneVsRestSVC)):
        model = OutputCodeSVC(kernel, code=code, random_state=0).fit(X, y)
        expected = method(kernel, random_state=0).fit(X, y)
        np.testing.assert_allclose(model._machines.decisions(X), expected._machines.decisions(X), rtol=1e-6, atol=1e-8)


@every_kernel
def test_hamming_on_one_vs_one_is_voting_and_attenuated_is_fewest_lost_votes(kernel):
    X, y = blobs(5, 20)
    votes = np.floor(OneVsOneSVC(kernel, random_state=0).fit(X, y).decision_function(X) + 0.5)
    for decoding in ("hamming", "attenuated"):
        model = OutputCodeSVC(kernel, code="one_vs_one", decoding=decoding, random_state=0).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), np.argmax(votes, axis=1))


def test_decision_values_are_minus_the_distances():
    X, y = blobs(4, 15)
    model = OutputCodeSVC(code="sparse", decoding="hamming", random_state=0).fit(X, y)
    signs = np.sign(model._machines.decisions(X))
    expected = ((1 - signs[:, None, :] * model.code_) / 2).sum(axis=2)
    np.testing.assert_allclose(model.decision_function(X), -expected)


@every_kernel
@every_decoding
def test_weight_two_is_a_row_that_stands_there_twice(kernel, decoding):
    X, y = blobs(5, 8, spread=1.0)
    weight = np.where(np.arange(len(y)) % 3 == 0, 2, 1)
    repeated = np.repeat(np.arange(len(y)), weight)
    for code in ("dense", "sparse"):
        make = OutputCodeSVC(kernel, gamma=0.2, code=code, decoding=decoding, random_state=0)
        weighted, doubled = clone(make).fit(X, y, weight), clone(make).fit(X[repeated], y[repeated])
        np.testing.assert_allclose(weighted.decision_function(X), doubled.decision_function(X), rtol=1e-6)
        np.testing.assert_allclose(weighted.code_weights_, doubled.code_weights_)


@every_code
def test_sparse_input_gives_the_same_predictions(digits, code):
    X, y = digits[0][:300], digits[1][:300]
    dense = OutputCodeSVC(code=code, tol=1e-5, random_state=0).fit(X, y)
    for given in (sp.csr_array(X), sp.csc_matrix(X)):
        model = OutputCodeSVC(code=code, tol=1e-5, random_state=0).fit(given, y)
        np.testing.assert_array_equal(model.predict(given), dense.predict(X))


@every_code
def test_a_precomputed_kernel_equals_the_named_one(digits, code):
    X, y, new = digits[0][:150], digits[1][:150], digits[0][150:250]
    named = OutputCodeSVC("rbf", gamma=0.05, code=code, random_state=0).fit(X, y)
    given = OutputCodeSVC("precomputed", code=code, random_state=0).fit(rbf_kernel(X, gamma=0.05), y)
    np.testing.assert_array_equal(given.predict(rbf_kernel(new, X, gamma=0.05)), named.predict(new))


@every_kernel
@pytest.mark.parametrize("code", ["dense", "sparse"])
def test_the_model_is_the_same_for_any_number_of_threads(kernel, code):
    X, y = blobs(6, 12)
    values = [
        OutputCodeSVC(kernel, code=code, n_jobs=n_jobs, random_state=1).fit(X, y).decision_function(X)
        for n_jobs in (1, 3)
    ]
    np.testing.assert_array_equal(*values)


def test_a_kernel_larger_than_the_cache_gives_the_same_machines():
    X, y = blobs(4, 75)
    # 0.2 MB are 26214 values: 87 rows of 300.
    held, cached = (OutputCodeSVC("rbf", cache_size=size, n_jobs=2, random_state=0).fit(X, y) for size in (1000, 0.2))
    np.testing.assert_allclose(cached._machines.decisions(X), held._machines.decisions(X), atol=0.05)


def test_a_code_of_the_users_own_is_used_as_it_is():
    X, y = blobs(4, 15, spread=0.2)
    code = [[1, 1, 0], [1, -1, 0], [-1, 0, 1], [-1, 0, -1]]
    model = OutputCodeSVC(C=10, code=code, random_state=0).fit(X, y)
    assert model.code_.tolist() == code
    assert model.score(X, y) > 0.9
    long = OutputCodeSVC(C=10, code=dense_code(4, 5), random_state=0).fit(X, y)
    assert long.n_machines_ == 5


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"code": [[1], [-1]]}, "one row for each of the 3 classes"),
        ({"code": [[1, 1], [-1, 1], [0, -1]], "decoding": "nearest"}, "'decoding' parameter of OutputCodeSVC must be"),
        ({"code": "hadamard"}, "The 'code' parameter of OutputCodeSVC must be"),
        ({"code": [[1, 1], [-1, -1], [0, 0]]}, "Columns 0 and 1"),
    ],
)
def test_what_cannot_be_used_is_named(parameters, message):
    X, y = blobs(3, 5)
    with pytest.raises(ValueError, match=message):
        OutputCodeSVC(**parameters).fit(X, y)


def test_the_same_seed_gives_the_same_code_and_another_does_not():
    X, y = blobs(9, 6)
    first, again, other = (OutputCodeSVC(random_state=seed).fit(X, y).code_ for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_machines_that_do_not_converge_are_counted(digits):
    with pytest.warns(ConvergenceWarning, match=r"of 45 machines stopped with a relative duality gap"):
        OutputCodeSVC("rbf", C=1e5, code="one_vs_one", gamma=1e-4, max_iter=1, tol=1e-9, random_state=0).fit(*digits)


def test_pickled_and_cloned_models_keep_their_word():
    X, y = blobs(5, 10)
    model = OutputCodeSVC("rbf", code=dense_code(5, 9), random_state=0).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert not hasattr(clone(model), "code_")
