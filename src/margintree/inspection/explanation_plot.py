"""An explanation as a figure: the path, the finalists, and the deciding features."""

from collections.abc import Callable
from typing import Any

import numpy as np

from margintree.inspection.explanation import Contribution, Explanation, PathStep
from margintree.inspection.labels import PLAIN_TEXT, first_names, shortened
from margintree.inspection.layout import EDGE, INK, MUTED, pyplot

FOR, AGAINST, PALE = "#2b6cb0", "#c05621", "#bcd4ec"
LONGEST_DRAWN_GROUP, LONGEST_LABEL = 46, 26
MOST_FINALISTS, MOST_DRAWN_FEATURES = 8, 6
# Inches for a row of text.
TEXT_ROW = 0.31


def draw_explanation(explanation: Explanation, axes: Any = None) -> Any:
    """Draw an explanation, one panel on each of the axes, and return their figure."""
    title, features = deciding_features(explanation)
    panels: list[Callable[[Any], None]] = [lambda ax: _draw_path(ax, explanation)]
    rows = [2.0 * len(explanation.path)]
    if explanation.decided_by != "walk":
        panels.append(lambda ax: _draw_finalists(ax, explanation))
        rows.append(min(MOST_FINALISTS, len(explanation.finalists)) + 2.0)
    if features:
        panels.append(lambda ax: _draw_features(ax, title, features))
        rows.append(len(features) + 2.0)
    axes = _new_axes(explanation, rows) if axes is None else np.atleast_1d(axes)
    if len(axes) < len(panels):
        raise ValueError(f"This explanation has {len(panels)} panels: give as many axes. Got {len(axes)}.")
    for draw, ax in zip(panels, axes, strict=False):
        draw(ax)
    return axes[0].figure


def _new_axes(explanation: Explanation, rows: list[float]) -> list[Any]:
    """Return axes on a new figure for panels of so many rows of text: the path on the left, the others on the right."""
    plt = pyplot("Explanation.plot")
    of_path, *of_others = rows
    height = TEXT_ROW * max(of_path, sum(of_others)) + 1.1
    figure = plt.figure(figsize=(11.0 if of_others else 6.5, height), layout="constrained")
    figure.suptitle(explanation.headline(), x=0.01, ha="left", fontsize=13, color=INK, **PLAIN_TEXT)
    if not of_others:
        return [figure.add_subplot()]
    grid = figure.add_gridspec(1, 2, width_ratios=[1.25, 1.0])
    # A short path stays at the top instead of filling a tall figure.
    left = grid[0].subgridspec(2, 1, height_ratios=[of_path + 1.0, max(sum(of_others) - of_path - 1.0, 0.01)])
    right = grid[1].subgridspec(len(of_others), 1, height_ratios=of_others)
    return [figure.add_subplot(left[0]), *(figure.add_subplot(right[k]) for k in range(len(of_others)))]


def deciding_features(explanation: Explanation) -> tuple[str, list[Contribution]]:
    """Return the features behind the last decision: between the two best classes, or at the least certain node."""
    for comparison in explanation.comparisons:
        if comparison.features:
            winner, loser = (shortened(explanation.name(label), 20) for label in (comparison.winner, comparison.loser))
            return f"{winner} rather than {loser}", comparison.features
    steps = [step for step in explanation.path if step.features]
    if not steps:
        return "", []
    step = min(steps, key=_certainty)
    return f"least certain node, [{step.node}] {step.side}", step.features


def _certainty(step: PathStep) -> float:
    return abs(step.decision_value) if step.probability is None else step.probability


def _bare(ax: Any, title: str, xlabel: str, *, loc: str = "left") -> None:
    ax.set_title(title, loc=loc, fontsize=10, color=MUTED, **PLAIN_TEXT)
    ax.set_xlabel(xlabel, fontsize=9, color=MUTED)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(EDGE)
    ax.tick_params(colors=MUTED, labelsize=8, length=2)
    ax.locator_params(axis="x", nbins=6)
    ax.set_yticks([])


