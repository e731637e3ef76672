"""``export_html``: a fitted tree as one interactive page that needs no network.

The page is ``page.html`` with the style sheet, the script and the data inserted. The data are JSON in which the special
characters of HTML and all line separators are escaped; the script inserts labels as text only. The content security
policy of the page allows this script and no other.
"""

import base64
import hashlib
import html
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from margintree.inspection.labels import Names
from margintree.inspection.page_data import tree_data
from margintree.inspection.page_rows import row_data
from margintree.inspection.tree_facts import before_last_step
from margintree.storage import replacing

# One program in the order of its files: each uses what those before it define.
PROGRAM = tuple(
    f"page_{part}.js"
    for part in ("tree", "measures", "icicle", "matrix", "panel", "rows", "outline", "search", "picture", "main")
)


def export_html(
    estimator: Any,
    path: str | os.PathLike[str],
    X: Any = None,
    y: Any = None,
    feature_names: Any = None,
    *,
    class_names: Names | None = None,
) -> None:
    """Write an interactive page of a fitted tree: one file that needs no network.

    The page shows the tree as an icicle with zoom, collapsible subtrees and a search for classes. For each node it
    gives the margin, the lower bound and, with the linear kernel, the features with the largest weights. With ``X`` it
    shows the paths of single rows, and with ``y`` the accuracy of each node and the confusion matrix in tree order.

    Parameters
    ----------
    estimator : fitted estimator with a tree over its classes, or a Pipeline that ends in one
        MarginTreeClassifier, LabelTreeClassifier, FilterTreeClassifier or ConditionalProbabilityTreeClassifier.
    path : str or path-like
        The file is written completely or not at all.
    X : array-like or sparse matrix of shape (n_samples, n_features), default=None
        Rows to show, preferably those of a test set. They are passed to a pipeline as in ``predict``. All of them count
        in accuracies; the page contains the paths of up to 1,000 of them, evenly spaced.
    y : array-like of shape (n_samples,), default=None
        Labels of ``X``.
    feature_names : array-like of shape (n_features,), default=None
        None uses the names that the pipeline or the estimator knows, else x0, x1 and so on.
    class_names : sequence of length n_classes, default=None
        Names to show instead of the labels.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    TypeError
        If the estimator has no tree over its classes.
    ValueError
        If the rows, the labels or the names do not fit the estimator.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from margintree import MarginTreeClassifier
    >>> from margintree.inspection import export_html
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MarginTreeClassifier(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     page = Path(directory) / "iris.html"
    ...     export_html(model, page, X, y)
    ...     page.read_text().startswith("<!doctype html>")
    True
    """
    estimator, X, feature_names = before_last_step(estimator, X, feature_names)
    if X is None and y is not None:
        raise ValueError("y was given without X. Give both, or neither.")
    data = tree_data(estimator, feature_names, class_names) | row_data(estimator, X, y)
    content = _page(data)
    with replacing(Path(path)) as unfinished:
        unfinished.write_text(content, encoding="utf-8", newline="\n")


def _page(data: dict[str, Any]) -> str:
    program, style = "\n".join(map(_text, PROGRAM)), _text("page.css")
    # The browser refuses everything except this program, so that a label would be harmless even as markup.
    policy = f"default-src 'none'; img-src data:; script-src {_hash(program)}; style-src {_hash(style)}"
    parts = {
        "policy": html.escape(policy),
        "title": html.escape(data["title"]),
        "style": style,
        "program": program,
        "data": _escaped(json.dumps(data, separators=(",", ":"), allow_nan=False)),
    }
    # Split once, so that inserted text is not searched for placeholders.
    pieces = _text("page.html").split("@@")
    return "".join(parts[piece] if k % 2 else piece for k, piece in enumerate(pieces))


def _text(name: str) -> str:
    return files("margintree.inspection").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _escaped(text: str) -> str:
    """Return JSON, which is plain ASCII, without the characters that can open or close an element."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
