"""Run omikuji; parameters are fields of its hyper-parameter structure. It trains from a text file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import omikuji
from protocol import Peer, run


class Omikuji(Peer):
    package = "omikuji"

    def prepare(self) -> None:
        self.hyper = omikuji.Model.default_hyper_param()
        for name, value in self.parameters.items():
            setattr(self.hyper, name, value)
        _, X_test = self.rows.sparse()
        self.pairs = [list(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in X_test]

    def fit(self) -> None:
        self.model = omikuji.Model.train_on_data(str(self.rows.directory / "train.xmc"), self.hyper, n_threads=1)

    def save(self) -> Path:
        path = self.directory / "model"
        self.model.save(str(path))
        return path

    def ready(self) -> None:
        self.model.init_prediction_thread_pool(1)
        # As omikuji's own command does before it predicts.
        self.model.densify_weights(n_threads=1)

    def classify(self, i: int) -> int:
        found = self.model.predict(self.pairs[i], top_k=1)
        return found[0][0] if found else -1

    def predict(self) -> Any:
        # The Python API takes one row at a time.
        return [self.classify(i) for i in range(len(self.pairs))]

    def one_row(self) -> Callable[[int], Any]:
        return self.classify


if __name__ == "__main__":
    run(Omikuji)
