"""``margintree show``: the contents of a model file."""

from pathlib import Path
from typing import Any

import numpy as np

from margintree.cli.model_rows import RowModel
from margintree.cli.options import NameOptions
from margintree.cli.reporting import reported, shown
from margintree.cli.row_format import RowFormat, Rows
from margintree.inspection.labels import one_line, shortened
from margintree.inspection.page import export_html
from margintree.storage import check_writable

LONGEST_VALUE = 60


def run_show(model: Path, *, depth: int | None, names: NameOptions, verify: bool) -> None:
    """Print the estimator, its sizes, and its tree if it has one."""
    with reported():
        fitted = RowModel(model, names, verify=verify)
        for name, value in _facts(model, fitted.estimator):
            print(f"{name:<12}{one_line(value)}")
        tree = getattr(fitted.estimator, "tree_", None)
        if tree is not None:
            labels = fitted.estimator.classes_.tolist() if fitted.class_names is None else fitted.class_names
            print(f"\n{tree.to_text([one_line(label) for label in labels], max_depth=depth)}")


def run_show_page(
    model: Path, page: Path, data: Path | None, *, how: RowFormat, names: NameOptions, verify: bool
) -> None:
    """Write an interactive page of the tree, with the rows of a file if one is given."""
    with reported() as console:
        check_writable(page)
        fitted = RowModel(model, names, verify=verify)
        X, y, features = None, None, fitted.feature_names
        if data is not None:
            rows = fitted.read(data, how)
            X, y = rows.X, _labels(fitted.estimator, rows)
            features = rows.names if features is None else features
        export_html(fitted.estimator, page, X, y, features, class_names=fitted.class_names)
        console.print(f"Wrote {shown(page)}, {page.stat().st_size:,} bytes. Open it in a browser.")


def _labels(estimator: Any, rows: Rows) -> Any:
    """Return the labels of a file with the types that the model knows: 3 and "3" are the same in a file."""
    if rows.labels is None:
        return None
    known = {str(label): label for label in estimator.classes_.tolist()}
    return np.array([known.get(label, label) for label in rows.labels.astype(str).tolist()], dtype=object)


def _facts(model: Path, estimator: Any) -> list[tuple[str, str]]:
    parameters = estimator.get_params(deep=False)
    defaults = type(estimator)().get_params(deep=False)
    changed = {n: repr(value) for n, value in sorted(parameters.items()) if repr(value) != repr(defaults[n])}
    labels = ", ".join(str(label) for label in estimator.classes_[:10].tolist())
    facts = [
        ("file", f"{model} ({model.stat().st_size:,} bytes)"),
        ("estimator", type(estimator).__name__),
        ("parameters", ", ".join(f"{n}={shortened(v, LONGEST_VALUE)}" for n, v in changed.items()) or "all defaults"),
        ("features", f"{estimator.n_features_in_:,}"),
        ("classes", f"{len(estimator.classes_):,}: {labels}{', ...' if len(estimator.classes_) > 10 else ''}"),
    ]
    tree = getattr(estimator, "tree_", None)
    if tree is not None:
        depths = tree.depth[tree.leaf_of_class]
        n_trees = len(getattr(estimator, "trees_", [tree]))
        text = f"depth {tree.max_depth}, {np.mean(depths):.1f} on average"
        facts.append(("tree", text if n_trees == 1 else f"the first of {n_trees}: {text}"))
    return facts
