"""LabelTreeClassifier: its confusion matrix, its two trainings, and scikit-learn's own checks."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from margintree import LabelTreeClassifier, OneVsRestSVC
from margintree.solvers.row_keys import row_keys
from margintree.training.held_out_confusion import assign_folds

VARIANTS = [("linear", False), ("linear", True), ("rbf", False)]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def blobs(n_classes, per_class, n_features=6, seed=0, spread=0.8):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_classes, n_features))
    y = np.repeat(np.arange(n_classes), per_class)
    return centres[y] + spread * rng.standard_normal((len(y), n_features)), y


@pytest.mark.parametrize(("kernel", "joint"), VARIANTS)
def test_digits_are_learned(digits, kernel, joint):
    X, y = digits
    model = LabelTreeClassifier(kernel, joint=joint, random_state=0).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.93
    assert model.n_evaluations(X).max() == model.tree_.max_depth
    assert model.decision_path(X[:3]).shape == (3, 19)
    assert model.confusion_.shape == (10, 10)
    np.testing.assert_array_equal(model.confusion_.sum(axis=1), np.bincount(y[::2]))


def test_classes_that_are_confused_stay_together():
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [9, 0], [0, 9], [9, 9]]).repeat(2, axis=0) + np.tile([[0.0, 0], [0.6, 0.6]], (4, 1))
    y = np.repeat(np.arange(8), 30)
    X = centres[y] + 0.5 * rng.standard_normal((len(y), 2))
    model = LabelTreeClassifier("rbf", gamma=0.5, C=10, random_state=0).fit(X, y)
    bottom = {tuple(model.tree_.classes_below(node)) for node in model.tree_.internal_nodes}
    assert {(0, 1), (2, 3), (4, 5), (6, 7)} <= bottom


def test_the_confusion_matrix_is_that_of_one_vs_rest_on_the_folds(digits):
    X, y = digits[0][:400], digits[1][:400]
    for kernel in ("linear", "rbf"):
        model = LabelTreeClassifier(kernel, n_folds=4, gamma=0.05, random_state=0).fit(X, y)
        folds = assign_folds(row_keys(X), y, 4)
        expected = np.zeros((10, 10))
        for fold in range(4):
            flat = OneVsRestSVC(kernel, gamma=0.05, random_state=0).fit(X[folds != fold], y[folds != fold])
            np.add.at(expected, (y[folds == fold], flat.predict(X[folds == fold])), 1.0)
        assert np.abs(model.confusion_ - expected).sum() <= 4.0


@pytest.mark.parametrize(("kernel", "joint"), VARIANTS)
def test_the_order_of_the_rows_and_the_number_of_threads_play_no_part(kernel, joint):
    X, y = blobs(6, 15)
    order = np.random.default_rng(1).permutation(len(y))
    models = [
        LabelTreeClassifier(kernel, joint=joint, n_jobs=n_jobs, random_state=0).fit(X[rows], y[rows])
        for rows, n_jobs in ((np.arange(len(y)), 1), (order, 1), (order, 3))
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.confusion_, models[0].confusion_)
        assert model.tree_ == models[0].tree_
        np.testing.assert_array_equal(model.predict(X), models[0].predict(X))


@pytest.mark.parametrize(("kernel", "joint"), VARIANTS)
def test_weight_two_is_a_duplicated_row_and_weight_zero_an_absent_one(kernel, joint):
    X, y = blobs(5, 12)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    copies = np.repeat(np.arange(len(y)), weight)
    weighted = LabelTreeClassifier(kernel, joint=joint, random_state=0).fit(X, y, sample_weight=weight)
    duplicated = LabelTreeClassifier(kernel, joint=joint, random_state=0).fit(X[copies], y[copies])
    np.testing.assert_array_equal(weighted.confusion_, duplicated.confusion_)
    assert weighted.confusion_.sum() == weight.sum()
    assert weighted.tree_ == duplicated.tree_
    np.testing.assert_array_equal(weighted.predict(X), duplicated.predict(X))


@pytest.mark.parametrize(("kernel", "joint"), VARIANTS)
def test_dense_and_sparse_data_give_the_same_model(digits, kernel, joint):
    X, y = digits[0][:300], digits[1][:300]
    models = [LabelTreeClassifier(kernel, joint=joint, random_state=0).fit(given, y) for given in (X, sp.csr_array(X))]
    np.testing.assert_array_equal(models[0].confusion_, models[1].confusion_)
    assert models[0].tree_ == models[1].tree_
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(sp.csc_matrix(X)))


def test_precomputed_and_callable_kernels_equal_the_named_one():
    X, y = blobs(5, 20)
    new, _ = blobs(5, 20, seed=0, spread=1.0)

    def kernel(A, B):
        return rbf_kernel(A, B, gamma=0.1)

    named = LabelTreeClassifier("rbf", gamma=0.1, random_state=0).fit(X, y)
    by_callable = LabelTreeClassifier(kernel, random_state=0).fit(X, y)
    np.testing.assert_array_equal(by_callable.confusion_, named.confusion_)
    np.testing.assert_array_equal(by_callable.predict(new), named.predict(new))
    # Kernel rows have contents of their own, hence other folds; the rest of the way is the same.
    by_matrix = LabelTreeClassifier("precomputed", random_state=0).fit(kernel(X, X), y)
    assert by_matrix.confusion_.sum() == len(y)
    assert np.mean(by_matrix.predict(kernel(new, X)) == named.predict(new)) > 0.9


def test_weights_count_as_copies_for_precomputed_kernels():
    X, y = blobs(4, 10)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    copies = np.repeat(np.arange(len(y)), weight)
    gram = rbf_kernel(X, X, gamma=0.1)
    weighted = LabelTreeClassifier("precomputed", random_state=0).fit(gram, y, sample_weight=weight)
    duplicated = LabelTreeClassifier("precomputed", random_state=0).fit(gram[np.ix_(copies, copies)], y[copies])
    np.testing.assert_array_equal(weighted.confusion_, duplicated.confusion_)
    np.testing.assert_array_equal(weighted.predict(gram), duplicated.predict(gram[:, copies]))


@pytest.mark.parametrize("joint", [False, True])
def test_classes_of_a_single_row_count_for_the_class_that_attracts_them(joint):
    X, y = blobs(3, 20, spread=0.2)
    X = np.vstack([X, X[:20].mean(axis=0) + 0.01, X[40:].mean(axis=0) + 0.01])
    y = np.append(y, [3, 4])
    model = LabelTreeClassifier(joint=joint, C=10, random_state=0).fit(X, y)
    assert model.confusion_[3, 0] == 1.0
    assert model.confusion_[4, 2] == 1.0
    assert model.tree_.n_classes == 5


@pytest.mark.parametrize(("kernel", "joint"), VARIANTS)
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_one_row_per_class_is_enough(kernel, joint, n_classes):
    X = np.eye(n_classes)
    model = LabelTreeClassifier(kernel, joint=joint, C=100, random_state=0).fit(X, np.arange(n_classes))
    np.testing.assert_array_equal(model.predict(X), np.arange(n_classes))


def test_rows_that_are_all_alike_are_accepted():
    model = LabelTreeClassifier(joint=True, random_state=0).fit(np.zeros((6, 2)), [0, 0, 1, 1, 2, 2])
    assert model.tree_.n_classes == 3


@pytest.mark.parametrize("kernel", ["rbf", "poly", "precomputed", rbf_kernel])
def test_joint_training_refuses_other_kernels_and_says_what_to_do(kernel):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"needs kernel='linear'\. Got kernel=.*Use joint=False"):
        LabelTreeClassifier(kernel, joint=True).fit(X, y)


@pytest.mark.parametrize("n_folds", [1, 2.5, "3"])
def test_a_number_of_folds_that_holds_nothing_out_is_refused(n_folds):
    with pytest.raises(ValueError, match="'n_folds' parameter of LabelTreeClassifier"):
        LabelTreeClassifier(n_folds=n_folds).fit(*load_iris(return_X_y=True))


def test_open_gaps_are_reported():
    X, y = blobs(8, 20, n_features=150)
    with pytest.warns(ConvergenceWarning, match="1 of 1 joint problems stopped"):
        LabelTreeClassifier(joint=True, C=1e4, tol=1e-9, max_iter=1, random_state=0).fit(X, y)


def test_small_problems_with_a_large_C_converge(digits):
    X, y = digits[0][:500, 8:24], digits[1][:500]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        LabelTreeClassifier(joint=True, C=1000, random_state=0).fit(X, y)


def test_class_weight_moves_the_machines_but_not_what_is_counted():
    X, y = blobs(3, 30, n_features=2, spread=1.5)
    heavy = LabelTreeClassifier(joint=True, class_weight={0: 50.0}, random_state=0).fit(X, y)
    plain = LabelTreeClassifier(joint=True, random_state=0).fit(X, y)
    np.testing.assert_array_equal(heavy.confusion_.sum(axis=1), [30, 30, 30])
    assert np.sum(heavy.predict(X) == 0) > np.sum(plain.predict(X) == 0)


def test_verbose_tells_of_the_structure(capsys):
    LabelTreeClassifier(verbose=2, random_state=0).fit(*load_iris(return_X_y=True))
    assert "of the held-out rows confused; tree of depth 2" in capsys.readouterr().out


@pytest.mark.parametrize("joint", [False, True])
def test_pickled_models_predict_the_same(joint):
    X, y = load_iris(return_X_y=True)
    model = LabelTreeClassifier(joint=joint, random_state=0).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@given(st.integers(0, 10**6), st.integers(2, 6))
def test_folds_follow_from_the_content_of_the_rows_alone(seed, n_folds):
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.integers(0, 4, size=30))
    content = np.column_stack([labels, rng.integers(0, 6, size=30)]).astype(float)
    folds = assign_folds(row_keys(content), labels, n_folds)
    order = rng.permutation(30)
    np.testing.assert_array_equal(assign_folds(row_keys(content[order]), labels[order], n_folds), folds[order])
    renamed = rng.permutation(4)[labels]
    np.testing.assert_array_equal(assign_folds(row_keys(content), renamed, n_folds), folds)
    for label in np.unique(labels):
        _, first = np.unique(content[labels == label], axis=0, return_index=True)
        sizes = np.bincount(folds[labels == label][first], minlength=n_folds)
        assert sizes.max() - sizes.min() <= 1


def test_row_keys_are_the_same_for_every_layout():
    dense = np.array([[0.0, 1.0, -2.0], [-0.0, 1.0, -2.0], [1.0, -2.0, 0.0], [0.0, 0.0, 0.0]])
    keys = row_keys(dense)
    np.testing.assert_array_equal(row_keys(sp.csr_array(dense)), keys)
    np.testing.assert_array_equal(row_keys(sp.csc_matrix(dense)), keys)
    explicit = sp.csr_array((np.array([0.0, 1.0, -2.0]), np.array([0, 1, 2]), np.array([0, 3])), shape=(1, 3))
    assert row_keys(explicit)[0] == keys[0] == keys[1]
    assert len(set(keys)) == 3
