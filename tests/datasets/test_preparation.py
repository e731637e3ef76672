import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC
from sklearn.utils import Bunch

from margintree.datasets import DATA_SETS, fetch, prepared, usual_preparation


def bunch_of(name, seed=0):
    counts = np.random.default_rng(seed).poisson(1.0, (30, 8)).astype(float) + np.eye(30, 8)
    return Bunch(name=name, data=sp.csr_matrix(counts) if DATA_SETS[name].is_sparse else counts)


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


@pytest.mark.parametrize("name", DATA_SETS)
def test_rows_outside_of_the_training_rows_change_nothing(name):
    bunch, train = bunch_of(name), np.arange(20)
    first = dense(prepared(bunch, train))
    changed = dense(bunch.data).copy()
    changed[20:] *= 7.0
    other = Bunch(name=name, data=type(bunch.data)(changed) if DATA_SETS[name].is_sparse else changed)
    np.testing.assert_array_equal(dense(prepared(other, train))[:20], first[:20])


def test_svmguide4_is_scaled_by_the_range_of_the_training_rows():
    bunch = bunch_of("svmguide4")
    X = prepared(bunch, np.arange(20))
    np.testing.assert_allclose(X[:20].min(axis=0), -1.0)
    np.testing.assert_allclose(X[:20].max(axis=0), 1.0)
    assert bunch.data.min() >= 0.0, "the data of the bunch have been scaled in place"


def test_word_counts_become_tf_idf_rows_of_unit_length():
    bunch = bunch_of("news20")
    train = np.arange(20)
    counts = bunch.data.toarray()
    idf = np.log((1 + 20) / (1 + (counts[train] > 0).sum(axis=0))) + 1
    expected = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0.0) * idf
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    X = prepared(bunch, train)
    assert X.format == "csr"
    np.testing.assert_allclose(X.toarray(), expected)


def test_visual_words_become_square_roots_of_unit_length():
    bunch = bunch_of("caltech101")
    X = prepared(bunch, np.arange(20))
    np.testing.assert_allclose(X**2, bunch.data / bunch.data.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("name", ["vowel", "segment", "satimage", "usps", "sector", "letter", "pendigits"])
def test_what_the_source_has_scaled_stays_as_it_is(name):
    bunch = bunch_of(name)
    np.testing.assert_array_equal(dense(prepared(bunch, [0, 1])), dense(bunch.data))


def test_a_mask_is_as_good_as_row_numbers():
    bunch = bunch_of("svmguide4")
    np.testing.assert_array_equal(prepared(bunch, np.arange(30) < 20), prepared(bunch, np.arange(20)))


@pytest.mark.parametrize("rows", [[], [0.5, 1.0], [[0, 1]]])
def test_wrong_training_rows_are_told(rows):
    with pytest.raises(ValueError, match="train_rows must be a list of row numbers or a mask"):
        prepared(bunch_of("vowel"), rows)


def test_an_unknown_name_is_told():
    with pytest.raises(ValueError, match="Unknown data set 'iris'; known are svmguide4"):
        usual_preparation("iris")


@pytest.mark.parametrize(("name", "accuracy"), [("satimage", 0.819), ("vowel", 0.405), ("news20", 0.852)])
def test_a_linear_svm_is_as_accurate_on_real_data_as_it_is_known_to_be(name, accuracy, real_data):
    bunch = fetch(name)
    X, y, n = prepared(bunch, np.arange(bunch.n_train)), bunch.target, bunch.n_train
    model = LinearSVC(random_state=0).fit(X[:n], y[:n])
    assert model.score(X[n:], y[n:]) == pytest.approx(accuracy, abs=0.002)
