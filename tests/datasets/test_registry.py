import subprocess
import sys
from dataclasses import FrozenInstanceError

import pytest

import margintree.datasets
from margintree.datasets import DATA_SETS

# Table 1 of the paper: training rows, test rows, classes, features.
TABLE_1 = {
    "svmguide4": (300, 312, 6, 10),
    "vowel": (528, 462, 11, 10),
    "segment": (1000, 1310, 7, 19),
    "satimage": (2000, 4435, 6, 36),
    "usps": (2007, 7291, 10, 256),
    "news20": (3993, 15935, 20, 62061),
    "sector": (3207, 6412, 105, 55197),
    "caltech101": (3030, 5647, 101, 1000),
}


def test_the_sets_of_the_paper_have_the_sizes_of_table_1():
    found = {
        s.name: (s.n_train_paper, s.n_test_paper, s.n_classes, s.n_features) for s in DATA_SETS.values() if s.in_paper
    }
    assert found == TABLE_1


@pytest.mark.parametrize("name", TABLE_1)
def test_the_first_form_has_as_many_rows_and_features_as_the_paper(name):
    data_set, form = DATA_SETS[name], DATA_SETS[name].forms[0]
    assert form.n_train + form.n_test == sum(TABLE_1[name][:2])
    assert form.n_features == data_set.n_features


def test_there_are_thirteen_settings_of_set_and_kernel():
    assert sum(len(s.kernels) for s in DATA_SETS.values() if s.in_paper) == 13


@pytest.mark.parametrize("name", DATA_SETS)
def test_labels_and_class_names_fit_the_number_of_classes(name):
    data_set = DATA_SETS[name]
    assert len(set(data_set.labels)) == data_set.n_classes
    assert list(data_set.labels) == sorted(data_set.labels)
    assert len(data_set.class_names) in (0, data_set.n_classes)


def test_a_form_that_differs_from_the_paper_says_how():
    forms = [form for data_set in DATA_SETS.values() for form in data_set.forms]
    assert {f.stem for f in forms if f.is_substitute} == {"news20_bydate", "news20_counts", "caltech101_bow1000"}
    assert {f.stem for f in forms if f.is_part} == {"sector_part"}
    assert all(f.note.endswith(".") for f in forms if f.is_substitute or f.is_part)


def test_a_set_that_cannot_be_downloaded_says_where_it_comes_from():
    for data_set in DATA_SETS.values():
        if not any(form.source for form in data_set.forms):
            assert data_set.forms[0].how_to_get, data_set.name


def test_the_registry_cannot_be_changed():
    with pytest.raises(TypeError):
        DATA_SETS["new"] = DATA_SETS["vowel"]
    with pytest.raises(FrozenInstanceError):
        DATA_SETS["vowel"].n_classes = 3


def test_every_set_has_a_fetcher_of_its_name():
    for name in DATA_SETS:
        fetcher = getattr(margintree.datasets, f"fetch_{name}")
        assert fetcher.__name__ == f"fetch_{name}"
        assert f"fetch_{name}" in margintree.datasets.__all__
        assert DATA_SETS[name].description in fetcher.__doc__


def test_every_exported_name_exists_and_others_do_not():
    for name in margintree.datasets.__all__:
        assert getattr(margintree.datasets, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'fetch_iris'"):
        margintree.datasets.fetch_iris  # noqa: B018


def test_reading_the_registry_loads_no_numerical_library():
    code = (
        "import sys; from margintree.datasets import DATA_SETS; "
        "print([m for m in ('numpy', 'scipy', 'sklearn', 'cv2', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
