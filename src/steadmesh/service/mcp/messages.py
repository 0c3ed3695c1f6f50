"""What a body says: one JSON-RPC message, if it is plainly valid.

Only the ordinary is let through. Whatever is odd, be it wrong or merely rare, is `None` here and is
left to the SDK, so that no rule of the protocol is written down twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steadmesh.service.mcp.protocol import HANDSHAKE_VERSIONS, MODERN_VERSION, VERSION_HEADER
from steadmesh.service.mcp.shapes import is_plain
from steadmesh.service.requests import is_deep
from steadmesh.tools import DEPTH_LIMIT

_HANDSHAKE = frozenset(version.encode() for version in HANDSHAKE_VERSIONS)
_MODERN = MODERN_VERSION.encode()
_MEMBERS = frozenset(("jsonrpc", "id", "method", "params"))
_JSON_TYPES = frozenset((b"application/json", b"application/*", b"*/*"))
_USUAL_ACCEPTS = (b"application/json, text/event-stream", b"*/*", b"application/json")
_ID_LIMIT = 2**63


class TooDeep(Exception):
    """A body whose lists and objects stand in one another too many times."""


@dataclass(frozen=True, slots=True)
class Message:
    """One request, or one notification."""

    method: str
    id: bytes | None
    """As JSON; a notification has none."""
    params: Mapping[str, Any]
    is_modern: bool


def read_message(body: bytes, given: Sequence[tuple[bytes, bytes]]) -> Message | None:
    """The message of a request with these headers; nothing if the SDK should judge it."""
    headers = dict(given)
    if len(headers) != len(given) or not _takes_json(headers.get(b"accept", b"")):
        return None
    version = headers.get(VERSION_HEADER)
    is_modern = version is not None and version not in _HANDSHAKE
    if is_modern and version != _MODERN:
        return None
    content = _content(body)
    if type(content) is not dict or not content.keys() <= _MEMBERS:
        return None
    message = _message(content, is_modern=is_modern)
    if message is None or message.id is None:
        return message
    plain = is_plain(message.method, message.params, headers, is_modern=is_modern)
    return message if plain else None


def _content(body: bytes) -> Any:
    try:
        content = json.loads(body.decode())
    except RecursionError:
        raise TooDeep from None
    except ValueError:  # no UTF-8, no JSON, or a number of thousands of digits
        return None
    if body.count(b"[") + body.count(b"{") > DEPTH_LIMIT and is_deep(content):
        raise TooDeep
    return content


def _message(content: dict[str, Any], *, is_modern: bool) -> Message | None:
    method = content.get("method")
    params = content.get("params", {})
    if content.get("jsonrpc") != "2.0" or type(method) is not str or type(params) is not dict:
        return None
    if "id" not in content:
        return Message(method, None, params, is_modern)
    known = content["id"]
    is_number = type(known) is int and -_ID_LIMIT <= known < _ID_LIMIT
    if not is_number and type(known) is not str:
        return None
    return Message(method, json.dumps(known).encode(), params, is_modern)


def _takes_json(accept: bytes) -> bool:
    if accept in _USUAL_ACCEPTS:
        return True
    kinds = (kind.partition(b";")[0].strip().lower() for kind in accept.split(b","))
    return any(kind in _JSON_TYPES for kind in kinds)
