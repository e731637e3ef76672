"""How the time of a fit grows with rows, features and classes, one at a time.

    python benchmarks/fit_cost.py

Dense rows are those of ``embeddings``, sparse ones those of ``hierarchy``. The shortest of two fits on one thread,
after one that compiles. An exponent is the slope of the line through the logarithms.
"""

import time
from collections.abc import Callable
from typing import Any

import embeddings
import hierarchy
import numpy as np
from report import RESULTS, heading, table, write
from scaling import slope
from sklearn.feature_extraction.text import TfidfTransformer
from threadpoolctl import threadpool_limits

from margintree import MarginTreeClassifier

REPEATS = 2
# What the exponents should not exceed.
LARGEST = {"rows": 1.1, "features": 1.05, "classes": 0.5}


def dense(rows: int = 32_000, features: int = 256, classes: int = 200) -> tuple[Any, Any]:
    """Return embeddings and their classes."""
    X, y, _, _ = embeddings.generated(classes, rows // classes, features)
    return X, y


def sparse(rows: int = 32_000, features: int = 4_000, classes: int = 200) -> tuple[Any, Any]:
    """Return tf-idf rows and their classes; a row has the same number of draws whatever the vocabulary."""
    random = np.random.default_rng(0)
    drawn = hierarchy.random_hierarchy(classes, random)
    y = np.repeat(np.arange(classes), rows // classes)
    words = random.integers(features, size=drawn.features.shape, dtype=np.int32)
    drawn = hierarchy.Hierarchy(drawn.path, words, features)
    return TfidfTransformer(sublinear_tf=True).fit_transform(hierarchy.drawn_rows(drawn, y, random)), y


SERIES: dict[str, tuple[Callable[..., tuple[Any, Any]], str, list[int]]] = {
    "dense rows": (dense, "rows", [8_000, 16_000, 32_000, 64_000]),
    "features of dense rows": (dense, "features", [128, 256, 512, 1024]),
    "classes of dense rows": (dense, "classes", [50, 200, 800, 3_200]),
    "sparse rows": (sparse, "rows", [8_000, 16_000, 32_000, 64_000]),
    "features of sparse rows": (sparse, "features", [1_000, 4_000, 16_000, 64_000]),
    "classes of sparse rows": (sparse, "classes", [50, 200, 800, 3_200]),
}


def seconds(X: Any, y: Any) -> float:
    """Return the shortest time of several fits."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        MarginTreeClassifier().fit(X, y)
        times.append(time.perf_counter() - began)
    return min(times)


def plot(found: dict[str, list[float]]) -> None:
    """Draw one panel for each of rows, features and classes."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "margintree", "svg.fonttype": "none"})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(13, 4), layout="constrained", sharey=True)
    for axis, (what, largest) in zip(axes, LARGEST.items(), strict=True):
        for name, (make, varied, sizes) in SERIES.items():
            if varied == what:
                label = f"{make.__name__}: exponent {slope(np.array(sizes), np.array(found[name])):.2f}"
                axis.loglog(sizes, found[name], marker="o", label=label)
        axis.set(title=f"{what} (exponent asked: {largest:g})", xlabel=what)
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    axes[0].set_ylabel("fit, s")
    figure.savefig(RESULTS / "fit_cost.svg", metadata={"Date": None})
    pyplot.close(figure)


def main() -> None:
    found: dict[str, list[float]] = {}
    with threadpool_limits(1):
        for make in (dense, sparse):
            MarginTreeClassifier().fit(*make(rows=4_000, classes=50))
            MarginTreeClassifier().fit(*make(rows=8_000, classes=800))
        for name, (make, varied, sizes) in SERIES.items():
            found[name] = [seconds(*make(**{varied: size})) for size in sizes]
            print(name, sizes, np.round(found[name], 2), flush=True)
    lines = []
    for name, (_, varied, sizes) in SERIES.items():
        points = [f"{size:,}: {t:.2f}" for size, t in zip(sizes, found[name], strict=True)]
        exponent = slope(np.array(sizes), np.array(found[name]))
        lines.append([name, *points, f"{exponent:.2f}", f"{LARGEST[varied]:g}"])
    plot(found)
    text = "32,000 rows, 256 features (4,000 where sparse) and 200 classes, but for what varies. Seconds of a fit."
    header = ["varied", *(f"point {number}" for number in range(1, 5)), "exponent", "asked"]
    figure = "![fit against its sizes](fit_cost.svg)"
    write("fit_cost", [*heading("How the time of a fit grows"), text, "", figure, "", *table(header, lines)])


if __name__ == "__main__":
    main()
