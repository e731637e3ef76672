"""The plan as a function of the results."""

from dataclasses import replace

import pytest

from margintree.experiments.methods import METHODS
from margintree.experiments.plan import Cell, chosen_plan
from margintree.experiments.protocol import FULL, QUICK


def finish(plan, cell, accuracy, failing=lambda job: False):
    """Do the jobs of a cell with an accuracy function in place of real fits; return stages, rows and failures."""
    done, failed, stages = {}, set(), []
    while jobs := plan.next_jobs(cell, done, failed):
        stages.append(jobs)
        for job in jobs:
            if failing(job):
                failed.add(job.key)
            else:
                done[job.key] = {**job.described(), "fold_accuracies": accuracy(job)}
    return stages, done, failed


def peak_at(C, gamma=1.0):
    def accuracy(job):
        parameters = dict(job.parameters)
        distance = abs(parameters["C"] / C - 1.0) + abs(parameters.get("gamma", gamma) / gamma - 1.0)
        return [90.0 - min(distance, 3.0) + parameters.get("balance", 0.0)]

    return accuracy


def test_all_points_meet_the_first_fold_and_the_best_of_them_the_others():
    plan = chosen_plan(FULL)
    cell = Cell("1vsR", "vowel", "rbf")
    stages, done, _ = finish(plan, cell, peak_at(10.0, 0.1))
    assert [len(jobs) for jobs in stages] == [49, FULL.kept_points, 7, 1]
    assert plan.tuned(cell, done) == (("C", 10.0), ("gamma", 0.1))
    assert {job.parameters for job in stages[2]} == {plan.tuned(cell, done)}
    assert [job.number for job in stages[2]] == list(range(7))


def test_points_far_below_the_best_go_no_further():
    plan = chosen_plan(FULL)

    def accuracy(job):
        return [90.0 if dict(job.parameters)["C"] in (1.0, 10.0) else 80.0]

    stages, _, _ = finish(plan, Cell("1vsR", "vowel", "linear"), accuracy)
    assert [dict(job.parameters)["C"] for job in stages[1]] == [1.0, 10.0]


def test_a_tie_goes_to_the_smaller_parameters():
    plan = chosen_plan(FULL)
    cell = Cell("FT", "vowel", "rbf")
    _, done, _ = finish(plan, cell, lambda job: [50.0])
    assert plan.tuned(cell, done) == (("C", 0.001), ("gamma", 0.001))


def test_msm_tries_other_balances_at_its_best_points():
    plan = chosen_plan(FULL)
    cell = Cell("MSM (ours)", "vowel", "linear")
    stages, done, _ = finish(plan, cell, peak_at(100.0))
    assert {dict(job.parameters)["balance"] for job in stages[0]} == {FULL.balances[0]}
    assert len(stages[2]) == FULL.balance_points * (len(FULL.balances) - 1)
    assert dict(plan.tuned(cell, done)) == {"C": 100.0, "balance": max(FULL.balances)}


def test_ddag_takes_the_parameters_of_1vs1_and_tunes_nothing_itself():
    plan = chosen_plan(FULL, ["DDAG"])
    stages, _, _ = finish(plan, Cell("DDAG", "vowel", "linear"), peak_at(1.0))
    assert {job.method for job in stages[0] + stages[1]} == {"1vs1"}
    assert {(job.method, job.parameters) for job in stages[2]} == {("DDAG", (("C", 1.0),))}


def test_a_cell_goes_on_without_the_points_that_failed():
    plan = chosen_plan(FULL)
    cell = Cell("1vsR", "vowel", "linear")
    stages, done, failed = finish(plan, cell, peak_at(10.0), failing=lambda job: dict(job.parameters)["C"] == 10.0)
    assert len(failed) == 1
    assert dict(plan.tuned(cell, done))["C"] != 10.0
    assert len(stages[-2]) == 7


def test_a_cell_whose_points_all_failed_ends_there():
    plan = chosen_plan(FULL)
    cell = Cell("1vsR", "vowel", "linear")
    stages, done, failed = finish(plan, cell, peak_at(10.0), failing=lambda job: True)
    assert (len(stages), len(done), len(failed)) == (1, 0, 7)
    assert plan.tuned(cell, done) is None


@pytest.mark.parametrize("method", list(METHODS))
def test_the_number_of_jobs_is_an_upper_bound_that_is_met(method):
    plan = chosen_plan(FULL)
    cell = Cell(method, "news20", "linear")
    stages, _, _ = finish(plan, cell, peak_at(1.0))
    own = [job for jobs in stages for job in jobs if job.method == method]
    assert len(own) == plan.n_jobs(cell)


def test_figure_2_times_each_method_with_fewer_classes():
    stages, _, _ = finish(chosen_plan(FULL), Cell("FT", "news20", "linear"), peak_at(1.0))
    assert [job.number for job in stages[-1] if job.kind == "curve"] == list(FULL.curve_classes)


def test_the_full_plan_has_the_papers_thirteen_settings_and_j_bwg_only_where_it_is_linear():
    cells = chosen_plan(FULL).cells
    assert len({(c.data_set, c.kernel) for c in cells}) == 13
    assert {c.kernel for c in cells if c.method == "J-BWG"} == {"linear"}
    assert len(cells) == 13 * 8 + 8


def test_only_restricts_methods_and_sets_and_says_what_it_knows():
    plan = chosen_plan(FULL, ["FT"], ["vowel"])
    assert {(c.method, c.data_set) for c in plan.cells} == {("FT", "vowel")}
    with pytest.raises(ValueError, match=r"Unknown method 'ft'.*1vsR"):
        chosen_plan(FULL, ["ft"])
    with pytest.raises(ValueError, match=r"Unknown set 'vowel'.*digits"):
        chosen_plan(QUICK, [], ["vowel"])


def test_any_change_of_the_rules_changes_the_fingerprint():
    changed = [replace(FULL, n_splits=8), replace(FULL, costs=(1.0,)), replace(FULL, kept_within=4.0)]
    assert len({FULL.fingerprint, *(protocol.fingerprint for protocol in changed)}) == 4
