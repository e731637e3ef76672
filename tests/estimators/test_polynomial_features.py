"""Explicit features of polynomial kernels against the kernel itself."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import polynomial_kernel
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from margintree import MarginTreeClassifier, OneVsRestSVC, PolynomialKernelFeatures


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), 30)
    return rng.standard_normal((5, 4))[y] + 0.6 * rng.standard_normal((len(y), 4)), y


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize(("gamma", "coef0"), [(1.0, 0.0), (0.3, 1.0), (2.0, 0.5)])
def test_inner_products_are_kernel_values(rows, degree, gamma, coef0):
    X = rows[0][:20]
    Z = PolynomialKernelFeatures(degree, gamma, coef0).fit_transform(X)
    expected = polynomial_kernel(X, X[:7], degree=degree, gamma=gamma, coef0=coef0)
    np.testing.assert_allclose(Z @ Z[:7].T, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("coef0", [0.0, 1.0])
def test_sparse_rows_give_the_same_features_and_stay_sparse(coef0):
    X = sp.random(30, 12, density=0.2, format="csr", random_state=0)
    features = PolynomialKernelFeatures(2, 0.7, coef0).fit(X)
    Z = features.transform(X)
    assert sp.issparse(Z)
    np.testing.assert_allclose(Z.toarray(), features.transform(X.toarray()), atol=1e-12)


@pytest.mark.parametrize("split", ["best_first", "paper"])
def test_a_linear_tree_on_the_features_is_the_tree_of_the_kernel(rows, split):
    X, y = rows
    given = {"split": split, "walk": "greedy", "calibration_folds": 0, "C": 10.0, "tol": 1e-6, "random_state": 0}
    by_kernel = MarginTreeClassifier("poly", degree=2, gamma=0.5, coef0=1.0, **given).fit(X, y)
    features = PolynomialKernelFeatures(2, 0.5, 1.0)
    by_features = make_pipeline(features, MarginTreeClassifier("linear", **given)).fit(X, y)
    if split == "best_first":
        # "paper" looks for planes along the coordinates of phi, which are eigenvectors with a kernel: other planes.
        assert by_features[-1].tree_.to_newick() == by_kernel.tree_.to_newick()
        np.testing.assert_array_equal(by_features.predict(X), by_kernel.predict(X))
    for one, other in zip(by_features[-1].node_records_, by_kernel.node_records_, strict=True):
        if split == "best_first" or one.classes_left == other.classes_left:
            assert one.objective == pytest.approx(other.objective, rel=1e-3)
            break
    else:
        pytest.fail("no node divides the same classes in both trees")


def test_machines_have_the_same_decision_values(rows):
    X, y = rows
    by_kernel = OneVsRestSVC("poly", degree=3, gamma=0.5, coef0=0.5, tol=1e-8, max_iter=20000).fit(X, y)
    features = PolynomialKernelFeatures(3, 0.5, 0.5)
    by_features = make_pipeline(features, OneVsRestSVC("linear", tol=1e-8, max_iter=20000)).fit(X, y)
    expected = by_kernel.decision_function(X)
    np.testing.assert_allclose(by_features.decision_function(X), expected, atol=2e-3 * np.abs(expected).max())


def test_too_many_features_are_refused_before_they_are_made():
    with pytest.raises(ValueError, match=r"has 176851 explicit features for rows of 100, but max_features is 20000"):
        PolynomialKernelFeatures(3, coef0=1.0).fit(np.zeros((2, 100)))
    assert PolynomialKernelFeatures(3, max_features=171700).fit(np.zeros((2, 100))).n_output_features_ == 171700


def test_a_kernel_without_real_features_is_refused():
    with pytest.raises(ValueError, match=r"'coef0' parameter of PolynomialKernelFeatures must be a float in the range"):
        PolynomialKernelFeatures(coef0=-1.0).fit(np.zeros((2, 3)))


@parametrize_with_checks([PolynomialKernelFeatures()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)
