"""Fitted models to look at, drawn without a screen."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")

import pytest
from hostile_labels import HOSTILE
from sklearn.datasets import load_digits

from margintree import MarginTreeClassifier


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="session")
def digits():
    """Return a calibrated model, and rows that it has not seen."""
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    return MarginTreeClassifier(C=10, decide="pairs", random_state=0).fit(X[:500], y[:500]), X[500:900], y[500:900]


@pytest.fixture(scope="session")
def hostile():
    """Return a model whose labels mean something to every language that they are written into."""
    X, y = load_digits(n_class=8, return_X_y=True)
    model = MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0)
    return model.fit(X[:300], HOSTILE[y[:300]]), X[:300], HOSTILE[y[:300]]
