"""What is timed is a prediction: every way of predicting one row gives the label of the batch."""

import numpy as np
import pytest
import scipy.sparse as sp

from margintree.experiments.data import split
from margintree.experiments.methods import METHODS
from margintree.experiments.timing import arguments, one_row_predictors, seconds_per_row

CASES = [
    (name, kernel)
    for name, method in METHODS.items()
    for kernel in method.kernels
    if not method.tuned_with and "split" not in method.parameters
]


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize(("name", "kernel"), CASES)
def test_every_way_predicts_as_the_batch_does_and_takes_time(name, kernel, layout):
    rows = split("digits", 0)
    X = rows.X_train[:200]
    X = sp.csr_matrix(X) if layout == "sparse" else X
    model = METHODS[name].model(kernel, {"C": 1.0}, 0).fit(X, rows.y_train[:200])
    expected = model.predict(X[:8])
    ways = one_row_predictors(model)
    assert set(ways) == {"predict", "compiled"}
    for way, predict in ways.items():
        found = [np.ravel(predict(*arguments(X, i, way)))[0] for i in range(8)]
        assert found == expected.tolist(), way
    seconds = seconds_per_row(model, X, 4)
    assert set(seconds) == set(ways)
    assert all(0.0 < value < 1.0 for value in seconds.values())
