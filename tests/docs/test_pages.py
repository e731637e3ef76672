"""README and the pages of the documentation: their links lead somewhere, and their code runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "docs/splits", "docs/solvers", "benchmarks")
PAGES = [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).glob("*.md"))]
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_has_the_marks_of_an_unfinished_merge(page):
    assert not re.search(r"^(<{7}|={7}|>{7})( |$)", page.read_text(encoding="utf-8"), flags=re.MULTILINE)


def with_code():
    """Return the names of the pages with Python code."""
    names = [str(page.relative_to(ROOT)) for page in PAGES if "```python" in page.read_text(encoding="utf-8")]
    assert {"README.md", "docs/index.md", "docs/fitting.md", "docs/splits.md"} <= set(names)
    return names


@pytest.mark.parametrize("name", with_code())
def test_the_code_of_a_page_runs(name, code_of, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = code_of(name)
    if "fetch_" in code and not os.environ.get("MARGINTREE_DATA"):
        pytest.skip("needs MARGINTREE_DATA")
    if "margintree.dask" in code:
        pytest.importorskip("distributed", reason="needs the extra dask")
    exec(compile(code, name, "exec"), {"__name__": "page"})
    plt.close("all")


def test_the_start_page_draws_the_picture_that_it_shows(code_of, tmp_path, monkeypatch, root):
    monkeypatch.chdir(tmp_path)
    exec(code_of("docs/index.md").split("print(model.explain")[0], {})
    drawn, shown = plt.imread(tmp_path / "digits.png"), plt.imread(root / "docs" / "digits.png")
    plt.close("all")
    assert drawn.shape[:2] == pytest.approx(shown.shape[:2], rel=0.1)
    assert abs(drawn.mean() - shown.mean()) < 0.02


def test_every_split_has_a_page_that_its_docstring_names():
    """Every module of the room that has a split, and no other, has a page of its name."""
    modules = [
        p
        for p in (ROOT / "src/margintree/splits").glob("*.py")
        if "def divide(self, node: NodeProblem)" in p.read_text()
    ]
    assert {p.stem for p in modules} == {p.stem for p in (ROOT / "docs/splits").glob("*.md")}
    assert [p.stem for p in modules if f":doc:`user guide </splits/{p.stem}>`" not in p.read_text()] == []


def test_every_page_of_a_solver_is_named_in_the_module_that_it_describes():
    """The modules are those that the pages link to first."""
    for page in (ROOT / "docs/solvers").glob("*.md"):
        module = page.parent / next(link for link in LINK.findall(page.read_text()) if link.endswith(".py"))
        assert f"docs/solvers/{page.name}" in module.read_text(), page


def test_the_first_commands_of_the_command_line_run(root, tmp_path):
    """The page is for newcomers: what it shows first needs no file but those that it writes."""
    text = (root / "docs/command_line.md").read_text(encoding="utf-8")
    commands = re.search(r"```sh\n(.*?)```", text, flags=re.DOTALL).group(1)
    margintree = f'{sys.executable} -m margintree "$@"'
    script = f'set -e\nmargintree() {{ {margintree}; }}\npython() {{ {sys.executable} "$@"; }}\n{commands}'
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "accuracy 0.9" in done.stdout
    assert {"digits.html", "labels.txt", "best.csv", "why.png"} <= {path.name for path in tmp_path.iterdir()}
