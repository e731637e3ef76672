"""Run MarginTreeClassifier, or the estimator that is named, with the given parameters."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import scipy.sparse as sp
from protocol import Peer, run

import margintree

COMPILE_ROWS = 300


class MarginTree(Peer):
    package = "margintree"

    def version(self) -> str:
        # Rows are kept while the code goes on, so the number of the version says too little.
        if shutil.which("git") is None:
            return super().version()
        command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
        done = subprocess.run(command, capture_output=True, text=True)
        return f"{super().version()} ({done.stdout.strip()})" if done.returncode == 0 else super().version()

    def prepare(self) -> None:
        parameters = dict(self.parameters)
        estimator = getattr(margintree, parameters.pop("estimator", "MarginTreeClassifier"))
        self.model = estimator(random_state=0, **parameters)
        # Compiles, or loads compiled code, so that the clock sees the work alone.
        self.model.fit(self.rows.X[:COMPILE_ROWS], self.rows.y[:COMPILE_ROWS]).predict(self.rows.X_test[:2])

    def fit(self) -> None:
        self.model.fit(self.rows.X, self.rows.y)

    def save(self) -> Path:
        path = self.directory / "model.margintree"
        margintree.save_model(self.model, path)
        return path

    def predict(self) -> Any:
        return self.model.predict(self.rows.X_test)

    def one_row(self) -> Callable[[int], Any] | None:
        if not hasattr(self.model, "single_instance"):
            return None
        predictor, X = self.model.single_instance(), self.rows.X_test
        if not sp.issparse(X):
            dense = list(X)
            return lambda i: predictor.predict(dense[i])
        sparse = [(row.indices, row.data) for row in X]
        return lambda i: predictor.predict(*sparse[i])

    def evaluations(self) -> float | None:
        return float(self.model.n_evaluations(self.rows.X_test).mean())


if __name__ == "__main__":
    run(MarginTree)
