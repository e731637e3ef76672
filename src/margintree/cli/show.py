"""``margintree show``: the contents of a model file."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from margintree.cli.model_rows import RowModel, read_names
from margintree.cli.options import NameOptions
from margintree.cli.reporting import printable, reported, shown, terminal
from margintree.cli.row_format import RowFormat, Rows
from margintree.inspection.page import export_html
from margintree.model_file.files import load_model
from margintree.storage import check_writable

LONGEST_VALUE = 60


def run_show(model: Path, *, depth: int | None, verify: bool, class_names: Path | None) -> None:
    """Print the estimator, its sizes, and its tree if it has one."""
    with reported(terminal()):
        estimator = load_model(model, verify=verify)
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")
        for name, value in _facts(model, estimator):
            print(f"{name:<12}{printable(value)}")
        tree = getattr(estimator, "tree_", None)
        if tree is not None:
            names = estimator.classes_.tolist()
            if class_names is not None:
                names = read_names(class_names, "--class-names", len(names))
            labels = [printable(str(name).replace("\n", " ")) for name in names]
            print(f"\n{tree.to_text(labels, max_depth=depth)}")
        sys.stdout.flush()


def run_show_page(
    model: Path, page: Path, data: Path | None, *, how: RowFormat, names: NameOptions, verify: bool
) -> None:
    """Write an interactive page of the tree, with the rows of a file if one is given."""
    console = terminal()
    with reported(console):
        check_writable(page)
        fitted = RowModel(model, verify=verify, names=names)
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
    changed = {name: value for name, value in parameters.items() if not _same(value, defaults.get(name))}
    labels = ", ".join(str(label).replace("\n", " ") for label in estimator.classes_[:10].tolist())
    facts = [
        ("file", f"{model} ({model.stat().st_size:,} bytes)"),
        ("estimator", type(estimator).__name__),
        ("parameters", ", ".join(f"{n}={_short(v)}" for n, v in sorted(changed.items())) or "all defaults"),
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


def _same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and repr(value) == repr(other)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."
