"""What is wrong with an organisation file, and where."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

WHOLE_FILE = "(file)"
"""The path of a problem that belongs to no field."""

LineOf = Callable[[str], int | None]
"""From a path to the line (counted from 1) where it, or the nearest thing around it, stands."""

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
_QUOTED_LENGTH = 80

# Comparing names is slow, and a file with a thousand wrong ones has another kind of mistake.
_MOST_HINTS = 100
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: the path of the field, its line where known, and what to do about it."""

    path: str
    line: int | None
    message: str


class InvalidOrganisation(Exception):
    """The file cannot be used. `problems` holds every mistake found, sorted by path."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        unique = {(found.path, found.message): found for found in problems}
        self.problems: tuple[Problem, ...] = tuple(
            sorted(unique.values(), key=lambda found: (found.path, found.line or 0, found.message))
        )
        super().__init__("; ".join(f"{found.path}: {found.message}" for found in self.problems))


class Report:
    """Collects problems, so that all of them are shown at once."""

    def __init__(self, line_of: LineOf) -> None:
        self.problems: list[Problem] = []
        self._line_of = line_of
        self._hints_left = _MOST_HINTS

    def add(self, path: str, message: str, *, at: str | None = None) -> None:
        """Note a mistake. `at` is the path whose line to show when another one is to blame."""
        self.problems.append(Problem(path, self._line_of(at or path), message))

    def hint(self, name: str, known: Iterable[str]) -> str:
        """` Did you mean "lead"?`, or nothing when no known name is near."""
        if self._hints_left == 0 or len(name) > _LONGEST_NAME:
            return ""
        self._hints_left -= 1
        close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
        return f" Did you mean {quoted(close[0])}?" if close else ""


def render(problems: Iterable[Problem], file_name: str) -> str:
    """The problems as `FILE:LINE: path: message`, one a line (FILE alone where no line is known)."""
    return "\n".join(
        f"{file_name}{'' if found.line is None else f':{found.line}'}: "
        f"{found.path}: {found.message}"
        for found in problems
    )


def no_lines(path: str) -> None:
    """The `LineOf` of a document that came without lines."""


def inside(path: str, key: str) -> str:
    """The path of the entry `key` of the map at `path`."""
    name = key if _PLAIN_NAME.fullmatch(key) else quoted(key)
    return f"{path}.{name}" if path else name


def item(path: str, index: int) -> str:
    """The path of an entry of the list at `path`."""
    return f"{path}[{index}]"


def around(path: str) -> Iterator[str]:
    """The path itself, then what it lies in, from the inside out."""
    while path:
        yield path
        cut = max(path.rfind("."), path.rfind("["))
        path = path[:cut] if cut > 0 else ""


def quoted(value: str) -> str:
    """A value from the file for use in a message: short, on one line, without control characters."""
    shown = value if len(value) <= _QUOTED_LENGTH else value[: _QUOTED_LENGTH - 1] + "…"
    return '"' + "".join(_printable(character) for character in shown) + '"'


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    return json.dumps(character)[1:-1] if ord(character) not in range(0x7F, 0xA0) else "?"


def listed(names: Iterable[str]) -> str:
    """Names for a message: `a, b, c`."""
    return ", ".join(names)
