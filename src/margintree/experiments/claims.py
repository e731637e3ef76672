"""The paper's claims one by one: what section 4.3 says, how that can be checked, and what our results say to it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from margintree.class_tree import ClassTree
from margintree.experiments import paper
from margintree.experiments.ranks import ranks
from margintree.experiments.summary import CellSummary, Setting, Summary, setting_title

CONFIRMED, REFUTED, NOT_TESTED = "confirmed", "refuted", "not tested"
# Each of the paper's methods and the column of ours that stands for it.
OURS = {name: "MSM (paper)" if name == "MSM" else name for name in paper.PAPER_METHODS}
TREES = tuple(OURS[name] for name in paper.TREE_METHODS)
# A pair of digits counts as grouped where the smallest node with both has at most this many classes: the five pairs
# are {1, 7}, {4, 6} and the triangle {8, 9, 0}, and one tree can group all of them so.
LARGEST_GROUP = 3


@dataclass(frozen=True)
class Claim:
    """A claim with its verdict.

    Parameters
    ----------
    name : str
    statement : str
        What the paper says.
    check : str
        When it counts as confirmed.
    verdict : {"confirmed", "refuted", "not tested"}
    figures : tuple of str
        What we measured.
    """

    name: str
    statement: str
    check: str
    verdict: str
    figures: tuple[str, ...]


def all_claims(summary: Summary) -> list[Claim]:
    """Return every claim of section 4.3 with its verdict."""
    return [
        msm_is_best(summary, "MSM (paper)"),
        msm_is_best(summary, "MSM (ours)"),
        msm_beats_flat_methods(summary),
        ft_is_weak(summary),
        trees_are_faster(summary, "1vs1", 2.0, 200.0),
        trees_are_faster(summary, "1vsR", 1.3, 50.0),
        trees_take_the_same_time(summary),
        curves_are_flatter(summary),
        msm_groups_confusable_digits(summary),
    ]


def msm_is_best(summary: Summary, msm: str) -> Claim:
    """Return the claim about Table 2, for one of our two kinds of MSM."""
    places: dict[Setting, float] = {}
    for setting in summary.settings:
        rivals = [msm, *(OURS[name] for name in paper.PAPER_METHODS if name != "MSM")]
        values = {m: cell.mean for m, cell in summary.row(setting).items() if m in rivals}
        if msm in values and len(values) > 1:
            # Equal first counts as best, as in the paper's row of sector.
            places[setting] = sum(round(v, 2) > round(values[msm], 2) for v in values.values()) + 1
    n_best = sum(place == 1 for place in places.values())
    worst = max(places.values(), default=0)
    is_whole = set(paper.SETTINGS) <= set(places)
    verdict = _verdict(n_best >= 9 and worst <= 3) if is_whole else NOT_TESTED
    theirs = _paper_places()
    figures = [f"{msm} is best in {n_best} of {len(places)} settings and {_ordinal(worst)} at worst."] if places else []
    figures += [f"{setting_title(s)}: {_ordinal(place)}" for s, place in places.items() if place > 1]
    figures.append(
        f"In the paper's own Table 2 it is best in {sum(p == 1 for p in theirs.values())} of 13 and "
        f"{_ordinal(max(theirs.values()))} at worst."
    )
    return Claim(
        f"{msm}: accuracy",
        "MSM is best of seven methods in 9 of 13 settings, and second or third in the others.",
        "Best in at least 9 of the 13 settings among the paper's methods, and never below the third place.",
        verdict,
        tuple(figures),
    )


def msm_beats_flat_methods(summary: Summary) -> Claim:
    """Return the claim that the structure helps accuracy."""
    wins: dict[str, list[bool]] = {"1vs1": [], "1vsR": []}
    settings = []
    for setting in summary.settings:
        row = summary.row(setting)
        if all(m in row for m in ("MSM (paper)", *wins)):
            settings.append(setting)
            for flat, found in wins.items():
                found.append(row["MSM (paper)"].mean > row[flat].mean)
    is_whole = set(paper.SETTINGS) <= set(settings)
    verdict = _verdict(all(sum(w) > len(w) / 2 for w in wins.values())) if is_whole else NOT_TESTED
    figures = tuple(f"MSM (paper) is ahead of {flat} in {sum(w)} of {len(w)} settings." for flat, w in wins.items())
    return Claim(
        "MSM against 1vs1 and 1vsR",
        "MSM also outperforms 1vs1 and 1vsR: the learned structure helps the prediction.",
        "MSM (paper) is more accurate than either in more than half of the 13 settings.",
        verdict,
        figures if settings else (),
    )


def ft_is_weak(summary: Summary) -> Claim:
    """Return the claim about the filter tree."""
    rows = []
    for setting in summary.settings:
        values = {m: cell.mean for m, cell in summary.row(setting).items() if m in OURS.values() and m != "J-BWG"}
        if len(values) == len(OURS) - 1:
            rows.append(ranks(values))
    means = {m: fmean(row[m] for row in rows) for m in rows[0]} if rows else {}
    is_whole = len(rows) >= len(paper.SETTINGS)
    verdict = _verdict(max(means, key=lambda m: means[m]) == "FT") if is_whole else NOT_TESTED
    listed = ", ".join(f"{m} {rank:.2f}" for m, rank in sorted(means.items(), key=lambda item: item[1]))
    return Claim(
        "FT is weak",
        "FT does not yield good results.",
        "FT has the worst mean rank of the paper's methods over the 13 settings (J-BWG, linear only, left out).",
        verdict,
        (f"Mean ranks over {len(rows)} settings: {listed}.",) if rows else (),
    )


def trees_are_faster(summary: Summary, flat: str, least: float, most: float) -> Claim:
    """Return a claim about Table 3."""
    way = summary.common_way
    ratios: dict[Setting, list[float]] = {}
    for setting in summary.settings:
        row = summary.row(setting)
        seconds = {m: cell.row_seconds[way] for m, cell in row.items() if way is not None and way in cell.row_seconds}
        trees = [seconds[m] for m in TREES if m in seconds]
        if flat in seconds and trees:
            ratios[setting] = [seconds[flat] / tree for tree in trees]
    everything = [ratio for found in ratios.values() for ratio in found]
    is_whole = set(paper.SETTINGS) <= set(ratios)
    verdict = _verdict(min(everything) >= least) if is_whole else NOT_TESTED
    theirs = _paper_ratios(flat)
    figures = []
    if everything:
        figures.append(f"Time, by {way}: {_range(everything)} times as fast as {flat}.")
        slow = [setting_title(s) for s, found in ratios.items() if min(found) < least]
        figures.append(f"Below {least:g} times with some tree: {'; '.join(slow) or 'nowhere'}.")
    counted = _evaluation_ratios(summary, flat)
    if counted:
        figures.append(f"Decision functions: {_range(counted)} times fewer than {flat}.")
    figures.append(f"The paper's own Table 3 gives {_range(theirs)}.")
    return Claim(
        f"Speed against {flat}",
        f"Trees predict {least:g} to {most:g} times as fast as {flat}.",
        f"Every tree method is at least {least:g} times as fast as {flat} in every setting, one row at a time.",
        verdict,
        tuple(figures),
    )


def trees_take_the_same_time(summary: Summary) -> Claim:
    """Return the claim that no tree method is much slower than another."""
    way = summary.common_way
    spreads: dict[Setting, float] = {}
    for setting in summary.settings:
        row = summary.row(setting)
        seconds = [row[m].row_seconds[way] for m in TREES if way is not None and m in row and way in row[m].row_seconds]
        if len(seconds) > 1:
            spreads[setting] = max(seconds) / min(seconds)
    is_whole = set(paper.SETTINGS) <= set(spreads)
    verdict = _verdict(max(spreads.values()) <= 2.0) if is_whole else NOT_TESTED
    figures: tuple[str, ...] = ()
    if spreads:
        worst = max(spreads, key=lambda s: spreads[s])
        figures = (f"The slowest takes up to {spreads[worst]:.2f} times as long ({setting_title(worst)}).",)
    return Claim(
        "Trees among themselves",
        "The five tree methods take nearly comparable time to predict.",
        "In no setting does the slowest tree take more than twice as long as the fastest, as in the paper's Table 3.",
        verdict,
        figures,
    )


def curves_are_flatter(summary: Summary) -> Claim:
    """Return the claim about Figure 2."""
    way = summary.common_way
    slopes = {}
    for method, points in summary.curves.items():
        if way is not None and len(points) > 1 and all(way in p.row_seconds for p in points):
            line = np.polyfit([p.n_classes for p in points], [1e6 * p.row_seconds[way] for p in points], 1)
            slopes[method] = float(line[0])
    trees = {m: slopes[m] for m in TREES if m in slopes}
    flats = {m: slopes[m] for m in paper.FLAT_METHODS if m in slopes}
    is_whole = summary.curve_setting == ("news20", "linear") and len(flats) == 2 and len(trees) == len(TREES)
    verdict = _verdict(min(flats.values()) > max(trees.values())) if is_whole else NOT_TESTED
    listed = ", ".join(f"{m} {slope:.2f}" for m, slope in sorted(slopes.items(), key=lambda item: item[1]))
    return Claim(
        "Figure 2",
        "Prediction time grows faster with the number of classes for 1vs1 and 1vsR than for trees.",
        "The slopes of both, by least squares on news20, are larger than those of all tree methods.",
        verdict,
        (f"Slopes in microseconds per class ({setting_title(summary.curve_setting)}): {listed}.",)
        if slopes and summary.curve_setting
        else (),
    )


def msm_groups_confusable_digits(summary: Summary) -> Claim:
    """Return the claim about Figure 1."""
    setting = summary.pictures.setting if summary.pictures else ("usps", "rbf")
    cells = {m: cell for m, cell in summary.row(setting).items() if m in (*TREES, "MSM (ours)") and cell.trees}
    grouped = {m: fmean(len(grouped_pairs(tree)) for tree in cell.trees) for m, cell in cells.items()}
    figures = [
        f"{m}: {grouped[m]:.1f} of 5 pairs per tree on average; first split {_pairs(grouped_pairs(cell.trees[0]))}."
        for m, cell in cells.items()
    ]
    verdict = NOT_TESTED
    if setting == ("usps", "rbf") and "MSM (paper)" in cells:
        verdict = _verdict(_mostly_grouped(cells["MSM (paper)"]))
    return Claim(
        "Confusable digits",
        "MSM groups the alike digits 1-7, 4-6, 8-9, 9-0 and 8-0, even in the layer next to the bottom.",
        f"In most of the splits, the smallest node that holds a pair has at most {LARGEST_GROUP} digits, for all five "
        "pairs (usps, Gaussian kernel).",
        verdict,
        tuple(figures),
    )


def grouped_pairs(tree: ClassTree) -> list[tuple[int, int]]:
    """Return the confusable pairs that a tree over the ten digits keeps together until late.

    Examples
    --------
    >>> from margintree.class_tree import ClassTree
    >>> from margintree.experiments.claims import grouped_pairs
    >>> grouped_pairs(ClassTree.from_nested(((((1, 7), 2), ((8, 9), 0)), ((4, 5), (6, 3)))))
    [(1, 7), (8, 9), (9, 0), (8, 0)]
    """
    return [pair for pair in paper.CONFUSABLE_DIGITS if len(smallest_group(tree, *pair)) <= LARGEST_GROUP]


def smallest_group(tree: ClassTree, one: int, other: int) -> list[int]:
    """Return the classes of the smallest node that holds both classes."""
    groups = (tree.classes_below(node).tolist() for node in range(tree.n_nodes))
    return min((group for group in groups if one in group and other in group), key=len)


def _mostly_grouped(cell: CellSummary) -> bool:
    counts = [sum(pair in grouped_pairs(tree) for tree in cell.trees) for pair in paper.CONFUSABLE_DIGITS]
    return all(count > len(cell.trees) / 2 for count in counts)


def _pairs(pairs: Iterable[tuple[int, int]]) -> str:
    return ", ".join(f"{one}-{other}" for one, other in pairs) or "none"


def _paper_places() -> dict[Setting, int]:
    places = {}
    for setting in paper.SETTINGS:
        values = [paper.accuracy(m, *setting) for m in paper.PAPER_METHODS]
        msm = values[0]
        assert msm is not None
        places[setting] = sum(v is not None and v[0] > msm[0] for v in values) + 1
    return places


def _paper_ratios(flat: str) -> list[float]:
    ratios = []
    for setting in paper.SETTINGS:
        whole = paper.seconds(flat, *setting)
        parts = [paper.seconds(m, *setting) for m in paper.TREE_METHODS]
        ratios += [whole / part for part in parts if whole is not None and part is not None]
    return ratios


def _evaluation_ratios(summary: Summary, flat: str) -> list[float]:
    rows = [summary.row(setting) for setting in summary.settings]
    return [row[flat].evaluations / row[m].evaluations for row in rows if flat in row for m in TREES if m in row]


def _range(ratios: Sequence[float]) -> str:
    return " to ".join(f"{ratio:.0f}" if ratio >= 100.0 else f"{ratio:.2g}" for ratio in (min(ratios), max(ratios)))


def _verdict(holds: bool) -> str:
    return CONFIRMED if holds else REFUTED


def _ordinal(place: float) -> str:
    names = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh"}
    return names.get(int(place), f"{place:g}th")
