"""What the source may look like; and for each such rule, that it can be broken."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import steadmesh
from tests.support.contracts import (
    ambiguous_error_codes,
    foreign_imports,
    names_that_say_nothing,
    pragmas_without_reason,
    sql_outside_stores,
)

ROOT = Path(__file__).parents[1]
SOURCE = Path(steadmesh.__file__).parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]

FOR_RUNNERS = {
    f"steadmesh.{name}"
    for name in (
        "__version__",
        "client",
        "kernel.clock",
        "kernel.config",
        "kernel.durations",
        "kernel.log",
        "kernel.redaction",
        "kernel.zones",
    )
}

ERRORS = """
    class Failure(Exception):
        code = "internal"

    class NotFound(Failure):
        kind = "not_found"
        code = "not_found"

    class Full(Failure):
        kind: str = "full"
        code: str = "full"
"""


class Tree:
    """A made-up package."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / "steadmesh"

    def write(self, name: str, text: str) -> None:
        path = self.package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


class TestImports:
    """The contracts in pyproject.toml."""

    def test_the_contracts_hold(self) -> None:
        result = _lint(ROOT)
        assert result.returncode == 0, result.stdout

    def test_each_contract_can_be_broken(self, tmp_path: Path) -> None:
        """One wrong import for each contract, in a made-up package with the same outline."""
        outline = {name for contract in SETTINGS["contracts"] for name in _named(contract)}
        wrong = {
            "steadmesh.kernel.x": "import steadmesh.tools",
            "steadmesh.tools.x": "import steadmesh.service",
            "steadmesh.seats.x": "import starlette",
            "steadmesh.relay.x": "import steadmesh.seats.y",
            "steadmesh.seats.y": "",
            "steadmesh.seats.identity.x": "import steadmesh.seats.messages",
            "steadmesh.seats.messages._store": "",
            "steadmesh.seats.turns.x": "import steadmesh.seats.messages._store",
            "steadmesh.service.x": "import steadmesh.seats\nimport steadmesh.client",
            "steadmesh.client.x": "import steadmesh.kernel",
            "steadmesh.runner.x": "import steadmesh.kernel.database",
            "steadmesh.operator.x": "import steadmesh.kernel.database",
        }
        _make_package(tmp_path, {**dict.fromkeys(outline, ""), **wrong})
        (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
        report = " ".join(_lint(tmp_path).stdout.split())
        names = [contract["name"] for contract in SETTINGS["contracts"]]
        assert [name for name in names if f"{name} BROKEN" not in report] == [], report


def _lint(folder: Path) -> subprocess.CompletedProcess[str]:
    program = "import sys; from importlinter.cli import lint_imports;"
    program += "sys.exit(lint_imports(no_cache=True, no_logo=True))"
    sources = folder / "src" if (folder / "src").exists() else folder
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={"PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def _named(contract: dict[str, Any]) -> list[str]:
    """The modules of ours that a contract names, which have to exist."""
    lists = ("source_modules", "forbidden_modules", "modules", "protected_modules")
    found = [name for key in (*lists, "allowed_importers") for name in contract.get(key, ())]
    for container in contract.get("containers", ()):
        for layer in contract["layers"]:
            found += [f"{container}.{name.strip(' ()')}" for name in layer.split(":")]
    return [name for name in found if name.startswith("steadmesh")]


def _make_package(folder: Path, modules: dict[str, str]) -> None:
    packages = {name.rpartition(".")[0] for name in modules}
    for name, text in sorted(modules.items()):
        path = folder.joinpath(*name.split("."))
        is_package = any(other == name or other.startswith(f"{name}.") for other in packages)
        file = path / "__init__.py" if is_package else path.with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for inner in [path for path in folder.rglob("*") if path.is_dir()]:
        (inner / "__init__.py").touch()


class TestClients:
    def test_they_import_the_standard_library_only(self) -> None:
        assert foreign_imports(SOURCE, "client", allowed={"steadmesh.__version__"}) == []

    def test_anything_else_is_found(self, tree: Tree) -> None:
        tree.write("client/ok.py", "import json.decoder\nfrom steadmesh.client import http\n")
        tree.write("client/sub/bad.py", "from ...kernel import text\ndef f():\n  import httpx2\n")
        assert foreign_imports(tree.package, "client", allowed=set()) == [
            "client/sub/bad.py:1: client may not import steadmesh.kernel.text",
            "client/sub/bad.py:3: client may not import httpx2",
        ]


class TestRunners:
    def test_they_import_the_client_and_a_little_of_the_kernel(self) -> None:
        assert foreign_imports(SOURCE, "runner", allowed=FOR_RUNNERS) == []

    def test_anything_else_is_found(self, tree: Tree) -> None:
        tree.write("runner/bad.py", "import steadmesh.client\nimport steadmesh.kernel.crypto\n")
        assert foreign_imports(tree.package, "runner", allowed=FOR_RUNNERS) == [
            "runner/bad.py:2: runner may not import steadmesh.kernel.crypto"
        ]


class TestSQL:
    def test_it_stands_in_stores_only(self) -> None:
        assert sql_outside_stores(SOURCE) == []

    @pytest.mark.parametrize(
        "statement",
        [
            'run("SELECT id FROM seats")',
            'run(f"UPDATE seats SET {column} = :value")',
            'run("""\n    INSERT INTO seats VALUES (1)""")',
            'run("WITH x AS (" + "DELETE FROM seats)")',
        ],
    )
    def test_it_is_found_elsewhere(self, tree: Tree, statement: str) -> None:
        tree.write("seats/messages/send.py", statement)
        [problem] = sql_outside_stores(tree.package)
        assert problem.startswith("seats/messages/send.py:1: SQL belongs into")

    def test_words_about_it_are_no_sql(self, tree: Tree) -> None:
        tree.write(
            "seats/messages/send.py",
            '"""SELECT id FROM seats is in the store."""\nhint = "Select a seat, or update it."',
        )
        assert sql_outside_stores(tree.package) == []


class TestErrorCodes:
    def test_each_has_one_meaning(self) -> None:
        assert ambiguous_error_codes(SOURCE) == []

    def test_a_code_that_two_declare_is_found(self, tree: Tree) -> None:
        tree.write("kernel/errors.py", ERRORS)
        tree.write("a.py", 'class InboxFull(Full):\n    code = "inbox_full"')
        tree.write("b.py", 'class InboxFull(errors.Full):\n    code = "inbox_full"')
        assert ambiguous_error_codes(tree.package) == [
            "code 'inbox_full' is declared more than once: InboxFull (a.py:1), InboxFull (b.py:1)"
        ]

    def test_a_code_of_two_kinds_is_found(self, tree: Tree) -> None:
        tree.write("kernel/errors.py", ERRORS)
        tree.write("a.py", 'class NoRoom(Full):\n    code = "not_found"')
        [problem] = ambiguous_error_codes(tree.package)
        assert problem.startswith("code 'not_found' has kinds full, not_found: ")

    def test_the_code_of_a_kind_may_be_repeated_below_it(self, tree: Tree) -> None:
        tree.write("kernel/errors.py", ERRORS)
        tree.write("a.py", 'class NoSeat(NotFound):\n    code = "not_found"')
        assert ambiguous_error_codes(tree.package) == []


class TestPragmas:
    @pytest.mark.parametrize("folder", ["src", "tests", "benchmarks"])
    def test_each_names_its_rule_and_its_reason(self, folder: str) -> None:
        assert pragmas_without_reason(ROOT / folder) == []

    @pytest.mark.parametrize(
        "comment",
        [
            "# noqa",
            "# noqa: S101",
            "# type: ignore",
            "# type: ignore[arg-type]",
            "# type: ignore  # whatever it is",
        ],
    )
    def test_one_without_is_found(self, tree: Tree, comment: str) -> None:
        tree.write("a.py", f"x = 1  {comment}\n")
        assert pragmas_without_reason(tree.package) == [f"a.py:1: no rule or reason: {comment}"]

    @pytest.mark.parametrize(
        "comment",
        ["# noqa: S101 - tells the type checker", "# type: ignore[arg-type]  # a path or a pair"],
    )
    def test_one_with_both_is_welcome(self, tree: Tree, comment: str) -> None:
        tree.write("a.py", f"x = 1  {comment}\n")
        assert pragmas_without_reason(tree.package) == []


class TestNames:
    def test_modules_are_named_after_what_they_are_about(self) -> None:
        assert names_that_say_nothing(SOURCE) == []

    @pytest.mark.parametrize("name", ["seats/utils.py", "kernel/_common.py", "helpers/x.py"])
    def test_a_name_that_says_nothing_is_found(self, tree: Tree, name: str) -> None:
        tree.write(name, "")
        assert names_that_say_nothing(tree.package) == [f"{name}: says nothing about what is in it"]
