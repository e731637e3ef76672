"""Verdicts on results whose outcome is known: the paper's own tables, and changed ones."""

import pytest

from margintree.class_tree import ClassTree
from margintree.experiments import paper
from margintree.experiments.claims import all_claims, answer, grouped_pairs
from margintree.experiments.ranks import compare
from margintree.experiments.summary import Summary

UNDECIDED = "not decided by these data"


def verdicts(results):
    return {claim.name: [finding.verdict for finding in claim.findings] for claim in all_claims(Summary(results))}


def text_of(results, name):
    return " ".join(f.text for claim in all_claims(Summary(results)) if claim.name == name for f in claim.findings)


def change(results, method, kinds=("split",), **changes):
    """Change what some rows of a method measured; a change is a function of the old value."""
    for row in results.of_kind(*kinds):
        if row["method"] == method:
            row.update({name: new(row[name]) for name, new in changes.items()})
    return results


def test_the_papers_own_tables_do_not_bear_out_all_of_its_claims(paper_results):
    assert verdicts(paper_results) == {
        "Accuracy": ["refuted", "refuted"],  # fourth on usps, linear
        "MSM against I-BWG and J-BWG": ["confirmed", UNDECIDED],
        "MSM against CPT": ["confirmed"],
        "MSM against 1vs1 and 1vsR": [UNDECIDED, "confirmed"],
        "FT is weak": [UNDECIDED],  # I-BWG is no better by more than chance
        "Speed against 1vs1": ["confirmed", "refuted", "refuted"],  # as fast on small linear sets
        "Speed against 1vsR": ["confirmed", "confirmed", "confirmed"],
        "Trees among themselves": ["confirmed"] * 6,  # by three measures, with either cut
        "Figure 2": ["confirmed", "confirmed"],
        "Figure 1: MSM": ["confirmed", "refuted"],
        "Figure 1: I-BWG": [UNDECIDED, UNDECIDED],
        "Figure 1: FT": ["confirmed", "confirmed"],
        "Figure 1: CPT": [UNDECIDED, UNDECIDED],
    }
    assert "best in 9 of 13 settings (9 to 9 in 95 % of draws), at worst number 4" in text_of(paper_results, "Accuracy")


def test_better_figures_confirm_the_claim_about_accuracy(paper_results):
    change(paper_results, "MSM (paper)", accuracy=lambda value: min(value + 8.0, 100.0))
    assert verdicts(paper_results)["Accuracy"] == ["confirmed", "refuted"]


def test_a_place_that_splits_do_not_decide_is_left_open(paper_results):
    # Best in every setting as it stands, but 1vs1 is level with it, better or worse by chance.
    change(paper_results, "MSM (paper)", accuracy=lambda value: value + 20.0)
    ours = {row["key"]: row["accuracy"] for row in paper_results.of_kind("split") if row["method"] == "MSM (paper)"}
    for row in paper_results.of_kind("split"):
        if row["method"] == "1vs1 (no bias)" and "," not in row["set"]:
            mine = ours[row["key"].replace("1vs1 (no bias)", "MSM (paper)")]
            row["accuracy"] = mine + (2.0 if row["number"] % 2 else -1.6)
    assert verdicts(paper_results)["Accuracy"][0] == UNDECIDED


def test_a_weak_msm_refutes_that_it_is_better(paper_results):
    change(paper_results, "MSM (paper)", accuracy=lambda value: value - 40.0)
    found = verdicts(paper_results)
    assert found["MSM against CPT"] == ["refuted"]
    assert found["MSM against 1vs1 and 1vsR"] == ["refuted", "refuted"]


@pytest.mark.parametrize(("accuracy", "verdict"), [(99.0, "refuted"), (5.0, "confirmed")])
def test_a_filter_tree_is_weak_or_strong(paper_results, accuracy, verdict):
    change(paper_results, "FT (no bias)", accuracy=lambda value: accuracy)
    assert verdicts(paper_results)["FT is weak"] == [verdict]


