"""A protocol that takes seconds: digits, two methods, two splits."""

from dataclasses import replace

import pytest

from margintree.experiments.protocol import QUICK, Protocol


@pytest.fixture(scope="session")
def tiny() -> Protocol:
    return replace(
        QUICK,
        name="tiny",
        settings=(("digits", "linear"),),
        n_splits=2,
        n_folds=2,
        costs=(0.01, 1.0),
        timed_rows=5,
        curve_classes=(2, 3),
        digits_setting=("digits", "linear"),
    )
