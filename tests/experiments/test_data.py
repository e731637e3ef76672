"""Splits of the experiment: sizes of Table 1, drawn by their number, scaled by their training rows only."""

import numpy as np
import pytest

from margintree.datasets import DATA_SETS
from margintree.experiments.data import download, split, split_rows, tuning_rows, whole_set

# What is at hand instead of the paper's rows: of a part, half trains.
OTHER_SIZES = {"sector": (913, 913)}


def test_a_split_divides_all_rows_and_depends_on_its_number_only():
    bunch = whole_set("digits")
    train, test = split_rows(bunch, 0)
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(bunch.target)))
    assert np.array_equal(train, split_rows(bunch, 0)[0])
    assert not np.array_equal(train, split_rows(bunch, 1)[0])


def test_tuning_sees_training_rows_of_the_first_split_only_and_no_more_than_asked():
    rows = split("digits", 0)
    X, y = tuning_rows("digits", 100)
    assert len(y) == 100
    training = {row.tobytes() for row in rows.X_train}
    assert all(row.tobytes() in training for row in X)
    assert tuning_rows("digits", 10**6)[0] is rows.X_train


def test_what_ships_with_scikit_learn_is_not_downloaded():
    assert download(["digits"]) == {}


@pytest.mark.parametrize("name", ["svmguide4", "vowel", "segment", "satimage", "usps", "sector"])
def test_sizes_are_those_of_table_1_or_of_what_stands_for_it(data_directory, name):
    facts = DATA_SETS[name]
    rows = split(name, 0)
    expected = OTHER_SIZES.get(name, (facts.n_train_paper, facts.n_test_paper))
    assert (len(rows.y_train), len(rows.y_test)) == expected
    assert rows.X_train.shape[1] == facts.n_features
    assert len(np.unique(rows.y_train)) == facts.n_classes


def test_scaling_is_fitted_on_the_training_rows_of_the_split(data_directory):
    rows = split("svmguide4", 1)
    assert rows.X_train.min(axis=0) == pytest.approx(np.full(10, -1.0))
    assert rows.X_train.max(axis=0) == pytest.approx(np.full(10, 1.0))
    assert np.abs(rows.X_test).max() > 1.0


def test_a_reading_changes_the_preparation_and_nothing_else(data_directory):
    usual, counts = split("news20", 0), split("news20, scaled counts", 0)
    assert np.array_equal(usual.y_train, counts.y_train)
    assert (usual.X_train != 0).nnz == (counts.X_train != 0).nnz
    assert max(counts.X_train.max(), counts.X_test.max()) == 1.0
    assert abs(usual.X_train - counts.X_train).max() > 0.1
