"""The paper's claims one by one: what section 4.3 says, how it can be checked, and what our results show.

A verdict is given only for significant results: accuracies are compared over the settings by Wilcoxon's test or by
resampling the splits, times with an allowance for their variation between runs.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import linregress

from margintree.class_tree import ClassTree
from margintree.experiments import paper
from margintree.experiments.methods import METHODS, PAPER, USERS
from margintree.experiments.ranks import ALPHA, compare
from margintree.experiments.summary import MEASURES, Setting, Summary, escaped, setting_title
from margintree.structures.random_tree import random_tree

CONFIRMED, REFUTED, UNDECIDED = "confirmed", "refuted", "not decided by these data"
MSM = ("MSM (paper)", "MSM (balanced cut)")
# The column that stands for each of the paper's methods.
OURS = {method.paper_name: name for name, method in reversed(METHODS.items()) if method.comparison == PAPER}
TREES = tuple(OURS[name] for name in paper.TREE_METHODS)
# A pair of digits counts as grouped if the smallest node with both has at most this many classes. In either reading,
# the five pairs are two separate ones and a triangle, so that one tree can group them all.
LARGEST_GROUP = 3
N_RESAMPLES = 2000
# Times of a few microseconds differ by this factor from run to run; counts of decision functions do not.
NOISE = {"evaluations": 1.0, "predict": 1.25, "compiled": 1.25}


class Finding(NamedTuple):
    """What we measured, and the verdict on a claim, by one measure or in one reading."""

    verdict: str
    text: str


class Claim(NamedTuple):
    """A claim: what the paper says, when it counts as confirmed, our findings, and why they may differ."""

    name: str
    statement: str
    check: str
    findings: Sequence[Finding | None]  # None where results are missing
    reason: str = ""

    def to_markdown(self) -> str:
        """Return the claim in Markdown."""
        findings = "\n".join(f"- **{finding.verdict}** {finding.text}" for finding in self.findings if finding)
        parts = [f"### {self.name}", self.statement, findings, self.reason, f"Confirmed if: {self.check}"]
        return "\n\n".join(filter(None, parts))


# What the paper says about its rivals, about its speed, and about Figure 1.
RIVALS = {
    ("I-BWG", "J-BWG"): "MSM performs better than I-BWG and J-BWG.",
    ("CPT",): "MSM has an advantage over CPT.",
    ("1vs1", "1vsR"): "MSM also outperforms 1vs1 and 1vsR: the learned structure helps.",
}
TIMES_AS_FAST = {"1vs1": (2.0, 200.0), "1vsR": (1.3, 50.0)}
FIGURE_1 = {
    "MSM": ("MSM groups all the alike digits, even in the layer next to the bottom.", "All pairs, in most splits."),
    "I-BWG": (
        "I-BWG groups some alike digits in the second layer, but fails in the deeper ones.",
        "More pairs on one side of the root than random trees have (95 %), and no more than these further down.",
    ),
    "FT": ("FT completely fails to group the alike digits.", "No more pairs than in random trees (95 %)."),
    "CPT": (
        "CPT does better than I-BWG and FT, but fails to group 1-7.",
        "Wilcoxon's test over the splits finds more pairs than those have, and the first pair is not in most trees.",
    ),
}


def all_claims(summary: Summary) -> list[Claim]:
    """Return the claims of section 4.3 for which all results are available."""
    return [claim._replace(findings=found) for claim in _claims(summary) if (found := [*filter(None, claim.findings)])]


def _claims(summary: Summary) -> Iterator[Claim]:
    statement = "MSM is best of seven methods in 9 of 13 settings, and second or third in the others."
    check = "That holds in 95 % of draws from the splits; refuted if in less than 5 %."
    places = [_places(summary, msm) for msm in MSM]
    yield Claim("Accuracy", statement, check, places, _readings(summary, paper.PAPER_METHODS))
    check = "Wilcoxon's test over the settings finds MSM (paper) ahead at the 5 % level; refuted if behind."
    for names, statement in RIVALS.items():
        ahead, reason = [_ahead(summary, name) for name in names], _readings(summary, ("MSM", *names))
        yield Claim(f"MSM against {' and '.join(names)}", statement, check, ahead, reason)
    check = "Wilcoxon's test finds FT behind every other method but J-BWG, which is linear; refuted if ahead of one."
    statement, reason = "FT does not yield good results.", _readings(summary, ("FT",))
    yield Claim("FT is weak", statement, check, [_weakest(summary)], reason)
    reason = (
        "Here, 1vs1 and 1vsR compute a kernel value once for all machines, and evaluate linear machines in one "
        "compiled loop; on small sets, the overhead of a call exceeds what it computes."
    )
    for flat, (least, most) in TIMES_AS_FAST.items():
        statement = f"Trees predict {least:g} to {most:g} times as fast as {flat}."
        check = f"Every tree is at least {least:g} times as fast in every setting. {_printed(flat)}"
        speeds = [_speed(summary, flat, least, measure) for measure in MEASURES]
        yield Claim(f"Speed against {flat}", statement, check, speeds, reason)
    statement = "The five tree methods take nearly comparable time to predict."
    check = "In no setting is the slowest tree more than twice as slow as the fastest, as in the paper's Table 3."
    spreads = [_spread(summary, measure, msm) for measure in MEASURES for msm in MSM]
    yield Claim("Trees among themselves", statement, check, spreads)
    statement = "Prediction time grows faster with the number of classes for 1vs1 and 1vsR than for trees."
    check = "Both slopes on news20 (least squares) exceed those of all trees by more than twice the standard error."
    reason = "single_instance() of 1vsR evaluates all machines in one pass over the row: one more costs almost nothing."
    yield Claim("Figure 2", statement, check, [_slopes(summary, measure) for measure in MEASURES], reason)
    for label, (statement, check) in FIGURE_1.items():
        groupings = [_grouping(summary, label, reading) for reading in paper.CONFUSABLE_DIGITS]
        yield Claim(f"Figure 1: {label}", statement, check, groupings)


def answer(summary: Summary) -> str:
    """Return the findings in two sentences, as far as there are results for them."""
    sentences = []
    hows = {PAPER: (MSM[0], "without bias, as in the paper"), USERS: ("MSM (ours)", "with bias and our defaults")}
    for comparison, (msm, how) in hows.items():
        methods = [m for m in summary.methods(comparison) if METHODS[m].kernels != ("linear",)]
        settings = summary.settings_with(methods)
        rivals = [m for m in methods if m not in MSM and m != msm]
        if msm in methods and rivals and settings:
            best = max(rivals, key=lambda m: summary.overall(m, settings)[0])
            rows = [summary.row(s, [msm, *(m for m in summary.methods(comparison) if m not in MSM)]) for s in settings]
            n_best = sum(row[msm].mean == max(cell.mean for cell in row.values()) for row in rows)
            theirs = " (the paper has it in 9)" if comparison == PAPER and not _lacks(settings) else ""
            (ours, cost), (other, other_cost) = (summary.overall(m, settings) for m in (msm, best))
            sentences.append(
                f"Run {how}, MSM is the most accurate method in {n_best} of {len(settings)} settings{theirs}: on "
                f"average {ours:.1f} % correct with {cost:.1f} decision functions per prediction (geometric mean), "
                f"where {METHODS[best].title} has {other:.1f} % with {other_cost:.1f}."
            )
    return " ".join(sentences) or "No results yet."


def _finding(holds: bool, fails: bool, text: str) -> Finding:
    return Finding(CONFIRMED if holds else REFUTED if fails else UNDECIDED, text)


def _lacks(settings: Collection[Setting], needed: Collection[Setting] = paper.SETTINGS) -> bool:
    return not set(needed) <= set(settings)


def _readings(summary: Summary, labels: Collection[str]) -> str:
    """Return the accuracies of some of the paper's methods in other readings of its experiment."""
    found: dict[str, list[str]] = {}
    for reading, label, usual, cell in summary.readings():
        theirs = paper.accuracy(label, reading.data_set, reading.kernel)
        if label in labels and usual and theirs:
            text = f"{label} {usual.mean:.1f} → {cell.mean:.1f} ({theirs[0]:.1f})"
            found.setdefault(reading.name, []).append(text)
    listed = "; ".join(f"{name}: {', '.join(texts)}" for name, texts in found.items())
    return f"Other readings, accuracy here → in the reading (in the paper): {listed}." if listed else ""


