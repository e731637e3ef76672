"""The page in a real browser at desktop and phone width: no errors, no requests, figures show."""

import pytest

from margintree.experiments.report import Report
from margintree.experiments.results import read

WIDTHS = {"desktop": 1280, "phone": 390}
# The smallest letters, in CSS pixels, that a reader of a phone puts up with.
LEAST_LETTERS = 9.0


@pytest.fixture(scope="module")
def address(paper_results_path, tmp_path_factory):
    page = Report(read(paper_results_path)).write(tmp_path_factory.mktemp("report"))[0]
    return page.as_uri()


@pytest.fixture(params=list(WIDTHS))
def opened(request, browser, address):
    """Return the browser with the page, as wide as a desktop's window and as a phone."""
    metrics = {
        "width": WIDTHS[request.param],
        "height": 900,
        "deviceScaleFactor": 1,
        "mobile": request.param == "phone",
    }
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(address)
    assert browser.execute_script("return window.innerWidth") == WIDTHS[request.param]
    return browser


def test_the_page_opens_without_errors_and_asks_nothing_of_the_network(opened):
    assert opened.get_log("browser") == []
    requests = opened.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [name for name in requests if not name.startswith("data:")] == []


def test_the_page_itself_does_not_scroll_sideways(opened):
    wide, shown = opened.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= shown


def test_figures_show_with_letters_that_can_be_read(opened):
    figures = opened.execute_script(
        """return [...document.querySelectorAll("figure")].map(figure => {
            const svg = figure.querySelector("svg"), box = svg.getBoundingClientRect();
            const letters = [...svg.querySelectorAll("text")].map(
                text => parseFloat(getComputedStyle(text).fontSize) * box.width / svg.viewBox.baseVal.width);
            const images = [...svg.querySelectorAll("image")].map(image => image.getBoundingClientRect().width);
            return {name: figure.id, width: box.width, height: box.height, right: box.right,
                    letters: Math.min(...letters), images: images};
        })"""
    )
    assert len(figures) == 2 + 1 + 1 + 13 + 2 + 6
    for figure in figures:
        assert min(figure["width"], figure["height"]) > 40, figure
        assert figure["right"] <= opened.execute_script("return window.innerWidth"), figure
        assert figure["letters"] >= LEAST_LETTERS, figure
        if figure["name"].startswith("figure1"):
            assert len(figure["images"]) == 10
            assert min(figure["images"]) >= 18


def test_the_letters_of_a_tree_do_not_overlap(opened):
    overlaps = opened.execute_script(
        """return [...document.querySelectorAll("figure[id^=figure1] svg")].flatMap(svg => {
            const boxes = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
            return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([b, q]) =>
                p.left < q.right && q.left < p.right && p.top < q.bottom && q.top < p.bottom).map(([b]) => [a, b]));
        })"""
    )
    assert overlaps == []


def test_claims_show_their_verdicts(opened):
    script = "return [...document.querySelectorAll('.claim .verdict')].map(v => v.innerText)"
    verdicts = opened.execute_script(script)
    assert len(verdicts) == 30
    assert set(verdicts) == {"confirmed", "refuted", "not decided by these data"}
