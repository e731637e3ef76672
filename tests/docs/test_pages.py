"""README and the pages of the documentation: their links lead somewhere, and their code runs."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^ *```.*?^ *```", flags=re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", flags=re.MULTILINE)


def anchors(page):
    """Return the anchors of a page's headings, as GitHub and MyST make them."""
    headings = HEADING.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_to_files_and_headings(page):
    broken = []
    for link in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"\w+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize(
    "name",
    ["README.md"]
    + [f"docs/{page}.md" for page in ("index", "fitting", "predicting", "troubleshooting", "adding_a_split", "page")],
)
def test_the_code_of_a_page_runs(name, code_of, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = code_of(name)
    assert "MarginTreeClassifier" in code
    exec(compile(code, name, "exec"), {"__name__": "page"})
    plt.close("all")


def test_the_start_page_draws_the_picture_that_it_shows(code_of, tmp_path, monkeypatch, root):
    monkeypatch.chdir(tmp_path)
    exec(code_of("docs/index.md").split("print(model.explain")[0], {})
    drawn, shown = plt.imread(tmp_path / "digits.png"), plt.imread(root / "docs" / "digits.png")
    plt.close("all")
    assert drawn.shape[:2] == pytest.approx(shown.shape[:2], rel=0.1)
    assert abs(drawn.mean() - shown.mean()) < 0.02
