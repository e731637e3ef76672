"""Run XR-Linear of PECOS: label embeddings from the class means, hierarchical k-means, a linear ranker per level."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
from protocol import Peer, run


class Pecos(Peer):
    package = "libpecos"

    def prepare(self) -> None:
        self.X, self.X_test = self.rows.sparse()
        self.X.sort_indices()
        self.X_test.sort_indices()
        n = len(self.rows.y)
        self.Y = sp.csr_matrix((np.ones(n, dtype=np.float32), self.rows.y, np.arange(n + 1)), (n, self.rows.n_classes))

    def fit(self) -> None:
        embedding = LabelEmbeddingFactory.create(self.Y, self.X, method="pifa")
        chain = Indexer.gen(embedding, indexer_type="hierarchicalkmeans", threads=1)
        self.model = XLinearModel.train(self.X, self.Y, C=chain, threads=1, **self.parameters)

    def save(self) -> Path:
        path = self.directory / "model"
        self.model.save(str(path))
        return path

    def ready(self) -> None:
        # The form of the model that is made for prediction alone, read from the file.
        self.model = XLinearModel.load(str(self.directory / "model"), is_predict_only=True)

    def classify(self, X: sp.csr_matrix) -> np.ndarray:
        found = self.model.predict(X, only_topk=1, threads=1)
        return np.where(np.diff(found.indptr) > 0, np.append(found.indices, 0)[found.indptr[:-1]], -1)

    def predict(self) -> Any:
        return self.classify(self.X_test)

    def one_row(self) -> Callable[[int], Any]:
        rows = [self.X_test[i] for i in range(self.X_test.shape[0])]
        return lambda i: self.model.predict(rows[i], only_topk=1, threads=1).indices[0]


if __name__ == "__main__":
    run(Pecos)
