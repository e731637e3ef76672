"""Figures in README and docs are those of the results files."""

import html
import json
import re
from pathlib import Path

import campaign
import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(((?:\.\./)?benchmarks/results/[\w/]+\.md)\)")
# 83.05, .645, 12.9: whole numbers are too common to be looked for.
FIGURE = re.compile(r"(?<![\w.,-])[+-]?(\d*\.\d+)(?![\w.]*\d)")


def blocks(text):
    """Yield the tables of a page with the address of the results file that the text before them names last."""
    source = None
    for block in re.split(r"\n\s*\n", text):
        if block.startswith("#"):
            source = None
        if links := LINK.findall(block):
            source = links[-1]
        lines = [line for line in block.splitlines() if line.startswith("|")]
        if lines and source:
            yield source, "\n".join(lines[2:])


def figures(text):
    """Return the figures of a text, without code and with a digit before the point."""
    found = FIGURE.findall(re.sub("`[^`]*`", "", text))
    return {f"0{figure}" if figure.startswith(".") else figure for figure in found}


def printed(text):
    """Return the figures of a results file as they are, rounded, and as parts of 1 where they are in percent."""
    numbers = [float(number) for number in re.findall(r"\d*\.\d+|\d+", text)]
    return {f"{scale * number:.{d}f}" for number in numbers for scale in (1.0, 0.01) for d in (1, 2, 3)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_that_scripts_write_are_what_the_results_say(page):
    text = page.read_text(encoding="utf-8")
    assert campaign.with_tables(text) == text, "run python benchmarks/campaign.py --docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_figure_of_a_table_is_in_the_results_file_that_it_names(page):
    missing = {}
    for source, table in blocks(page.read_text(encoding="utf-8")):
        known = printed((page.parent / source).resolve().read_text(encoding="utf-8"))
        if lacking := figures(table) - known:
            missing.setdefault(source, set()).update(lacking)
    assert missing == {}


def test_a_changed_figure_is_found(tmp_path):
    page = "Accuracy ([x](benchmarks/results/x.md)):\n\n| set | a |\n|---|--:|\n| vowel | 83.05 ± .62 |\n"
    ((source, table),) = blocks(page)
    assert source == "benchmarks/results/x.md"
    assert figures(table) == {"83.05", "0.62"}
    assert figures(table) - printed("| vowel | 83.06 ± 0.618 |") == {"83.05"}


def test_the_figure_of_readme_shows_what_the_results_say():
    text = campaign.peers_figure.FIGURE.read_text(encoding="utf-8")
    shown = json.loads(html.unescape(re.search("<dc:description>(.*?)</dc:description>", text)[1]))
    assert shown == {name: list(point) for name, point in campaign.peers_figure.points().items()}
