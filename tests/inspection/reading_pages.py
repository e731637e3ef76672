"""Pages as tests read them: the data that are written into one."""

import json
import re
from pathlib import Path
from typing import Any

from margintree.inspection import export_html


def data_of(page: Path) -> dict[str, Any]:
    """Return the data of a page."""
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found.group(1))
    return data


def exported(directory: Path, estimator: Any, *arguments: Any, **options: Any) -> dict[str, Any]:
    """Write a page and return its data."""
    export_html(estimator, directory / "page.html", *arguments, **options)
    return data_of(directory / "page.html")
