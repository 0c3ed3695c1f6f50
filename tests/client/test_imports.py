"""The clients stay thin: the standard library only, and no more of it than is listed."""

from __future__ import annotations

import ast
import re
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.client import imports
from tests.client.programs import SeatFiles

CLIENT = imports.ROOT / "src" / "steadmesh" / "client"
PACKAGE = imports.ROOT / "src" / "steadmesh" / "__init__.py"


def foreign_imports(source: str) -> set[str]:
    """The modules that a source names and that are neither the standard library's nor the clients'."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." * node.level + (node.module or ""))
    return {
        name
        for name in names
        if name.split(".")[0] not in sys.stdlib_module_names
        and name not in ("steadmesh", "steadmesh.client")
        and not name.startswith("steadmesh.client.")
    }


@pytest.mark.parametrize("path", sorted(CLIENT.rglob("*.py")), ids=lambda path: str(path.name))
def test_a_client_module_imports_the_standard_library_only(path: Path) -> None:
    assert foreign_imports(path.read_text()) == set()


def test_the_package_itself_imports_nothing() -> None:
    assert not re.search(r"^\s*(import|from) ", PACKAGE.read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    "source",
    [
        "import httpx",
        "from steadmesh.kernel import ids",
        "def f():\n    import yaml.nodes",
        "from . import x",
        "from steadmesh.clients import x",
    ],
)
def test_the_check_finds_what_it_looks_for(source: str) -> None:
    assert foreign_imports(source)


@pytest.mark.parametrize("program", sorted(imports.WORDS))
def test_a_program_imports_no_more_than_is_listed(program: str, seat: SeatFiles) -> None:
    """On the interpreter that made the list it is exact, so that it does not grow stale."""
    found = imports.imported(imports.WORDS[program], seat)
    known = imports.listed()[program]
    assert set(found) - set(known) == set(), "run `python -m tests.client.imports` and look"
    if imports.interpreter() in imports.LISTED.read_text():
        assert found == known


@pytest.mark.parametrize("heavy", ["typing", "argparse", "http.client", "ssl", "urllib.parse"])
def test_the_expensive_modules_are_not_on_the_list(heavy: str) -> None:
    assert all(heavy not in modules for modules in imports.listed().values())


def test_the_console_script_starts_the_client_directly() -> None:
    """Not by way of a package that would import more."""
    (script,) = entry_points(group="console_scripts", name="steadmesh-tools")
    assert script.value == "steadmesh.client.tools:main"
