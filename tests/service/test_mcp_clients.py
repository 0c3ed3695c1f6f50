"""The official client against the real service, over HTTP, in both protocol eras."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.client.client import ConnectMode
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.service.mcp_world import FAMILIES, FEATURE, HANDSHAKE, modern_headers, request
from tests.support.service import RunningService

SEAT = {"Authorization": "Bearer sms_ada", "X-Steadmesh-Generation": "7"}
MODES: tuple[ConnectMode, ...] = ("legacy", "auto", "2026-07-28")


@pytest.fixture(scope="module")
def service() -> Iterator[RunningService]:
    with RunningService(families=FAMILIES, features=[FEATURE]) as running:
        yield running


@asynccontextmanager
async def connected(
    service: RunningService, mode: ConnectMode, headers: dict[str, str]
) -> AsyncIterator[Client]:
    async with create_mcp_http_client(headers) as http:
        transport = streamable_http_client(f"{service.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


def using(
    service: RunningService,
    mode: ConnectMode,
    work: Callable[[Client], Awaitable[Any]],
    headers: dict[str, str] = SEAT,
) -> Any:
    async def main() -> Any:
        async with connected(service, mode, headers) as client:
            return await work(client)

    return asyncio.run(asyncio.wait_for(main(), 30))


@pytest.mark.parametrize("mode", MODES)
def test_a_client_lists_calls_and_hears_of_failures(
    service: RunningService, mode: ConnectMode
) -> None:
    async def work(client: Client) -> None:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools][:2] == ["notes_write", "notes_echo"]
        called = await client.call_tool("notes_echo", {"text": "hello", "value": {"a": None}})
        assert called.structured_content == {"text": "hello", "value": {"a": None}}
        assert not called.is_error
        failed = await client.call_tool("notes_write", {"name": "taken"})
        assert failed.is_error
        assert failed.structured_content is None
        with pytest.raises(MCPError, match="Unknown tool: nothing"):
            await client.call_tool("nothing", {})

    using(service, mode, work)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_learns_who_it_speaks_with(service: RunningService, mode: ConnectMode) -> None:
    async def work(client: Client) -> tuple[Any, Any]:
        await client.list_tools()
        return client.server_info, client.instructions

    info, instructions = using(service, mode, work)
    assert (info.name, info.version) == ("steadmesh", "v1")
    assert "next_cursor" in instructions


@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_asks_for_more_than_tools_is_told_so(
    service: RunningService, mode: ConnectMode
) -> None:
    async def work(client: Client) -> None:
        with pytest.raises(MCPError) as refused:
            await client.list_resources()
        assert refused.value.error.code == -32601

    using(service, mode, work)


def test_several_calls_of_one_client_run_at_once(service: RunningService) -> None:
    async def work(client: Client) -> list[Any]:
        return await asyncio.gather(
            *(client.call_tool("notes_echo", {"text": str(number)}) for number in range(20))
        )

    results = using(service, "auto", work)
    assert [result.structured_content["text"] for result in results] == [
        str(number) for number in range(20)
    ]


@pytest.mark.parametrize("mode", MODES)
def test_a_client_without_credentials_sees_the_other_family(
    service: RunningService, mode: ConnectMode
) -> None:
    async def work(client: Client) -> list[str]:
        return [tool.name for tool in (await client.list_tools()).tools]

    assert using(service, mode, work, headers={}) == ["list_agents"]


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (request("tools/list"), HANDSHAKE),
        (request("resources/list"), HANDSHAKE),
        (request("tools/call", {"name": "notes_echo"}), HANDSHAKE),
        (b"[]", modern_headers("ping")),
    ],
)
def test_a_token_that_is_nobodys_is_401_on_both_ways(
    service: RunningService, body: bytes, headers: dict[str, str]
) -> None:
    given = {**headers, "Authorization": "Bearer sms_stranger"}
    answer = service.request("POST", "/mcp", body, headers=given)
    assert answer.error == (401, "unauthenticated")


def test_a_header_that_comes_twice_is_judged_by_the_sdk(service: RunningService) -> None:
    body = request("tools/list")
    raw = (
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Accept: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n"
        b"Mcp-Method: tools/list\r\nMcp-Method: tools/call\r\nConnection: close\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    answer = service.raw(raw)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"mcp-method header appears more than once" in answer


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_is_no_session_to_listen_to_or_to_end(service: RunningService, method: str) -> None:
    answer = service.request(method, "/mcp", headers=SEAT)
    assert answer.status == 405
    assert answer.headers["allow"] == "POST"


def test_x1_a_session_of_before_a_restart_goes_on(service: RunningService) -> None:
    """X1, X13: a stale session id is neither read nor sent."""
    headers = {**HANDSHAKE, **SEAT, "Mcp-Session-Id": "of-before"}
    body = request("tools/call", {"name": "notes_echo", "arguments": {"text": "a"}})
    answer = service.request("POST", "/mcp", body, headers=headers)
    assert answer.status == 200
    assert answer.json()["result"]["structuredContent"] == {"text": "a"}
    assert "mcp-session-id" not in answer.headers


def test_a_call_under_a_key_that_was_used_for_another_is_refused(service: RunningService) -> None:
    def write(name: str) -> str:
        body = request("tools/call", {"name": "notes_write", "arguments": {"name": name}})
        headers = {**HANDSHAKE, **SEAT, "Idempotency-Key": "k-1"}
        answer = service.request("POST", "/mcp", body, headers=headers)
        text: str = answer.json()["result"]["content"][0]["text"]
        return text

    assert write("a") == write("a") == '{"name":"a"}'
    assert '"error":"invalid"' in write("b")
