"""The direct answers equal those of the official SDK: status, type and JSON value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp_types import version as sdk_versions

from steadmesh.service.mcp import protocol
from tests.service.mcp_world import (
    ADA,
    AGENT,
    HANDSHAKE,
    MODERN,
    NOBODY,
    PREFIX,
    STALE,
    UNFENCED,
    World,
    modern,
    modern_headers,
    modern_meta,
    notification,
    request,
)

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {
        "roots": {"listChanged": True},
        "sampling": {"tools": {}},
        "elicitation": {"form": {}, "url": {}},
        "experimental": {"x": {"y": [1]}},
        "something/new": 3,
    },
    "clientInfo": {"name": "test", "version": "1", "title": "A test"},
}

CALLS = (
    {
        "name": "notes_echo",
        "arguments": {"text": 'é"\\\n\u2028</x>', "value": {"a": [None, 1.5], "b": None}},
    },
    {"name": "notes.echo", "arguments": {}},
    {"name": "notes_echo", "arguments": None},
    {"name": "notes_echo"},
    {"name": "notes_forget"},
    {"name": "notes_write", "arguments": {"name": "a"}, "_meta": {"progressToken": 3}},
    {"name": "notes_write", "arguments": {"name": "taken"}},
    {"name": "notes_write", "arguments": {"nome": "a"}},
    {"name": "notes_hidden", "arguments": {"name": "a"}},
    {"name": "nothing_like_it", "arguments": {}},
    {"name": "list_agents", "arguments": {}},
    {"name": "", "arguments": {}},
)

ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1.5,
    "",
    "2.0",
    "x",
    MODERN,
    [],
    ["x"],
    {},
    {"x": 1},
    {"_meta": {}},
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("mcp"))
    yield made
    made.close()


def agree(world: World, body: bytes, headers: dict[str, str], credentials: Any = ADA) -> bool:
    """Whether the request was answered directly. If so, the SDK's answer has to be the same."""
    direct = world.directly(body, headers, credentials)
    if direct is None:
        return False
    by_sdk = world.by_sdk(body, headers, credentials)
    said = (direct.status, direct.content_type, direct.content)
    assert said == (by_sdk.status, by_sdk.content_type, by_sdk.content), body
    return True


@pytest.mark.parametrize("version", [None, *VERSIONS])
def test_ordinary_requests_of_each_handshake_version(world: World, version: str | None) -> None:
    headers = {"accept": "application/json"}
    if version:
        headers["mcp-protocol-version"] = version
    assert agree(world, request("initialize", HELLO | {"protocolVersion": version or "x"}), headers)
    assert agree(world, request("ping", id="a-1"), headers)
    assert agree(world, request("tools/list", {"cursor": ""}), headers)
    assert agree(world, request("tools/list", {"cursor": "forged"}), headers)
    for params in CALLS:
        assert agree(world, request("tools/call", params), headers)


def test_ordinary_requests_of_the_modern_version(world: World) -> None:
    assert agree(world, modern("server/discover"), modern_headers("server/discover"))
    assert agree(world, modern("tools/list"), modern_headers("tools/list"))
    assert agree(world, modern("tools/list", {"cursor": "forged"}), modern_headers("tools/list"))
    for params in CALLS:
        named = {"_meta": modern_meta()} | {k: v for k, v in params.items() if k != "_meta"}
        body = request("tools/call", named)
        assert agree(world, body, modern_headers("tools/call", str(params["name"])))


@pytest.mark.parametrize("credentials", [NOBODY, AGENT], ids=["nobody", "agent"])
def test_a_caller_without_a_seat(world: World, credentials: Any) -> None:
    assert agree(world, request("tools/list"), HANDSHAKE, credentials)
    assert agree(world, request("tools/call", {"name": "list_agents"}), HANDSHAKE, credentials)


@pytest.mark.parametrize("credentials", [STALE, UNFENCED], ids=["stale", "none"])
def test_a_writing_call_without_the_current_generation(world: World, credentials: Any) -> None:
    params = {"name": "notes_write", "arguments": {"name": "a"}}
    assert agree(world, request("tools/call", params), HANDSHAKE, credentials)


@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/cancelled", "odd"])
def test_notifications(world: World, method: str) -> None:
    assert agree(world, notification(method, {"requestId": 1}), HANDSHAKE)
    assert agree(world, notification(method), {"accept": "*/*"})
    assert agree(world, notification(method, {"requestId": 1}), modern_headers(method))


