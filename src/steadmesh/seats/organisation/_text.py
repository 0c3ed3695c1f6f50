"""What any value of the file must be: plain JSON of bounded size and depth, in clean text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from steadmesh.kernel.text import flaw
from steadmesh.seats.organisation._problems import WHOLE_FILE, Report, inside, item

LARGEST = 262_144
"""Bytes of the file's content as compact JSON."""

DEEPEST = 32
MOST_VALUES = 100_000

_LARGEST_NUMBER = 2**53
_CONTROL = re.compile(r"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]")


def unusable_character(text: str) -> str | None:
    """The name of a character that no text of the file may hold, if there is one."""
    if (found := flaw(text)) is not None:
        return found
    control = _CONTROL.search(text)
    return control and f"a control character (U+{ord(control[0]):04X})"


def encoded(value: object) -> bytes:
    """Compact JSON in UTF-8: what sizes are measured on."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode()


def canonical(value: object) -> bytes:
    """Compact JSON with sorted keys: what digests are taken of."""
    text = json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True
    )
    return text.encode()


def check_values(data: Mapping[str, Any], report: Report) -> bool:
    """Report what is not plain JSON or too large. False when the rest cannot be looked at."""
    readable = measurable = True
    for count, (path, value, depth) in enumerate(_walk(data), 1):
        if depth > DEEPEST:
            report.add(path, f"values lie more than {DEEPEST} deep in each other. Flatten this")
            return False
        if count > MOST_VALUES:
            report.add(WHOLE_FILE, f"the file holds more than {MOST_VALUES} values")
            return False
        wrong = _wrong(value)
        if wrong:
            report.add(path or WHOLE_FILE, wrong)
            measurable = False
            readable = readable and isinstance(value, str | int | float)
    if measurable and (size := len(encoded(data))) > LARGEST:
        report.add(WHOLE_FILE, too_large(size, "the file"))
    return readable


def too_large(size: int, what: str) -> str:
    """The message about a document over the limit."""
    return (
        f"{what} holds {size} bytes as compact JSON; at most {LARGEST} are allowed. "
        "Move long texts into instruction files and refer to them"
    )


def _walk(data: Mapping[str, Any]) -> Iterator[tuple[str, object, int]]:
    waiting: list[tuple[str, object, int]] = [("", data, 0)]
    while waiting:
        path, value, depth = waiting.pop()
        yield path, value, depth
        if isinstance(value, Mapping):
            for key, entry in value.items():
                if isinstance(key, str):
                    waiting.append((inside(path, key), entry, depth + 1))
                yield path, _Key(key), depth
        elif isinstance(value, list | tuple):
            waiting.extend((item(path, i), entry, depth + 1) for i, entry in enumerate(value))


class _Key:
    """A map's key on its way through the walk, to tell it from a value."""

    def __init__(self, key: object) -> None:
        self.key = key


def _wrong(value: object) -> str | None:
    match value:
        case _Key(key=str() as key):
            found = unusable_character(key)
            return f"a field name holds {found}. Remove it" if found else None
        case _Key():
            return "a field name must be text. Put it in quotes"
        case str():
            found = unusable_character(value)
            return f"the text holds {found}. Remove it" if found else None
        case None | bool() | Mapping() | list() | tuple():
            return None
        case int() if abs(value) <= _LARGEST_NUMBER:
            return None
        case float() if math.isfinite(value):
            return None
        case int() | float():
            return "the number is too large, or no number at all. Put it in quotes if it is text"
        case _:
            return "the value is not text, a number, true or false, a list or a map"
