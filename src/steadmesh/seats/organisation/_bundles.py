"""Instruction bundles: Markdown documents referenced by place and SHA-256 digest."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadmesh.seats.organisation._model import Organisation
from steadmesh.seats.organisation._problems import (
    InvalidOrganisation,
    LineOf,
    Problem,
    no_lines,
    quoted,
)
from steadmesh.seats.organisation._references import (
    BadReference,
    check_relative,
    split_instruction,
)

LARGEST_BUNDLE = 1_048_576
"""Bytes of one bundle. All of an organisation's travel in one request of at most 32 MiB."""

_FILE = "file:"


def bundle_reference(file: Path, *, root: Path) -> str:
    """`file:<path below root>#sha256:<hex>` of a bundle, to be written into the file.

    `root` is the folder of the organisation file. Raises InvalidOrganisation, its path being
    the file's, when the bundle cannot be used.
    """
    try:
        relative = file.resolve().relative_to(root.resolve()).as_posix()
    except (ValueError, OSError, RuntimeError):
        message = f"lies outside {root}. Bundles stand in the folder of the organisation file"
        raise InvalidOrganisation([Problem(str(file), None, message)]) from None
    try:
        check_relative(relative)
        text = _read(root, relative)
    except (BadReference, _Unusable) as error:
        raise InvalidOrganisation([Problem(str(file), None, str(error))]) from None
    return f"{_FILE}{relative}#sha256:{_digest(text)}"


def read_bundles(
    organisation_file: Path, org: Organisation, *, line_of: LineOf = no_lines
) -> dict[str, str]:
    """The text of every bundle that the organisation uses, by reference, digests verified.

    Raises InvalidOrganisation with a problem for each reference that cannot be followed.
    """
    texts: dict[str, str] = {}
    problems = []
    for ref, path in sorted(org.references.items()):
        try:
            texts[ref] = _follow(organisation_file, ref)
        except _Unusable as error:
            problems.append(Problem(path, line_of(path), str(error)))
    if problems:
        raise InvalidOrganisation(problems)
    return texts


def verify_bundle(ref: str, text: str) -> bool:
    """Whether the text is the one that the reference names."""
    return split_instruction(ref)[1] == _digest(text)


class _Unusable(Exception):
    """Why a bundle cannot be used, and what to do."""


def _follow(organisation_file: Path, ref: str) -> str:
    where, wanted = split_instruction(ref)
    if not where.startswith(_FILE):
        kind = where.partition(":")[0]
        raise _Unusable(
            f"{kind}: references are valid but cannot be read by this version. Put the document "
            "beside the organisation file and refer to it with file:"
        )
    relative = where.removeprefix(_FILE)
    text = _read(organisation_file.parent, relative)
    found = _digest(text)
    if found != wanted:
        raise _Unusable(
            f"the digest of {quoted(relative)} is {found}, the reference says {wanted}. If the "
            f"new text is right, write what `steadmesh bundle {organisation_file.parent / relative}` "
            "prints"
        )
    return text


def _read(root: Path, relative: str) -> str:
    shown = quoted(relative)
    path = root / relative
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(root.resolve()):
            raise _Unusable(f"{shown} leads out of the folder of the organisation file by a link")
        content = read_regular(real, at_most=LARGEST_BUNDLE + 1)
    except FileNotFoundError:
        raise _Unusable(f"there is no file {shown}. Paths are relative to the file") from None
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its path cannot be followed"
        raise _Unusable(f"{shown} cannot be read: {reason}") from None
    if content is None or len(content) > LARGEST_BUNDLE:
        raise _Unusable(f"{shown} is not a file of at most {LARGEST_BUNDLE} bytes")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise _Unusable(f"{shown} is not UTF-8 text. Save it as UTF-8") from None
    if "\0" in text:
        raise _Unusable(f"{shown} holds a NUL character. Remove it")
    return text


def read_regular(path: Path, *, at_most: int) -> bytes | None:
    """The first bytes of a file; None when it is a folder, a pipe or a device. Raises OSError."""
    # Not blocking, or a pipe that somebody put there would be waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(at_most)
    finally:
        os.close(descriptor)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def absolute_secrets(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A copy of the file's data with the paths of `file:` secrets made absolute.

    `folder` is that of the organisation file. What is malformed stays for `compile` to report.
    """
    connections = data.get("connections")
    if not isinstance(connections, Mapping):
        return dict(data)
    root = os.path.abspath(folder)
    return {
        **data,
        "connections": {key: _absolute(entry, root) for key, entry in connections.items()},
    }


def _absolute(connection: Any, root: str) -> Any:
    if not isinstance(connection, Mapping):
        return connection
    ref = connection.get("secret_ref")
    if not isinstance(ref, str) or not ref.startswith(_FILE) or not ref.removeprefix(_FILE):
        return connection
    path = os.path.normpath(os.path.join(root, ref.removeprefix(_FILE)))
    return {**connection, "secret_ref": _FILE + path}
