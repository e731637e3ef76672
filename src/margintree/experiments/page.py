"""The report as one HTML page that needs no network: its Markdown, with the figures embedded."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

from markdown_it import MarkdownIt

# The browser itself refuses whatever is not in the page.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
TITLE = "Maximum-margin class trees: the paper, reproduced"


def page(sections: Mapping[str, str], figures: Mapping[str, str], facts: Sequence[str]) -> str:
    """Return the page.

    ``sections`` has the Markdown of each part by its title, with an empty title for the introduction; ``figures`` has
    the SVG of each figure by its name.
    """
    slugs = {title: re.sub(r"[^a-z]+", "-", title.lower()).strip("-") for title in sections if title}
    links = "".join(f'<a href="#{slug}">{title}</a>' for title, slug in slugs.items())
    body = "".join(
        f'<section id="{slug}"><h2>{title}</h2>{_html(sections[title], figures)}</section>'
        for title, slug in slugs.items()
    )
    style = files("margintree.experiments").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>margintree: the paper, reproduced</title><style>{style}</style></head><body>"
        f"<header><h1>{TITLE}</h1>{_html(sections.get('', ''), figures)}<nav>{links}</nav></header>"
        f"<main>{body}</main><footer>{'<br>'.join(map(escape, facts))}</footer></body></html>\n"
    )


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
