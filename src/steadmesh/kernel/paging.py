"""Keyset cursors: opaque, signed, and bound to the caller and the query."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from steadmesh.kernel.crypto import digest, from_text, same, sign, to_text
from steadmesh.kernel.errors import Invalid


class BadCursor(Invalid):
    """This cursor does not belong to this list (changed, outdated, or of other arguments). Start again without cursor."""


Position = tuple[int | str, ...]


class Cursors:
    """Makes and reads cursors with a key derived from the service's secret."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def write(self, position: Position, *, caller: str, query: Mapping[str, Any]) -> str:
        """The cursor that continues after `position`."""
        payload = json.dumps(position, separators=(",", ":"), ensure_ascii=False).encode()
        return to_text(sign(self._key, payload + _binding(caller, query)) + payload)

    def read(self, cursor: str, *, caller: str, query: Mapping[str, Any]) -> Position | None:
        """The position a cursor stands for, nothing for the empty cursor; else `BadCursor`."""
        if not cursor:
            return None
        data = from_text(cursor)
        if data is None or len(data) < 17:
            raise BadCursor()
        tag, payload = data[:16], data[16:]
        if not same(tag, sign(self._key, payload + _binding(caller, query))):
            raise BadCursor()
        return tuple(json.loads(payload))


def _binding(caller: str, query: Mapping[str, Any]) -> bytes:
    canonical = json.dumps([caller, dict(query)], sort_keys=True, separators=(",", ":"))
    return digest(canonical).encode()
