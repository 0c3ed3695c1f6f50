"""Secrets behind references: read by the service alone at each use, and never shown.

`file:/absolute/path.json` and `env:NAME` hold a JSON object; for a terminal it maps users to tokens.
Reading a small file costs less than a tenth of a millisecond, so nothing is remembered and a changed
value counts at once.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping

MAX_BYTES = 1_048_576

Entries = Mapping[str, str]


class SecretUnreadable(Exception):
    """A reference leads to nothing that can be used; the text says why, without any value."""


def secret_entries(reference: str) -> Entries:
    """The entries behind a reference. Raises `SecretUnreadable`."""
    kind, _, where = reference.partition(":")
    if kind == "env":
        return _parsed(_variable(where), where)
    if kind == "file":
        return _parsed(_file_text(where), where)
    raise SecretUnreadable(
        f"secrets in {kind}: are not offered; use file:/absolute/path.json or env:NAME"
    )


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise SecretUnreadable(
            f"the service has no environment variable {name}; set it and restart"
        )
    return value


def _file_text(path: str) -> str:
    if not os.path.isabs(path):
        raise SecretUnreadable(
            f"the path {path} is not absolute; apply the organisation file again"
        )
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            raise SecretUnreadable(f"{path} is no regular file of at most {MAX_BYTES} bytes")
        with open(path, encoding="utf-8") as file:
            return file.read(MAX_BYTES)
    except OSError as problem:
        raise SecretUnreadable(f"{path}: {problem.strerror}") from None
    except UnicodeDecodeError:  # its text would quote the secret
        raise SecretUnreadable(f"{path} is not UTF-8 text") from None


def _parsed(text: str, where: str) -> Entries:
    try:
        document = json.loads(text)
    except ValueError:  # as above
        raise SecretUnreadable(f"{where} holds no JSON") from None
    if not isinstance(document, dict) or not all(isinstance(v, str) for v in document.values()):
        raise SecretUnreadable(f'{where} holds no JSON object of texts such as {{"alice": "…"}}')
    return document
