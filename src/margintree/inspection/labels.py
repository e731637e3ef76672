"""Labels as text: whatever a label contains, it is shown and not interpreted.

Control characters, including those that change the text direction, are written as escapes; dollar signs do not start a
formula in matplotlib; code that writes DOT, HTML or SVG escapes their special characters.
"""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

# Options for matplotlib texts that are parsed neither as mathtext nor as TeX.
PLAIN_TEXT = {"parse_math": False, "usetex": False}
# Format characters that the spelling of Persian, Hindi and other words requires, and that of emoji.
_JOINERS = "\u200c\u200d"

Names = Sequence[object] | npt.NDArray[Any]


def one_line(label: object) -> str:
    r"""Return a label as one line of printable text.

    Examples
    --------
    >>> one_line("two\nlines")
    'two\\nlines'
    >>> one_line(3)
    '3'
    """
    return "".join(c if c.isprintable() or c in _JOINERS else c.encode("unicode_escape").decode() for c in str(label))


def shortened(text: str, length: int) -> str:
    """Return a text, shortened to at most so many characters.

    Examples
    --------
    >>> shortened("hypernym", 5)
    'hype…'
    """
    return text if len(text) <= length else text[: max(1, length - 1)] + "…"


def first_names(names: Sequence[str], length: int = 40) -> str:
    """Return the first names of a group, as many as fit into so many characters.

    Examples
    --------
    >>> first_names(["cat", "dog", "fox"], 12)
    'cat, dog, …'
    >>> first_names(["cat", "dog", "fox"])
    'cat, dog, fox'
    """
    text = ", ".join(names)
    if len(text) <= length:
        return text
    kept = [shortened(names[0], length)]
    for name in names[1:]:
        if len(", ".join([*kept, name])) + 3 > length:
            break
        kept.append(name)
    return f"{', '.join(kept)}, …"


def checked_names(names: Names | None, classes: Names) -> list[str]:
    """Return one line of text for each class, from the given names or the labels themselves."""
    if names is not None and len(names) != len(classes):
        raise ValueError(f"class_names must have one name for each of the {len(classes)} classes. Got {len(names)}.")
    return [one_line(name) for name in (classes if names is None else names)]


def feature_names_of(given: Any, estimator: Any) -> list[str] | None:
    """Return the names of an estimator's features: given ones, those of a vectorizer, or those of the fit, if any."""
    if hasattr(given, "get_feature_names_out"):
        given = _names_out(given)
    names = getattr(estimator, "feature_names_in_", None) if given is None else given
    if names is None:
        return None
    n_features = int(estimator.n_features_in_)
    if isinstance(names, str) or len(names) != n_features:
        got = f"the string {names[:40]!r}" if isinstance(names, str) else f"{len(names)} names"
        raise ValueError(f"feature_names must have one name for each of the {n_features} features. Got {got}.")
    return [one_line(name) for name in names]


def feature_name(names: list[str] | None, feature: int) -> str:
    """Return the name of a feature; without names, the one that scikit-learn generates.

    Examples
    --------
    >>> feature_name(None, 2)
    'x2'
    """
    return f"x{feature}" if names is None else names[feature]


def _names_out(transformer: Any) -> Any:
    """Return the names of the output of a transformer; None if a step of a pipeline has none."""
    steps = [step for _, step in getattr(transformer, "steps", ())]
    if all(step in ("passthrough", None) or hasattr(step, "get_feature_names_out") for step in steps):
        return transformer.get_feature_names_out()
    return None
