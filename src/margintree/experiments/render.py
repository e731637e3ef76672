"""Tables and claims as text: for the terminal, as Markdown, as CSV."""

import csv
import io
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from margintree.experiments.claims import Claim
from margintree.experiments.tables import Table, TableCell

VERDICT_STYLES = {"confirmed": "green", "refuted": "red", "not tested": "dim"}


def to_markdown(table: Table) -> str:
    """Return a table in Markdown; the paper's figures stand in parentheses behind ours.

    Examples
    --------
    >>> from margintree.experiments.render import to_markdown
    >>> from margintree.experiments.tables import Table, TableCell
    >>> cells = (TableCell("vowel"), TableCell("96.61", 96.61, True, "91.42", 91.42))
    >>> print(to_markdown(Table("t", "Accuracy", ("set", "MSM"), (cells,), n_labels=1)))
    ### Accuracy
    <BLANKLINE>
    | set | MSM |
    |---|--:|
    | vowel | **96.61** (91.42) |
    <BLANKLINE>
    """
    align = ["--:" if table.is_number(number) else "---" for number in range(len(table.columns))]
    lines = [f"### {table.title}", "", _markdown_row(table.columns), "|" + "|".join(align) + "|"]
    lines += [_markdown_row([_markdown_cell(cell) for cell in row]) for row in table.rows]
    lines += [f"\n{note}" for note in table.notes]
    return "\n".join([*lines, ""])


def claims_to_markdown(claims: Sequence[Claim]) -> str:
    """Return the claims in Markdown."""
    lines = ["### The paper's claims", ""]
    for claim in claims:
        lines += [f"**{claim.name}: {claim.verdict}.** The paper: {claim.statement} Confirmed if: {claim.check}", ""]
        lines += [*(f"- {figure}" for figure in claim.figures), ""]
    return "\n".join(lines)


def to_csv(table: Table) -> str:
    """Return a table as CSV with full numbers; the paper's are columns of their own, where there are any.

    Examples
    --------
    >>> from margintree.experiments.render import to_csv
    >>> from margintree.experiments.tables import Table, TableCell
    >>> cells = (TableCell("vowel", "vowel"), TableCell("96.61", 96.6123, True, "91.42", 91.42))
    >>> print(to_csv(Table("t", "Accuracy", ("set", "MSM"), (cells,), n_labels=1)), end="")
    set,MSM,MSM (in the paper)
    vowel,96.6123,91.42
    """
    has_paper = [any(row[k].paper_value is not None for row in table.rows) for k in range(len(table.columns))]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    header: list[str] = []
    for name, doubled in zip(table.columns, has_paper, strict=True):
        header += [name, f"{name} (in the paper)"] if doubled else [name]
    writer.writerow(header)
    for row in table.rows:
        values: list[object] = []
        for cell, doubled in zip(row, has_paper, strict=True):
            values += [cell.value, cell.paper_value] if doubled else [cell.value]
        writer.writerow(["" if value is None else value for value in values])
    return buffer.getvalue()


def print_table(console: Console, table: Table) -> None:
    """Print a table; the paper's figures stand dimmed below ours.

    A table that is too wide is turned on its side where that fits, else it is printed in parts.
    """
    if _width(table) > console.width and _width(turned := _on_its_side(table)) <= console.width:
        table = turned
    for number, columns in enumerate(_parts(table, console.width)):
        title = f"\n{table.title}" if number == 0 else ""
        shown = RichTable(title=title, title_justify="left", title_style="bold")
        for k in columns:
            shown.add_column(table.columns[k], justify="right" if table.is_number(k) else "left", overflow="fold")
        for row in table.rows:
            shown.add_row(*(_rich_cell(row[k]) for k in columns))
        console.print(shown)
    for note in table.notes:
        console.print(Text(note, style="dim"))


def _column_widths(table: Table) -> list[int]:
    cells = ([row[k] for row in table.rows] for k in range(len(table.columns)))
    widths = [max([0, *(max(len(cell.text), len(cell.paper_text)) for cell in column)]) for column in cells]
    # Two blanks and a line around each.
    return [max(width, len(name)) + 3 for width, name in zip(widths, table.columns, strict=True)]


def _width(table: Table) -> int:
    return sum(_column_widths(table)) + 1


def _on_its_side(table: Table) -> Table:
    """Return a table with the methods as rows and the settings as columns."""
    names = [" ".join(cell.text for cell in row[: table.n_labels]) for row in table.rows]
    rows = tuple(
        (TableCell(name), *(row[k] for row in table.rows))
        for k, name in enumerate(table.columns)
        if k >= table.n_labels
    )
    return replace(table, columns=("", *names), rows=rows, n_labels=1)


def _parts(table: Table, width: int) -> list[list[int]]:
    """Return the columns of each part; all parts begin with the labels."""
    widths = _column_widths(table)
    labels = list(range(table.n_labels))
    parts = [list(labels)]
    for k in range(table.n_labels, len(table.columns)):
        if len(parts[-1]) > len(labels) and sum(widths[j] for j in parts[-1]) + widths[k] + 1 > width:
            parts.append(list(labels))
        parts[-1].append(k)
    return parts


def print_claims(console: Console, claims: Sequence[Claim]) -> None:
    """Print the claims with their verdicts."""
    shown = RichTable(title="\nThe paper's claims", title_justify="left", title_style="bold", show_lines=True)
    for name in ("claim", "verdict", "what we measured"):
        shown.add_column(name, overflow="fold")
    for claim in claims:
        verdict = Text(claim.verdict, style=VERDICT_STYLES[claim.verdict])
        shown.add_row(Text(claim.statement), verdict, Text("\n".join(claim.figures)))
    console.print(shown)


def _rich_cell(cell: TableCell) -> Text:
    text = Text(cell.text, style="bold" if cell.is_best else "")
    if cell.paper_text:
        text.append(f"\n{cell.paper_text}", style="dim")
    return text


def _markdown_cell(cell: TableCell) -> str:
    text = cell.text.replace("|", "\\|")
    text = f"**{text}**" if cell.is_best else text
    return f"{text} ({cell.paper_text})" if cell.paper_text else text


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
