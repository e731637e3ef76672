"""The figure of README: accuracy against the time of one row, margintree and its peers.

``python benchmarks/campaign.py --docs`` draws it from results/peers.json. The file carries the numbers that it shows as
its description, so that a test can compare them with the results.
"""

import json
from pathlib import Path
from typing import Any

from report import RESULTS

SET = "wordnet_hypernyms"
FIGURE = Path(__file__).parents[1] / "docs" / "peers.svg"
# Names in the results, what the figure calls them, and where the name stands: points to the right and up.
SHOWN = {
    "margintree": ("margintree", (9, 4), "left"),
    "margintree, 3 trees": ("margintree, 3 trees", (0, 12), "center"),
    "omikuji Bonsai, 3 trees": ("omikuji Bonsai", (9, 0), "left"),
    "omikuji Parabel, 1 tree": ("omikuji Parabel", (-9, 2), "right"),
    "PECOS XR-Linear": ("PECOS XR-Linear", (9, -2), "left"),
    "napkinXC HSM": ("napkinXC", (-2, -13), "center"),
    "LinearSVC (1vsR)": ("LinearSVC", (9, -9), "left"),
    "Vowpal Wabbit ect": ("Vowpal Wabbit ect", (9, -3), "left"),
    "margintree, greedy walk": ("margintree, greedy walk", (-2, 10), "left"),
}
OWN, OTHER, INK = "#2563a8", "#8a949e", "#1f2933"


def points() -> dict[str, tuple[float, float]]:
    """Return microseconds for one row and accuracy of what is shown, rounded as results/peers.md prints them."""
    rows: dict[str, Any] = json.loads((RESULTS / "peers.json").read_text())[SET]["rows"]
    return {name: (round(rows[name]["one_row_us"], 1), round(rows[name]["accuracy"], 3)) for name in SHOWN}


def draw(path: Path) -> None:
    """Write the figure."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter, PercentFormatter, ScalarFormatter

    # The same figures give the same file.
    with mpl.rc_context({"svg.hashsalt": "peers", "font.size": 10, "font.family": "DejaVu Sans"}):
        figure, ax = plt.subplots(figsize=(7.4, 3.8), layout="constrained")
        for name, (x, y) in points().items():
            title, offset, side = SHOWN[name]
            is_own = name.startswith("margintree")
            colour = OWN if is_own else OTHER
            ax.plot(x, 100 * y, "o", color=colour, markersize=9 if is_own else 7, zorder=3)
            weight = "bold" if name == "margintree" else "normal"
            text = {"color": colour if is_own else INK, "ha": side, "va": "center", "weight": weight}
            ax.annotate(title, (x, 100 * y), xytext=offset, textcoords="offset points", **text)
        ax.set_xscale("log")
        ax.set_xlim(4, 500)
        ax.set_ylim(49, 67.5)
        ax.set_yticks([50, 55, 60, 65])
        ax.set_xticks([5, 10, 20, 50, 100, 200])
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_major_formatter(PercentFormatter(decimals=0))
        ax.grid(color="#e4e8ec", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.tick_params(which="both", length=0, colors="#52606d")
        for spine in ax.spines.values():
            spine.set_visible(False)
        ax.set_xlabel("Microseconds for one prediction, one thread (logarithmic scale)", color="#52606d")
        ax.set_title("Accuracy with 1,482 classes", loc="left", color=INK, fontsize=11)
        description = json.dumps(points(), sort_keys=True)
        figure.savefig(path, format="svg", metadata={"Date": None, "Description": description})
        plt.close(figure)