def _places(summary: Summary, msm: str) -> Finding | None:
    """Say how often MSM is best, with resampled splits for the uncertainty."""
    chance, places = np.random.default_rng(0), {}
    for setting in summary.settings:
        row = summary.row(setting, [msm, *(name for label, name in OURS.items() if label != "MSM")])
        # A split that failed is missing until the next run.
        if msm in row and len(row) > 1 and len({len(cell.accuracies) for cell in row.values()}) == 1:
            values = np.array([cell.accuracies for cell in row.values()])
            draws = chance.integers(0, values.shape[1], (N_RESAMPLES, values.shape[1]))
            draws[0] = np.arange(values.shape[1])
            means = values[:, draws].mean(axis=2).round(2)
            # A tie for the first place counts as best, as in the paper's row of sector.
            places[setting] = 1 + (means > means[0]).sum(axis=0)
    if _lacks(places):
        return None
    n_best, worst = (np.array([*places.values()]) == 1).sum(axis=0), np.max([*places.values()], axis=0)
    share = float(np.mean((n_best >= 9) & (worst <= 3)))
    low, high = np.percentile(n_best, [2.5, 97.5])
    text = f"{msm} is best in {n_best[0]:.0f} of 13 settings ({low:.0f} to {high:.0f} in 95 % of draws), at worst"
    theirs = "In the paper's own table it is best in 9 and at worst number 4."
    return _finding(share >= 1 - ALPHA, share < ALPHA, f"{text} number {worst[0]:.0f}. {theirs}")


