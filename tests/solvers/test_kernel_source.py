"""Kernel values between training rows: the matrix of all of them."""

import threading
from typing import Any

import numpy as np
import pytest

from margintree.solvers import kernel_source
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.kernel_source import KernelSource
from margintree.worker_threads import in_threads


def test_threads_that_ask_for_all_values_at_once_share_one_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_source, "MANY_ROWS", 10)
    X = np.random.default_rng(0).normal(size=(500, 3))
    source = KernelSource(KernelFunction("rbf", gamma=1.0), X, cache_size=10.0, hold_all=False)
    assert source.gram is None
    together = threading.Barrier(4)

    def ask(_: int) -> Any:
        together.wait()
        return source.held()

    matrices = in_threads(ask, range(4), 4)
    assert all(matrix is source.gram for matrix in matrices)