def _draw_path(ax: Any, explanation: Explanation) -> None:
    path = explanation.path
    is_calibrated = all(step.probability is not None for step in path)
    title = "path" if explanation.is_path_followed else "path to the prediction (not followed)"
    _bare(ax, title, "probability of the side taken" if is_calibrated else "absolute decision value")
    places, values = range(len(path)), [_certainty(step) for step in path]
    colours = [FOR if step.is_preferred else AGAINST for step in path]
    ax.barh(places, values, height=0.2, color=colours, zorder=2)
    ax.barh(places, 1.0 if is_calibrated else max(values), height=0.2, color="#edf1f5")
    for place, step in enumerate(path):
        kept, given_up = _group(explanation, step.kept), _group(explanation, step.given_up)
        ax.text(0.0, place - 0.17, f"[{step.node}]  {kept}", va="bottom", fontsize=9, color=INK, **PLAIN_TEXT)
        ax.text(0.0, place + 0.16, f"given up: {given_up}", va="top", fontsize=7.5, color=MUTED, **PLAIN_TEXT)
        text = f"{step.decision_value:+.2f}" if step.probability is None else f"{step.probability:.3f}"
        ax.annotate(
            text,
            (1.0, place - 0.17),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="bottom",
            fontsize=9,
            color=colours[place],
        )
    ax.set_ylim(len(path) - 0.35, -0.65)
    ax.set_xlim(0.0, 1.0 if is_calibrated else None)


def _draw_finalists(ax: Any, explanation: Explanation) -> None:
    finalists = explanation.finalists[:MOST_FINALISTS]
    places = range(len(finalists))
    has_paths = finalists[0].path_probability is not None and explanation.decided_by != "paths"
    # Aligned to the right, a long title extends over the labels on the left.
    _bare(ax, explanation.decision_title(), "probability" + (" (light: by its path)" if has_paths else ""), loc="right")
    if has_paths:
        paths = [f.path_probability for f in finalists]
        ax.barh(places, paths, height=0.7, color=PALE, label="by its path")
    probabilities = [f.probability for f in finalists]
    ax.barh(places, probabilities, height=0.36, color=[FOR] + [MUTED] * (len(finalists) - 1), label="in the end")
    ax.set_yticks(places, [shortened(explanation.name(f.label), LONGEST_LABEL) for f in finalists], **PLAIN_TEXT)
    ax.tick_params(axis="y", labelsize=9, labelcolor=INK, length=0)
    ax.set_ylim(max(len(finalists), 2) - 0.4, -0.6)
    ax.margins(x=0.02)


def _draw_features(ax: Any, title: str, features: list[Contribution]) -> None:
    _bare(ax, title, "weight times value", loc="right")
    positive = [f for f in features if f.contribution > 0.0][:MOST_DRAWN_FEATURES]
    negative = [f for f in features if f.contribution < 0.0][:MOST_DRAWN_FEATURES]
    shown = [*positive, *reversed(negative)]
    values = np.array([f.contribution for f in shown])
    ax.barh(range(len(shown)), values, height=0.6, color=np.where(values > 0.0, FOR, AGAINST))
    ax.axvline(0.0, color=EDGE, linewidth=0.8)
    names = [f"{shortened(f.feature, LONGEST_LABEL)} = {f.value:.3g}" for f in shown]
    ax.set_yticks(range(len(shown)), names, **PLAIN_TEXT)
    ax.tick_params(axis="y", labelsize=8.5, labelcolor=INK, length=0)
    ax.set_ylim(len(shown) - 0.4, -0.6)


def _group(explanation: Explanation, labels: list[Any]) -> str:
    names = [explanation.name(label) for label in labels]
    return first_names(names, LONGEST_DRAWN_GROUP) + (f" ({len(names):,})" if len(names) > 8 else "")
