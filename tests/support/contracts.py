"""What the source may look like, as functions from a tree to what is wrong with it.

Every function takes the folder of a package and returns one line per problem; none is good.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

_STATEMENT = re.compile(
    r"\b(SELECT\s+[\w*(:]|INSERT\s+INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s)"
)
_PRAGMA = re.compile(r"#\s*(noqa|type:\s*ignore)")
_PRAGMA_WITH_REASON = re.compile(
    r"#\s*(noqa:\s*[A-Z]+[0-9]+(,\s*[A-Z]+[0-9]+)*|type:\s*ignore\[[\w-]+(,\s*[\w-]+)*\])\s*\S.{5,}"
)
_NO_NAMES = frozenset({"utils", "util", "common", "helpers", "helper", "manager", "base", "misc"})


def sql_outside_stores(package: Path) -> list[str]:
    """SQL stands in `_store.py` (or `_<noun>_store.py`), in the kernel, and in migrations."""
    problems = []
    for path, tree in _modules(package):
        where = path.relative_to(package)
        if path.name.endswith("_store.py") or where.parts[0] == "kernel":
            continue
        documentation = _docstrings(tree)
        problems += [
            f"{where}:{node.lineno}: SQL belongs into the feature's _store.py: {node.value[:40]!r}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documentation
            and _STATEMENT.search(node.value)
        ]
    return problems


@dataclass(frozen=True, slots=True)
class _ErrorClass:
    name: str
    bases: tuple[str, ...]
    code: str | None
    kind: str | None
    where: str


def ambiguous_error_codes(package: Path) -> list[str]:
    """An error code has one meaning: it is declared once, and has one kind.

    The codes of the kinds themselves may be repeated below their own kind.
    """
    everything = list(_error_classes(package))
    classes = {found.name: found for found in everything}
    kinds: dict[str, set[str]] = defaultdict(set)
    declared: dict[str, list[_ErrorClass]] = defaultdict(list)
    for found in everything:
        if found.code is not None and (kind := _kind_of(found, classes)) is not None:
            kinds[found.code].add(kind)
            declared[found.code].append(found)
    problems = []
    for code, owners in sorted(declared.items()):
        places = ", ".join(f"{owner.name} ({owner.where})" for owner in owners)
        of_a_kind = any(owner.kind is not None for owner in owners)
        if len(kinds[code]) > 1:
            problems.append(f"code {code!r} has kinds {', '.join(sorted(kinds[code]))}: {places}")
        elif len(owners) > 1 and not of_a_kind:
            problems.append(f"code {code!r} is declared more than once: {places}")
    return problems


def foreign_imports(package: Path, part: str, *, allowed: Collection[str]) -> list[str]:
    """A part of the package that imports the standard library, itself, and what is allowed."""
    problems = []
    own = f"{package.name}.{part}"
    for path, tree in _modules(package / part):
        for node, name in _imports(tree, _name_of(path, package), is_package=_is_package(path)):
            top = name.split(".")[0]
            if top in sys.stdlib_module_names or _is_within(name, {own, *allowed}):
                continue
            where = path.relative_to(package)
            problems.append(f"{where}:{node.lineno}: {part} may not import {name}")
    return problems


def pragmas_without_reason(folder: Path) -> list[str]:
    """Whoever silences a checker names the rule and says why, on the same line."""
    problems = []
    for path in sorted(folder.rglob("*.py")):
        with tokenize.open(path) as stream:
            for token in tokenize.generate_tokens(stream.readline):
                if token.type != tokenize.COMMENT or not _PRAGMA.search(token.string):
                    continue
                if not _PRAGMA_WITH_REASON.search(token.string):
                    where = path.relative_to(folder)
                    problems.append(f"{where}:{token.start[0]}: no rule or reason: {token.string}")
    return problems


def names_that_say_nothing(package: Path) -> list[str]:
    """A module is named after what it is about."""
    return [
        f"{path.relative_to(package)}: says nothing about what is in it"
        for path in sorted(package.rglob("*.py"))
        if _NO_NAMES.intersection(part.removesuffix(".py").strip("_") for part in path.parts[-2:])
    ]


def _modules(folder: Path) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(folder.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"), str(path))


def _docstrings(tree: ast.Module) -> set[int]:
    """Strings that stand for themselves: documentation, of whatever they follow."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def _error_classes(package: Path) -> Iterator[_ErrorClass]:
    for path, tree in _modules(package):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases = tuple(
                    base.attr if isinstance(base, ast.Attribute) else base.id
                    for base in node.bases
                    if isinstance(base, ast.Attribute | ast.Name)
                )
                where = f"{path.relative_to(package)}:{node.lineno}"
                words = _class_words(node)
                yield _ErrorClass(node.name, bases, words.get("code"), words.get("kind"), where)


def _class_words(node: ast.ClassDef) -> dict[str, str]:
    words = {}
    for statement in node.body:
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(statement.value, ast.Constant):
                words[target.id] = str(statement.value.value)
    return words


def _kind_of(found: _ErrorClass, classes: dict[str, _ErrorClass]) -> str | None:
    if found.kind is not None:
        return found.kind
    for base in found.bases:
        if base in classes and base != found.name and (kind := _kind_of(classes[base], classes)):
            return kind
    return None


def _imports(tree: ast.Module, module: str, *, is_package: bool) -> Iterator[tuple[ast.stmt, str]]:
    """What is imported, as `package.module` or `package.module.name`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")
            depth = node.level - 1 if is_package else node.level
            origin = ".".join(parts[: len(parts) - depth]) if node.level else ""
            full = ".".join(part for part in (origin, node.module) if part)
            for alias in node.names:
                yield node, f"{full}.{alias.name}"


def _is_within(name: str, places: Collection[str]) -> bool:
    return any(name == place or name.startswith(f"{place}.") for place in places)


def _name_of(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if _is_package(path) else parts)


def _is_package(path: Path) -> bool:
    return path.name == "__init__.py"
