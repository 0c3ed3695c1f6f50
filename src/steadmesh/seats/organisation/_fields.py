"""Reads one map of the file field by field and remembers which fields nobody asked for.

A field that cannot be read is reported once and stands as its default, or as empty when it has
none; the rules that look further pass over what is empty. So one mistake gives one message, and
all the others are still found.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from steadmesh.seats.organisation._problems import Report, inside, item, listed, quoted

KEY = re.compile(r"[a-z][a-z0-9_]{0,62}")
_KEY_WORDS = (
    "must be lower-case letters, digits and _, start with a letter, and have at most 63 characters"
)


class Fields:
    """The fields of the map at `path`."""

    def __init__(self, data: Mapping[str, Any], path: str, report: Report) -> None:
        self.path = path
        self.report = report
        self._data = data
        self._asked: set[str] = set()

    def place(self, name: str) -> str:
        """The path of a field."""
        return inside(self.path, name)

    def wrong(self, name: str, message: str) -> None:
        """Report a mistake in a field."""
        self.report.add(self.place(name), message)

    def given(self, name: str) -> Any:
        """The field as it stands, None when it is absent or null."""
        self._asked.add(name)
        return self._data.get(name)

    def required(self, name: str, example: str) -> str:
        """A text that must be there."""
        if self.given(name) is None:
            self.wrong(name, f"is required, for example {name}: {example}")
            return ""
        return self.text(name)

    def text(self, name: str, default: str = "") -> str:
        """A text that is not blank, or the default when there is none."""
        value = self.given(name)
        return default if value is None else self._text(value, self.place(name)) or default

    def _text(self, value: object, place: str) -> str:
        if isinstance(value, str):
            if value.strip():
                return value
            self.report.add(place, "must not be blank")
        elif isinstance(value, bool | int | float):
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            self.report.add(place, f'must be text. Put it in quotes: "{shown}"')
        else:
            self.report.add(place, f"must be text, not {kind_of(value)}")
        return ""

    def choice(self, name: str, choices: Collection[str], default: str = "") -> str:
        """One of some words. Required when there is no default."""
        if not default and self.given(name) is None:
            self.wrong(name, f"is required, one of {listed(choices)}")
            return ""
        value = self.text(name, default)
        if not value or value in choices:
            return value
        message = (
            f"{quoted(value)} is not one of {listed(choices)}.{self.report.hint(value, choices)}"
        )
        self.wrong(name, message)
        return default

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.optional_flag(name)
        return default if value is None else value

    def optional_flag(self, name: str) -> bool | None:
        """True, false, or None when the file does not say."""
        value = self.given(name)
        if value is None or isinstance(value, bool):
            return value
        self.wrong(name, f"must be true or false, not {kind_of(value)}")
        return None

    def whole(self, name: str) -> int | None:
        """A whole number of at least one, or None when the file does not say."""
        value = self.given(name)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        self.wrong(name, "must be a whole number of at least 1")
        return None

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; one that cannot be read stands as the empty text in its place."""
        value = self.given(name)
        if value is None:
            return ()
        if isinstance(value, list | tuple):
            place = self.place(name)
            return tuple(self._text(entry, item(place, i)) for i, entry in enumerate(value))
        self.wrong(name, f"must be a list: [{value if isinstance(value, str) else '…'}]")
        return ()

    def filled(self, name: str, example: str) -> tuple[str, ...]:
        """A list of texts with at least one entry."""
        if self.given(name) is None:
            self.wrong(name, f"is required, for example {name}: [{example}]")
            return ()
        values = self.texts(name)
        if not values and isinstance(self.given(name), list | tuple):
            self.wrong(name, f"must name at least one, for example [{example}]")
        return values

    def json_map(self, name: str) -> dict[str, Any]:
        """A map of free values under keys."""
        return {key: value for key, value, _ in self._entries(name)}

    def texts_by_key(self, name: str) -> dict[str, str]:
        """A map of texts."""
        return {key: self._text(value, place) for key, value, place in self._entries(name)}

    def inner(self, name: str) -> Fields | None:
        """The map in a field, or None when there is none."""
        value = self.given(name)
        return None if value is None else self._inner(value, self.place(name))

    def records(self, name: str) -> Iterator[tuple[str, Fields]]:
        """The records of a map, in the order of their keys. An empty entry is an empty record."""
        for key, value, place in self._entries(name):
            record = self._inner(value, place)
            yield key, Fields({}, place, self.report) if record is None else record

    def lists(self, name: str) -> Iterator[tuple[str, Fields]]:
        """The entries of a map of lists; read each with `texts(key)` or `filled(key, …)`."""
        value = self.given(name)
        if value is not None and (holder := self._inner(value, self.place(name))) is not None:
            for key, _, _ in self._entries(name):
                yield key, holder

    def items(self, name: str) -> Iterator[Fields]:
        """The maps of a list."""
        value = self.given(name)
        if value is None:
            return
        if not isinstance(value, list | tuple):
            self.wrong(name, f"must be a list, not {kind_of(value)}")
            return
        for index, entry in enumerate(value):
            record = self._inner(entry, item(self.place(name), index))
            if record is not None:
                yield record

    def refuse_unknown(self) -> None:
        """Report every field that was not asked for."""
        for name in self._data:
            if name not in self._asked:
                known = listed(sorted(self._asked))
                near = self.report.hint(name, self._asked)
                self.wrong(name, f"unknown field {quoted(name)}.{near or f' Known are {known}.'}")

    def _inner(self, value: object, place: str) -> Fields | None:
        if value is None:
            return Fields({}, place, self.report)
        if isinstance(value, Mapping):
            return Fields(value, place, self.report)
        self.report.add(place, f"must be a map of fields, not {kind_of(value)}")
        return None

    def _entries(self, name: str) -> Iterator[tuple[str, Any, str]]:
        value = self.given(name)
        if value is None:
            return
        if not isinstance(value, Mapping):
            self.wrong(name, f"must be a map ({{name: …}}), not {kind_of(value)}")
            return
        for key in sorted(value):
            place = inside(self.place(name), key)
            if not KEY.fullmatch(key):
                self.report.add(place, f"the key {quoted(key)} {_KEY_WORDS}")
            yield key, value[key], place


def kind_of(value: object) -> str:
    """What a value is, in the words of the file."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case Mapping():
            return "a map"
        case _:
            return "a list"
