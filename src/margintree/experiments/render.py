"""Tables and claims as text: as Markdown, and for the terminal."""

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from margintree.experiments.claims import Claim
from margintree.experiments.tables import Entry, Table


def to_markdown(table: Table) -> str:
    """Return a table in Markdown; the paper's figures stand in parentheses behind ours.

    Examples
    --------
    >>> from margintree.experiments.render import to_markdown
    >>> from margintree.experiments.tables import Entry, Table
    >>> entries = (Entry("vowel"), Entry("96.61", True, "91.42"))
    >>> print(to_markdown(Table("t", "Accuracy", ("set", "MSM"), (entries,), n_labels=1)))
    ### Accuracy
    <BLANKLINE>
    | set | MSM |
    |---|--:|
    | vowel | **96.61** (91.42) |
    """
    align = ["---" if k < table.n_labels or table.is_text else "--:" for k in range(len(table.columns))]
    rows = [table.columns, *([_markdown_entry(entry) for entry in row] for row in table.rows)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, f"|{'|'.join(align)}|")
    return "\n".join([f"### {table.title}", "", *(f"{note}\n" for note in table.notes), *lines])


def claim_to_markdown(claim: Claim) -> str:
    """Return a claim in Markdown."""
    findings = "\n".join(f"- **{finding.verdict}** {finding.text}" for finding in claim.findings if finding)
    return f"### {claim.name}\n\n{claim.statement}\n\n{findings}\n\nConfirmed if: {claim.check}"


def print_table(console: Console, table: Table) -> None:
    """Print a table with the methods as rows, in parts where it is too wide; the paper's figures are dim."""
    console.print(Text(f"\n{table.title}", style="bold"))
    first = max(len(name) for name in table.columns[table.n_labels :]) + 4
    width = max([12, *(len(e.text) + 3 for row in table.rows for e in row)])
    step = max(1, (console.width - first) // width)
    for start in range(0, len(table.rows), step):
        rows = table.rows[start : start + step]
        shown = RichTable("", show_lines=False)
        for row in rows:
            shown.add_column("\n".join(entry.text for entry in row[: table.n_labels]), justify="right")
        for k in range(table.n_labels, len(table.columns)):
            shown.add_row(table.columns[k], *(_rich_entry(row[k]) for row in rows))
        console.print(shown)
    for note in table.notes:
        console.print(Text(note, style="dim"))


def _rich_entry(entry: Entry) -> Text:
    text = Text(entry.text, style="bold" if entry.is_best else "")
    return text.append(f"\n{entry.paper_text}", style="dim") if entry.paper_text else text


def _markdown_entry(entry: Entry) -> str:
    text = entry.text.replace("|", "\\|")
    text = f"**{text}**" if entry.is_best else text
    return f"{text} ({entry.paper_text})" if entry.paper_text else text
