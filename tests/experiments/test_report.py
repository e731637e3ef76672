"""The files that are made of the results."""

import io
import re
import xml.etree.ElementTree as ElementTree

import pytest
from matplotlib.figure import Figure as Canvas
from rich.console import Console

from margintree.class_tree import ClassTree
from margintree.experiments.figures import all_figures, draw_tree
from margintree.experiments.protocol import QUICK
from margintree.experiments.report import Report
from margintree.experiments.results import Results, opened_results, read
from margintree.experiments.summary import Summary

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def report(paper_results_path):
    return Report(read(paper_results_path))


def texts(figure):
    return ["".join(text.itertext()) for text in ElementTree.fromstring(figure.svg).iter(f"{SVG}text")]


def test_every_figure_is_well_formed_and_follows_the_colours_of_the_page(report):
    names = [figure.name for figure in report.figures]
    kinds = ("ranks_paper", "ranks_users", "overview", "setting_", "figure2_", "figure1_")
    assert [sum(name.startswith(kind) for name in names) for kind in kinds] == [2, 1, 1, 13, 2, 6]
    for figure in report.figures:
        ElementTree.fromstring(figure.svg)
        assert "currentColor" in figure.svg
        assert not re.search("<g id=", figure.svg), "names of parts are not unique on a page of many figures"


def test_the_same_results_give_the_same_figures(paper_results):
    some = [row for row in paper_results.of_kind("split") if row["set"] == "vowel"]
    one, other = ([figure.svg for figure in all_figures(Summary(Results(some)))] for _ in range(2))
    assert one == other


def test_a_tree_is_drawn_with_a_picture_for_every_leaf_in_its_order(report):
    tree = ClassTree.from_newick("((((1,7),2),((8,9),0)),(((4,6),5),3));")
    axes = Canvas().add_subplot()
    draw_tree(axes, report.summary.pictures, tree)
    assert len(axes.get_images()) == 10
    places = {text.get_text(): text.get_position()[0] for text in axes.texts}
    assert sorted((name for name in places if len(name) == 1), key=places.get) == list("1728904653")
    assert {"1 7", "0 8 9", "3 4 5 6"} <= set(places)


def test_the_figures_of_settings_name_every_method(report):
    for setting in report.summary.settings:
        (figure,) = (f for f in report.figures if f.name == f"setting_{setting[0]}_{setting[1]}")
        assert set(report.summary.row(setting)) <= set(texts(figure))


def test_figure_2_has_several_ticks_whatever_it_measures(report):
    for figure in report.figures:
        if figure.name.startswith("figure2"):
            numbers = [text for text in texts(figure) if re.fullmatch(r"[\d.]+", text)]
            assert len(numbers) >= 6, figure.name


def test_all_files_are_written_and_the_page_needs_nothing_else(report, tmp_path):
    written = report.write(tmp_path)
    assert written[0] == tmp_path / "index.html"
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(written)
    page = written[0].read_text()
    addresses = re.findall(r"""(?:src|href)=["']([^"']+)""", page)
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in addresses)
    assert "default-src 'none'" in page
    assert page.count("<figure ") == len(report.figures)
    for name in re.findall(r"\]\((figures/[^)]*)\)", (tmp_path / "report.md").read_text()):
        assert (tmp_path / name).exists()


def test_the_page_opens_with_the_answer_and_two_pictures(report):
    opening = report.page().split("</header>")[0]
    assert "most accurate method in 9 of 13 settings" in opening
    assert opening.count("<figure ") == 2


def test_the_page_of_a_first_quick_run_names_its_protocol_and_speaks_of_its_own_set(tmp_path):
    with opened_results(tmp_path / "results.jsonl", QUICK) as file:
        page = Report(file.results).page()
    assert "name: quick" in page
    assert "None" not in page
    assert "handwritten digits that ship with scikit-learn" in page


def test_failed_jobs_are_told_with_their_errors(paper_results):
    some = [row for row in paper_results.of_kind("split") if row["set"] == "vowel" and row["method"] == "1vs1"]
    failed = {"kind": "split", "key": "split|FT|usps", "status": "failed", "error": "MemoryError: <no> & |"}
    report = Report(Results([*some, failed]))
    assert "MemoryError: &lt;no&gt; &amp; |" in report.page()
    assert "MemoryError: <no> & \\|" in report.markdown()
    assert "MemoryError: <no> & \\|" in Report(Results([failed])).markdown(), "if nothing else was done"


def test_failed_jobs_are_printed_with_their_errors():
    failed = {"kind": "split", "key": "split|FT|usps", "status": "failed", "error": "MemoryError: too large"}
    console = Console(width=80, file=io.StringIO())
    for table in Report(Results([failed])).tables:
        table.print(console)
    assert "split|FT|usps" in console.file.getvalue()
    assert "MemoryError: too large" in console.file.getvalue()


def test_names_of_sets_in_a_results_file_lead_nowhere_and_stand_escaped(paper_results, tmp_path):
    name = "../../<b>x</b>"
    rows = [
        {**row, "set": name, "key": f"{row['key']}|{name}"}
        for row in paper_results.of_kind("split")
        if row["set"] == "vowel"
    ]
    directory = tmp_path / "a" / "b" / "report"
    written = Report(Results(rows)).write(directory)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(written)
    assert all(path.resolve().is_relative_to(directory) for path in written)
    page = written[0].read_text()
    assert "&lt;b&gt;x" in page
    assert "<b>x" not in page


@pytest.mark.parametrize(
    "name", ["![x](figures/nowhere.svg)", "[x](http://example.org)", "*x*", "`x`", "a\n# b", "a\\"]
)
def test_marks_of_markdown_in_a_results_file_are_shown_as_they_are(paper_results, name):
    rows = [
        {**row, "set": name, "key": f"{row['key']}|{name}", "parameters": {**row["parameters"], name: 1.0}}
        for row in paper_results.of_kind("split")
        if row["set"] == "vowel"
    ]
    failed = {"kind": "split", "key": name, "status": "failed", "error": name}
    page = Report(Results([*rows, failed])).page()
    shown = " ".join(name.split())
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", page)
    # The set in its tables, and the job that failed beside its error.
    assert cells.count(shown) > 2
    assert f"<figcaption>{shown}, " in page
    assert "<img" not in page.replace('<img src="data:', "")
    assert 'example.org"' not in page


def test_a_report_of_nothing_says_so_instead_of_failing(tmp_path):
    report = Report(Results([]))
    assert "No results yet." in report.page()
    assert report.claims == []
    assert list(all_figures(Summary(Results([])))) == []


def test_the_facts_of_a_run_stand_escaped():
    name = "<script>alert(1)</script>"
    run = {"kind": "run", "run": name, "date": name, "machine": name, "versions": {name: name}}
    page = Report(Results([run])).page()
    assert page.count("&lt;script&gt;") == 5
    assert "<script" not in page
