"""The Newick text of a binary tree, as written and read by programs for phylogenetic trees.

``((cat,dog),fox);`` is a tree of three leaves. Names with other characters are quoted.
"""

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"\s+|\[[^\]]*\]|(?P<mark>[(),:;])|'(?P<quoted>[^']*(?:''[^']*)*)'|(?P<bare>[^\s()\[\]',:;]+)|(?P<unknown>.)",
    re.DOTALL,
)
# Some readers turn an underscore outside quotes into a blank, so a name with one is quoted too.
_BARE_NAME = re.compile(r"(?:[^\W_]|[.+-])+")
_FOLLOWERS = {
    "start": ("(", "name"),
    "(": ("(", "name"),
    ",": ("(", "name"),
    ")": ("name", ":", ",", ")", ";"),
    "name": (":", ",", ")", ";"),
    ":": ("length",),
    "length": (",", ")", ";"),
    ";": ("end of text",),
}


def distinct(names: list[str]) -> list[str]:
    """Return the names after checking that they are unique."""
    last = {name: k for k, name in enumerate(names)}
    for name in (name for k, name in enumerate(names) if last[name] != k):
        raise ValueError(f"names must be unique, because they identify leaves. Got {name!r} more than once.")
    return names


def quoted(name: str) -> str:
    """Return the name as it is written in a Newick string."""
    return name if _BARE_NAME.fullmatch(name) else "'" + name.replace("'", "''") + "'"


def text_of(labels: list[str | None], children_right: list[int]) -> str:
    """Return the text of a binary tree in preorder, given the names of its leaves and None for internal nodes."""
    pieces: list[str] = []
    stack: list[int | str] = [";", 0]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
        elif (label := labels[item]) is not None:
            pieces.append(quoted(label))
        else:
            pieces.append("(")
            stack += (")", children_right[item], ",", item + 1)
    return "".join(pieces)


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    for match in _TOKEN.finditer(text):
        kind, found, start = match.lastgroup, match.group(match.lastgroup or 0), match.start()
        if kind == "unknown":
            raise ValueError(f"Newick quotes and brackets must be closed. Got a lone {found} at position {start}.")
        if kind == "mark":
            yield found, found, start
        elif kind is not None:
            yield "name", found.replace("''", "'") if kind == "quoted" else found, start
    yield "end of text", "end of text", len(text)


def labels_in_preorder(text: str) -> list[str | None]:
    """Return the leaf names of a binary tree in preorder, with None for internal nodes."""
    return [None if isinstance(item, int) else item for item in items_in_preorder(text, is_binary=True)]


def items_in_preorder(text: str, *, is_binary: bool = False) -> list[str | int]:
    """Return the leaf names in preorder, with the number of their children for internal nodes.

    Examples
    --------
    >>> items_in_preorder("((cat,dog,fox),owl);")
    [2, 3, 'cat', 'dog', 'fox', 'owl']
    """
    labels: list[str | int] = []
    open_nodes: list[int] = []
    previous = "start"
    for token, found, position in _tokens(text):
        kind = "length" if token == "name" and previous == ":" else token
        given = f"Got {found!r} at position {position}."
        if kind not in _FOLLOWERS[previous]:
            raise ValueError(f"Expected {' or '.join(_FOLLOWERS[previous])} in the Newick text. {given}")
        if kind == "(":
            open_nodes.append(len(labels))
            labels.append(1)
        elif kind == "name" and previous != ")":
            labels.append(found)
        elif (kind in (",", ")") and not open_nodes) or (kind == ";" and open_nodes):
            raise ValueError(f"Newick parentheses must match; here {len(open_nodes)} are open. {given}")
        elif kind == ",":
            labels[open_nodes[-1]] = int(labels[open_nodes[-1]]) + 1
        elif kind == ")" and (n_children := labels[open_nodes.pop()]) != 2 and is_binary:
            raise ValueError(f"Newick nodes must have two children, but one has {n_children}. {given}")
        previous = kind
    return labels