def _ahead(summary: Summary, label: str) -> Finding | None:
    """Say whether MSM is more accurate than another method."""
    other = OURS[label]
    settings = summary.settings_with([*MSM, other])
    if _lacks(settings, [s for s in paper.SETTINGS if s[1] in METHODS[other].kernels]):
        return None
    found = {msm: compare(summary.means(msm, settings), summary.means(other, settings)) for msm in MSM}
    texts = [
        f"{msm} is ahead of {label} in {test.n_ahead} of {len(settings)} settings, by {test.mean_difference:+.1f} "
        f"points on average (p = {test.p_value:.2g})"
        for msm, test in found.items()
    ]
    winner = found[MSM[0]].winner
    return _finding(winner > 0, winner < 0, f"{'; '.join(texts)}.")


def _weakest(summary: Summary) -> Finding | None:
    names = [name for label, name in OURS.items() if label != "J-BWG"]
    settings = summary.settings_with(names)
    if _lacks(settings):
        return None
    means = {m: summary.means(m, settings) for m in names}
    winners = {METHODS[m].title: compare(means[OURS["FT"]], means[m]).winner for m in names if m != OURS["FT"]}
    behind, ahead = (", ".join(m for m, winner in winners.items() if winner == side) or "none" for side in (-1, 1))
    text = f"FT is significantly less accurate than {behind}, and significantly more accurate than {ahead}."
    return _finding(set(winners.values()) == {-1}, ahead != "none", text)


def _costs(summary: Summary, measure: str) -> dict[Setting, dict[str, float]]:
    """Return what predictions of the methods without bias cost in every setting; nothing unless all are known."""
    rows = {s: summary.row(s, [*OURS.values(), MSM[1]]) for s in summary.settings}
    found = {s: {m: c.costs[measure] for m, c in row.items() if measure in c.costs} for s, row in rows.items()}
    whole = {s: costs for s, costs in found.items() if len(costs) > len(OURS) - (s[1] != "linear")}
    return {} if _lacks(whole) else whole


def _speed(summary: Summary, flat: str, least: float, measure: str) -> Finding | None:
    ratios = {s: [c[OURS[flat]] / c[m] for m in TREES if m in c] for s, c in _costs(summary, measure).items()}
    if not ratios:
        return None
    lowest, highest = min(map(min, ratios.values())), max(map(max, ratios.values()))
    slow = "; ".join(escaped(setting_title(s)) for s, found in ratios.items() if min(found) < least) or "no setting"
    text = f"In {MEASURES[measure]}: {lowest:.2g} to {highest:.0f} times; below {least:g} for some tree in {slow}."
    return _finding(lowest >= least, lowest * NOISE[measure] < least, text)


def _printed(flat: str) -> str:
    seconds = [[paper.seconds(m, *s) for m in (flat, *paper.TREE_METHODS)] for s in paper.SETTINGS]
    ratios = [whole / part for whole, *parts in seconds for part in parts if whole and part]
    return f"The paper's own Table 3 gives {min(ratios):.2g} to {max(ratios):.0f} times."


