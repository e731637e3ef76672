"""Clusters of processes of their own, and models as bytes."""

import importlib.util
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp

from margintree.model_file.container import digest_of
from margintree.model_file.files import as_contents

collect_ignore_glob = [] if importlib.util.find_spec("distributed") else ["test_*.py"]


def pytest_report_header():
    return None if not collect_ignore_glob else "tests/dask is left out: the extra dask is not installed"


@contextmanager
def two_workers():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def client():
    """A client of two workers, each a process with one thread, for all tests."""
    with two_workers() as client:
        yield client


@pytest.fixture
def new_client():
    """The same for one test: a cluster that has lost workers does not close well."""
    with two_workers() as client:
        yield client


@pytest.fixture(scope="session")
def same_model():
    """Return whether two models are the same, byte for byte, as a model file has them."""

    def same(one, other):
        (arrays, facts), (others, other_facts) = as_contents(one), as_contents(other)
        digests = [{name: digest_of(array) for name, array in some.items()} for some in (arrays, others)]
        return digests[0] == digests[1] and facts == other_facts

    return same


@pytest.fixture(scope="session")
def dense_rows():
    """600 rows of 12 classes, and their labels."""
    random = np.random.default_rng(0)
    y = random.integers(12, size=600)
    return random.normal(size=(12, 8))[y] * 2 + random.normal(size=(600, 8)), y


@pytest.fixture(scope="session")
def sparse_rows(dense_rows):
    """The same in 40 columns, most of which are empty."""
    random = np.random.default_rng(1)
    X, y = dense_rows
    wide = np.where(random.uniform(size=(600, 40)) < 0.2, random.uniform(size=(600, 40)), 0.0)
    wide[:, :8] += np.maximum(X, 0.0)
    return sp.csr_array(wide), np.array([f"class {k}" for k in y])
