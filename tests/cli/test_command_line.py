"""The command as a user starts it: a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import margintree as package
from margintree import MarginTreeClassifier, __version__
from margintree.cli.app import app
from margintree.cli.demo import compare
from margintree.cli.options import ModelOptions

SOURCE = Path(package.__file__).parents[1]


def margintree(*arguments):
    command = [sys.executable, "-m", "margintree", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_version_is_that_of_the_package():
    assert margintree("--version").stdout == f"margintree {__version__}\n"


def test_help_lists_the_commands():
    done = margintree("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout


def test_a_fit_without_options_has_the_defaults_of_the_estimator():
    defaults = MarginTreeClassifier().get_params()
    given = ModelOptions().parameters
    assert given == {name: defaults[name] for name in given} | {"random_state": 0}


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
    methods = ("margin tree, greedy", "random tree, greedy", "1vsR (scikit-learn)")
    margin, random, rest = (by[method, "linear"] for method in methods)
    assert margin.accuracy > random.accuracy + 0.03
    assert margin.evaluations < 4.5 < rest.evaluations
    assert model.tree_.n_classes == 10


def test_names_of_files_are_shown_as_they_are_and_act_on_nothing(tmp_path):
    folder = tmp_path / "data["
    folder.mkdir()
    train, model = folder / "old].csv", folder / "red]\x1b[31m.margintree"
    train.write_text("label,a,b\n" + "x,1,2\ny,2,1\n" * 10)
    done = margintree("fit", str(train), "-o", str(model))
    assert done.returncode == 0, done.stderr
    assert "data[/old].csv: 20 rows" in done.stderr
    assert "\\x1b[31m" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
def test_ctrl_c_before_the_command_has_begun_shows_no_traceback():
    # Importing the application takes a while; whatever it is in the middle of is interrupted there.
    code = (
        "import builtins, signal, sys\n"
        "from margintree.cli import main\n"
        "imported = builtins.__import__\n"
        "def interrupt(name, *rest):\n"
        "    if name == 'typer':\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    return imported(name, *rest)\n"
        "builtins.__import__ = interrupt\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_next_to_nothing_is_imported_before_ctrl_c_is_answered():
    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); import margintree.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert {"margintree.cli", "sys"} <= set(done.stdout.split())
    assert not {"typing", "importlib", "re", "typer"} & set(done.stdout.split())
