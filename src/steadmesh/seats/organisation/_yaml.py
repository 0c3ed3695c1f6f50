"""YAML text to plain JSON values, with the line of everything and no surprises.

ruamel.yaml only scans, parses and composes. Values are made here, because what a file may hold is
what JSON can say: a date stays the text it was written as, a tag is refused, a key is text, and
an alias cannot blow a small file up into a large one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from steadmesh.seats.organisation._problems import (
    WHOLE_FILE,
    InvalidOrganisation,
    Problem,
    inside,
    item,
    quoted,
)
from steadmesh.seats.organisation._text import DEEPEST, MOST_VALUES, unusable_character

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
_INTEGER = re.compile(r"[-+]?(?:[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)")
_LONGEST_NUMBER = 40

# The parser's own words, where there are better ones. Each pair is (what it says, what we say).
_PLAIN_WORDS = (
    (
        r"found character '\t'",
        "a tab stands where the indentation is. Indent with spaces; YAML allows no tabs there",
    ),
    (
        "mapping values are not allowed here",
        'a ": " stands where no new field can begin. Put a text that holds ": " in quotes, '
        "and look at the indentation",
    ),
    (
        "expected <block end>",
        "this line is not indented like the fields beside it. Give all fields of one map the "
        "same indentation",
    ),
    ("could not find expected ':'", 'a field name without ":" after it'),
    ("found undefined alias", "*name stands for a value that no &name before it has named"),
    ("but found another document", 'a second document begins here. Remove the line "---"'),
    (
        "found unexpected end of stream",
        "a quoted text that begins here is never closed. Add the closing quote",
    ),
    (
        "but got '<stream end>'",
        "a bracket that opens here is never closed. Add the closing ] or }",
    ),
    ("that cannot start any token", "a value cannot begin with this character. Put it in quotes"),
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """The values of a file, the line of each path, and the mistakes that left values out."""

    data: dict[str, Any]
    lines: dict[str, int]
    problems: tuple[Problem, ...]


def parse(text: str) -> Parsed:
    """Read one YAML document. Raises InvalidOrganisation when it cannot be read at all."""
    root = _compose(text)
    if root is None:
        raise _unreadable(1, "the file is empty. It needs at least key and display_name")
    if not isinstance(root, MappingNode):
        raise _unreadable(
            root.start_mark.line + 1,
            "the file must be a map of fields (key: …, display_name: …), not "
            + ("a list" if isinstance(root, SequenceNode) else "a single value"),
        )
    builder = _Builder()
    data = builder.value(root, "", 0)
    return Parsed(data, builder.lines, tuple(builder.problems))


def _unreadable(line: int, message: str) -> InvalidOrganisation:
    return InvalidOrganisation([Problem(WHOLE_FILE, line, message)])


def _compose(text: str) -> Node | None:
    for number, line in enumerate(text.splitlines(), 1):
        found = unusable_character(line)
        if found:
            raise _unreadable(number, f"the file holds {found}. Remove it")
    try:
        node: Node | None = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = str(error.problem or error.context or "it cannot be parsed")
        if "unexpected end" in said or "<stream end>" in said:
            mark = error.context_mark or mark
        raise _unreadable(mark.line + 1 if mark else 1, _in_plain_words(said)) from None
    except ReaderError as error:
        number = text[: max(error.position, 0)].count("\n") + 1
        raise _unreadable(
            number, "the file holds a character that YAML forbids. Remove it"
        ) from None
    except RecursionError:
        raise _unreadable(1, f"values lie more than {DEEPEST} deep in each other") from None
    except (YAMLError, ValueError, TypeError, AttributeError, LookupError, AssertionError):
        # The parser trips over some malformed escapes, tags and directives instead of naming them.
        raise _unreadable(1, "the file is not valid YAML: a malformed escape, tag or %") from None
    return node


def _in_plain_words(said: str) -> str:
    for theirs, ours in _PLAIN_WORDS:
        if theirs in said:
            return ours
    return "the file is not valid YAML: " + "".join(c if c.isprintable() else " " for c in said)


class _Builder:
    def __init__(self) -> None:
        self.lines: dict[str, int] = {"": 1}
        self.problems: list[Problem] = []
        self._values = 0
        self._open: set[int] = set()

    def value(self, node: Node, path: str, depth: int) -> Any:
        self._values += 1
        if self._values > MOST_VALUES:
            raise _unreadable(
                node.start_mark.line + 1,
                f"the file stands for more than {MOST_VALUES} values once its aliases (*name) "
                "are written out. Use fewer aliases",
            )
        if depth > DEEPEST or id(node) in self._open:
            raise _unreadable(
                node.start_mark.line + 1,
                f"values lie more than {DEEPEST} deep in each other, or one holds itself",
            )
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        self._open.add(id(node))
        try:
            if isinstance(node, SequenceNode) and node.tag == _TAG + "seq":
                return self._list(node, path, depth)
            if isinstance(node, MappingNode) and node.tag == _TAG + "map":
                return self._map(node, path, depth)
        finally:
            self._open.discard(id(node))
        self._problem(path, node, f"the tag {quoted(str(node.tag))} is not allowed. Remove it")
        return None

    def _problem(self, path: str, node: Node, message: str) -> None:
        line = node.start_mark.line + 1
        self.problems.append(Problem(path or WHOLE_FILE, line, message))

    def _list(self, node: SequenceNode, path: str, depth: int) -> list[Any]:
        values = []
        for index, entry in enumerate(node.value):
            place = item(path, index)
            self.lines[place] = entry.start_mark.line + 1
            values.append(self.value(entry, place, depth + 1))
        return values

    def _map(self, node: MappingNode, path: str, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node, merged in self._fields(node, path):
            key = self._key(key_node, path)
            if key is None:
                continue
            place = inside(path, key)
            if key in values:
                if not merged:
                    first = self.lines[place]
                    message = f"{quoted(key)} stands here twice, first in line {first}. Keep one"
                    self._problem(place, key_node, message)
                continue
            self.lines[place] = key_node.start_mark.line + 1
            values[key] = self.value(value_node, place, depth + 1)
        return values

    def _fields(self, node: MappingNode, path: str) -> Iterator[tuple[Node, Node, bool]]:
        """The map's own fields, then those of the maps it takes in with `<<`."""
        taken_in: list[Node] = []
        for key_node, value_node in node.value:
            if key_node.tag != _MERGE:
                yield key_node, value_node, False
            elif isinstance(value_node, SequenceNode):
                taken_in.extend(value_node.value)
            else:
                taken_in.append(value_node)
        yield from self._taken_in(taken_in, path)

    def _taken_in(self, nodes: Iterable[Node], path: str) -> Iterator[tuple[Node, Node, bool]]:
        for source in nodes:
            if not isinstance(source, MappingNode):
                self._problem(path, source, "<< takes in maps only (<<: *name)")
            elif id(source) in self._open:
                self._problem(path, source, "<< takes in the map that it stands in")
            else:
                self._open.add(id(source))
                try:
                    for key_node, value_node, _ in self._fields(source, path):
                        self._values += 1
                        yield key_node, value_node, True
                finally:
                    self._open.discard(id(source))

    def _key(self, node: Node, path: str) -> str | None:
        if isinstance(node, ScalarNode) and node.tag == _TAG + "str":
            found = unusable_character(node.value)
            if not found:
                return str(node.value)
            self._problem(path, node, f"a field name holds {found}. Remove it")
        elif isinstance(node, ScalarNode):
            self._problem(
                path, node, f"the name {quoted(node.value)} is not text. Put it in quotes"
            )
        else:
            self._problem(path, node, "a field name must be text, not a list or a map")
        return None

    def _scalar(self, node: ScalarNode, path: str) -> Any:
        text = str(node.value)
        kind = str(node.tag).removeprefix(_TAG)
        if kind in ("str", "timestamp"):  # a date is the text it was written as
            found = unusable_character(text)
            if found:
                self._problem(path, node, f"the text holds {found}. Remove it")
                return None
            return text
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() in ("true", "yes", "on", "y")
        if kind in ("int", "float"):
            number = _number(text, whole=kind == "int")
            if number is None:
                message = f"{quoted(text)} is no number that can be used. Put it in quotes"
                self._problem(path, node, f"{message} if it is text")
            return number
        self._problem(path, node, f"the tag {quoted(str(node.tag))} is not allowed. Remove it")
        return None


def _number(text: str, *, whole: bool) -> int | float | None:
    plain = text.replace("_", "")
    if len(plain) > _LONGEST_NUMBER:
        return None
    if whole and _INTEGER.fullmatch(plain):
        # A leading zero is decimal, as YAML 1.2 has it.
        return int(plain, 0 if plain.lstrip("+-")[:2] in ("0o", "0x") else 10)
    try:
        number = float(plain)
    except ValueError:
        return None
    return number if math.isfinite(number) and not whole else None
