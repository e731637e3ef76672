"""margintree and its peers on dense rows: embeddings of texts, and generated ones.

    python benchmarks/embeddings.py [NAME ...]

Texts are those of the shared data, as the mean of the token vectors that the wheel ``wordllama`` ships (static, 256
numbers, scaled to unit length); without the wheel these sets are left out. Generated rows look like embeddings: few
directions carry the classes, classes come in families, tails are heavy, lengths are one. Each model runs alone in a
process of its own, on one thread. Memory is the peak of the fit above what the process had just before, beside the size
of the training rows.
"""

import argparse
import bz2
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from report import RESULTS, commit, heading, table, write

TEXTS = ("banking77", "wordnet_glosses")
# Classes, training rows of each, and features.
GENERATED = {
    "generated, 100 classes": (100, 50, 256),
    "generated, 500 classes": (500, 40, 768),
    "generated, 1000 classes": (1000, 50, 768),
    "generated, 3000 classes": (3000, 30, 768),
    "generated, 10000 classes": (10000, 10, 256),
}
# Up to here a model takes minutes: products in a pass over all rows and classes.
WORK_OF_PEERS = {"LogisticRegression(C=10)": 4e10, "LinearSVC()": 4e9}
N_SINGLE = 300


def generated(n_classes: int, n_rows: int, n_features: int) -> tuple[Any, ...]:
    """Draw ``n_rows`` training rows and five test rows of each class."""
    random = np.random.RandomState(0)
    spectrum = np.arange(1, n_features + 1) ** -0.6
    spectrum[48:] *= 0.15
    spectrum = (spectrum / np.sqrt((spectrum**2).mean())).astype(np.float32)
    of_classes = np.where(np.arange(n_features) < 48, spectrum, 0.0).astype(np.float32)
    rotation = np.linalg.qr(random.randn(n_features, n_features))[0].astype(np.float32)
    families = random.randn(40, n_features).astype(np.float32) * of_classes
    centres = families[random.randint(0, 40, n_classes)]
    centres = centres + random.randn(n_classes, n_features).astype(np.float32) * of_classes
    y = np.repeat(np.arange(n_classes), n_rows + 5)
    width = np.exp(0.25 * random.randn(n_classes)).astype(np.float32)
    X = np.empty((len(y), n_features), np.float32)
    for first in range(0, len(y), 10_000):
        part = slice(first, first + 10_000)
        n = len(y[part])
        noise = random.randn(n, n_features).astype(np.float32) * spectrum
        noise *= np.sqrt(random.gamma(4, 0.25, (n, 1))).astype(np.float32)
        X[part] = centres[y[part]] + width[y[part]][:, None] * noise
    X = X @ rotation + np.float32(0.8)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    is_test = np.tile(np.arange(n_rows + 5) >= n_rows, n_classes)
    order = random.permutation(int((~is_test).sum()))
    return X[~is_test][order], y[~is_test][order], X[is_test], y[is_test]


def embedded(name: str) -> tuple[Any, ...]:
    """Return the rows of a set of texts."""
    import wordllama
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    root = Path(wordllama.__file__).parent
    vectors = next(iter(load_file(root / "weights/l2_supercat_256.safetensors").values())).astype(np.float32)
    tokenizer = Tokenizer.from_file(str(root / "tokenizers/l2_supercat_tokenizer_config.json"))
    parts: list[Any] = []
    for part in ("train", "test"):
        path = Path(os.environ["MARGINTREE_DATA"]) / f"{name}.{part}.tsv.bz2"
        with bz2.open(path, "rt") as file:
            lines = [line.rstrip("\n").split("\t", 1) for line in file]
        tokens = tokenizer.encode_batch([text for _, text in lines], add_special_tokens=False)
        X = np.array([vectors[one.ids].mean(axis=0) if one.ids else 0.0 * vectors[0] for one in tokens])
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        parts += [X / np.where(norms > 0.0, norms, 1.0), np.array([label for label, _ in lines])]
    return tuple(parts)


def rows_of(name: str) -> tuple[Any, ...]:
    return generated(*GENERATED[name]) if name in GENERATED else embedded(name)


def models(work: float) -> dict[str, Any]:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
    from sklearn.svm import LinearSVC

    from margintree import MarginTreeClassifier

    found: dict[str, Any] = {
        "margintree": MarginTreeClassifier(random_state=0),
        "margintree, two threads": MarginTreeClassifier(random_state=0, n_jobs=2),
        "margintree, greedy": MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0),
        "LogisticRegression(C=10)": LogisticRegression(C=10, max_iter=50),
        "LinearSVC()": LinearSVC(),
        "LinearDiscriminantAnalysis()": LinearDiscriminantAnalysis(),
        "RidgeClassifier()": RidgeClassifier(),
        "NearestCentroid()": NearestCentroid(),
        "10 nearest neighbours (faiss)": FaissNeighbours() if find_spec("faiss") else KNeighborsClassifier(10),
    }
    return {name: model for name, model in found.items() if work <= WORK_OF_PEERS.get(name, np.inf)}


