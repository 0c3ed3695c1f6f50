"""Every tool through every transport: the same outcome and the same error."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.seats import TOOLS_PROGRAM, Client, apply
from tests.support.service import RunningService

Outcome = tuple[bool, Any]
"""Whether it is an error, and the names in its result, or its error code."""


class Cast:
    """Organisation F on one running service for all tests of a module."""

    def __init__(self, service: RunningService, folder: Path) -> None:
        self.service = service
        self.seats = apply(service)
        self._folder = folder
        self._clients: dict[str, Client] = {}

    def client(self, key: str) -> Client:
        if key not in self._clients:
            folder = self._folder / key
            self._clients[key] = Client.of(self.service, self.seats[key], folder)
        return self._clients[key]


@pytest.fixture(scope="module")
def cast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cast]:
    with RunningService() as service:
        yield Cast(service, tmp_path_factory.mktemp("cast"))


# Each calls (client, tool, arguments) and gives the outcome in the same form.


def over_http(client: Client, tool: str, arguments: dict[str, Any]) -> Outcome:
    answer = client.service.request(
        "POST", f"/v1/tools/{tool}", {"arguments": arguments}, headers=client.headers
    )
    return _http_outcome(answer.status, answer.json())


def over_the_socket(client: Client, tool: str, arguments: dict[str, Any]) -> Outcome:
    answer = client.service.request(
        "POST", f"/v1/tools/{tool}", {"arguments": arguments}, headers=client.headers, local=True
    )
    return _http_outcome(answer.status, answer.json())


def _http_outcome(status: int, body: dict[str, Any]) -> Outcome:
    if status != 200:
        return True, body["code"]
    return _outcome(body["content"], is_error=body.get("is_error", False))


def over_mcp(client: Client, tool: str, arguments: dict[str, Any]) -> Outcome:
    answer = client.mcp("tools/call", name=tool.replace(".", "_"), arguments=arguments)
    return _mcp_outcome(answer)


def over_the_bridge(client: Client, tool: str, arguments: dict[str, Any]) -> Outcome:
    call = {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"name": tool.replace(".", "_"), "arguments": arguments},
    }
    run = client.run("mcp", stdin=json.dumps(call) + "\n")
    [line] = run.stdout.splitlines()
    return _mcp_outcome(json.loads(line))


def _mcp_outcome(answer: dict[str, Any]) -> Outcome:
    result = answer["result"]
    [item] = result["content"]
    if result.get("isError"):
        assert "structuredContent" not in result
        if "newer execution" in item["text"]:
            return True, "fenced"
        return True, json.loads(item["text"])["error"]
    content = json.loads(item["text"])
    assert result["structuredContent"] == content
    return _outcome(content, is_error=False)


def over_the_cli(client: Client, tool: str, arguments: dict[str, Any]) -> Outcome:
    run = client.run("call", tool, "-", stdin=json.dumps(arguments))
    assert run.returncode in (0, 1, 4), run.stderr
    if run.returncode == 4:
        return True, "fenced"
    return _outcome(json.loads(run.stdout), is_error=run.returncode == 1)


def _outcome(content: Any, *, is_error: bool) -> Outcome:
    return is_error, content["error"] if is_error else sorted(content)


TRANSPORTS: list[Callable[[Client, str, dict[str, Any]], Outcome]] = [
    over_http,
    over_the_socket,
    over_mcp,
    over_the_bridge,
    over_the_cli,
]

_MESSAGE = ["conversation_id", "correlation_id", "message_id"]
SENT = [*_MESSAGE, "recipient_note", "recipient_pending", "recipient_state"]
"""The note is there because nobody supervises the service of these tests."""
CALLS: list[tuple[str, str, dict[str, Any], Outcome]] = [
    ("lead", "clock.now", {}, (False, ["now", "rfc3339", "timezone"])),
    ("lead", "clock.now", {"timezone": "Nowhere"}, (True, "invalid")),
    ("lead", "handoff.update", {"unresolved": '["a", "b"]'}, (False, ["saved"])),
    ("lead", "handoff.update", {"record_ids": ["build/W-3"]}, (True, "invalid")),
    ("lead", "messages.history", {}, (False, ["conversations", "next_cursor"])),
    ("lead", "messages.history", {"conversation_id": "none"}, (True, "not_found")),
    ("lead", "messages.history", {"cursor": "forged"}, (True, "invalid")),
    ("lead", "messages.inbox", {}, (False, ["messages"])),
    ("lead", "messages.inbox", {"max_results": "many"}, (True, "invalid")),
    ("lead", "messages.recipients", {"cursor": ""}, (False, ["next_cursor", "recipients"])),
    ("reviewer", "messages.recipients", {}, (True, "forbidden")),
    ("lead", "messages.reply", {"body": "x"}, (True, "invalid")),
    ("lead", "messages.reply", {"message_id": "none", "body": "x"}, (True, "not_found")),
    ("lead", "messages.reply", {"binding": "alice", "body": "x"}, (True, "forbidden")),
    (
        "rep_a",
        "messages.reply",
        {"binding": "alice", "body": "hello"},
        (False, ["conversation_id", "correlation_id", "delivery", "message_id"]),
    ),
    ("lead", "messages.send", {"to": "engineer", "body": "x", "wake": "false"}, (False, SENT)),
    ("lead", "messages.send", {"to": "engineer", "body": "x", "wake": None}, (False, SENT)),
    ("rep_a", "messages.send", {"to": "engineer", "body": "x"}, (True, "forbidden")),
    ("lead", "messages.send", {"to": "engineer", "body": "🙂" * 3_073}, (True, "invalid")),
    ("lead", "messages.send", {"to": "engineer", "body": "a\0b"}, (True, "invalid")),
    ("lead", "messages.send", {"to": "engineer"}, (True, "invalid")),
    ("lead", "messages.send", {"too": "engineer", "body": "x"}, (True, "invalid")),
    ("lead", "status", {}, (False, ["seats", "self"])),
    (
        "lead",
        "status",
        {"seats": ["engineer", "rep_a", "nobody"]},
        (False, ["not_reachable", "seats", "self"]),
    ),
    ("lead", "status", {"seats": ["x"] * 21}, (True, "invalid")),
    ("lead", "self", {}, (False, [])),
    ("lead", "self", {"x": 1}, (True, "invalid")),
]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    ("seat", "tool", "arguments", "expected"),
    CALLS,
    ids=[f"{call[1]}-{call[0]}-{n}" for n, call in enumerate(CALLS)],
)
def test_a_call_has_the_same_outcome_through_every_transport(
    cast: Cast,
    transport: Callable[[Client, str, dict[str, Any]], Outcome],
    seat: str,
    tool: str,
    arguments: dict[str, Any],
    expected: Outcome,
) -> None:
    """S-8 for every tool."""
    is_error, names = transport(cast.client(seat), tool, arguments)
    if tool == "self" and not is_error:
        assert {"seat_key", "recipients", "policy_revision"} <= set(names)
    else:
        assert (is_error, names) == expected


def test_every_tool_is_driven_to_a_result_and_to_an_error(cast: Cast) -> None:
    listed = cast.service.request("GET", "/v1/tools", headers=cast.client("rep_a").headers).json()
    driven = {(tool, outcome[0]) for _, tool, _, outcome in CALLS}
    names = {tool["name"] for tool in listed}
    assert {(name, True) for name in names} | {(name, False) for name in names} <= driven


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_s6_a_stale_generation_is_fenced_through_every_transport(
    cast: Cast, transport: Callable[[Client, str, dict[str, Any]], Outcome], tmp_path: Path
) -> None:
    """S-6 and 4.4: HTTP 409, exit code 4, and in MCP a text that tells the agent to stop."""
    stale = Client.of(cast.service, cast.seats["reviewer"], tmp_path / "stale")
    stale.service.request(
        "POST", "/v1/lease/acquire", {}, headers={"Authorization": f"Bearer {stale.token}"}
    )
    assert transport(stale, "handoff.update", {}) == (True, "fenced")


def test_s6_exit_codes_of_the_tool_client(cast: Cast) -> None:
    """S-6: 1 with JSON for a tool error, 2 for bad JSON, 3 for a service that is not there."""
    lead = cast.client("lead")
    refused = lead.run("call", "messages.send", '{"to": "rep_a", "body": "x"}')
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["error"] == "forbidden"
    assert lead.run("call", "clock.now", "{no json").returncode == 2
    unknown = lead.run("call", "no.such", "{}")
    assert (unknown.returncode, unknown.stdout) == (3, "")
    missing = subprocess.run(
        [str(TOOLS_PROGRAM), "call", "clock.now"],
        capture_output=True,
        text=True,
        env=dict(lead.environment("http://127.0.0.1:1")) | {"STEADMESH_RETRY_SECONDS": "0"},
        timeout=60,
        check=False,
    )
    assert missing.returncode == 3
    assert missing.stdout == ""


def test_s7_the_mcp_list_has_underscores_and_a_denied_call_says_why(cast: Cast) -> None:
    """S-7, with the tools that are there."""
    listed = cast.client("lead").mcp("tools/list")["result"]["tools"]
    names = {tool["name"] for tool in listed}
    assert "messages_send" in names
    assert not any("." in name for name in names)
    denied = cast.client("reviewer").mcp("tools/call", name="messages_send", arguments={})
    assert denied["result"]["isError"] is True
    assert json.loads(denied["result"]["content"][0]["text"])["error"] == "forbidden"


def test_s9_an_unknown_name_is_404_and_a_hidden_tool_is_forbidden(cast: Cast) -> None:
    """S-9."""
    reviewer = cast.client("reviewer")
    unknown = cast.service.request("POST", "/v1/tools/no.such", {}, headers=reviewer.headers)
    assert unknown.error == (404, "not_found")
    hidden = cast.service.request("POST", "/v1/tools/messages.send", {}, headers=reviewer.headers)
    assert hidden.status == 200
    assert hidden.json()["content"]["error"] == "forbidden"
