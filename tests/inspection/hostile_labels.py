"""Labels that mean something to the languages that they are written into."""

import numpy as np

# Markup, escapes, mathematics, right-to-left text, a character that turns the direction, and two lines.
HOSTILE = np.array(
    [
        "<script>alert(1)</script>",
        'say "&amp;" \\n',
        "$x_1$ and $",
        "שלום עולם",
        "abc\u202etxt",
        "two\nlines",
        "{b}|<c>",
        "\\frac",
    ]
)
