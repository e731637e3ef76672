"""Fixtures of the model file's tests."""

from typing import Any

import numpy as np
import pytest
from fitted_models import answers, fitted_case


@pytest.fixture
def fitted():
    return fitted_case


@pytest.fixture
def assert_same_answers():
    def check(model: Any, other: Any, X: Any) -> None:
        expected, given = answers(model, X), answers(other, X)
        assert expected.keys() == given.keys()
        for name, value in expected.items():
            assert value.dtype == given[name].dtype, name
            np.testing.assert_array_equal(value, given[name], err_msg=name)

    return check
