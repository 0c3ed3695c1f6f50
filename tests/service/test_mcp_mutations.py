"""Whatever a client sends, bent in several places at once: the direct answer is the SDK's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.service.mcp_world import (
    HANDSHAKE,
    MODERN,
    PREFIX,
    World,
    modern_headers,
    modern_meta,
)
from tests.service.test_mcp_sdk import agree

METHODS = ("initialize", "server/discover", "ping", "tools/list", "tools/call", "notifications/x")
NAMES = ("notes_echo", "notes.write", "notes_forget", "list_agents", "none", "")
"""What a call may name."""
KEYS = (
    "id",
    "method",
    "jsonrpc",
    "params",
    "name",
    "arguments",
    "cursor",
    "_meta",
    "progressToken",
    "progress_token",
    "protocolVersion",
    "protocol_version",
    "capabilities",
    "clientInfo",
    "client_info",
    "title",
    "version",
    "icons",
    "roots",
    "listChanged",
    "list_changed",
    "sampling",
    "elicitation",
    "experimental",
    "extensions",
    "tasks",
    "task",
    "inputResponses",
    "input_responses",
    "requestState",
    "request_state",
    PREFIX + "protocolVersion",
    PREFIX + "clientInfo",
    PREFIX + "clientCapabilities",
    PREFIX + "logLevel",
    "text",
    "value",
)
"""Every key that means something somewhere, also as the SDK calls it inside."""
TEXTS = ("", "x", "a", "2.0", "notes_echo", "2025-06-18", MODERN, "info", "é", "=?base64?eA==?=")
HEADER_VALUES = (
    *TEXTS[:-3],
    *METHODS,
    "notes.echo",
    "text/html",
    "*/*",
    "application/json",
    "application/json;q=0.1, text/event-stream",
    "text/event-stream",
    "APPLICATION/JSON",
)
HEADERS = ("accept", "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id")
"""The type of a body and the source of a request are judged before, as on every route."""

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from((0, 1, -1, 2**53, 2**63 - 1, 2**63, -(2**63), 0.0, 1.0, 1.5, -0.0)),
    st.sampled_from(TEXTS),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def plain(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, str]]:
    """A request of ordinary shape, and its headers."""
    method = draw(st.sampled_from(METHODS))
    is_modern = draw(st.booleans())
    params: dict[str, Any] = {"_meta": modern_meta()} if is_modern else {}
    if method == "initialize":
        params |= {
            "protocolVersion": "2025-06-18",
            "capabilities": {"roots": {"listChanged": True}, "sampling": {}},
            "clientInfo": {"name": "test", "version": "1"},
        }
    if method == "tools/call":
        params |= {"name": draw(st.sampled_from(NAMES)), "arguments": {"text": "a"}}
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if not method.startswith("notifications/"):
        message["id"] = 1
    headers = modern_headers(method, params.get("name")) if is_modern else dict(HANDSHAKE)
    return message, headers


@st.composite
def bent(draw: st.DrawFn) -> tuple[bytes, dict[str, str]]:
    """A request with up to four of its parts and two of its headers changed."""
    message, headers = draw(plain())
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.sampled_from(list(_objects(message))))
        key = draw(st.sampled_from((*place, *KEYS)))
        if draw(st.booleans()):
            place[key] = draw(values)
        else:
            place.pop(key, None)
    for _ in range(draw(st.integers(0, 2))):
        headers[draw(st.sampled_from(HEADERS))] = draw(st.sampled_from(HEADER_VALUES))
    return json.dumps(message).encode(), headers


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from _objects(part)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def test_the_direct_answer_is_that_of_the_sdk(world: World) -> None:
    direct = 0

    @settings(max_examples=200, deadline=None, database=None, derandomize=True)
    @given(sent=bent())
    def compare(sent: tuple[bytes, dict[str, str]]) -> None:
        nonlocal direct
        direct += agree(world, *sent)

    compare()
    assert direct > 40, "too little was answered directly to have compared anything"
