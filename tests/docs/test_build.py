"""Sphinx builds the documentation without a warning."""

import os
import shutil
import subprocess
import sys
import time

import pytest

# Seconds, without the programs of the gallery.
LONGEST_BUILD = 60
PACKAGES = ["sphinx", "pydata_sphinx_theme", "sphinx_gallery", "sphinx_copybutton", "numpydoc", "myst_parser"]


@pytest.fixture(scope="module")
def built(root, tmp_path_factory):
    """Return the directory of the pages, built from a copy, and the seconds that it took."""
    for package in PACKAGES:
        pytest.importorskip(package, reason=f"{package} is not installed: pip install -e '.[docs]'")
    copy = tmp_path_factory.mktemp("repository")
    generated = shutil.ignore_patterns("_build", "api", "auto_examples")
    shutil.copytree(root / "docs", copy / "docs", ignore=generated)
    shutil.copytree(root / "examples", copy / "examples")
    shutil.copytree(root / "benchmarks" / "results", copy / "benchmarks" / "results")
    # Pages link to the modules that they describe.
    shutil.copytree(root / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for page in root.glob("*.md"):
        shutil.copy(page, copy)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-D", "plot_gallery=0", "docs", "html"]
    start = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return copy / "html", time.perf_counter() - start


@pytest.mark.slow
def test_the_documentation_builds_without_warnings_in_a_minute(built):
    assert built[1] < LONGEST_BUILD


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("index.html", "Getting started"),
        ("fitting.html", 'href="results/peers.html"'),
        ("fitting.html", 'href="auto_examples/plot_wordnet_hypernyms.html"'),
        ("api/margintree.MarginTreeClassifier.html", "predict_top_k"),
        ("benchmarks.html", 'href="results/draws.html"'),
        ("changelog.html", 'href="security.html"'),
        ("contributing.html", 'href="adding_a_split.html"'),
        ("auto_examples/plot_digits.html", "plot_tree"),
        ("splits.html", 'href="splits/best_first.html"'),
        ("api/margintree.splits.BestFirstSplit.html", 'href="../splits/best_first.html"'),
        ("solvers/linear_dual.html", 'href="newton.html"'),
    ],
)
def test_pages_have_what_others_lead_to(built, page, text):
    assert text in (built[0] / page).read_text(encoding="utf-8")
