"""Two thousand of the mutated files of ``benchmarks/hostile_files.py``, which tries a hundred thousand."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from margintree import ModelFileError

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
N_FILES = 2000


@pytest.fixture
def hostile_files():
    return pytest.importorskip("hostile_files", reason="limits of memory are POSIX", exc_type=ImportError)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of memory are POSIX")
def test_hostile_files_are_refused_or_predict_without_crash_or_endless_loop(hostile_files):
    # Other seeds than those of the benchmark.
    campaign = hostile_files.try_files(N_FILES, first_seed=10**6)
    assert campaign.failures == []
    assert campaign.n_failed == 0
    # Both ends are really met, or the mutator is too tame or too wild to say anything.
    for outcome, least in (("refused", N_FILES / 4), ("predicts", N_FILES / 20)):
        assert sum(count for (_, found), count in campaign.counts.items() if found == outcome) > least
    sealed = sum(count for (kind, _), count in campaign.counts.items() if kind.endswith("sealed again"))
    assert abs(sealed - N_FILES / 2) < N_FILES / 20


@pytest.mark.skipif(sys.platform != "linux", reason="memory is fenced on Linux only")
@pytest.mark.parametrize(("at_front", "place"), [(False, "array.nbytes"), (True, "-8")])
def test_a_read_outside_of_an_array_is_found_out(at_front, place):
    """The fence itself: a process that reads one element too many dies of it, and is reported by its seed."""
    program = f"""
import ctypes, sys
import numpy as np
sys.path.insert(0, {str(BENCHMARKS)!r})
from hostile_files import fenced
array = fenced(np.arange(10.0).tobytes(), 0, np.dtype(np.float64), (10,), at_front={at_front})
assert array.sum() == 45.0
print("whole", flush=True)
ctypes.c_double.from_address(array.ctypes.data + {place}).value
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "whole\n"
    assert done.returncode < 0


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_and_time_out_of_proportion_are_found_out(hostile_files, monkeypatch):
    with hostile_files.bounded("loading", 1000):
        pass
    # So much is never memory that the process has already and does not use.
    with pytest.raises(AssertionError, match="loading 1000 bytes took"), hostile_files.bounded("loading", 1000):
        np.ones(2**24)
    monkeypatch.setattr(hostile_files, "MOST_SECONDS", -1.0)
    with pytest.raises(AssertionError, match=r"took 0\.\d s"), hostile_files.bounded("loading", 1000):
        raise ModelFileError("refused, too late")


def test_mutations_are_the_same_for_the_same_seed(hostile_files, tmp_path):
    from file_mutations import MUTATIONS, ModelFile, mutated
    from fitted_models import fitted_case

    from margintree import save_model

    save_model(fitted_case("MarginTreeClassifier linear").model, tmp_path / "model")
    files = [ModelFile((tmp_path / "model").read_bytes())]
    assert files[0].copy().written(sealed=True) == files[0].raw
    for seed in range(100):
        assert mutated(files, seed) == mutated(files, seed)
    assert {mutated(files, seed)[1] for seed in range(300)} == set(range(len(MUTATIONS)))
