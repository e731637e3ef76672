"""Sphinx configuration; CONTRIBUTING.md has the command that builds the documentation."""

import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import matplotlib
from docutils import nodes
from sklearn.datasets import fetch_20newsgroups
from sphinx import addnodes
from sphinx.application import Sphinx

import margintree

matplotlib.use("Agg")

DOCS = Path(__file__).parent
ROOT = DOCS.parent
EXAMPLES = ROOT / "examples"

project = "margintree"
copyright = "The margintree developers"
version = release = margintree.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "auto_examples/**/*.md5", "sg_execution_times.rst"]

# Markdown
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# API reference. Parameters and attributes come from the docstrings; methods have pages of their class.
autosummary_generate = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
# Quotation marks in docstrings are those of Python.
smartquotes = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# HTML
html_theme = "pydata_sphinx_theme"
html_title = "margintree"
html_static_path = ["_static"]
html_css_files = ["margintree.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "changelog": []}
# A prompt and the output below it are not for the clipboard.
copybutton_exclude = ".linenos, .gp, .go"


def has_newsgroups() -> bool:
    """Return whether scikit-learn has downloaded the 20 newsgroups."""
    try:
        fetch_20newsgroups(download_if_missing=False)
    except OSError:
        return False
    return True


# What some examples need, by the text that shows it. Examples whose data are missing are shown, but not run.
AVAILABLE = {
    "MARGINTREE_DATA": bool(os.environ.get("MARGINTREE_DATA")),
    "wordllama": find_spec("wordllama") is not None,
    "fetch_20newsgroups": has_newsgroups(),
}


def runnable_examples() -> str:
    """Return a pattern of the examples that can run here."""
    texts = {path.stem: path.read_text("utf-8") for path in EXAMPLES.glob("plot_*.py")}
    names = [name for name, text in texts.items() if all(there for need, there in AVAILABLE.items() if need in text)]
    return rf"[\\/]({'|'.join(names)})\.py$"


sphinx_gallery_conf = {
    "examples_dirs": str(EXAMPLES),
    "gallery_dirs": "auto_examples",
    "filename_pattern": runnable_examples(),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 10_000,
    "abort_on_example_error": True,
}


def copy_results(_app: Sphinx) -> None:
    """Copy the results of the benchmarks, which the pages link to, so that they are pages themselves."""
    source, target = ROOT / "benchmarks" / "results", DOCS / "results"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.json", "*.jsonl", "*.html"))


# Links that work in the repository, and the pages that they lead to here.
PAGES = [
    (re.compile(r"(?:.*/)?benchmarks/results/((?:reproduction/)?\w+)(?:\.md)?"), r"/results/\1"),
    (re.compile(r"(?:.*/)?examples/(plot_\w+)\.py"), r"/auto_examples/\1"),
    (re.compile(r"(?:.*/)?examples/README\.txt"), "/auto_examples/index"),
    (re.compile(r"docs/([\w/]+)\.md"), r"/\1"),
]


def link_pages(_app: Sphinx, doctree: nodes.document) -> None:
    """Lead links to files of the repository to the pages that are made of them."""
    for link in list(doctree.findall(addnodes.pending_xref)) + list(doctree.findall(addnodes.download_reference)):
        for pattern, page in PAGES:
            if match := pattern.fullmatch(link["reftarget"]):
                target = match.expand(page)
                new = addnodes.pending_xref(
                    "",
                    *link.children,
                    refdoc=link["refdoc"],
                    refdomain="std",
                    reftype="doc",
                    reftarget=target,
                    refexplicit=True,
                    refwarn=True,
                )
                link.replace_self(new)
                break


def setup(app: Sphinx) -> None:
    """Connect the functions above to the events of the build."""
    app.connect("builder-inited", copy_results)
    app.connect("doctree-read", link_pages)
