"""Drawings as SVG text: marks of the methods, axes, and what makes a drawing stand on its own.

Colours are CSS variables, so that a drawing follows the page into dark mode.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

# One colour and one mark per method, so that neither alone has to tell them apart.
MARKS = {
    "MSM (paper)": ("#2f7fc1", "circle"),
    "MSM (ours)": ("#d95f02", "diamond"),
    "I-BWG": ("#1b9e77", "up"),
    "J-BWG": ("#45a0c9", "down"),
    "FT": ("#8a8a8a", "square"),
    "CPT": ("#c99700", "hexagon"),
    "1vs1": ("#d1659f", "plus"),
    "1vsR": ("#8d6fd1", "cross"),
    "DDAG": ("#a1713d", "star"),
}
_CORNERS: dict[str, list[tuple[float, float]]] = {
    "diamond": [(0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)],
    "up": [(0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
    "down": [(0, 1.2), (1.1, -0.8), (-1.1, -0.8)],
    "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    "hexagon": [(1.1 * math.cos(k * math.pi / 3), 1.1 * math.sin(k * math.pi / 3)) for k in range(6)],
    "star": [
        (
            (1.35 if k % 2 == 0 else 0.6) * math.sin(k * math.pi / 5),
            -(1.35 if k % 2 == 0 else 0.6) * math.cos(k * math.pi / 5),
        )
        for k in range(10)
    ],
}
_STROKES: dict[str, list[tuple[float, float, float, float]]] = {
    "plus": [(-1.2, 0, 1.2, 0), (0, -1.2, 0, 1.2)],
    "cross": [(-1, -1, 1, 1), (-1, 1, 1, -1)],
}

STYLE = """
.drawing { --ink: #1f2430; --soft: #6b7280; --line: #d5d9e0; --paper: #ffffff; font: 12px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) {
  .drawing { --ink: #e8eaf0; --soft: #9aa3b2; --line: #3a4150; --paper: #161a22; }
}
.drawing text { fill: var(--ink); }
.drawing .soft { fill: var(--soft); }
.drawing .grid { stroke: var(--line); stroke-width: 1; fill: none; }
.drawing .edge { stroke: var(--soft); stroke-width: 1.4; fill: none; }
.drawing .group { fill: var(--paper); stroke: var(--soft); stroke-width: 1; }
.drawing image { image-rendering: pixelated; }
""".strip()


def mark(method: str, x: float, y: float, size: float = 5.0, title: str = "") -> str:
    """Return the mark of a method at a place; ``title`` shows when the pointer rests on it."""
    colour, shape = MARKS.get(method, ("#8a8a8a", "circle"))
    hint = f"<title>{escape(title)}</title>" if title else ""
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" fill="{colour}">{hint}</circle>'
    if shape in _STROKES:
        lines = " ".join(
            f"M{x + size * a:.1f} {y + size * b:.1f}L{x + size * c:.1f} {y + size * d:.1f}"
            for a, b, c, d in _STROKES[shape]
        )
        return f'<path d="{lines}" stroke="{colour}" stroke-width="{size / 2:.1f}" fill="none">{hint}</path>'
    corners = " ".join(f"{x + size * a:.1f},{y + size * b:.1f}" for a, b in _CORNERS[shape])
    return f'<polygon points="{corners}" fill="{colour}">{hint}</polygon>'


def drawing(width: float, height: float, parts: Sequence[str], label: str) -> str:
    """Return an SVG element; ``label`` tells those who do not see it what it shows."""
    return (
        f'<svg class="drawing" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" aria-label="{escape(label, quote=True)}">'
        f"{''.join(parts)}</svg>"
    )


def as_file(svg: str) -> str:
    """Return a drawing with its style inside, for a file of its own."""
    return svg.replace(">", f"><style>{STYLE}</style>", 1) + "\n"


@dataclass(frozen=True)
class Axis:
    """Maps values to places between ``first`` and ``last``."""

    low: float
    high: float
    first: float
    last: float
    is_log: bool = False

    def place(self, value: float) -> float:
        """Return where a value stands.

        Examples
        --------
        >>> from margintree.experiments.svg import Axis
        >>> Axis(1.0, 100.0, 0.0, 200.0, is_log=True).place(10.0)
        100.0
        """
        low, high, at = (math.log(v) if self.is_log else v for v in (self.low, self.high, value))
        return self.first + (at - low) / (high - low) * (self.last - self.first)

    def ticks(self) -> list[float]:
        """Return round values inside the axis.

        Examples
        --------
        >>> from margintree.experiments.svg import Axis
        >>> Axis(0.8, 12.0, 0.0, 1.0, is_log=True).ticks()
        [1.0, 2.0, 5.0, 10.0]
        >>> Axis(84.2, 99.0, 0.0, 1.0).ticks()
        [85.0, 90.0, 95.0]
        """
        if self.is_log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1.0, 2.0, 5.0) if self.high / self.low < 200.0 else (1.0,)
            found = [round(step * 10.0**k, 10) for k in decades for step in steps]
        else:
            rough = (self.high - self.low) / 5.0
            power = 10.0 ** math.floor(math.log10(rough))
            step = next(power * m for m in (1.0, 2.0, 5.0, 10.0) if power * m >= rough)
            found = [round(step * k, 10) for k in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
        return [value for value in found if self.low <= value <= self.high]


def frame(x: Axis, y: Axis, x_title: str, y_title: str) -> list[str]:
    """Return grid lines, tick labels and titles of a chart; y grows upwards."""
    parts = []
    for value in x.ticks():
        at = x.place(value)
        parts.append(f'<path class="grid" d="M{at:.1f} {y.first:g}V{y.last:g}"/>')
        parts.append(f'<text class="soft" x="{at:.1f}" y="{y.first + 16:g}" text-anchor="middle">{value:g}</text>')
    for value in y.ticks():
        at = y.place(value)
        parts.append(f'<path class="grid" d="M{x.first:g} {at:.1f}H{x.last:g}"/>')
        parts.append(f'<text class="soft" x="{x.first - 6:g}" y="{at + 4:.1f}" text-anchor="end">{value:g}</text>')
    middle = (x.first + x.last) / 2.0
    parts.append(
        f'<text class="soft" x="{middle:.1f}" y="{y.first + 34:g}" text-anchor="middle">{escape(x_title)}</text>'
    )
    parts.append(f'<text class="soft" x="{x.first:g}" y="{y.last - 10:g}" text-anchor="start">{escape(y_title)}</text>')
    return parts
