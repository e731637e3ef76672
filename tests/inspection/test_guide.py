"""The user guide of the room: its code runs, and its links lead somewhere."""

import re
from pathlib import Path

import matplotlib.pyplot as plt

GUIDE = Path(__file__).parents[2] / "docs" / "inspection.md"


def test_the_code_of_the_guide_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) > 5
    exec("\n".join(blocks), {})
    assert (tmp_path / "digits.png").stat().st_size > 1000
    assert "prediction: traffic" in capsys.readouterr().out
    plt.close("all")


def test_the_links_of_the_guide_lead_to_files():
    for target in re.findall(r"\]\(([^)#]+)\)", GUIDE.read_text(encoding="utf-8")):
        assert (GUIDE.parent / target).exists(), target