def _spread(summary: Summary, measure: str, msm: str) -> Finding | None:
    found = {s: [c[m] for m in (msm, *TREES[1:]) if m in c] for s, c in _costs(summary, measure).items()}
    if not found:
        return None
    spread, where = max((max(costs) / min(costs), escaped(setting_title(s))) for s, costs in found.items())
    text = f"In {MEASURES[measure]}, with {msm}: up to {spread:.2f} times ({where})."
    return _finding(spread <= 2.0, spread > 2.0 * NOISE[measure], text)


def _slopes(summary: Summary, measure: str) -> Finding | None:
    lines = {}
    for label, method in OURS.items():
        points = {n: costs[measure] for n, costs in summary.curves.get(method, {}).items() if measure in costs}
        if len(points) > 2:
            lines[label] = linregress(list(points), list(points.values()))
    if set(lines) != set(OURS) or summary.curve_setting != ("news20", "linear"):
        return None
    flat = min((lines[m] for m in paper.FLAT_METHODS), key=lambda line: line.slope)
    tree = max((lines[m] for m in paper.TREE_METHODS), key=lambda line: line.slope)
    gap, error = flat.slope - tree.slope, 2.0 * float(np.hypot(flat.stderr, tree.stderr))
    listed = ", ".join(f"{m} {line.slope:.2f}" for m, line in sorted(lines.items(), key=lambda item: item[1].slope))
    return _finding(gap > error, gap < -error, f"In {MEASURES[measure]}, per additional class: {listed}.")


def _grouping(summary: Summary, label: str, reading: str) -> Finding | None:
    """Say how many of the similar digits trees keep together, in one reading of which digits those are."""
    pairs, names = paper.CONFUSABLE_DIGITS[reading], [OURS[name] for name in FIGURE_1]
    cells = summary.row(("usps", "rbf"), [*names, MSM[1], "MSM (ours)"])
    trees = {METHODS[m].title: cell.trees for m, cell in cells.items() if cell.trees}
    if not {METHODS[m].title for m in names} <= set(trees):
        return None
    found = {m: [grouped_pairs(tree, pairs) for tree in trees_] for m, trees_ in trees.items()}
    counts = {m: [len(grouped) for grouped in each] for m, each in found.items()}
    title = METHODS[OURS[label]].title
    mean, n_trees, usual = float(np.mean(counts[title])), len(counts[title]), _in_random_trees(pairs)
    # The 95 % quantiles of means over as many random trees as there are splits.
    draws = np.random.default_rng(0).integers(0, len(usual), (N_RESAMPLES, n_trees))
    most_grouped, most_at_root = np.quantile(usual[draws].mean(axis=1), 1 - ALPHA, axis=0)
    mostly = [sum(pair in grouped for grouped in found[title]) > n_trees / 2 for pair in pairs]
    listed = ", ".join(f"{m} {np.mean(each):.1f}" for m, each in counts.items())
    text = f"Digits {reading}, of 5 pairs per tree: {listed}, random trees {usual[:, 0].mean():.1f}."
    if label == "MSM":
        return _finding(all(mostly), not all(mostly), text)
    if label == "FT":
        return _finding(mean <= most_grouped, mean > most_grouped, text)
    if label == "I-BWG":
        first = float(np.mean([len(grouped_pairs(t, pairs, depth=1)) for t in trees[title]]))
        text += f" On one side of the root: I-BWG {first:.1f}, random trees {usual[:, 1].mean():.1f}."
        return _finding(first > most_at_root and mean <= most_grouped, mean > most_grouped, text)
    winner = min(compare(counts["CPT"], counts[other]).winner for other in ("I-BWG", "FT"))
    return _finding(winner > 0 and not mostly[0], winner < 0 or mostly[0], text)


@cache
def _in_random_trees(pairs: tuple[tuple[int, int], ...]) -> Any:
    """Return how many pairs each of many random trees groups, and keeps on one side of its root."""
    trees = [random_tree(10, seed) for seed in range(200)]
    return np.array([[len(grouped_pairs(t, pairs)), len(grouped_pairs(t, pairs, depth=1))] for t in trees])


def grouped_pairs(tree: ClassTree, pairs: Sequence[tuple[int, int]], depth: int | None = None) -> list[tuple[int, int]]:
    """Return the pairs that a tree keeps together until late, or at least down to a depth."""
    nodes = [(set(tree.classes_below(n).tolist()), int(tree.depth[n])) for n in range(tree.n_nodes)]
    groups = [group for group, at in nodes if (len(group) <= LARGEST_GROUP if depth is None else at >= depth)]
    return [pair for pair in pairs if any(set(pair) <= group for group in groups)]
