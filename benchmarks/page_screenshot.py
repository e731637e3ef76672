"""The picture of docs/page.md: the class tree of WordNet nouns, learned from their glosses.

The page is that of a Pipeline, so the features are words. The picture is written to docs/page.webp.
"""

import base64
import bz2
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from browser import browser, open_page
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from margintree import MarginTreeClassifier
from margintree.datasets import fetch_wordnet_hypernyms
from margintree.inspection import export_html

PICTURE = Path(__file__).parents[1] / "docs" / "page.webp"
MOST_BYTES = 150_000
CHOSEN = "shrub"


def texts(part: str) -> tuple[list[str], np.ndarray]:
    path = Path(os.environ["MARGINTREE_DATA"]) / f"wordnet_glosses.{part}.tsv.bz2"
    lines = bz2.decompress(path.read_bytes()).decode().splitlines()
    numbers, rows = zip(*(line.split("\t", 1) for line in lines), strict=True)
    return list(rows), np.array(numbers, dtype=int)


def names() -> np.ndarray:
    """Return the names of the classes, with their number in WordNet only where two have the same."""
    full = fetch_wordnet_hypernyms(download_if_missing=False).target_names
    short = [name.rsplit(".", 1)[0].replace("_", " ") for name in full]
    count = Counter(short)
    return np.array([name if count[name] == 1 else whole for name, whole in zip(short, full, strict=True)])


def take(driver: Any, page: Path) -> None:
    open_page(driver, page, 1280, 800)
    search = """const input = document.getElementById('search');
        input.focus();
        input.value = arguments[0];
        input.dispatchEvent(new Event('input'));
        input.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}));
        input.value = '';
        input.dispatchEvent(new Event('input'));
        document.querySelector('#crumbs li:nth-last-child(5) button').click();
        document.activeElement.blur();"""
    driver.execute_script(search, CHOSEN)
    driver.execute_async_script("setTimeout(arguments[0], 1500)")
    taken = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 90})
    PICTURE.write_bytes(base64.b64decode(taken["data"]))


def main() -> None:
    labels = names()
    (rows, y), (test_rows, y_test) = texts("train"), texts("test")
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english")
    pipeline = make_pipeline(vectorizer, MarginTreeClassifier(random_state=0)).fit(rows, labels[y])
    with browser() as driver, tempfile.TemporaryDirectory() as directory:
        page = Path(directory) / "wordnet.html"
        export_html(pipeline, page, test_rows, labels[y_test])
        take(driver, page)
    size = PICTURE.stat().st_size
    print(f"{PICTURE}: {size} bytes")
    if size > MOST_BYTES:
        raise SystemExit(f"The picture is larger than {MOST_BYTES} bytes.")


if __name__ == "__main__":
    main()
