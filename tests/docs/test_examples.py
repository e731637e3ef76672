"""The gallery: every example is a program that ends in a picture, and says what it lacks."""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.utils import Bunch

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
NEED_DATA = [path for path in EXAMPLES if "MARGINTREE_DATA" in path.read_text(encoding="utf-8")]


def name(path):
    return path.stem


@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_an_example_has_a_title_and_ends_in_a_picture(path):
    text = path.read_text(encoding="utf-8")
    compile(text, str(path), "exec")
    _, title, underline, *_ = text.splitlines()
    assert text.startswith('"""\n')
    assert underline == "=" * len(title)
    assert text.endswith("plt.show()\n")
    assert path.stem.startswith("plot_"), "the gallery runs plot_*.py"


def test_the_digits_example_draws_a_tree_and_an_explanation(capsys):
    plt.close("all")
    runpy.run_path(str(EXAMPLES[0].parent / "plot_digits.py"))
    assert len(plt.get_fignums()) == 2
    assert "accuracy 0.9" in capsys.readouterr().out
    plt.close("all")


@pytest.mark.parametrize("path", NEED_DATA, ids=name)
def test_an_example_without_its_data_says_what_to_do(path, monkeypatch):
    monkeypatch.delenv("MARGINTREE_DATA", raising=False)
    with pytest.raises(SystemExit, match="set MARGINTREE_DATA to the directory"):
        runpy.run_path(str(path))


def test_an_example_that_cannot_download_its_messages_says_so(monkeypatch):
    def fails(**_):
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", fails)
    with pytest.raises(SystemExit, match=r"needs the 20 newsgroups, .* no network"):
        runpy.run_path(str(EXAMPLES[0].parent / "plot_newsgroups.py"))


def test_the_newsgroups_example_runs_on_any_messages(monkeypatch, capsys):
    """Messages of three topics stand in for the real ones, which are downloaded."""
    words = {"rec.autos": "car engine wheel", "rec.sport.hockey": "puck goalie team", "sci.space": "orbit moon launch"}

    def fetch(**_):
        texts = [f"{text} {n % 7} {text.split()[n % 3]}" for text in words.values() for n in range(20)]
        target = np.repeat(np.arange(len(words)), 20)
        return Bunch(data=texts, target=target, target_names=list(words))

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", fetch)
    plt.close("all")
    runpy.run_path(str(EXAMPLES[0].parent / "plot_newsgroups.py"))
    assert len(plt.get_fignums()) == 3
    assert "prediction: rec.sport.hockey" in capsys.readouterr().out
    plt.close("all")
