"""``margintree show``: what is in a model file."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from margintree.cli.reporting import printable, reported, terminal
from margintree.model_file.files import load_model

LONGEST_VALUE = 60


def run_show(model: Path, *, depth: int | None, verify: bool) -> None:
    """Print the estimator, its sizes, and its tree where it has one."""
    with reported(terminal()):
        estimator = load_model(model, verify=verify)
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")
        for name, value in _facts(model, estimator):
            print(f"{name:<12}{printable(value)}")
        tree = getattr(estimator, "tree_", None)
        if tree is not None:
            labels = [printable(str(label).replace("\n", " ")) for label in estimator.classes_.tolist()]
            print(f"\n{tree.to_text(labels, max_depth=depth)}")
        sys.stdout.flush()


def _facts(model: Path, estimator: Any) -> list[tuple[str, str]]:
    parameters = estimator.get_params(deep=False)
    defaults = type(estimator)().get_params(deep=False)
    changed = {name: value for name, value in parameters.items() if not _same(value, defaults.get(name))}
    labels = ", ".join(str(label).replace("\n", " ") for label in estimator.classes_[:10].tolist())
    facts = [
        ("file", f"{model} ({model.stat().st_size:,} bytes)"),
        ("estimator", type(estimator).__name__),
        ("parameters", ", ".join(f"{n}={_short(v)}" for n, v in sorted(changed.items())) or "all as by default"),
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
