"""The command as a user starts it: a process of its own."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from margintree import __version__
from margintree.cli.app import app
from margintree.cli.demo import compare


def margintree(*arguments):
    command = [sys.executable, "-m", "margintree", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_version_is_that_of_the_package():
    assert margintree("--version").stdout == f"margintree {__version__}\n"


def test_help_lists_the_commands():
    done = margintree("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout


def test_an_unknown_command_ends_with_usage_and_no_traceback():
    done = margintree("nonsense")
    assert done.returncode == 2
    assert "No such command" in done.stderr
    assert "Traceback" not in done.stderr


def test_demo_draws_the_tree_and_the_comparison():
    done = CliRunner().invoke(app, ["demo"])
    assert done.exit_code == 0, done.output
    assert "├── " in done.output
    assert all(f"digit {k}" in done.output for k in range(10))
    assert "margin tree" in done.output
    assert "random tree" in done.output
    assert "1vsR" in done.output


@pytest.mark.parametrize("seed", [0, 1])
def test_the_margin_tree_beats_the_random_one_with_as_few_evaluations(seed):
    outcomes, model = compare(seed)
    by = {(o.method, o.kernel): o for o in outcomes}
    margin, random, rest = (by[m, "linear"] for m in ("margin tree", "random tree", "1vsR (scikit-learn)"))
    assert margin.accuracy > random.accuracy + 0.03
    assert margin.evaluations < 4.5 < rest.evaluations
    assert model.tree_.n_classes == 10
