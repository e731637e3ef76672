"""Conversion of files of format 1 to format 2."""

from typing import Any

from margintree.model_file.container import AnyArray
from margintree.model_file.sections import LARGEST_NUMBER

# Up to this many classes, all scorers were evaluated without a walk if the path had no weight.
ASKED_WITHOUT_A_WALK = 128
# Not zero, so that paths are followed, but too small to change any score.
NEXT_TO_NOTHING = 5e-324


def from_format_1(arrays: dict[str, AnyArray], facts: dict[str, Any], parameters: dict[str, Any]) -> None:
    """Rename the parts of margin trees: scorers of their leaves, and a shortlist of classes for them."""
    if "shortlist" in parameters:
        shortlist = parameters.pop("shortlist")
        # The greedy walk has nothing to decide, and ignored the shortlist.
        is_set = isinstance(shortlist, int) and shortlist > 0 and parameters.get("walk") != "greedy"
        parameters["decide"] = "paths" if shortlist == 0 else "rest" if is_set else "auto"
        parameters["n_finalists"] = shortlist or "auto"
    if parameters.get("n_trees") == "auto":
        trees = arrays.get("trees.children_left")
        parameters["n_trees"] = 1 if trees is None or not trees.ndim else len(trees)
    if "ranker.width" in facts:
        _update_ranker(arrays, facts)


def _update_ranker(arrays: dict[str, AnyArray], facts: dict[str, Any]) -> None:
    facts["ranker.kind"] = "rest" if "ranker.path_weight" in facts else "paths"
    facts["ranker.n_finalists"] = facts.pop("ranker.n_candidates", None)
    facts["ranker.slope"] = facts.pop("ranker.temperature", 1.0)
    facts.setdefault("ranker.path_weight", 0.0)
    if facts["ranker.width"] == 0:
        # All paths were followed, and none was dropped.
        facts["ranker.gap"] = LARGEST_NUMBER
    scale = arrays.get("ranker.scorers.scale")
    if facts["ranker.path_weight"] == 0 and scale is not None and scale.size > ASKED_WITHOUT_A_WALK:
        facts["ranker.path_weight"] = NEXT_TO_NOTHING
    for name in [name for name in arrays if name.startswith("ranker.scorers.")]:
        arrays[name.replace("scorers", "table", 1)] = arrays.pop(name)
