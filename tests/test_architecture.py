"""The rooms of the house: who may import whom, what an import costs, and the style of every file."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "command",
    [
        ("-m", "ruff", "check", "."),
        ("-m", "ruff", "format", "--check", "."),
        ("-m", "mypy"),
    ],
    ids=["ruff check", "ruff format", "mypy"],
)
def test_source_passes(command):
    done = run(*command)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_room_imports_only_rooms_above_it():
    done = run("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()")
    assert done.returncode == 0, done.stdout + done.stderr


def test_import_and_help_do_not_load_numba_or_scikit_learn():
    code = (
        "import sys, margintree, margintree.cli.app; "
        "print([m for m in ('numba', 'sklearn', 'scipy', 'numpy') if m in sys.modules])"
    )
    assert run("-c", code).stdout.strip() == "[]"


def test_importing_the_estimator_does_not_load_numba():
    code = "import sys; from margintree import MarginTreeClassifier; print('numba' in sys.modules)"
    assert run("-c", code).stdout.strip() == "False"


def test_no_source_file_is_longer_than_one_sitting():
    lengths = {p.name: len(p.read_text().splitlines()) for p in (ROOT / "src").rglob("*.py")}
    assert {name: n for name, n in lengths.items() if n > 450} == {}