class FaissNeighbours:
    """The vote of the ten nearest rows, by an exact search."""

    def fit(self, X: Any, y: Any) -> "FaissNeighbours":
        import faiss

        self.classes_, self._codes = np.unique(y, return_inverse=True)
        self._index = faiss.IndexFlatL2(X.shape[1])
        self._index.add(X)
        return self

    def predict(self, X: Any) -> Any:
        near = self._codes[self._index.search(np.ascontiguousarray(X, dtype=np.float32), 10)[1]]
        return self.classes_[[np.bincount(row).argmax() for row in near]]


def resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def measure(name: str, path: str) -> dict[str, Any]:
    """Fit one model in this process, after a small fit that compiles and loads what it needs."""
    data = np.load(path)
    X, y, X_test, y_test = (data[key] for key in ("X", "y", "X_test", "y_test"))
    model = models(X.size * len(np.unique(y)))[name]
    # More than 2^22 values in few classes: rows of a large set stay in place, which is compiled apart.
    few = np.flatnonzero(np.isin(y, np.unique(y)[:100]))
    copies = np.tile(few, max(1, int(np.ceil(2**22 / (len(few) * X.shape[1]))))) if "margintree" in name else few
    model.fit(X[copies], y[copies]).predict(X_test[:10])
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    began = time.perf_counter()
    model.fit(X, y)
    fit, memory = time.perf_counter() - began, resident("VmHWM") - before
    began = time.perf_counter()
    predicted = model.predict(X_test)
    batch = (time.perf_counter() - began) / len(X_test)
    predict = model.single_instance().predict if "margintree" in name else model.predict
    one = [row if "margintree" in name else row[None] for row in X_test[:N_SINGLE].astype(np.float64)]
    predict(one[0])
    began = time.perf_counter()
    for row in one:
        predict(row)
    single = (time.perf_counter() - began) / len(one)
    right = predicted == y_test
    per_class = [right[y_test == k].mean() for k in np.unique(y_test)]
    return {
        "fit": fit,
        "memory": memory,
        "data": X.nbytes,
        "single": single,
        "batch": batch,
        "accuracy": float(right.mean()),
        "mean_per_class": float(np.mean(per_class)),
        "size": len(pickle.dumps(model)),
        "evaluations": float(model.n_evaluations(X_test).mean()) if "margintree" in name else None,
    }


def run(names: list[str]) -> None:
    stored = RESULTS / "embeddings.json"
    results = json.loads(stored.read_text()) if stored.exists() else {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            X, y, X_test, y_test = rows_of(name)
            path = str(Path(folder) / "rows.npz")
            np.savez(path, X=X, y=y, X_test=X_test, y_test=y_test)
            work, shape, n_classes = float(X.size) * len(np.unique(y)), list(X.shape), len(np.unique(y))
            del X, y, X_test, y_test
            found: dict[str, Any] = {}
            for model in models(work):
                threads = "2" if "two threads" in model else "1"
                environment = os.environ | dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), threads)
                command = [sys.executable, __file__, "--measure", model, path]
                done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
                if done.returncode:
                    raise RuntimeError(f"{model} on {name}: {done.stderr}")
                found[model] = json.loads(done.stdout.splitlines()[-1])
                print(f"{name}: {model} {found[model]['fit']:.2f} s, {found[model]['accuracy']:.4f}", flush=True)
        results[name] = {"shape": shape, "n_classes": n_classes, "commit": commit(), "models": found}
        stored.write_text(json.dumps(results, indent=1) + "\n")
    lines = heading("Dense rows", "")
    for name, result in results.items():
        rows, features = result["shape"]
        lines += [f"## {name}: {rows} x {features}, {result['n_classes']} classes ({result['commit']})", ""]
        header = [
            "",
            "fit s",
            "memory / data",
            "one row us",
            "batch us",
            "accuracy",
            "mean per class",
            "model MB",
            "d. f.",
        ]
        lines += table(
            header,
            [
                [
                    model,
                    f"{one['fit']:.2f}",
                    f"{one['memory'] / one['data']:.1f}",
                    f"{1e6 * one['single']:.1f}",
                    f"{1e6 * one['batch']:.1f}",
                    f"{one['accuracy']:.4f}",
                    f"{one['mean_per_class']:.4f}",
                    f"{one['size'] / 2**20:.1f}",
                    "" if one["evaluations"] is None else f"{one['evaluations']:.0f}",
                ]
                for model, one in result["models"].items()
            ],
        )
    lines.append("d. f.: mean number of decision functions per prediction.")
    write("embeddings", lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--measure", nargs=2, metavar=("MODEL", "ROWS"))
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return
    known = [*(TEXTS if find_spec("wordllama") else ()), *GENERATED]
    unknown = set(options.names) - set(known)
    if unknown:
        parser.error(f"unknown or not available: {sorted(unknown)}; there are {known}")
    run(options.names or known)


if __name__ == "__main__":
    main()
