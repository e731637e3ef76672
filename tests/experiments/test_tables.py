"""Tables from results with known figures."""

import csv
import io

import numpy as np
import pytest
from rich.console import Console

from margintree.experiments import paper
from margintree.experiments.ranks import rank_test, ranks
from margintree.experiments.render import print_table, to_csv, to_markdown
from margintree.experiments.summary import Summary
from margintree.experiments.tables import all_tables, parameter_table, rank_tests, table_2, time_table


@pytest.fixture
def summary(paper_results):
    return Summary(paper_results)


def row_of(table, *labels):
    return next(row for row in table.rows if tuple(cell.text for cell in row[:2]) == labels)


def test_table_2_has_ours_beside_the_papers_and_the_best_in_bold(summary):
    table = table_2(summary)
    cells = dict(zip(table.columns, row_of(table, "usps", "linear"), strict=True))
    assert cells["1vs1"].text == "93.87 ± 0.22"
    assert cells["1vs1"].paper_text == "93.87 ± 0.02"
    assert [name for name, cell in cells.items() if cell.is_best] == ["1vs1"]
    assert [name for name, cell in cells.items() if cell.is_paper_best] == ["1vs1"]
    assert cells["DDAG"].paper_text == ""


def test_a_method_that_a_setting_lacks_is_a_dash(summary):
    table = table_2(summary)
    cells = dict(zip(table.columns, row_of(table, "vowel", "Gaussian"), strict=True))
    assert (cells["J-BWG"].text, cells["J-BWG"].value) == ("—", None)


def test_settings_come_in_the_order_of_the_paper(summary):
    assert summary.settings == list(paper.SETTINGS)


def test_times_are_given_per_row_ours_and_the_papers(summary):
    table = time_table(summary, "predict")
    cells = dict(zip(table.columns, row_of(table, "usps", "Gaussian"), strict=True))
    assert cells["1vs1"].value == pytest.approx(1e6 * 205.24 / 7291)
    assert cells["1vs1"].paper_value == pytest.approx(cells["1vs1"].value)


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
    assert ranks({"a": 90.001, "b": 90.002, "c": 80.0}) == {"a": 1.5, "b": 1.5, "c": 3.0}


def test_equal_methods_do_not_differ_and_far_ones_do():
    chance = np.random.default_rng(0)
    equal = [dict(zip("abc", chance.normal(size=3), strict=True)) for _ in range(20)]
    assert rank_test(equal).p_value > 0.05
    assert rank_test(equal).differ("a", "b") is False
    far = [{"a": 3.0 + r, "b": 2.0 + r, "c": 1.0 + r} for r in chance.normal(size=20)]
    assert rank_test(far).p_value < 1e-6
    assert rank_test(far).differ("a", "c") is True


def test_the_critical_difference_is_that_of_demsars_table():
    # Demsar 2006, table 5 (a): q_0.05 = 2.343 for 3 methods, 3.102 for 9.
    for k, q in ((3, 2.343), (9, 3.102)):
        rows = [{str(m): float(m + r) for m in range(k)} for r in range(13)]
        assert rank_test(rows).critical_difference == pytest.approx(q * np.sqrt(k * (k + 1) / (6 * 13)), rel=1e-3)


def test_ranks_over_all_settings_leave_out_j_bwg_and_over_linear_ones_have_it(summary):
    tests = rank_tests(summary)
    assert "J-BWG" not in tests["all settings"].mean_ranks
    assert "J-BWG" in tests["linear settings"].mean_ranks
    assert (tests["all settings"].n_settings, tests["linear settings"].n_settings) == (13, 8)


def test_csv_has_full_numbers_and_the_papers_in_columns_of_their_own(summary):
    rows = list(csv.DictReader(io.StringIO(to_csv(table_2(summary)))))
    vowel = next(row for row in rows if (row["set"], row["kernel"]) == ("vowel", "Gaussian"))
    assert float(vowel["MSM (paper)"]) == pytest.approx(91.42)
    assert float(vowel["MSM (paper) (in the paper)"]) == 91.42
    assert vowel["J-BWG"] == ""
    assert "DDAG (in the paper)" not in vowel


def test_markdown_has_as_many_cells_in_each_line(summary):
    for table in all_tables(summary):
        lines = [line for line in to_markdown(table).splitlines() if line.startswith("|")]
        assert {line.count("|") for line in lines} == {len(table.columns) + 1}


@pytest.mark.parametrize("width", [80, 120, 250])
def test_a_terminal_of_any_width_shows_every_figure_unbroken(summary, width):
    for table in (table_2(summary), parameter_table(summary)):
        console = Console(width=width, file=io.StringIO())
        print_table(console, table)
        shown = console.file.getvalue()
        assert all(cell.text in shown for row in table.rows for cell in row)
        assert max(len(line) for line in shown.splitlines()) <= width
