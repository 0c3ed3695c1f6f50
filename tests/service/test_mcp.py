"""What MCP callers get: their list, their results, and refusals they can act on."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steadmesh.kernel.errors import Failure
from steadmesh.service.mcp.sdk import Sdk
from tests.service.mcp_world import (
    ADA,
    AGENT,
    DEAD,
    HANDSHAKE,
    MODERN,
    NOBODY,
    STALE,
    STRANGER,
    UNFENCED,
    World,
    modern,
    modern_headers,
    notification,
    request,
    scope_of,
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def listed(world: World, credentials: Any = ADA) -> list[Any]:
    answer = world.ask(request("tools/list"), HANDSHAKE, credentials)
    tools: list[Any] = answer.result["tools"]
    return tools


# The list


def test_s7_the_list_shows_underscores_and_never_a_dot(world: World) -> None:
    """S-7: clients refuse a whole session for one dotted name."""
    assert [tool["name"] for tool in listed(world)] == [
        "notes_write",
        "notes_echo",
        "notes_forget",
        "notes_perhaps",
    ]


def test_a_listed_tool_says_what_it_takes_and_what_it_does(world: World) -> None:
    write, echo, *_ = listed(world)
    assert write["description"] == "Write a note."
    assert write["inputSchema"]["required"] == ["name"]
    assert echo["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }


def test_only_tools_that_always_answer_an_object_publish_its_schema(world: World) -> None:
    shown = {tool["name"]: tool.get("outputSchema", {}).get("type") for tool in listed(world)}
    assert shown == {
        "notes_write": "object",
        "notes_echo": "object",
        "notes_forget": None,
        "notes_perhaps": None,
    }


def test_a_family_beyond_its_budget_publishes_no_schema_of_results(tmp_path: Path) -> None:
    world = World(tmp_path, budgets={"seats": 500})
    assert all("outputSchema" not in tool for tool in listed(world))
    world.close()


def test_a_caller_without_a_seat_sees_the_other_family(world: World) -> None:
    assert [tool["name"] for tool in listed(world, NOBODY)] == ["list_agents"]
    assert [tool["name"] for tool in listed(world, AGENT)] == ["list_agents"]


def test_an_empty_cursor_is_the_beginning_and_any_other_an_error(world: World) -> None:
    empty = world.ask(request("tools/list", {"cursor": ""}), HANDSHAKE)
    assert len(empty.result["tools"]) == 4
    assert "nextCursor" not in empty.result
    forged = world.ask(request("tools/list", {"cursor": "b2s"}), HANDSHAKE)
    assert forged.error["code"] == -32602
    assert "without cursor" in forged.error["message"]


# Calls


@pytest.mark.parametrize("name", ["notes_echo", "notes.echo"])
def test_a_result_comes_as_text_and_as_an_object(world: World, name: str) -> None:
    result = world.call(name, text='quote " and \u2028 and é')
    (item,) = result["content"]
    assert item["type"] == "text"
    assert json.loads(item["text"]) == result["structuredContent"]
    assert result["structuredContent"] == {"text": 'quote " and \u2028 and é'}
    assert result["isError"] is False


def test_no_result_is_the_text_null_and_no_object(world: World) -> None:
    assert world.call("notes_forget") == {
        "content": [{"type": "text", "text": "null"}],
        "isError": False,
    }


def test_s7_a_failure_is_its_error_as_text_alone(world: World) -> None:
    """S-7: a denied call is an error result with `{"error": …}`, and nothing structured beside it."""
    result = world.call("notes_hidden", name="a")
    assert set(result) == {"content", "isError"}
    assert result["isError"] is True
    assert json.loads(result["content"][0]["text"])["error"] == "forbidden"


def test_a_failure_carries_its_details(world: World) -> None:
    result = world.call("notes_write", name="taken")
    assert json.loads(result["content"][0]["text"]) == {
        "error": "conflict",
        "message": "taken is taken by bob.",
        "details": {"owner": "bob"},
    }


def test_a_fault_of_ours_shows_a_call_id_and_nothing_else(world: World) -> None:
    text = world.call("notes_write", name="bug")["content"][0]["text"]
    assert json.loads(text)["error"] == "internal"
    assert "secret detail" not in text


@pytest.mark.parametrize("credentials", [STALE, UNFENCED], ids=["stale", "none"])
def test_a_fenced_call_tells_the_agent_to_stop(world: World, credentials: Any) -> None:
    result = world.call("notes_write", credentials, name="a")
    assert result["isError"] is True
    (item,) = result["content"]
    assert "newer execution holds this seat" in item["text"]
    assert "Stop now and do not try again" in item["text"]


def test_a_seat_that_has_ended_is_told_so_in_words(world: World) -> None:
    assert world.call("notes_echo", DEAD)["content"][0]["text"] == "This seat is retired."


def test_an_agent_that_is_not_registered_is_told_by_the_tool(world: World) -> None:
    result = world.call("list_agents", NOBODY)
    assert json.loads(result["content"][0]["text"])["error"] == "AUTH_FAILED"


@pytest.mark.parametrize("credentials", [ADA, AGENT], ids=["seat", "agent"])
def test_an_unknown_name_and_one_of_the_other_family_are_errors_of_the_protocol(
    world: World, credentials: Any
) -> None:
    other = "list_agents" if credentials is ADA else "notes_echo"
    for name in ("no_such_tool", other):
        answer = world.ask(request("tools/call", {"name": name}), HANDSHAKE, credentials)
        assert answer.error["code"] == -32602
        assert name in answer.error["message"]


@pytest.mark.parametrize(
    "body",
    [
        request("initialize"),
        request("ping"),
        request("tools/list"),
        request("tools/call", {"name": "notes_echo"}),
        request("tools/call", {"name": "no_such_tool"}),
        request("resources/list"),
        notification("notifications/initialized"),
        b"nonsense",
    ],
)
def test_a_token_that_is_nobodys_is_refused_whatever_is_asked(world: World, body: bytes) -> None:
    with pytest.raises(Failure) as refused:
        world.ask(body, HANDSHAKE, STRANGER)
    assert refused.value.kind == "unauthenticated"


def test_a_seats_tool_without_any_credential_asks_for_one(world: World) -> None:
    with pytest.raises(Failure) as refused:
        world.call("notes_echo", NOBODY)
    assert refused.value.kind == "unauthenticated"


@pytest.mark.parametrize(
    ("text", "word"),
    [('"a\\u0000b"', "NUL"), ('"a\\ud800b"', "surrogate"), ("NaN", "NaN")],
)
@pytest.mark.parametrize("headers", [HANDSHAKE, modern_headers("tools/call", "notes_echo")])
def test_what_no_text_may_hold_is_refused_by_the_name_of_its_field(
    world: World, text: str, word: str, headers: dict[str, str]
) -> None:
    build = modern if headers["mcp-protocol-version"] == MODERN else request
    body = build("tools/call", {"name": "notes_echo", "arguments": {"text": "HERE"}})
    answer = world.directly(body.replace(b'"HERE"', text.encode()), headers)
    assert answer is not None
    error = json.loads(answer.result["content"][0]["text"])
    assert error["error"] == "invalid"
    assert error["message"].startswith("text: ")
    assert word in error["message"]


@pytest.mark.parametrize("levels", [150, 900, 100_000])
def test_arguments_nested_without_end_are_refused(world: World, levels: int) -> None:
    deep = b'{"a":' * levels + b"1" + b"}" * levels
    body = request("tools/call", {"name": "notes_echo", "arguments": {"value": "HERE"}})
    answer = world.directly(body.replace(b'"HERE"', deep), HANDSHAKE)
    assert answer is not None
    assert answer.status == 400
    assert "nested" in answer.error["message"]


def test_a_body_as_large_as_is_taken_is_answered(world: World) -> None:
    text = "é" * 300_000
    body = request("tools/call", {"name": "notes_echo", "arguments": {"nothing": text}})
    answer = world.ask(body, HANDSHAKE)
    assert "nothing: is not an argument" in answer.result["content"][0]["text"]


# The protocol


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_initialize_agrees_to_each_version_of_the_handshake(world: World, version: str) -> None:
    params = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    result = world.ask(request("initialize", params), {"accept": "*/*"}).result
    assert result["protocolVersion"] == version
    assert result["serverInfo"] == {"name": "steadmesh", "version": "v1"}
    assert len(result["instructions"]) < 500


def test_initialize_offers_the_latest_version_to_a_client_of_an_unknown_one(world: World) -> None:
    params = {
        "protocolVersion": "1999-01-01",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    answer = world.ask(request("initialize", params), {"accept": "*/*"})
    assert answer.result["protocolVersion"] == "2025-11-25"


def test_x1_the_id_of_a_session_that_is_gone_makes_no_difference(world: World) -> None:
    """X1: a client that goes on after a restart is answered as before it."""
    headers = {**HANDSHAKE, "mcp-session-id": "5f1c-of-another-life"}
    body = request("tools/call", {"name": "notes_echo", "arguments": {"text": "a"}})
    assert world.directly(body, headers) == world.directly(body, HANDSHAKE)
    reply = world.run(world.mcp.answer(body, scope_of(headers), ADA))
    assert all(name.lower() != b"mcp-session-id" for name, _ in reply.headers)


@pytest.mark.parametrize("headers", [HANDSHAKE, modern_headers("notifications/cancelled")])
def test_a_notification_is_accepted_without_a_word(world: World, headers: dict[str, str]) -> None:
    answer = world.ask(notification("notifications/cancelled", {"requestId": 1}), headers)
    assert (answer.status, answer.body) == (202, b"")


def test_a_call_whose_client_is_gone_harms_nobody(world: World) -> None:
    async def hang_up() -> Any:
        body = request("tools/call", {"name": "notes_echo", "arguments": {"text": "a"}})
        scope = scope_of(HANDSHAKE)
        going = asyncio.create_task(world.mcp.answer(body, scope, ADA))
        await asyncio.sleep(0)
        going.cancel()
        await asyncio.wait((going,))
        assert going.cancelled()
        return await world.mcp.answer(body, scope, ADA)

    assert world.run(hang_up()).status == 200


# What is left to the SDK


def test_what_we_do_not_offer_is_answered_by_the_sdk(world: World) -> None:
    body = request("resources/list")
    assert world.directly(body, HANDSHAKE) is None
    assert world.ask(body, HANDSHAKE).error["code"] == -32601
    answer = world.ask(modern("resources/list"), modern_headers("resources/list"))
    assert (answer.status, answer.error["code"]) == (404, -32601)


def test_the_sdk_calls_the_same_tools_for_rare_requests(world: World) -> None:
    params = {"name": "notes_echo", "arguments": {"text": "a"}, "task": {"ttl": 1}}
    assert world.directly(request("tools/call", params), HANDSHAKE) is None
    answer = world.ask(request("tools/call", params), HANDSHAKE)
    assert answer.result["structuredContent"] == {"text": "a"}


def test_s19_many_first_requests_start_the_sdk_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S19: what is set up on first use is set up once."""
    started: list[Sdk] = []
    start = Sdk.start

    async def counted(sdk: Sdk) -> None:
        started.append(sdk)
        await start(sdk)

    monkeypatch.setattr(Sdk, "start", counted)

    async def rush() -> list[Any]:
        body = request("resources/list")
        return await asyncio.gather(*(world.passed_on(body, HANDSHAKE, ADA) for _ in range(20)))

    assert all(sent[0]["status"] == 200 for sent in world.run(rush()))
    assert len(started) == 1