@pytest.mark.parametrize(("factor", "verdict"), [(1.2, UNDECIDED), (10.0, "refuted")])
def test_a_slow_tree_refutes_the_claims_about_speed_by_its_measure_only(paper_results, factor, verdict):
    slower = {"row_seconds": lambda value: {**value, "predict": factor * value["predict"]}}
    change(paper_results, "I-BWG (no bias)", ("time",), **slower)
    found = verdicts(paper_results)
    assert found["Trees among themselves"] == ["confirmed", "confirmed", verdict, verdict, "confirmed", "confirmed"]
    # A little less than 1.3 times as fast may be noise, much less is not.
    assert found["Speed against 1vsR"] == ["confirmed", verdict, "confirmed"]


def test_a_steep_tree_refutes_figure_2(paper_results):
    for row in paper_results.of_kind("curve"):
        if row["method"] == "FT (no bias)":
            row["row_seconds"] = {"predict": 1e-4 * row["number"]}
    assert verdicts(paper_results)["Figure 2"] == ["confirmed", "refuted"]


def test_trees_that_tear_the_pairs_apart_refute_the_grouping(paper_results):
    for row in paper_results.of_kind("split"):
        if row["method"] == "MSM (paper)" and "tree" in row and row["number"] < 4:
            row["tree"] = "((((1,8),2),((7,4),0)),(((9,6),5),3));"
    assert verdicts(paper_results)["Figure 1: MSM"] == ["refuted", "refuted"]


def test_labels_from_1_to_10_are_another_reading_of_the_digits(paper_results):
    for row in paper_results.of_kind("split"):
        if row["method"] == "MSM (paper)" and "tree" in row:
            row["tree"] = "((((0,6),2),((7,8),9)),(((3,5),4),1));"
    assert verdicts(paper_results)["Figure 1: MSM"] == ["refuted", "confirmed"]


def test_part_of_the_settings_tests_no_claim_about_all_of_them(paper_results):
    for key in [key for key, row in paper_results.done.items() if row["set"] == "vowel"]:
        del paper_results.done[key]
    found = set(verdicts(paper_results))
    assert found == {"Figure 2", *(name for name in found if name.startswith("Figure 1"))}
    assert "11 settings" in answer(Summary(paper_results))


def test_the_answer_names_both_comparisons(paper_results):
    text = answer(Summary(paper_results))
    assert "without bias, as in the paper, MSM is the most accurate method in 9 of 13 settings" in text
    assert "(the paper has it in 9)" in text
    assert "with bias and our defaults" in text
    assert text.count(". ") == 1


def test_claims_on_accuracy_point_to_the_readings_of_the_methods_that_they_compare(paper_results):
    reasons = {claim.name: claim.reason for claim in all_claims(Summary(paper_results))}
    assert "news20, scaled counts: MSM 82.3 → 82.3 (82.3), CPT 65.6 → 65.6 (65.6)" in reasons["MSM against CPT"]
    assert "1vsR" not in reasons["MSM against CPT"]
    assert "satimage, η = 10, free bias: FT" in reasons["FT is weak"]
    assert "Caltech 101, heaviest plane: MSM" in reasons["Accuracy"]
    for key in [key for key, row in paper_results.done.items() if "," in row["set"]]:
        del paper_results.done[key]
    assert all_claims(Summary(paper_results))[0].reason == ""


def test_wilcoxon_decides_by_more_than_chance_only():
    assert compare([1.0] * 13, [0.0] * 13).winner == 1
    assert compare([0.0] * 13, [1.0] * 13).winner == -1
    assert compare([0.0] * 13, [0.0] * 13).winner == 0
    assert compare([1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 3.0]).winner == 0


@pytest.mark.parametrize("reading", list(paper.CONFUSABLE_DIGITS))
def test_one_tree_can_group_all_five_pairs_of_a_reading(reading):
    tree = {"as printed": "((((1,7),2),((8,9),0)),(((4,6),5),3));"}.get(
        reading, "((((0,6),2),((7,8),9)),(((3,5),4),1));"
    )
    pairs = paper.CONFUSABLE_DIGITS[reading]
    assert grouped_pairs(ClassTree.from_newick(tree), pairs) == list(pairs)


def test_a_split_that_failed_leaves_the_claims_that_need_it_out(paper_results):
    del paper_results.done["split|FT (no bias)|vowel|rbf|C=1,gamma=0.1|3"]
    found = verdicts(paper_results)
    assert "Accuracy" not in found
    assert "FT is weak" in found