@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        {"extensions": {"com.example/x": {"a": [1]}}, "experimental": {}},
        {"roots": {}, "sampling": {}, "elicitation": {}, "tasks": {"list": {}, "requests": {}}},
        {"com.example": 4},
    ],
)
def test_clients_of_the_modern_version_with_any_capabilities(
    world: World, capabilities: dict[str, Any]
) -> None:
    meta = modern_meta(**{PREFIX + "clientCapabilities": capabilities, "progressToken": "t"})
    assert agree(world, request("tools/list", {"_meta": meta}), modern_headers("tools/list"))


def bases() -> list[tuple[bytes, dict[str, str]]]:
    call = {"name": "notes_echo", "arguments": {"text": "a"}}
    return [
        (request("initialize", HELLO), HANDSHAKE),
        (request("ping", {"_meta": {"progressToken": 1}}), HANDSHAKE),
        (request("tools/list", {"cursor": ""}), HANDSHAKE),
        (request("tools/call", call | {"_meta": {"progressToken": "t"}}), HANDSHAKE),
        (notification("notifications/initialized", {"_meta": {}}), HANDSHAKE),
        (modern("server/discover"), modern_headers("server/discover")),
        (modern("tools/list", {"cursor": ""}), modern_headers("tools/list")),
        (modern("tools/call", call), modern_headers("tools/call", "notes_echo")),
        (notification("notifications/x", {}), modern_headers("notifications/x")),
    ]


def paths(value: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield (*at, key)
            yield from paths(part, (*at, key))


def bent(message: Any) -> Iterator[Any]:
    """The message with each of its parts replaced by each odd value, left out, or joined by another."""
    for path in paths(message):
        for odd in ODD_VALUES:
            yield _with(message, path, odd)
        yield _with(message, path, ...)
    for extra in ("id", "result", "error", "params", "method", "task", "extra"):
        for odd in (1, None, {}, "x"):
            if extra not in message:
                yield message | {extra: odd}
            if isinstance(message.get("params"), dict):
                yield message | {"params": message["params"] | {extra: odd}}


def _with(message: Any, path: tuple[str, ...], value: Any) -> Any:
    copied = dict(message)
    if len(path) > 1:
        copied[path[0]] = _with(message[path[0]], path[1:], value)
    elif value is ...:
        del copied[path[0]]
    else:
        copied[path[0]] = value
    return copied


@pytest.mark.parametrize("base", range(len(bases())))
def test_a_request_with_any_part_bent(world: World, base: int) -> None:
    body, headers = bases()[base]
    direct = 0
    for message in bent(json.loads(body)):
        direct += agree(world, json.dumps(message).encode(), headers)
    assert direct, "nothing was compared"


@pytest.mark.parametrize("base", range(len(bases())))
def test_a_request_with_any_header_bent(world: World, base: int) -> None:
    body, headers = bases()[base]
    for name in ("accept", "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id"):
        for value in (None, "", "x", "text/html", "*/*;q=0.1", "2025-03-26", MODERN, "tools/call"):
            changed = {k: v for k, v in headers.items() if k != name}
            agree(world, body, changed if value is None else changed | {name: value})


@pytest.mark.parametrize(
    "params",
    [
        b'{"name":"x","name":"notes_echo"}',
        b'{"name":"notes_echo","arguments":{"value":{"a":NaN}}}',
        b'{"name":"notes_echo","arguments":{"value":{"a":-Infinity,"b":1e999}}}',
        b'{"name":"notes_echo","arguments":{"value":{"a":123456789012345678901234567890}}}',
        b'{"name":"notes_echo","arguments":{"text":"\\u0000"}}',
        '{"name":"notes_echo","arguments":{"text":"\U0001f600é\u2028"}}'.encode(),
    ],
)
def test_json_that_is_read_in_more_than_one_way(world: World, params: bytes) -> None:
    body = b' {"jsonrpc":"2.0","id":3,"id":4,"method":"tools/call","params":%b}\n' % params
    assert agree(world, body, HANDSHAKE)


def test_the_versions_are_those_of_the_sdk() -> None:
    assert protocol.HANDSHAKE_VERSIONS == sdk_versions.HANDSHAKE_PROTOCOL_VERSIONS
    assert (protocol.MODERN_VERSION,) == sdk_versions.MODERN_PROTOCOL_VERSIONS


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b"[]",
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        b"\xff\xfe",
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"} x',
        b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":"no/such"}',
    ],
)
@pytest.mark.parametrize(
    "headers", [HANDSHAKE, modern_headers("ping")], ids=["handshake", "modern"]
)
def test_what_is_not_a_request_of_ours_is_left_to_the_sdk(
    world: World, body: bytes, headers: dict[str, str]
) -> None:
    assert world.directly(body, headers) is None
