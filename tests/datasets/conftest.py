"""A web server on loopback with chosen faults, and small data sets."""

import bz2
import io
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from margintree.datasets.registry import DATA_SETS, DataSet, Form, LibsvmSite


@dataclass
class Site:
    """What the server answers, and what it has been asked for.

    ``faults`` are used up one by one, by each request: a status, "truncated" (the connection closes after half of
    the announced bytes), "reset" (it closes without an answer), or None for the true answer.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    faults: list[int | str | None] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    address: str = ""


class _Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        self.site.requests.append(self.path)
        fault = self.site.faults.pop(0) if self.site.faults else None
        content = self.site.files.get(self.path)
        if fault == "reset":
            return
        if content is None or isinstance(fault, int):
            self.send_error(fault if isinstance(fault, int) else 404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if fault == "truncated" else content)

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


@pytest.fixture
def site() -> Iterator[Site]:
    """Return a running server."""
    served = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"site": served}))
    served.address = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def _no_data_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the data directory of the machine."""
    monkeypatch.delenv("MARGINTREE_DATA", raising=False)


@pytest.fixture
def real_data(data_directory: Path, _no_data_directory: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the data directory of the machine, named in the environment."""
    monkeypatch.setenv("MARGINTREE_DATA", str(data_directory))
    return data_directory


@pytest.fixture(scope="session")
def data_directory(data_directory: Path) -> Path:
    """Look the directory up once, before any test hides it."""
    return data_directory


def libsvm_text(n_rows: int, n_features: int, labels: tuple[int, ...], seed: int = 0) -> bytes:
    """Return rows in LIBSVM format that use all features and all labels."""
    random = np.random.default_rng(seed)
    stream = io.BytesIO()
    X = random.integers(1, 9, (n_rows, n_features)).astype(float)
    dump_svmlight_file(X, np.resize(labels, n_rows), stream, zero_based=False)
    return stream.getvalue()


SMALL = DataSet(
    "small",
    title="Small",
    n_train_paper=12,
    n_test_paper=9,
    n_features=4,
    kernels=("linear",),
    description="Made for tests.",
    labels=(0, 1, 2),
    forms=(Form("small", 12, 9, 4, LibsvmSite("small.scale", "small.t.bz2")),),
)
SMALL_TRAIN = libsvm_text(12, 4, (0, 1, 2), seed=1)
SMALL_TEST = libsvm_text(9, 4, (0, 1, 2), seed=2)


@pytest.fixture
def small() -> DataSet:
    """Return a data set with a plain and a compressed file."""
    return SMALL


@pytest.fixture
def small_site(site: Site) -> Site:
    """Return a server that holds the files of the small data set."""
    site.files |= {"/small.scale": SMALL_TRAIN, "/small.t.bz2": bz2.compress(SMALL_TEST)}
    return site


@pytest.fixture
def store_form(tmp_path: Path) -> Any:
    """Return a function that writes random rows of a form into a directory."""

    def store(name: str, stem: str, directory: Path, labels: tuple[int, ...] | None = None) -> None:
        form = next(form for form in DATA_SETS[name].forms if form.stem == stem)
        directory.mkdir(exist_ok=True)
        for n_rows, ending in ((form.n_train, ""), (form.n_test, ".t")):
            if n_rows:
                text = libsvm_text(n_rows, form.n_features or 5, labels or DATA_SETS[name].labels)
                (directory / f"{stem}{ending}.bz2").write_bytes(bz2.compress(text))

    return store
