"""Run a label tree of napkinXC: PLT, or HSM, which is made for one label per row. It trains into a directory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from napkinxc.models import HSM, PLT
from protocol import Peer, run

MODELS = {"HSM": HSM, "PLT": PLT}


class NapkinXC(Peer):
    package = "napkinxc"

    def prepare(self) -> None:
        parameters = dict(self.parameters)
        kind = MODELS[parameters.pop("model")]
        self.path = self.directory / "model"
        self.model = kind(str(self.path), seed=0, threads=1, verbose=0, **parameters)
        self.X, self.X_test = self.rows.sparse()
        self.y = self.rows.y.tolist()

    def fit(self) -> None:
        self.model.fit(self.X, self.y)

    def save(self) -> Path:
        return self.path

    def ready(self) -> None:
        self.model.load()

    def predict(self) -> Any:
        return [labels[0] for labels in self.model.predict(self.X_test, top_k=1)]

    def one_row(self) -> Callable[[int], Any]:
        rows = [self.X_test[i] for i in range(self.X_test.shape[0])]
        return lambda i: self.model.predict(rows[i], top_k=1)[0][0]


if __name__ == "__main__":
    run(NapkinXC)
