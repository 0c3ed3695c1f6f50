"""Answers, put together from JSON that is already encoded."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import to_json

from steadmesh.service.mcp.calls import Called
from steadmesh.service.mcp.messages import Message
from steadmesh.service.mcp.protocol import (
    HANDSHAKE_VERSIONS,
    INVALID_REQUEST,
    MODERN_VERSION,
    SERVER_INFO,
)
from steadmesh.service.replies import Reply

NAME = "steadmesh"
VERSION = "v1"
"""Of the interface, by which clients know us; not of the program."""

INSTRUCTIONS = (
    "Steadmesh decides at each call what you may do; a tool that you were not granted is not listed. "
    "Most clients read the list once, so restart yours to see what was granted since. "
    "Results are JSON of bounded size. Keep the ids in them, and where next_cursor is not empty, "
    "pass it as cursor to read on."
)

ONE_PAGE = "This list has one page: no cursor of it exists. Ask again without cursor."

_CAPABILITIES: dict[str, Any] = {"tools": {"listChanged": False}}
_INFO = {"name": NAME, "version": VERSION}
_STAMP = b',"resultType":"complete","_meta":' + to_json({SERVER_INFO: _INFO}) + b"}"
_CACHE = b',"ttlMs":0,"cacheScope":"private"'
"""What a caller may use changes with its grants, so nobody else may be given the list."""


def accepted(message: Message) -> Reply:
    """The answer to a notification, which is none."""
    return Reply(202, headers=()) if message.is_modern else Reply(202)


def initialized(message: Message) -> Reply:
    """The version both speak: the one asked for, or our latest that begins so."""
    asked = message.params["protocolVersion"]
    version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    return _result(
        message,
        to_json(
            {
                "protocolVersion": version,
                "capabilities": _CAPABILITIES,
                "serverInfo": _INFO,
                "instructions": INSTRUCTIONS,
            }
        ),
    )


def discovered(message: Message) -> Reply:
    """What a client of the modern era learns first."""
    described = {
        "supportedVersions": [MODERN_VERSION],
        "capabilities": _CAPABILITIES,
        "instructions": INSTRUCTIONS,
    }
    return _result(message, to_json(described), may_cache=True)


def pong(message: Message) -> Reply:
    """We are here."""
    return _result(message, b"{}")


def listed(message: Message, tools: bytes) -> Reply:
    """A list of tools, given as JSON."""
    return _result(message, b'{"tools":%b}' % tools, may_cache=True)


def called(message: Message, outcome: Called) -> Reply:
    """The JSON of a result stands in twice: escaped as text, and as it is."""
    text = outcome.text if isinstance(outcome.text, str) else outcome.text.decode()
    item = b'{"content":[{"type":"text","text":%b}]' % to_json(text)
    if outcome.is_error:
        return _result(message, item + b',"isError":true}')
    if outcome.has_object and isinstance(outcome.text, bytes):
        item += b',"structuredContent":' + outcome.text
    return _result(message, item + b',"isError":false}')


def refused(message: Message, code: int, text: str) -> Reply:
    """A JSON-RPC error; the modern era repeats it in the status."""
    error = json.dumps({"code": code, "message": text}).encode()
    body = b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (message.id or b"null", error)
    return Reply(400 if message.is_modern else 200, body)


def too_deep(levels: int) -> Reply:
    """For a body that nobody should have to walk through."""
    text = f"The body is nested more than {levels} levels deep. Send less deeply nested arguments."
    error = json.dumps({"code": INVALID_REQUEST, "message": text}).encode()
    return Reply(400, b'{"jsonrpc":"2.0","id":null,"error":%b}' % error)


def _result(message: Message, result: bytes, *, may_cache: bool = False) -> Reply:
    if message.is_modern:
        result = result[:-1] + (_CACHE if may_cache else b"") + _STAMP
    return Reply(200, b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (message.id or b"null", result))
