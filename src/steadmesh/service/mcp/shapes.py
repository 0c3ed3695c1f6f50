"""Which requests have the ordinary shape of their method, so that they need no further judging."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steadmesh.service.mcp.messages import Message

PREFIX = "io.modelcontextprotocol/"
PROTOCOL_VERSION = PREFIX + "protocolVersion"
CLIENT_INFO = PREFIX + "clientInfo"
CLIENT_CAPABILITIES = PREFIX + "clientCapabilities"
LOG_LEVEL = PREFIX + "logLevel"

_INFO_TEXTS = frozenset(("name", "title", "version", "description", "websiteUrl"))
_RARE_IN_CALLS = frozenset(("task", "inputResponses", "requestState"))
_OPEN = ("experimental", "extensions")
_CLOSED = ("sampling", "elicitation", "tasks")


def is_plain(message: Message, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request of one of our methods is certainly well-formed, in its era."""
    methods = _MODERN if message.is_modern else _HANDSHAKE
    check = methods.get(message.method)
    if check is None or not check(message.params):
        return False
    return not message.is_modern or _agrees(message, headers)


def _agrees(message: Message, headers: Mapping[bytes, bytes]) -> bool:
    """The headers repeat what the body says, and the body says who is asking."""
    if headers.get(b"mcp-method") != message.method.encode("latin-1", "replace"):
        return False
    if message.method == "tools/call" and not _is_named(message.params["name"], headers):
        return False
    meta = message.params.get("_meta", {})
    return (
        meta.get(PROTOCOL_VERSION) == "2026-07-28"
        and _are_capabilities(meta.get(CLIENT_CAPABILITIES))
        and (CLIENT_INFO not in meta or _is_info(meta[CLIENT_INFO]))
        and LOG_LEVEL not in meta
    )


def _is_named(name: str, headers: Mapping[bytes, bytes]) -> bool:
    # A name with other characters comes encoded, and is none of ours anyway.
    value = headers.get(b"mcp-name", b"")
    return name.isascii() and not value.startswith(b"=?") and value == name.encode()


def _is_initialize(params: Mapping[str, Any]) -> bool:
    return (
        type(params.get("protocolVersion")) is str
        and _are_capabilities(params.get("capabilities"))
        and _is_info(params.get("clientInfo"))
        and _has_plain_meta(params)
    )


def _is_list(params: Mapping[str, Any]) -> bool:
    cursor = params.get("cursor")
    return (cursor is None or type(cursor) is str) and _has_plain_meta(params)


def _is_call(params: Mapping[str, Any]) -> bool:
    arguments = params.get("arguments")
    return (
        type(params.get("name")) is str
        and (arguments is None or type(arguments) is dict)
        and _RARE_IN_CALLS.isdisjoint(params)
        and _has_plain_meta(params)
    )


def _has_plain_meta(params: Mapping[str, Any]) -> bool:
    if "_meta" not in params:
        return True
    meta = params["_meta"]
    return type(meta) is dict and all(
        type(meta[name]) in (str, int)
        for name in ("progressToken", "progress_token")
        if name in meta
    )


def _is_info(info: Any) -> bool:
    return (
        type(info) is dict
        and type(info.get("name")) is str
        and type(info.get("version")) is str
        and all(name in _INFO_TEXTS and type(text) is str for name, text in info.items())
    )


def _are_capabilities(given: Any) -> bool:
    if type(given) is not dict:
        return False
    for name in _CLOSED:
        if name in given and not _is_nested(given[name]):
            return False
    for name in _OPEN:
        if name in given and not (
            type(given[name]) is dict and all(type(part) is dict for part in given[name].values())
        ):
            return False
    roots = given.get("roots", {})
    return type(roots) is dict and all(
        name == "listChanged" and type(value) is bool for name, value in roots.items()
    )


def _is_nested(given: Any) -> bool:
    """Objects in objects and nothing else."""
    return type(given) is dict and all(_is_nested(part) for part in given.values())


_HANDSHAKE = {
    "initialize": _is_initialize,
    "ping": _has_plain_meta,
    "tools/list": _is_list,
    "tools/call": _is_call,
}
_MODERN = {
    "server/discover": _has_plain_meta,
    "tools/list": _is_list,
    "tools/call": _is_call,
}
