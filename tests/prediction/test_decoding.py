"""Decodings, against their formulas written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margintree.prediction.decoding import attenuated, hamming, loss_weighted, loss_weights
from margintree.structures.codes import sparse_code


def make(seed, n_classes=6):
    random = np.random.default_rng(seed)
    code = sparse_code(n_classes, seed=seed, n_draws=1)
    values = random.normal(size=(7, code.shape[1]))
    values[random.random(values.shape) < 0.05] = 0.0
    accuracy = random.random(code.shape) * (code != 0)
    return values, code, accuracy


def written_out(term, values, code):
    return np.array([[sum(term(k, j, f) for j, f in enumerate(row)) for k in range(len(code))] for row in values])


@given(seed=st.integers(0, 10_000))
def test_hamming_counts_half_for_a_zero(seed):
    values, code, _ = make(seed)
    expected = written_out(lambda k, j, f: (1 - np.sign(f) * code[k, j]) / 2, values, code)
    np.testing.assert_allclose(hamming(values, code), expected)


@given(seed=st.integers(0, 10_000))
def test_attenuated_distance_is_euclidean_without_the_zeros(seed):
    values, code, _ = make(seed)

    def term(k, j, f):
        return abs(np.sign(f)) * abs(code[k, j]) * (np.sign(f) - code[k, j]) ** 2

    np.testing.assert_allclose(attenuated(values, code), np.sqrt(written_out(term, values, code)), atol=1e-12)


@given(seed=st.integers(0, 10_000))
def test_loss_weighted_distance_is_the_weighted_exponential_loss(seed):
    values, code, accuracy = make(seed)
    weights = loss_weights(accuracy)
    expected = written_out(lambda k, j, f: weights[k, j] * np.exp(-code[k, j] * f), values, code)
    np.testing.assert_allclose(loss_weighted(values, code, weights), expected)


@given(seed=st.integers(0, 10_000))
def test_weights_of_a_class_sum_to_one_and_ignore_machines_that_do_not_see_it(seed):
    _, code, accuracy = make(seed)
    weights = loss_weights(accuracy)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert not weights[code == 0].any()
    np.testing.assert_allclose(weights * accuracy.sum(axis=1, keepdims=True), accuracy)


@pytest.mark.parametrize("rule", [hamming, attenuated, lambda v, c: loss_weighted(v, c, loss_weights(c**2.0))])
def test_a_code_word_is_nearest_to_its_own_class(rule):
    code = sparse_code(8, seed=2)
    # A machine that does not know the class has no opinion.
    assert np.argmin(rule(3.0 * code, code), axis=1).tolist() == list(range(8))


def test_huge_values_stay_finite():
    code = np.array([[1, -1], [-1, 1], [-1, -1]], dtype=np.int8)
    distance = loss_weighted(np.array([[1e6, -1e6], [-1e300, 1e300]]), code, np.full((3, 2), 0.5))
    assert np.isfinite(distance).all()
    assert np.argmin(distance, axis=1).tolist() == [0, 1]
