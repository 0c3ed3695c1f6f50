"""The log files of a data directory, as commands read them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from steadmesh.kernel.text import for_terminal
from steadmesh.operator.terminal import moment

LOG_NAME = "steadmesh.log"
SUPERVISOR_LOG_NAME = "supervisor.log"
_OWN = ("time", "level", "logger", "event", "exception")
_BLOCK = 65_536


def readable(line: str) -> str:
    """`12:00:01 info    lease acquired  seat=lead`; a line of another form as it is."""
    entry = parsed(line)
    if entry is None:
        return for_terminal(line)
    words = [
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in entry.items()
        if name not in _OWN
    ]
    head = f"{moment(entry['time'])} {entry.get('level', ''):<7} {entry.get('event', '')}"
    text = for_terminal("  ".join([head, *words])).replace("\n", "\\n")
    trace = entry.get("exception")
    if trace:
        text += "\n    " + for_terminal(str(trace)).rstrip("\n").replace("\n", "\n    ")
    return text


def parsed(line: str) -> dict[str, Any] | None:
    """An entry of a log with the time it has to have; nothing for a line that is none."""
    try:
        entry = json.loads(line)
        datetime.fromisoformat(entry["time"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def last_lines(file: Path, limit: int) -> list[str]:
    """The last lines of a log, those of its predecessor included; oldest first."""
    found: list[str] = []
    for line in backwards(file):
        if len(found) >= limit:
            break
        found.append(line)
    return found[::-1]


def backwards(file: Path) -> Iterator[str]:
    """The lines of a log and then of its predecessor (`.1`), newest first."""
    for path in (file, file.with_name(f"{file.name}.1")):
        with suppress(FileNotFoundError), path.open("rb") as stream:
            rest = b""
            place = stream.seek(0, os.SEEK_END)
            while place > 0:
                size = min(_BLOCK, place)
                place = stream.seek(place - size)
                first, *lines = (stream.read(size) + rest).split(b"\n")
                rest = first
                for line in reversed(lines):
                    if line:
                        yield line.decode("utf-8", "replace")
            if rest:
                yield rest.decode("utf-8", "replace")


class Tail:
    """What is written to a log from now on, also when it begins anew."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stream = file.open("rb")
        self._stream.seek(0, os.SEEK_END)
        self._rest = b""

    def new_lines(self) -> list[str]:
        """The whole lines since the last call."""
        found = self._taken()
        with suppress(FileNotFoundError):
            if not os.path.samestat(self._file.stat(), os.fstat(self._stream.fileno())):
                # Set aside: what was still written to the old one was read just now.
                self._stream.close()
                self._stream = self._file.open("rb")
                found += self._taken()
        return found

    def _taken(self) -> list[str]:
        *lines, self._rest = (self._rest + self._stream.read()).split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines if line]
