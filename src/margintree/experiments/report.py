"""The report on a results file: tables, figures and claims, as Markdown and as one page that needs no network."""

import re
from collections.abc import Mapping
from functools import cached_property
from html import escape
from importlib.resources import files
from pathlib import Path

from markdown_it import MarkdownIt

from margintree.experiments.claims import all_claims, answer
from margintree.experiments.figures import Figure, all_figures
from margintree.experiments.paper import SETTINGS
from margintree.experiments.results import Results
from margintree.experiments.summary import Summary, escaped
from margintree.experiments.tables import all_tables
from margintree.storage import replacing

PAGE_NAME, MARKDOWN_NAME = "index.html", "report.md"
# The browser itself refuses whatever is not in the page.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
TITLE = "Maximum-margin class trees: the paper, reproduced"
CITATION = "Yang & Tsang, *Hierarchical Maximum Margin Learning for Multi-Class Classification*"
INTRODUCTIONS = {
    "full": f"Section 4 of {CITATION}, run again.",
    "quick": f"The methods of {CITATION}, on the handwritten digits that ship with scikit-learn. "
    "`margintree reproduce --full` runs the paper's own data sets.",
}
# The parts of the report, and how the names of the figures and tables in them begin.
SECTIONS = {
    "": ("ranks_paper_all", "overview", "figure1_msm_ours"),
    "The paper's claims": (),
    "Comparison with the paper": ("accuracy_paper", "ranks_paper"),
    "Comparison for users": ("accuracy_users", "ranks_users"),
    "Setting by setting": ("setting_",),
    "What a prediction costs": ("figure2", "cost_", "fit_seconds"),
    "Class trees": ("figure1",),
    "Other readings of the paper": ("readings",),
    "Data and parameters": ("table1", "parameters", "failures"),
}
NOTE = "Mean and sample standard deviation over the splits"


class Report:
    """The report on a results file.

    Parameters
    ----------
    results : Results
    """

    def __init__(self, results: Results) -> None:
        self.results = results
        self.summary = Summary(results)
        self.claims = all_claims(self.summary)
        self.answer = answer(self.summary)
        self.tables = all_tables(self.summary)

    @cached_property
    def figures(self) -> list[Figure]:
        """The figures, which take seconds to draw."""
        return [*all_figures(self.summary)]

    def sections(self) -> dict[str, str]:
        """Return the parts of the report in Markdown by their titles; the introduction has an empty title."""
        settings = set(self.summary.settings)
        circles = "; grey circles are the paper's figures" if settings & set(SETTINGS) else ""
        leads = {
            "": [INTRODUCTIONS.get(self.results.protocol.get("name", ""), INTRODUCTIONS["full"]), self.answer],
            "The paper's claims": [claim.to_markdown() for claim in self.claims],
            "Setting by setting": [f"{NOTE}{circles}."] if settings else [],
        }
        found, left = {}, list(self.figures)
        for title, names in SECTIONS.items():
            # The first two open the report; none is shown twice.
            figures = [figure for figure in left if figure.name.startswith(names)][: None if title else 2]
            left = [figure for figure in left if figure not in figures]
            shown = "\n".join(f"![{escaped(figure.title)}](figures/{figure.name}.svg)" for figure in figures)
            parts = [*leads.get(title, []), shown]
            parts += [table.to_markdown() for table in self.tables if table.name.startswith(names)]
            if any(parts):
                found[title] = "\n\n".join(filter(None, parts))
        return found

    def facts(self) -> list[str]:
        """Return the provenance of the results: versions and machines."""
        facts = [f"{name}: {value}" for name, value in self.results.protocol.items() if name != "kind"]
        for run in self.results.runs.values():
            versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
            facts.append(f"run {run['run']}, {run['date']}: {versions}; {run['machine']}")
        return facts

    def markdown(self) -> str:
        """Return the report in Markdown."""
        parts = [f"## {title}\n\n{text}" if title else text for title, text in self.sections().items()]
        facts = "\n".join(f"- {fact}" for fact in self.facts())
        return "\n\n".join(["# The paper, reproduced", *parts, "## Runs", facts]).rstrip() + "\n"

    def page(self) -> str:
        """Return the report as one HTML page: its Markdown, with the figures embedded."""
        figures, links, body = {figure.name: figure.svg for figure in self.figures}, "", ""
        sections = self.sections()
        introduction = _html(sections.pop("", ""), figures)
        for title, text in sections.items():
            slug = re.sub(r"[^a-z]+", "-", title.lower()).strip("-")
            links += f'<a href="#{slug}">{title}</a>'
            body += f'<section id="{slug}"><h2>{title}</h2>{_html(text, figures)}</section>'
        style = files("margintree.experiments").joinpath("page.css").read_text(encoding="utf-8")
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>margintree: the paper, reproduced</title><style>{style}</style></head><body>"
            f"<header><h1>{TITLE}</h1>{introduction}<nav>{links}</nav></header>"
            f"<main>{body}</main><footer>{'<br>'.join(map(escape, self.facts()))}</footer></body></html>\n"
        )

    def write(self, directory: Path) -> list[Path]:
        """Write page, Markdown and figures; return what was written, the page first."""
        contents = {PAGE_NAME: self.page(), MARKDOWN_NAME: self.markdown()}
        contents |= {f"figures/{figure.name}.svg": figure.svg for figure in self.figures}
        for name, text in contents.items():
            with replacing(directory / name) as path:
                path.write_text(text, encoding="utf-8")
        return [directory / name for name in contents]


def _html(markdown: str, figures: Mapping[str, str]) -> str:
    """Return Markdown as HTML: figures and claims on cards, tables that scroll, verdicts in their colours."""
    html = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    html = re.sub(r"<p>((?:<img [^>]*/>\s*)+)</p>", r'<div class="cards">\1</div>', html)
    html = re.sub(
        r'<img src="figures/([^"]*)\.svg" alt="([^"]*)" />',
        lambda found: (
            f'<figure class="card" id="{found[1]}"><figcaption>{found[2]}</figcaption>{figures[found[1]]}</figure>'
        ),
        html,
    )
    html = re.sub(r"(<table>.*?</table>)", r'<div class="scroll" tabindex="0">\1</div>', html, flags=re.DOTALL)
    html = re.sub(r"\(([\d.]+(?: ± [\d.]+)?)\)</td>", r'<span class="paper">\1</span></td>', html)
    verdict = r"<li><strong>((confirmed|refuted|not)[^<]*)</strong>"
    if re.search(verdict, html):
        html = re.sub(verdict, r'<li><span class="verdict \2">\1</span>', html)
        cards = [f'<article class="card claim">{part}</article>' for part in re.split("(?=<h3>)", html) if part]
        html = f'<div class="cards">{"".join(cards)}</div>'
    return html
