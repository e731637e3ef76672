"""What an interactive page costs: its size, the time to write it, to draw it first, to search it and to zoom in it.

Pages are opened in headless Chromium without a graphics card, so every pixel is drawn by the processor. A frame is the
time between two pictures while the wheel turns at every one; the work is what the page's own program takes of it.
"""

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from browser import browser, open_page
from data_sets import source_split
from report import heading, table, write
from sklearn.datasets import load_digits

from margintree import MarginTreeClassifier
from margintree.datasets import fetch_wordnet_hypernyms
from margintree.inspection import export_html

SCREENS = {"desktop": (1280, 820, False), "phone": (390, 844, True)}
N_OPENED, N_SEARCHED, N_RUNS, N_GENERATED = 5, 20, 3, 20_000
# Measures what the page does within each frame, before its program runs.
WORK = """const request = window.plainFrame = window.requestAnimationFrame.bind(window);
window.work = [];
window.requestAnimationFrame = (callback) => request((now) => {
    const start = performance.now();
    callback(now);
    window.work.push(performance.now() - start);
});"""
ZOOM = """const done = arguments[0], canvas = document.getElementById('canvas'), box = canvas.getBoundingClientRect();
const frames = [];
let last = null;
window.work.length = 0;
plainFrame(function frame(now) {
    if (last !== null) frames.push(now - last);
    last = now;
    if (frames.length === 200) return done([frames, window.work]);
    const k = frames.length;
    canvas.dispatchEvent(new WheelEvent('wheel', {deltaY: k < 100 ? -40 : 40, clientX: box.left + box.width / 3,
        clientY: box.top + box.height * (0.2 + 0.6 * k / 200), bubbles: true, cancelable: true}));
    plainFrame(frame);
});"""
SEARCH = """const input = document.getElementById('search');
return arguments[0].map((text) => {
    input.value = text;
    input.dispatchEvent(new Event('input'));
    return performance.getEntriesByName('search', 'measure')[0].duration;
});"""


def digits() -> tuple[Any, Any, Any]:
    X, y = load_digits(return_X_y=True)
    return MarginTreeClassifier(random_state=0).fit(X[:900] / 16, y[:900]), X[900:] / 16, y[900:]


def wordnet_hypernyms() -> tuple[Any, Any, Any]:
    X, y, X_test, y_test = source_split("wordnet_hypernyms")
    names = np.array(fetch_wordnet_hypernyms(download_if_missing=False).target_names)
    return MarginTreeClassifier(random_state=0).fit(X, names[y]), X_test, names[y_test]


def generated_rows(per_class: int, seed: int) -> tuple[Any, Any]:
    """Return rows that share words with the classes of the same branches of a taxonomy, and some that mean nothing."""
    rng, n_words = np.random.default_rng(seed), 6000
    y = np.repeat(np.arange(N_GENERATED), per_class)
    branches = np.stack([y >> level for level in range(0, 15, 2)], axis=1)
    words = (7919 * branches + 104729 * np.arange(branches.shape[1])) % n_words
    kept = rng.random(words.shape) < 0.75
    noise = rng.integers(0, n_words, (len(y), 3))
    rows = np.concatenate([np.nonzero(kept)[0], np.repeat(np.arange(len(y)), 3)])
    columns = np.concatenate([words[kept], noise.ravel()])
    X = sp.csr_matrix((np.full(len(rows), 8**-0.5), (rows, columns)), shape=(len(y), n_words))
    return X, np.array([f"class {k:05d}" for k in range(N_GENERATED)])[y]


def generated() -> tuple[Any, Any, Any]:
    model = MarginTreeClassifier(C=10, split="centroid", walk="greedy", calibration_folds=0, random_state=0)
    return model.fit(*generated_rows(4, 1)), *generated_rows(1, 2)


def zooming(driver: Any, page: Path, screen: tuple[int, int, bool], mode: str) -> list[object]:
    """Return the frames of the quietest run: what else the machine does delays some."""
    width, height, mobile = screen
    runs = []
    for _ in range(N_RUNS):
        open_page(driver, page, width, height, mobile=mobile)
        driver.execute_script(f"document.getElementById('show-{mode}').click()")
        driver.execute_async_script("setTimeout(arguments[0], 500)")
        runs.append(driver.execute_async_script(ZOOM))
    frames, work = min(runs, key=lambda run: sum(run[0]))
    return [*(f"{np.percentile(frames, q):.0f}" for q in (50, 95, 100)), f"{np.median(work):.1f}", f"{max(work):.1f}"]


def measured(driver: Any, name: str, case: Any, directory: Path) -> tuple[list[object], list[list[object]]]:
    model, X, y = case()
    page = directory / f"{name}.html"
    began = time.perf_counter()
    export_html(model, page, X, y)
    seconds = time.perf_counter() - began
    drawn, found = [], []
    for _ in range(N_OPENED):
        open_page(driver, page, *SCREENS["desktop"][:2])
        drawn.append(driver.execute_script("return performance.getEntriesByName('drawn')[0].startTime"))
        names = np.random.default_rng(0).choice(model.classes_, min(N_SEARCHED, len(model.classes_)), replace=False)
        found += driver.execute_script(SEARCH, [text for label in names for text in (str(label), str(label)[:1])])
    size = f"{page.stat().st_size / 1e6:.2f}"
    costs = [
        name,
        f"{len(model.classes_):,}",
        f"{X.shape[0]:,}",
        size,
        f"{seconds:.1f}",
        f"{max(drawn):.0f}",
        f"{max(found):.0f}",
    ]
    frames = [
        [name, screen, mode, *zooming(driver, page, SCREENS[screen], mode)]
        for screen in SCREENS
        for mode in ("tree", "matrix")
    ]
    assert driver.get_log("browser") == []
    return costs, frames


def main() -> None:
    costs, frames, load = [], [], [os.getloadavg()[0]]
    with browser() as driver, tempfile.TemporaryDirectory() as directory:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WORK})
        version = driver.capabilities["browserVersion"]
        for name, case in (("digits", digits), ("wordnet_hypernyms", wordnet_hypernyms), ("generated", generated)):
            cost, frame = measured(driver, name, case, Path(directory))
            costs.append(cost)
            frames += frame
            load.append(os.getloadavg()[0])
    header = ["data", "classes", "test rows", "page, MB", "written in, s", "first drawn after, ms", "search, ms"]
    lines = [
        *heading("The interactive page"),
        f"Headless Chromium {version}, no graphics card; load of the machine {min(load):.1f} to {max(load):.1f}, on "
        f"{os.cpu_count()} cores. First drawn: the longest of {N_OPENED} openings, from the start of the "
        "navigation. Search: the longest of all searches for whole names and for their first letters, with the list of "
        "results made.",
        "",
        *table(header, costs),
        "## Zooming",
        "",
        f"200 frames, the wheel turning at each, of the quietest of {N_RUNS} runs; a screen shows one every 17 ms at "
        "best. Work is the time of the page's program within a frame.",
        "",
        *table(["data", "screen", "picture", "frame, ms", "95 %", "longest", "work, ms", "longest"], frames),
    ]
    write("page", lines)


if __name__ == "__main__":
    main()
