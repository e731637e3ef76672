"""Every finite row gets finite probabilities that sum to one, whatever its size."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from margintree import MarginTreeClassifier

SETTINGS = [
    {},
    {"decide": "rest"},
    {"decide": "paths"},
    {"walk": "greedy"},
    {"walk": "all"},
    {"n_trees": 3},
    {"kernel": "rbf", "gamma": 1.0},
]


@pytest.mark.parametrize("factor", [1e2, 1e4, 1e100, 1e300, 1.7e308])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_probabilities_are_finite_and_sum_to_one(setting, factor):
    X, y = load_digits(return_X_y=True)
    X = X / 16
    model = MarginTreeClassifier(random_state=0, **setting).fit(X[:300], y[:300])
    extreme = np.vstack([X * factor, -X * factor])
    if setting.get("kernel") == "rbf" and factor > 1e300:
        # Differences of such numbers are not finite, which kernel functions tell.
        with pytest.raises(ValueError, match="Scale the features"), np.errstate(over="ignore", invalid="ignore"):
            model.predict_proba(extreme)
        return
    probabilities = model.predict_proba(extreme)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    scores = model.predict_top_k(extreme, 3)[1]
    assert np.isfinite(scores).all()
    if factor < 1e308:
        # Beyond, the order of summation decides whether an inner product is infinite or no number.
        np.testing.assert_allclose(scores, -np.sort(-probabilities, axis=1)[:, :3], atol=1e-12)
    single = model.single_instance()
    for row in extreme[::200]:
        one = single.predict_proba(row)
        assert np.isfinite(one).all()
        assert one.sum() == pytest.approx(1.0)
