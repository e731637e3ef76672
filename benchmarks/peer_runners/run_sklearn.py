"""Run a linear model of scikit-learn, or the cosine to the class mean."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from protocol import Peer, run
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC


class CosineToClassMean(ClassifierMixin, BaseEstimator):
    """The class whose mean has the smallest angle to the row: the floor for everything that learns."""

    def fit(self, X: Any, y: np.ndarray) -> "CosineToClassMean":
        self.classes_, codes = np.unique(y, return_inverse=True)
        members = sp.csr_matrix((np.ones(len(y)), codes, np.arange(len(y) + 1)))
        means = normalize(members.T @ X)
        self.means_ = sp.csr_matrix(means.T) if sp.issparse(means) else np.ascontiguousarray(means.T)
        return self

    def predict(self, X: Any) -> np.ndarray:
        values = X @ self.means_
        values = values.toarray() if sp.issparse(values) else values
        return self.classes_[values.argmax(axis=1)]


MODELS = {"LinearSVC": LinearSVC, "cosine": CosineToClassMean}


class ScikitLearn(Peer):
    package = "scikit-learn"

    def prepare(self) -> None:
        parameters = dict(self.parameters)
        self.model = MODELS[parameters.pop("model")](**parameters)

    def fit(self) -> None:
        self.model.fit(self.rows.X, self.rows.y)

    def save(self) -> Path:
        path = self.directory / "model.pickle"
        with open(path, "wb") as file:
            pickle.dump(self.model, file)
        return path

    def predict(self) -> Any:
        return self.model.predict(self.rows.X_test)

    def one_row(self) -> Callable[[int], Any]:
        rows = [self.rows.X_test[i : i + 1] for i in range(len(self.rows.y_test))]
        return lambda i: self.model.predict(rows[i])[0]


if __name__ == "__main__":
    run(ScikitLearn)
