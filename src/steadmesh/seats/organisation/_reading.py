"""Reading an organisation file from disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadmesh.seats.organisation import _yaml
from steadmesh.seats.organisation._bundles import read_regular
from steadmesh.seats.organisation._compile import compile as compile_data
from steadmesh.seats.organisation._model import Organisation
from steadmesh.seats.organisation._problems import (
    WHOLE_FILE,
    InvalidOrganisation,
    Problem,
    around,
)

# Comments and indentation are free: content is measured on compact JSON. This only keeps the
# parser from reading a film that was named by mistake.
_LARGEST_FILE = 1_048_576


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a file as plain JSON values, and where each of them stands."""

    data: dict[str, Any]
    lines: Mapping[str, int]

    def line_of(self, path: str) -> int | None:
        """The line (from 1) of a path, or of the nearest thing around it that is there."""
        for place in around(path):
            if place in self.lines:
                return self.lines[place]
        return self.lines.get("")


def read_text(text: str) -> Document:
    """Read a text without looking at what it means. Raises InvalidOrganisation if it is no clean YAML."""
    parsed = _yaml.parse(text)
    if parsed.problems:
        raise InvalidOrganisation(parsed.problems)
    return Document(parsed.data, parsed.lines)


def load(path: Path) -> tuple[Document, Organisation]:
    """Read and compile a file. Raises InvalidOrganisation with the problems of both steps."""
    parsed = _yaml.parse(_text_of(path))
    document = Document(parsed.data, parsed.lines)
    try:
        organisation = compile_data(document.data, line_of=document.line_of)
    except InvalidOrganisation as error:
        raise InvalidOrganisation((*parsed.problems, *error.problems)) from None
    if parsed.problems:
        raise InvalidOrganisation(parsed.problems)
    return document, organisation


def _text_of(path: Path) -> str:
    try:
        content = read_regular(path, at_most=_LARGEST_FILE + 1)
    except OSError as error:
        reason = error.strerror or "it cannot be opened"
        raise _whole(None, f"the file cannot be read: {reason}. Check its path") from None
    if content is None:
        raise _whole(None, "this is not a file. Give the path of the organisation file")
    if len(content) > _LARGEST_FILE:
        raise _whole(1, f"the file is larger than {_LARGEST_FILE} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise _whole(line, "the file is not UTF-8 text here. Save it as UTF-8") from None


def _whole(line: int | None, message: str) -> InvalidOrganisation:
    return InvalidOrganisation([Problem(WHOLE_FILE, line, message)])
