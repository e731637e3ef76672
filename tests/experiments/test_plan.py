"""The plan as a function of the results, and tuning as a function of what validation finds."""

from dataclasses import replace

import pytest

from margintree.experiments.job import Job
from margintree.experiments.methods import METHODS, READINGS
from margintree.experiments.plan import chosen_plan
from margintree.experiments.protocol import FULL, QUICK
from margintree.experiments.tuning import grid, tune


def finish(plan, failing=lambda job: False):
    """Do all jobs with a winner in place of real fits; return the jobs of each round."""
    done, failed, rounds = {}, set(), []
    while jobs := plan.next_jobs(done, failed):
        rounds.append(jobs)
        for job in jobs:
            if failing(job):
                failed.add(job.key)
            else:
                done[job.key] = {**job.described(), "best": {"C": 10.0}}
    return rounds


def peak_at(C, gamma=1.0):
    calls = []

    def validate(point, folds):
        calls.append((point, folds))
        parameters = dict(point)
        distance = abs(parameters["C"] / C - 1.0) + abs(parameters.get("gamma", gamma) / gamma - 1.0)
        return [90.0 - min(distance, 3.0) + parameters.get("balance", 0.0)] * len(folds)

    return validate, calls


def test_all_points_meet_the_first_fold_and_the_best_of_them_the_others():
    validate, calls = peak_at(10.0, 0.1)
    found = tune("1vsR", "vowel", "rbf", FULL, validate)
    assert [folds for _, folds in calls] == 49 * [range(1)] + FULL.kept_points * [range(1, 5)]
    assert len(found) == FULL.kept_points
    assert next(iter(found)) == (("C", 10.0), ("gamma", 0.1))


def test_points_far_below_the_best_go_no_further():
    found = tune(
        "1vsR", "vowel", "linear", FULL, lambda p, folds: [90.0 if dict(p)["C"] in (1.0, 10.0) else 80.0] * len(folds)
    )
    assert [dict(point)["C"] for point in found] == [1.0, 10.0]


def test_a_tie_goes_to_the_smaller_parameters():
    found = tune("FT (no bias)", "vowel", "rbf", FULL, lambda point, folds: [50.0] * len(folds))
    assert next(iter(found)) == (("C", 0.001), ("gamma", 0.001))


def test_msm_tries_other_balances_at_its_best_points():
    validate, calls = peak_at(100.0)
    found = tune("MSM (ours)", "vowel", "linear", FULL, validate)
    assert {dict(point)["balance"] for point, folds in calls if folds == range(1)} == {FULL.balances[0]}
    assert sum(folds == range(5) for _, folds in calls) == FULL.balance_points * (len(FULL.balances) - 1)
    assert dict(next(iter(found))) == {"C": 100.0, "balance": max(FULL.balances)}


def test_sets_with_few_rows_have_three_folds():
    validate, calls = peak_at(10.0)
    tune("1vsR", "sector", "linear", FULL, validate)
    assert {folds for _, folds in calls} == {range(1), range(1, 3)}


def test_a_reading_may_replace_the_grid_of_eta():
    points = grid("1vs1 (no bias)", "satimage, η = 10, free bias", "rbf", FULL)
    assert {dict(point)["gamma"] for point in points} == {10.0}
    assert len(points) == len(FULL.costs)


def test_a_cell_is_tuned_then_run_on_all_splits_and_timed():
    rounds = finish(chosen_plan(FULL, ["1vsR"], ["vowel"]))
    assert [[job.kind for job in jobs] for jobs in rounds] == [["tune"] * 2, (["split"] * 7 + ["time"]) * 2]
    assert [job.number for job in rounds[1][:7]] == list(range(7))
    assert {job.parameters for job in rounds[1]} == {(("C", 10.0),)}


@pytest.mark.parametrize(("method", "source"), [("DDAG", "1vs1"), ("MSM (balanced cut)", "MSM (paper)")])
def test_some_take_the_parameters_of_another_method_and_tune_nothing_themselves(method, source):
    rounds = finish(chosen_plan(FULL, [method], ["segment"]))
    assert {(job.kind, job.method) for job in rounds[0]} == {("tune", source)}
    assert {job.method for job in rounds[1]} == {method}


def test_a_cell_whose_tuning_failed_ends_there():
    plan = chosen_plan(FULL, ["1vsR"], ["vowel"])
    rounds = finish(plan, failing=lambda job: job.kind == "tune" and job.kernel == "rbf")
    assert {job.kernel for job in rounds[1]} == {"linear"}
    assert len(rounds) == 2


@pytest.mark.parametrize("protocol", [FULL, QUICK])
def test_the_number_of_jobs_is_known_from_the_start(protocol):
    plan = chosen_plan(protocol)
    assert sum(len(jobs) for jobs in finish(plan)) == plan.n_jobs


def test_figure_2_times_each_method_with_fewer_classes():
    rounds = finish(chosen_plan(FULL, ["FT (no bias)"], ["news20"]))
    assert [job.number for job in rounds[-1] if job.kind == "curve"] == list(FULL.curve_classes)


def test_the_full_plan_has_thirteen_settings_and_the_readings():
    cells = chosen_plan(FULL).cells
    places = {(c.data_set, c.kernel) for c in cells}
    assert len(places) == 13 + len(READINGS)
    assert {c.kernel for c in cells if c.method.startswith("J-BWG")} == {"linear"}
    planes = {c.data_set for c in cells if c.method == "MSM (heaviest plane)"}
    assert planes == {"vowel, heaviest plane", "Caltech 101, heaviest plane"}
    assert len(cells) == 13 * 11 + 8 + sum(len(reading.methods) for reading in READINGS.values())


def test_without_bias_is_every_method_of_the_papers_table_and_with_bias_none():
    for method in METHODS.values():
        model = method.model("linear", {"C": 1.0}, seed=0)
        assert model.fit_intercept == (method.comparison == "users"), method.name
        assert method.model("linear", {"C": 1.0}, seed=5).random_state == 5


def test_only_restricts_methods_and_sets_and_says_what_it_knows():
    plan = chosen_plan(FULL, ["FT (no bias)"], ["vowel"])
    assert set(plan.cells) == {Job("split", "FT (no bias)", "vowel", kernel) for kernel in ("rbf", "linear")}
    with pytest.raises(ValueError, match=r"Unknown method 'ft'.*1vsR"):
        chosen_plan(FULL, ["ft"])
    with pytest.raises(ValueError, match=r"Unknown set 'vowel'.*digits"):
        chosen_plan(QUICK, [], ["vowel"])


def test_any_change_of_the_rules_changes_the_fingerprint():
    changed = [replace(FULL, n_splits=8), replace(FULL, costs=(1.0,)), replace(FULL, kept_within=4.0)]
    assert len({FULL.fingerprint, *(protocol.fingerprint for protocol in changed)}) == 4


def test_the_key_of_a_job_names_all_that_its_result_depends_on():
    job = Job("split", "FT", "vowel", "rbf", (("C", 10.0), ("gamma", 1.0)), 0)
    assert job.key == "split|FT|vowel|rbf|C=10,gamma=1|0"


def test_sets_with_few_rows_per_class_have_fewer_folds_and_other_rules_another_fingerprint():
    assert (FULL.folds("vowel"), FULL.folds("sector")) == (5, 3)
    assert len({FULL.fingerprint, QUICK.fingerprint, replace(FULL, n_splits=8).fingerprint}) == 3
