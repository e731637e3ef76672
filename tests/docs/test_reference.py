"""The API reference lists every public name, and nothing else."""

import re
from importlib import import_module

import pytest

LISTED = re.compile(r"\.\. currentmodule:: (\S+)|^   (\w+)$", flags=re.MULTILINE)


@pytest.fixture(scope="module")
def listed(root):
    """Return the names of the reference by their modules."""
    names, module = {}, ""
    for current, name in LISTED.findall((root / "docs" / "api.md").read_text(encoding="utf-8")):
        module = current or module
        names.setdefault(module, [])
        if name:
            names[module].append(name)
    return names


MODULES = ("margintree", "margintree.dask", "margintree.splits", "margintree.inspection", "margintree.datasets")


def needs_extra(module):
    """Skip a test of a module whose extra is not installed."""
    if module == "margintree.dask":
        pytest.importorskip("distributed", reason="needs the extra dask")


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_reference_once(module, listed):
    needs_extra(module)
    assert sorted(listed[module]) == sorted(import_module(module).__all__)


def test_the_reference_has_no_other_modules(listed):
    assert set(listed) == set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_an_example(module, listed):
    needs_extra(module)
    documented = {f"{module}.{name}": getattr(import_module(module), name) for name in listed[module]}
    lacking = [name for name, value in documented.items() if callable(value) and ">>> " not in (value.__doc__ or "")]
    assert lacking == []
