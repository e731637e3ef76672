"""A part of ``benchmarks/long_service.py``: threads predict while models are loaded and dropped."""

import sys

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_does_not_grow_and_answers_stay_the_same():
    import long_service

    service = long_service.run(200_000, n_threads=8)
    assert service.n_predictions == 200_000
    assert service.n_loads >= 100
    assert service.n_wrong == 0
    # One model that is not let go costs some 40 kB: a hundred of them would show.
    assert service.late_bytes < service.early_bytes + 3 * 2**20
