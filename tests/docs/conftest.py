"""The pages of the documentation, and the code in them."""

import re
import textwrap
from pathlib import Path

import matplotlib
import pytest

matplotlib.use("Agg")

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"^( *)```python\n(.*?)^\1```$", flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the directory of the repository."""
    return ROOT


@pytest.fixture
def code_of(root):
    """Return the function that gives the Python code of a page, as one program."""

    def code(name: str) -> str:
        blocks = CODE.findall((root / name).read_text(encoding="utf-8"))
        return "\n".join(textwrap.dedent(block) for _, block in blocks)

    return code
