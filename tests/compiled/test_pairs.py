"""Pairs of rows and classes: projections on class means and the blend, against plain numpy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from margintree.compiled import pairs
from margintree.compiled.rows import squared_norms
from margintree.solvers.row_layout import layout

LAYOUTS = pytest.mark.parametrize("make", [np.ascontiguousarray, sp.csr_array], ids=["dense", "csr"])


def slow_projection(X, class_start, weight, row, class_):
    """Return m'x / |m| with the weighted sum m of the class, less one of the row where it is a member."""
    weight = weight.copy()
    if class_start[class_] <= row < class_start[class_ + 1]:
        weight[row] = max(0.0, weight[row] - 1.0)
    members = slice(class_start[class_], class_start[class_ + 1])
    mean = weight[members] @ X[members]
    length = np.linalg.norm(mean)
    return mean @ X[row] / length if length > 0.0 else 0.0


def projections(make, X, class_start, weight, pair_start, pair_row):
    rows = layout(make(X))
    result = np.full(len(pair_row), np.nan)
    pairs.class_projections(
        rows, X.shape[1], class_start, weight, squared_norms(rows, len(X)), pair_start, pair_row, result
    )
    return result


@LAYOUTS
@given(seed=st.integers(0, 10**6))
@settings(max_examples=40)
def test_projections_leave_the_row_itself_out(make, seed):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 5, size=4)
    class_start = np.concatenate([[0], np.cumsum(sizes)])
    X = random.normal(size=(class_start[-1], 6)) * (random.random((class_start[-1], 6)) < 0.7)
    weight = random.choice([0.3, 1.0, 2.0], size=len(X))
    # Every row with every class.
    pair_start, pair_row = np.arange(5) * len(X), np.tile(np.arange(len(X)), 4)
    expected = [
        slow_projection(X, class_start, weight, row, class_)
        for class_, row in zip(np.repeat(np.arange(4), len(X)), pair_row, strict=True)
    ]
    np.testing.assert_allclose(projections(make, X, class_start, weight, pair_start, pair_row), expected, atol=1e-7)


def test_projections_of_a_row_of_weight_two_are_those_of_a_row_that_stands_there_twice():
    X = np.random.default_rng(0).normal(size=(6, 4))
    every = (np.array([0, 6, 12]), np.tile(np.arange(6), 2))
    weighted = projections(np.asarray, X, np.array([0, 3, 6]), np.array([2.0, 1, 1, 1, 1, 1]), *every)
    doubled = np.vstack([X[:1], X])
    twice = projections(
        *(np.asarray, doubled, np.array([0, 4, 7]), np.ones(7), np.array([0, 7, 14]), np.tile(np.arange(7), 2))
    )
    np.testing.assert_allclose(weighted, np.delete(twice, [0, 7]), rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_no_other_blend_has_a_smaller_loss(seed):
    random = np.random.default_rng(seed)
    class_start, pair_start = np.array([0, 10, 25, 40]), np.array([0, 70, 120, 200])
    row = np.concatenate([random.integers(0, 40, size=n) for n in np.diff(pair_start)])
    class_of_row = np.repeat(np.arange(3), np.diff(class_start))
    signs = np.where(class_of_row[row] == np.repeat(np.arange(3), np.diff(pair_start)), 1.0, -1.0)
    projection, path_score = signs * 0.5 + random.normal(size=200), -signs * 0.2 + random.normal(size=200)
    weights = random.uniform(0.1, 2.0, size=40)
    features = np.column_stack([np.ones(200), projection, path_score])

    def loss(blend):
        slack = np.maximum(0.0, 1.0 - signs * (features @ blend))
        return 0.5e-3 * blend @ blend + 0.5 * weights[row] @ slack**2

    found = pairs.fit_blend(class_start, pair_start, row, projection, path_score, weights, 1e-3)
    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(found, best.x, atol=1e-5)
    assert loss(found) <= best.fun * (1 + 1e-9)
