"""Tables from results with known figures."""

import io

import numpy as np
import pytest
from rich.console import Console

from margintree.experiments import paper
from margintree.experiments.ranks import rank_test
from margintree.experiments.summary import Summary
from margintree.experiments.tables import (
    Entry,
    Table,
    accuracy_table,
    all_tables,
    cost_table,
    rank_tests,
    reading_table,
)


@pytest.fixture
def summary(paper_results):
    return Summary(paper_results)


def row_of(table, *labels):
    return next(row for row in table.rows if tuple(cell.text for cell in row[:2]) == labels)


def test_each_comparison_has_a_table_that_says_what_it_is(summary):
    for comparison, columns in (
        ("paper", ("MSM (paper)", "MSM (balanced cut)", "I-BWG", "J-BWG", "FT", "CPT", "1vs1", "1vsR")),
        ("users", ("MSM (ours)", "1vs1", "1vsR", "DDAG")),
    ):
        table = accuracy_table(summary, comparison)
        assert table.columns[2:] == columns
        assert ("without bias" in table.title, "with bias" in table.title) == (
            comparison == "paper",
            comparison == "users",
        )


def test_the_comparison_with_the_paper_has_its_figures_and_the_best_in_bold(summary):
    table = accuracy_table(summary, "paper")
    cells = dict(zip(table.columns, row_of(table, "usps", "linear"), strict=True))
    assert cells["1vs1"].text == "93.87 ± 0.22"
    assert cells["1vs1"].paper_text == "93.87 ± 0.02"
    assert [name for name, cell in cells.items() if cell.is_best] == ["1vs1"]
    assert not any(cell.paper_text for row in accuracy_table(summary, "users").rows for cell in row)


def test_a_method_that_a_setting_lacks_is_a_dash(summary):
    table = accuracy_table(summary, "paper")
    cells = dict(zip(table.columns, row_of(table, "vowel", "Gaussian"), strict=True))
    assert (cells["J-BWG"].text, cells["J-BWG"].paper_text) == ("—", "")


def test_settings_come_in_the_order_of_the_paper(summary):
    assert summary.settings == list(paper.SETTINGS)


def test_times_are_given_per_row_ours_and_the_papers(summary):
    table = cost_table(summary, "predict")
    cells = dict(zip(table.columns, row_of(table, "usps", "Gaussian"), strict=True))
    assert cells["1vs1 (no bias)"].text == cells["1vs1 (no bias)"].paper_text == f"{1e6 * 205.24 / 7291:.1f}"
    assert cells["1vs1"].paper_text == ""


def test_readings_stand_beside_the_paper_and_what_is_changed(summary):
    table = reading_table(summary)
    rows = {(row[0].text, row[1].text): [entry.text for entry in row[2:]] for row in table.rows}
    assert rows["news20, scaled counts", "1vsR"][1:3] == ["78.65 ± 0.22", "78.65 ± 0.08"]
    assert rows["vowel, heaviest plane", "MSM"][0] == "57.74 ± 0.22"  # MSM (paper) as it stands in the table above
    assert not any(setting[0] in ("news20, scaled counts", "vowel, heaviest plane") for setting in summary.settings)


def test_rows_with_parameters_of_an_earlier_tuning_do_not_count(paper_results):
    stale = dict(next(paper_results.of_kind("split")))
    stale.update(key="stale", parameters={"C": 1000.0}, accuracy=0.0)
    place = (stale["method"], (stale["set"], stale["kernel"]))
    before = Summary(paper_results).cells[place].accuracies
    paper_results.done = {"stale": stale, **paper_results.done}
    after = Summary(paper_results).cells[place]
    assert after.accuracies == before
    assert after.parameters == {"C": 1.0, "gamma": 0.1}


def test_ranks_share_what_prints_alike():
    assert rank_test([{"a": 90.001, "b": 90.002, "c": 80.0}] * 3).mean_ranks == {"a": 1.5, "b": 1.5, "c": 3.0}


def test_equal_methods_do_not_differ_and_far_ones_do():
    chance = np.random.default_rng(0)
    equal = [dict(zip("abc", chance.normal(size=3), strict=True)) for _ in range(20)]
    assert rank_test(equal).p_value > 0.05
    far = [{"a": 3.0 + r, "b": 2.0 + r, "c": 1.0 + r} for r in chance.normal(size=20)]
    assert rank_test(far).p_value < 1e-6
    assert rank_test(far).mean_ranks == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_the_critical_difference_is_that_of_demsars_table():
    # Demsar 2006, table 5 (a): q_0.05 = 2.343 for 3 methods, 3.102 for 9.
    for k, q in ((3, 2.343), (9, 3.102)):
        rows = [{str(m): float(m + r) for m in range(k)} for r in range(13)]
        assert rank_test(rows).critical_difference == pytest.approx(q * np.sqrt(k * (k + 1) / (6 * 13)), rel=1e-3)


def test_ranks_over_all_settings_leave_out_j_bwg_and_over_linear_ones_have_it(summary):
    tests = rank_tests(summary, "paper")
    assert "J-BWG (no bias)" not in tests["all settings"].mean_ranks
    assert "J-BWG (no bias)" in tests["linear settings"].mean_ranks
    assert (tests["all settings"].n_settings, tests["linear settings"].n_settings) == (13, 8)


def test_markdown_has_as_many_cells_in_each_line(summary):
    for table in all_tables(summary):
        lines = [line for line in table.to_markdown().splitlines() if line.startswith("|")]
        assert {line.count("|") for line in lines} == {len(table.columns) + 1}


@pytest.mark.parametrize("width", [80, 120, 250])
def test_a_terminal_of_any_width_shows_every_figure_unbroken(summary, width):
    for table in all_tables(summary)[:6]:
        console = Console(width=width, file=io.StringIO())
        table.print(console)
        shown = console.file.getvalue()
        assert all(cell.text in shown for row in table.rows for cell in row)
        assert max(len(line) for line in shown.splitlines()) <= width


def test_the_best_is_bold_and_the_papers_figure_stands_behind_ours():
    entries = (Entry("vowel"), Entry("96.61", True, "91.42"))
    lines = Table("t", "Accuracy", ("set", "MSM"), (entries,), n_labels=1).to_markdown().splitlines()
    assert lines == ["### Accuracy", "", "| set | MSM |", "|---|--:|", "| vowel | **96.61** (91.42) |"]
