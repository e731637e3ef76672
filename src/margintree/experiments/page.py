"""The report as one HTML page that asks nothing of the network."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files

from margintree.experiments.claims import CONFIRMED, REFUTED, Claim
from margintree.experiments.figures import Figure
from margintree.experiments.results import Results
from margintree.experiments.svg import STYLE, drawing, mark
from margintree.experiments.tables import Table, TableCell

# The browser itself refuses whatever is not in the page.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
INTRODUCTION = {
    "full": "Section 4 of Yang &amp; Tsang, <em>Hierarchical Maximum Margin Learning for Multi-Class "
    "Classification</em>, run again: what the paper reports and what we measure, side by side.",
    "quick": "Every method of Yang &amp; Tsang, <em>Hierarchical Maximum Margin Learning for Multi-Class "
    "Classification</em>, on the handwritten digits that ship with scikit-learn. "
    "<code>margintree reproduce --full</code> runs the paper's own data sets.",
}


def page(
    results: Results,
    methods: Sequence[str],
    tables: Sequence[Table],
    figures: Sequence[Figure],
    claims: Sequence[Claim],
) -> str:
    """Return the page.

    Parameters
    ----------
    results : Results
        For the facts of its runs.
    methods : sequence of str
        For the legend.
    tables, figures, claims : sequences
        In the order in which they are shown.

    Returns
    -------
    str
    """
    by_name = {table.name: table for table in tables}
    accuracy = [_table(by_name[name]) for name in ("table2", "ranks") if name in by_name]
    times = [_table(table) for name, table in by_name.items() if name.startswith("table3")]
    times += [_table(by_name[name]) for name in ("evaluations", "fit_seconds") if name in by_name]
    rest = [_table(by_name[name]) for name in ("table1", "parameters", "failures") if name in by_name]
    trees = [figure for figure in figures if figure.name.startswith("figure1")]
    curve = [figure for figure in figures if figure.name == "figure2"]
    charts = [figure for figure in figures if figure.name.startswith("accuracy")]
    sections = [
        ("accuracy", "Accuracy", accuracy),
        ("cost", "Accuracy against the cost of a prediction", [_legend(methods), _figures(charts)]),
        ("time", "Time", [_figures(curve), *times]),
        ("trees", "Class trees", [_figures(trees)]),
        ("data", "Data and parameters", rest),
    ]
    # Claims come first where there is something to say to them.
    is_tested = any(claim.verdict in (CONFIRMED, REFUTED) for claim in claims)
    sections.insert(0 if is_tested else 4, ("claims", "The paper's claims", [_claims(claims)]))
    body = "".join(f'<section id="{k}"><h2>{title}</h2>{"".join(parts)}</section>' for k, title, parts in sections)
    links = "".join(f'<a href="#{k}">{title}</a>' for k, title, _ in sections)
    name = results.protocol.get("name", "")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>margintree: the paper, reproduced</title><style>{_resource('page.css')}{STYLE}</style></head>"
        f"<body><header><h1>Maximum-margin class trees: the paper, reproduced</h1>"
        f"<p>{INTRODUCTION.get(name, INTRODUCTION['full'])}</p><nav>{links}</nav></header>"
        f"<main>{body}</main><footer class='small soft'>{_runs(results)}</footer>"
        f"<script>{_resource('page.js')}</script></body></html>\n"
    )


def _resource(name: str) -> str:
    return files("margintree.experiments").joinpath(name).read_text(encoding="utf-8")


def _claims(claims: Sequence[Claim]) -> str:
    cards = []
    for claim in claims:
        kind = claim.verdict if claim.verdict in (CONFIRMED, REFUTED) else "open"
        figures = "".join(f"<li>{escape(figure)}</li>" for figure in claim.figures)
        cards.append(
            f'<article class="card claim"><h3>{escape(claim.name)} <span class="verdict {kind}">{claim.verdict}</span>'
            f"</h3><p>{escape(claim.statement)}</p><ul>{figures}</ul>"
            f'<p class="small soft">Confirmed if: {escape(claim.check)}</p></article>'
        )
    return f'<div class="cards">{"".join(cards)}</div>'


def _table(table: Table) -> str:
    heads = "".join(
        f'<th scope="col"{_number(table, k)}><button type="button">{escape(name)}</button></th>'
        for k, name in enumerate(table.columns)
    )
    rows = "".join(f"<tr>{''.join(_cell(table, k, cell) for k, cell in enumerate(row))}</tr>" for row in table.rows)
    notes = "".join(f'<p class="small soft">{escape(note)}</p>' for note in table.notes)
    return (
        f'<div class="table"><h3>{escape(table.title)}</h3>{notes}<div class="scroll" tabindex="0">'
        f'<table id="{table.name}"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div></div>'
    )


def _cell(table: Table, column: int, cell: TableCell) -> str:
    value = "" if cell.value is None else f' data-value="{escape(str(cell.value), quote=True)}"'
    kind = ' class="wrap"' if table.name == "failures" else _number(table, column)
    ours = f'<span class="best">{escape(cell.text)}</span>' if cell.is_best else escape(cell.text)
    best = " best" if cell.is_paper_best else ""
    theirs = (
        f'<span class="paper{best}" title="in the paper">{escape(cell.paper_text)}</span>' if cell.paper_text else ""
    )
    return f"<td{kind}{value}>{ours}{theirs}</td>"


def _number(table: Table, column: int) -> str:
    return ' class="number"' if table.is_number(column) else ""


def _figures(figures: Sequence[Figure]) -> str:
    cards = [
        f'<figure class="card" id="{figure.name}"><figcaption>{escape(figure.title)}</figcaption>{figure.svg}</figure>'
        for figure in figures
    ]
    kind = "cards single" if len(cards) == 1 else "cards"
    return f'<div class="{kind}">{"".join(cards)}</div>' if cards else "<p>No results yet.</p>"


def _legend(methods: Sequence[str]) -> str:
    items = [f"<li>{drawing(14, 14, [mark(m, 7, 7, 4.5)], m)}{escape(m)}</li>" for m in methods]
    return f'<ul class="legend">{"".join(items)}</ul>'


def _runs(results: Results) -> str:
    lines = []
    for run in results.runs.values():
        versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
        lines.append(
            f"<p>Run {escape(run['run'])} of {escape(run['date'])}: {escape(versions)}; {escape(run['machine'])}.</p>"
        )
    protocol = results.protocol
    lines.append(f"<p>Protocol {escape(str(protocol.get('name')))} ({escape(str(protocol.get('fingerprint')))}).</p>")
    return "".join(lines)
