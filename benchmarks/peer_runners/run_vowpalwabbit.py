"""Run a reduction of Vowpal Wabbit to many classes. It trains from a text file with its own driver."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from protocol import Peer, run
from vowpalwabbit import Workspace


class VowpalWabbit(Peer):
    package = "vowpalwabbit"

    def prepare(self) -> None:
        self.arguments = self.parameters["arguments"].format(n_classes=self.rows.n_classes)
        self.lines = (self.rows.directory / "test.vw").read_text().splitlines()
        # Without the label, as a user has it.
        self.lines = ["|" + line.split("|", 1)[1] for line in self.lines]
        self.path = self.directory / "model.vw"

    def fit(self) -> None:
        data, cache = self.rows.directory / "train.vw", self.directory / "cache"
        model = Workspace(f"{self.arguments} --quiet -d {data} --cache_file {cache} -f {self.path}")
        model.finish()

    def save(self) -> Path:
        return self.path

    def ready(self) -> None:
        self.model = Workspace(f"--quiet --testonly -i {self.path}")

    def predict(self) -> Any:
        data, predictions = self.rows.directory / "test.vw", self.directory / "predictions"
        model = Workspace(f"--quiet --testonly -i {self.path} -d {data} -p {predictions}")
        model.finish()
        return np.loadtxt(predictions, usecols=0, dtype=np.int64) - 1

    def one_row(self) -> Callable[[int], Any]:
        return lambda i: self.model.predict(self.lines[i]) - 1


if __name__ == "__main__":
    run(VowpalWabbit)