def test_an_sdk_that_did_not_start_is_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(sdk: Sdk) -> None:
        raise OSError("no memory")

    with monkeypatch.context() as broken:
        broken.setattr(Sdk, "start", fail)
        with pytest.raises(OSError, match="no memory"):
            world.by_sdk(request("resources/list"), HANDSHAKE)
    assert world.by_sdk(request("resources/list"), HANDSHAKE).status == 200


def test_a_request_that_waits_for_the_sdk_may_leave_without_stopping_its_start(
    world: World,
) -> None:
    async def leave() -> Any:
        body = request("resources/list")
        going = asyncio.create_task(world.passed_on(body, HANDSHAKE, NOBODY))
        await asyncio.sleep(0)
        going.cancel()
        await asyncio.wait((going,))
        return await world.passed_on(body, HANDSHAKE, NOBODY)

    assert world.run(leave())[0]["status"] == 200


def test_after_the_end_direct_answers_go_on_and_the_sdk_is_unavailable(world: World) -> None:
    world.by_sdk(request("resources/list"), HANDSHAKE)
    world.run(world.mcp.close())
    world.run(world.mcp.close())
    assert world.ask(request("ping"), HANDSHAKE).status == 200
    with pytest.raises(Failure) as refused:
        world.by_sdk(request("resources/list"), HANDSHAKE)
    assert refused.value.kind == "unavailable"


# Memory


def test_x3_ten_thousand_requests_leave_nothing_behind(world: World) -> None:
    """X3: no session is kept, whatever its client sends or forgets to end."""

    async def many(count: int) -> None:
        for number in range(count):
            headers = {**HANDSHAKE, "mcp-session-id": f"session-{number}"}
            await world.mcp.answer(request("ping", id=number), scope_of(headers), NOBODY)

    async def many_by_sdk(count: int) -> None:
        for number in range(count):
            headers = {**HANDSHAKE, "mcp-session-id": f"session-{number}"}
            await world.passed_on(request("resources/list", id=number), headers, NOBODY)

    def objects() -> int:
        gc.collect()
        return len(gc.get_objects())

    world.run(many(100))
    world.run(many_by_sdk(100))
    before = objects()
    world.run(many(10_000))
    world.run(many_by_sdk(300))
    assert objects() - before < 100
