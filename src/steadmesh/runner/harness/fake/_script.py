"""Reading the fake harness's script language: text in, commands out, nothing executed."""

from __future__ import annotations

import os.path
import re
from dataclasses import dataclass
from pathlib import Path

from steadmesh.kernel import durations

LONGEST_SLEEP = 10 * durations.MINUTE
"""Nanoseconds; a longer sleep is cut to this."""

_BLANK = re.compile(r"[ \t]")


@dataclass(frozen=True, slots=True)
class Command:
    """One line that starts with `/`, and every line after it."""

    word: str
    """Without the slash."""
    argument: str
    following: tuple[str, ...]


def lines_of(body: str) -> tuple[str, ...]:
    """The lines of a message body, each trimmed, so that an indented command is one."""
    return tuple(line.strip() for line in body.replace("\r\n", "\n").split("\n"))


def commands_in(lines: tuple[str, ...]) -> tuple[Command, ...]:
    """The commands among `lines`; every other line is prose and means nothing."""
    found = []
    for number, line in enumerate(lines):
        if line.startswith("/"):
            word, argument = first_word(line[1:])
            found.append(Command(word, argument, lines[number + 1 :]))
    return tuple(found)


def first_word(text: str) -> tuple[str, str]:
    """What stands before the first space or tab, and the rest, trimmed."""
    parts = _BLANK.split(text, maxsplit=1)
    return parts[0], parts[1].strip() if len(parts) > 1 else ""


def task_in(body: str) -> tuple[str, ...] | None:
    """The lines that a body starting with the word `/task` asks to run; None for other bodies."""
    first, *others = lines_of(body.lstrip())
    word, rest = first_word(first)
    return (rest, *others) if word == "/task" else None


def delegation_text(rest: str, following: tuple[str, ...]) -> str:
    """What `/delegate` sends: the rest of its own line and all lines after it."""
    return "\n".join((rest, *following)).strip()


def sleep_length(text: str) -> int:
    """Nanoseconds to sleep, at most `LONGEST_SLEEP`. Raises ValueError in words."""
    return min(durations.parse(text), LONGEST_SLEEP)


def cut(text: str, size: int) -> str:
    """The longest beginning of `text` of at most `size` bytes that splits no character."""
    encoded = text.encode("utf-8", "surrogatepass")
    if len(encoded) <= size:
        return text
    return encoded[:size].decode("utf-8", "ignore")


def confined(workspace: Path, path: str) -> Path:
    """Where `path` lies in the workspace, which is the root of every path a script can name.

    `../../x` is `x` in the workspace. Raises PermissionError when a link leads out of it.
    """
    inside = os.path.normpath("/" + path.replace("\0", "")).lstrip("/")
    root = workspace.resolve()
    target = (root / inside).resolve()
    if target != root and root not in target.parents:
        raise PermissionError("the path leads out of the workspace")
    return target
