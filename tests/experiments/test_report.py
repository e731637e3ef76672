"""The files that are made of the results."""

import csv
import re
import xml.etree.ElementTree as ElementTree

import pytest

from margintree.class_tree import ClassTree
from margintree.experiments.figures import all_figures, tree_figure
from margintree.experiments.report import Report, write_whole
from margintree.experiments.results import Results, read
from margintree.experiments.summary import Summary

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def report(paper_results_path):
    return Report(read(paper_results_path))


def test_every_figure_is_well_formed_and_inside_its_frame(report):
    assert len(report.figures) == 1 + 5 + 1 + 13
    for figure in report.figures:
        root = ElementTree.fromstring(figure.svg)
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for text in root.iter(f"{SVG}text"):
            assert 0 <= float(text.attrib["x"]) <= width, figure.name
            assert 0 <= float(text.attrib["y"]) <= height, figure.name


def test_a_tree_is_drawn_with_a_picture_for_every_leaf_in_its_order(report):
    tree = ClassTree.from_newick("((((1,7),2),((8,9),0)),(((4,6),5),3));")
    root = ElementTree.fromstring(tree_figure("FT", tree, report.summary.pictures).svg)
    assert len(list(root.iter(f"{SVG}image"))) == 10
    labels = {t.text: float(t.attrib["x"]) for t in root.iter(f"{SVG}text") if t.attrib["font-size"] == "13"}
    assert sorted(labels, key=labels.get) == list("1728904653")
    groups = {t.text for t in root.iter(f"{SVG}text") if t.attrib["font-size"] == "11"}
    assert {"1 7", "0 8 9", "3 4 5 6"} <= groups


def test_the_accuracy_figures_mark_every_method_of_their_setting(report):
    for setting in report.summary.settings:
        (figure,) = (f for f in report.figures if f.name == f"accuracy_{setting[0]}_{setting[1]}")
        titles = [t.text.split(":")[0] for t in ElementTree.fromstring(figure.svg).iter(f"{SVG}title")]
        assert titles == list(report.summary.row(setting))


def test_all_files_are_written_and_the_page_needs_nothing_else(report, tmp_path):
    written = report.write(tmp_path)
    assert written[0] == tmp_path / "index.html"
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(written)
    page = written[0].read_text()
    addresses = re.findall(r"""(?:src|href)=["']([^"']+)""", page)
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in addresses)
    assert "default-src 'none'" in page
    for svg in (tmp_path / "figures").iterdir():
        ElementTree.parse(svg)


def test_the_rows_as_csv_have_parameters_versions_and_machine(report, tmp_path):
    report.write(tmp_path)
    with (tmp_path / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(list(report.results.of_kind("split")))
    assert rows[0]["parameters"] == "C=1 gamma=0.1"
    assert "numpy=" in rows[0]["versions"]
    assert "cores" in rows[0]["machine"]


def test_failed_jobs_are_told_with_their_errors(paper_results):
    paper_results.add({"kind": "split", "key": "split|FT|usps", "status": "failed", "error": "MemoryError: <no> & |"})
    report = Report(paper_results)
    assert "MemoryError: &lt;no&gt; &amp; |" in report.page()
    assert "MemoryError: <no> & \\|" in report.markdown()


def test_a_report_of_nothing_says_so_instead_of_failing(tmp_path):
    report = Report(Results([]))
    assert "No results yet." in report.page()
    assert {claim.verdict for claim in report.claims} == {"not tested"}
    assert all_figures(Summary(Results([]))) == []


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "page.html"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "new \udc80")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
