"""Which requests have the ordinary shape of their method, so that they need no further judging."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steadmesh.service.mcp.protocol import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    METHOD_HEADER,
    MODERN_VERSION,
    NAME_HEADER,
    PROTOCOL_VERSION,
)

_INFO_TEXTS = frozenset(("name", "title", "version", "description", "websiteUrl"))
_RARE_IN_CALLS = frozenset(("task", "inputResponses", "requestState"))
_OPEN = ("experimental", "extensions")
_CLOSED = ("sampling", "elicitation", "tasks")


def is_plain(
    method: str, params: Mapping[str, Any], headers: Mapping[bytes, bytes], *, is_modern: bool
) -> bool:
    """Whether a request of one of our methods is certainly well-formed, in its era."""
    check = (_MODERN if is_modern else _HANDSHAKE).get(method)
    if check is None or not check(params):
        return False
    return not is_modern or (_agrees(method, params, headers) and _says_who(params))


def _agrees(method: str, params: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> bool:
    """The headers repeat what the body asks for."""
    if headers.get(METHOD_HEADER) != method.encode():
        return False
    return method != "tools/call" or _is_named(params["name"], headers)


def _says_who(params: Mapping[str, Any]) -> bool:
    """The request carries what was once said in a handshake."""
    meta = params.get("_meta", {})
    return (
        meta.get(PROTOCOL_VERSION) == MODERN_VERSION
        and _are_capabilities(meta.get(CLIENT_CAPABILITIES))
        and (CLIENT_INFO not in meta or _is_info(meta[CLIENT_INFO]))
        and LOG_LEVEL not in meta
    )


def _is_named(name: str, headers: Mapping[bytes, bytes]) -> bool:
    # A name with other characters comes encoded, and is none of ours anyway.
    value = headers.get(NAME_HEADER, b"")
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
