"""Some hundreds of the mutated files of ``benchmarks/hostile_rows.py``, which tries fifty thousand."""

import sys

import pytest

N_FILES = 800


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_mutated_rows_are_used_or_refused_with_a_message_and_nothing_else():
    import hostile_rows

    # Other seeds than those of the benchmark.
    campaign = hostile_rows.try_rows(N_FILES, first_seed=10**6)
    assert campaign.failures == []
    assert campaign.n_failed == 0
    # A mutator that only breaks or never breaks would test nothing.
    for name in ("predict rows.svm", "predict rows.csv"):
        for outcome in ("refused", "predicts"):
            assert campaign.counts[name, outcome] > N_FILES / 6 / 10, (name, outcome)
    assert sum(count for (name, _), count in campaign.counts.items() if name.startswith("fit")) > 5
