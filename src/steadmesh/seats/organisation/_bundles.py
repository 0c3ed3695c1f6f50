"""Instruction bundles and files of secrets: the parts of the file that lie beside it."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadmesh.seats.organisation._model import Organisation
from steadmesh.seats.organisation._problems import (
    WHOLE_FILE,
    InvalidOrganisation,
    LineOf,
    Problem,
    around,
    no_lines,
)
from steadmesh.seats.organisation._references import (
    BadReference,
    check_relative,
    split_instruction,
)
from steadmesh.seats.organisation._yaml import parse

LARGEST_FILE = 4 * 262_144
"""Bytes of YAML: comments and indentation are not counted to the limit of the content."""
LARGEST_BUNDLE = 1_048_576


@dataclass(frozen=True, slots=True)
class Document:
    """A file that could be read: its values, and where each stands."""

    data: dict[str, Any]
    lines: Mapping[str, int]

    def line_of(self, path: str) -> int | None:
        """The line of a path, or of the nearest thing around it."""
        return next((self.lines[place] for place in around(path) if place in self.lines), 1)


def read_file(path: Path) -> Document:
    """Read an organisation file. Raises `InvalidOrganisation`."""
    try:
        raw = path.read_bytes()
    except OSError as problem:
        raise _unreadable(f"cannot be read: {problem.strerror}") from None
    if len(raw) > LARGEST_FILE:
        raise _unreadable(f"is {len(raw)} bytes large; at most {LARGEST_FILE} are read")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw[: problem.start].count(b"\n") + 1
        message = "the file is not UTF-8 text. Save it as UTF-8"
        raise InvalidOrganisation([Problem(WHOLE_FILE, line, message)]) from None
    parsed = parse(text)
    if parsed.problems:
        raise InvalidOrganisation(parsed.problems)
    return Document(parsed.data, parsed.lines)


def bundle_reference(file: Path, *, root: Path) -> str:
    """The reference of an instruction file below the folder of the organisation file.

    Raises `BadReference` if it lies elsewhere or is no text, and OSError.
    """
    content = file.read_bytes()
    _text(content)
    try:
        relative = file.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        raise BadReference(
            f"{file} does not lie below {root}, the organisation file's folder"
        ) from None
    check_relative(relative)
    return f"file:{relative}#sha256:{hashlib.sha256(content).hexdigest()}"


def verify_bundle(ref: str, text: str) -> bool:
    """Whether a text has the digest that its reference names."""
    _, digest = split_instruction(ref)
    return hashlib.sha256(text.encode()).hexdigest() == digest


def read_bundles(
    organisation_file: Path, organisation: Organisation, *, line_of: LineOf = no_lines
) -> dict[str, str]:
    """The text of every instruction reference. Raises `InvalidOrganisation` with all that is wrong."""
    folder = organisation_file.resolve().parent
    texts: dict[str, str] = {}
    problems: list[Problem] = []
    for ref, path in sorted(_places(organisation).items()):
        try:
            texts[ref] = _read(ref, folder)
        except (BadReference, OSError) as problem:
            said = problem.strerror if isinstance(problem, OSError) else str(problem)
            where, _ = split_instruction(ref)
            problems.append(Problem(path, line_of(path), f"the instruction {where} {said}"))
    if problems:
        raise InvalidOrganisation(problems)
    return texts


def absolute_secrets(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The document with the paths of `file:` secrets made absolute."""
    document: dict[str, Any] = copy.deepcopy(dict(data))
    for connection in document.get("connections", {}).values():
        ref = connection.get("secret_ref", "")
        if ref.startswith("file:"):
            connection["secret_ref"] = f"file:{(folder / ref[5:]).resolve()}"
    return document


def _places(organisation: Organisation) -> dict[str, str]:
    """Each reference, and one path of the file that brings it in."""
    places: dict[str, str] = {}
    for key, seat in organisation.seats.items():
        for entry in seat.instructions:
            scope, _, name = entry.scope.partition(":")
            path = {
                "organisation": "culture_refs",
                "team": f"teams.{name}.instruction_refs",
                "role": f"seats.{key}.role_ref",
                "seat": f"seats.{key}.instruction_refs",
            }[scope]
            places.setdefault(entry.ref, path)
    return places


def _read(ref: str, folder: Path) -> str:
    where, digest = split_instruction(ref)
    if not where.startswith("file:"):
        raise BadReference("cannot be fetched by this version. Use a file: reference")
    file = (folder / where.removeprefix("file:")).resolve()
    if not file.is_relative_to(folder):
        raise BadReference("leads out of the organisation file's folder. Move it inside")
    if file.stat().st_size > LARGEST_BUNDLE:
        raise BadReference(f"is larger than {LARGEST_BUNDLE} bytes. Shorten it")
    content = file.read_bytes()
    text = _text(content)
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise BadReference(
            f"has the sha256 {found[:12]}…, not {digest[:12]}… as the reference says. If the change "
            f"is meant, write what `steadmesh bundle {file.name}` prints"
        )
    return text


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise BadReference("is not UTF-8 text. Save it as UTF-8") from None


def _unreadable(message: str) -> InvalidOrganisation:
    return InvalidOrganisation([Problem(WHOLE_FILE, None, message)])
