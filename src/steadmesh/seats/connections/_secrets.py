"""Secrets behind references: read by the service alone at each use, and never shown.

`file:/absolute/path.json` and `env:NAME` hold a JSON object; for a terminal it maps users to tokens.
Reading a small file costs less than a tenth of a millisecond, so it is done at every use and a changed
value counts at once. What was read last is remembered for when it cannot be read any more.
"""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass

from steadmesh.kernel.clock import HOUR, MINUTE, Instant, rfc3339

log = logging.getLogger(__name__)

MAX_BYTES = 1_048_576

Entries = Mapping[str, str]


class SecretUnreadable(Exception):
    """A reference leads to nothing that can be used; the text says why, without any value."""

    grace: Instant = 24 * HOUR
    """How long what was read before is used on."""


class SecretGone(SecretUnreadable):
    """It was deleted, or its replacement cannot be used."""

    grace = 10 * MINUTE


@dataclass(slots=True)
class _Known:
    """What was read last, and since when and why it cannot be read any more."""

    entries: Entries
    failing_since: Instant | None = None
    grace: Instant = 0


class Secrets:
    """What is behind references. A store that cannot be read is bridged for a day; a secret that was
    deleted or damaged for ten minutes, in which it can be put back."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def entries(self, reference: str, now: Instant) -> Entries:
        """The entries behind a reference. Raises `SecretUnreadable`."""
        try:
            found = secret_entries(reference)
        except SecretUnreadable as problem:
            return self._remembered(reference, problem, now)
        self._known[reference] = _Known(found)
        return found

    def _remembered(self, reference: str, problem: SecretUnreadable, now: Instant) -> Entries:
        known = self._known.get(reference)
        if known is None:
            raise problem
        if known.failing_since is None or known.grace != problem.grace:
            known.failing_since, known.grace = now, problem.grace
            fields = {"reason": str(problem), "until": rfc3339(now + problem.grace)}
            log.warning("what was last read of a secret is used on", extra={"fields": fields})
        if now - known.failing_since > known.grace:
            raise problem
        return known.entries


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
            raise SecretGone(f"{path} is no regular file of at most {MAX_BYTES} bytes")
        with open(path, encoding="utf-8") as file:
            return file.read(MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError) as problem:
        raise SecretGone(f"{path}: {problem.strerror}") from None
    except OSError as problem:
        raise SecretUnreadable(f"{path}: {problem.strerror}") from None
    except UnicodeDecodeError:  # its text would quote the secret
        raise SecretGone(f"{path} is not UTF-8 text") from None


def _parsed(text: str, where: str) -> Entries:
    try:
        document = json.loads(text)
    except ValueError:  # as above
        raise SecretGone(f"{where} holds no JSON") from None
    if not isinstance(document, dict) or not all(isinstance(v, str) for v in document.values()):
        raise SecretGone(f'{where} holds no JSON object of texts such as {{"alice": "…"}}')
    return document
