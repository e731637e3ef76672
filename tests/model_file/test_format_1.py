"""Files of format 1, whose margin trees had scorers of their leaves, say the same in the words of format 2."""

from pathlib import Path

import numpy as np
import pytest

from margintree import load_model
from margintree.model_file.format_1 import from_format_1

FILES = Path(__file__).parent / "files"


def translated(facts=None, arrays=None, **parameters):
    arrays, facts = dict(arrays or {}), dict(facts or {})
    from_format_1(arrays, facts, parameters)
    return arrays, facts, parameters


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"shortlist": "auto", "walk": "beam"}, {"decide": "auto", "n_finalists": "auto", "walk": "beam"}),
        ({"shortlist": 0, "walk": "beam"}, {"decide": "paths", "n_finalists": "auto", "walk": "beam"}),
        ({"shortlist": 7, "walk": "all"}, {"decide": "rest", "n_finalists": 7, "walk": "all"}),
        # A greedy walk left the shortlist aside, and a fit refuses to decide where it ends.
        ({"shortlist": 7, "walk": "greedy"}, {"decide": "auto", "n_finalists": 7, "walk": "greedy"}),
        ({"n_trees": 2}, {"n_trees": 2}),
        ({"C": 3.0}, {"C": 3.0}),
    ],
)
def test_parameters_are_translated(old, new):
    assert translated(**old)[2] == new


def test_a_number_of_trees_that_was_chosen_is_said():
    three = {"trees.children_left": np.zeros((3, 9), dtype=np.int32)}
    assert translated(arrays=three, n_trees="auto")[2] == {"n_trees": 3}
    assert translated(n_trees="auto")[2] == {"n_trees": 1}


def test_scorers_become_machines_against_the_rest():
    old = {"ranker.width": 4, "ranker.gap": 3.0, "ranker.n_candidates": 4}
    scorers = {"ranker.path_weight": 2.5, "ranker.temperature": 0.75}
    arrays, facts, _ = translated({**old, **scorers}, {"ranker.scorers.cells": np.zeros(3), "model.table.cells": None})
    assert sorted(arrays) == ["model.table.cells", "ranker.table.cells"]
    same = {"ranker.width": 4, "ranker.gap": 3.0, "ranker.n_finalists": 4}
    assert facts == {**same, "ranker.kind": "rest", "ranker.path_weight": 2.5, "ranker.slope": 0.75}
    _, facts, _ = translated(old)
    assert facts == {**same, "ranker.kind": "paths", "ranker.path_weight": 0.0, "ranker.slope": 1.0}


def test_the_shortlist_of_a_walk_along_all_paths_had_no_gap():
    facts = {"ranker.width": 0, "ranker.gap": 0.3, "ranker.n_candidates": 4}
    assert translated(facts)[1]["ranker.gap"] > 1e300


@pytest.mark.parametrize(("n_classes", "has_walk"), [(128, False), (129, True)])
def test_many_classes_ranked_by_scorers_alone_are_walked_to_as_before(n_classes, has_walk):
    facts = {"ranker.width": 4, "ranker.n_candidates": n_classes, "ranker.path_weight": 0.0, "ranker.temperature": 1.0}
    facts = translated(facts, {"ranker.scorers.scale": np.ones(n_classes)})[1]
    # A ranker with any weight of the path follows paths; this one does not change a score.
    assert (facts["ranker.path_weight"] > 0.0) == has_walk
    assert 1e-300 + facts["ranker.path_weight"] * -700.0 == 1e-300


@pytest.mark.parametrize(
    ("name", "parameters", "decide"),
    [
        ("linear_tree", {"decide": "auto", "n_finalists": "auto", "n_trees": 1}, "rest"),
        ("kernel_tree", {"decide": "auto", "n_finalists": "auto", "n_trees": 1}, "paths"),
        ("all_paths", {"decide": "rest", "n_finalists": 3, "n_trees": 2, "beam_gap": 0.01, "walk": "all"}, "rest"),
    ],
)
def test_stored_files_have_parameters_that_fit_again(name, parameters, decide):
    model = load_model(FILES / f"format_1_{name}.margintree")
    assert parameters.items() <= model.get_params().items()
    assert "shortlist" not in model.get_params()
    assert model.decide_ == decide
    assert model.candidates_ == []
    X = np.random.default_rng(0).random((20, 15))
    y = model.classes_[np.arange(20) % 4]
    assert set(model.fit(X, y).predict(X)) <= set(y)
