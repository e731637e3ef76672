"""The rooms of the house: who may import whom, what an import costs, and the style of every file."""

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
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


def layers() -> list[list[str]]:
    """Return the rooms of the import contract, the lowest layer first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return [layer.split(" | ") for layer in reversed(settings["tool"]["importlinter"]["contracts"][0]["layers"])]


def test_every_part_of_the_package_is_in_the_contract():
    package = ROOT / "src" / "margintree"
    parts = {p.stem for p in package.glob("*.py")} | {p.parent.name for p in package.glob("*/__init__.py")}
    assert parts - {"__init__"} == {room for layer in layers() for room in layer}


def test_contributing_lists_the_rooms_in_the_order_of_the_contract():
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## The rooms")[1].split("\n## ")[0]
    listed = [
        room.removesuffix("/").removesuffix(".py") for room in re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    ]
    level = {room: n for n, layer in enumerate(layers()) for room in layer}
    assert sorted(listed) == sorted(level)
    assert [level[room] for room in listed] == sorted(level.values())


def test_import_and_help_do_not_load_numba_or_scikit_learn():
    code = (
        "import sys, margintree, margintree.cli.app; "
        "print([m for m in ('numba', 'sklearn', 'scipy', 'numpy') if m in sys.modules])"
    )
    assert run("-c", code).stdout.strip() == "[]"


def test_importing_the_estimator_does_not_load_numba():
    code = "import sys; from margintree import MarginTreeClassifier; print('numba' in sys.modules)"
    assert run("-c", code).stdout.strip() == "False"


@pytest.mark.parametrize("directory", ["benchmarks", "examples"])
def test_scripts_import_what_exists(directory):
    missing = []
    for path in (ROOT / directory).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "margintree":
                module = importlib.import_module(node.module)
                for name in (alias.name for alias in node.names if not hasattr(module, alias.name)):
                    if importlib.util.find_spec(f"{node.module}.{name}") is None:
                        missing.append(f"{path.name}: {node.module}.{name}")
    assert missing == []


def test_no_source_file_is_longer_than_one_sitting():
    lengths = {p.name: len(p.read_text().splitlines()) for p in (ROOT / "src").rglob("*.py")}
    assert {name: n for name, n in lengths.items() if n > 400} == {}


def test_no_function_has_more_than_eight_parameters():
    # Apart from compiled loops, and from estimators, whose parameters are those of their users.
    package, found = ROOT / "src" / "margintree", {}
    for path in package.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef) and path.parent.name != "compiled":
                given = function.args
                names = {a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)} - {"self", "cls"}
                is_estimator = path.parent.name == "estimators" and function.name == "__init__"
                if len(names) > 8 and not is_estimator:
                    found[f"{path.name}: {function.name}"] = len(names)
    assert found == {}
