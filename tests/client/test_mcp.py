"""`steadmesh-tools mcp`: the bridge as a client's child process, against a service on a socket."""

from __future__ import annotations

import json

import pytest

from tests.client.double import Double
from tests.client.platform import MODERN, Platform
from tests.client.programs import SeatFiles

META = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}


def posts(service: Double) -> list[dict[str, str]]:
    """The headers of what was forwarded."""
    return [asked.headers for asked in service.asked if asked.path == "/mcp"]


def test_messages_go_to_the_service_and_answers_come_back(seat: SeatFiles, service: Double) -> None:
    with seat.bridge() as bridge:
        bridge.send("initialize", {"protocolVersion": "2025-11-25"}, id=0)
        assert bridge.next()["result"]["protocolVersion"] == "2025-11-25"
        bridge.send("notifications/initialized")
        bridge.send("tools/list", {}, id="a")
        answer = bridge.next()
        bridge.close_input()
        assert bridge.end() == (0, [], "")
    assert (answer["id"], answer["result"]) == ("a", {"tools": [{"name": "clock_now"}]})
    initialize, *others = posts(service)
    assert "mcp-protocol-version" not in initialize
    assert [one["mcp-protocol-version"] for one in others] == ["2025-11-25"] * 2
    assert all("mcp-method" not in one for one in others)


def test_a_pipelined_client_gets_its_version_named_too(seat: SeatFiles, service: Double) -> None:
    """It writes everything at once; the rest waits for the answer to `initialize`."""
    with seat.bridge() as bridge:
        bridge.send("initialize", {"protocolVersion": "2025-06-18"}, id=0)
        bridge.send("tools/list", {}, id=1)
        assert [bridge.next()["id"], bridge.next()["id"]] == [0, 1]
    assert posts(service)[1]["mcp-protocol-version"] == "2025-06-18"


def test_each_message_carries_the_seat_and_a_key_of_its_own(
    seat: SeatFiles, service: Double
) -> None:
    seat.execution.write_text("e1")
    with seat.bridge() as bridge:
        bridge.call(1, "x")
        bridge.next()
        seat.generation.write_text("8")
        seat.execution.write_text("")
        bridge.call(2, "x")
        bridge.next()
    first, second = posts(service)
    assert (first["x-steadmesh-generation"], first["x-steadmesh-execution"]) == ("7", "e1")
    assert second["x-steadmesh-generation"] == "8"
    assert "x-steadmesh-execution" not in second
    assert first["x-steadmesh-via"] == second["x-steadmesh-via"] == "stdio"
    assert first["idempotency-key"] != second["idempotency-key"]


def test_the_message_goes_out_byte_for_byte(seat: SeatFiles, service: Double) -> None:
    line = '{ "jsonrpc":"2.0", "id":1, "method":"tools/list", "params":{"n":1.10,"e":"\u00e9"} }'
    with seat.bridge() as bridge:
        bridge.send_line(line)
        bridge.next()
    assert [asked.body for asked in service.asked if asked.path == "/mcp"] == [line.encode()]


@pytest.mark.parametrize("name", ["clock_now", "caf\u00e9", " edge", "=?base64?eA==?="])
def test_the_era_of_2026_gets_its_headers(seat: SeatFiles, service: Double, name: str) -> None:
    """The double refuses headers that do not match the message, as the SDK does."""
    with seat.bridge() as bridge:
        bridge.send("tools/call", {"name": name, "arguments": {}, **META}, id=1)
        assert bridge.next()["result"]["content"][0]["text"] == name
    headers = posts(service)[0]
    assert headers["mcp-protocol-version"] == MODERN
    assert headers["mcp-method"] == "tools/call"


def test_several_requests_are_in_flight_and_answered_as_they_are_ready(
    seat: SeatFiles, platform: Platform
) -> None:
    with seat.bridge() as bridge:
        bridge.call(1, "hold")
        bridge.call("1", "hold")
        bridge.call(2, "quick")
        assert bridge.next()["id"] == 2
        platform.released.set()
        assert {bridge.next()["id"], bridge.next()["id"]} == {1, "1"}


def test_a_cancelled_request_is_closed_and_not_answered(
    seat: SeatFiles, service: Double, platform: Platform
) -> None:
    with seat.bridge() as bridge:
        bridge.call(1, "hold")
        bridge.call("1", "hold")
        service.wait_for(lambda asked: len(posts(service)) == 2)
        bridge.send("notifications/cancelled", {"requestId": 1})
        bridge.send("notifications/cancelled", {"requestId": "unknown"})
        bridge.call(2, "quick")
        assert bridge.next()["id"] == 2
        platform.released.set()
        assert bridge.next()["id"] == "1"
        bridge.close_input()
        assert bridge.end() == (0, [], "")
    assert len(posts(service)) == 3  # a cancellation is not forwarded


def test_what_is_in_flight_is_answered_after_the_input_ended(
    seat: SeatFiles, service: Double, platform: Platform
) -> None:
    with seat.bridge() as bridge:
        bridge.call(1, "hold")
        bridge.close_input()
        service.wait_for(lambda asked: len(posts(service)) == 1)
        platform.released.set()
        assert bridge.next()["id"] == 1
        assert bridge.end() == (0, [], "")


def test_a_last_line_without_an_end_counts(seat: SeatFiles) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    done = seat.run("mcp", stdin=line)
    assert json.loads(done.stdout)["id"] == 1
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("line", "code", "message_id"),
    [
        (b"not json", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,', -32700, None),
        (b'{"id": "\xff"}', -32700, None),
        (b"[" * 100_000, -32700, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b"7", -32600, None),
        (b'{"jsonrpc":"2.0","id":1}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600, 1),
        (b'{"a":"' + b"x" * 4_194_304 + b'"}', -32600, None),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_line_that_is_no_message_is_answered_and_the_next_one_too(
    seat: SeatFiles, line: bytes, code: int, message_id: object
) -> None:
    with seat.bridge() as bridge:
        bridge.send_line(line)
        bridge.send_line(b"")
        bridge.send_line(b'{"jsonrpc":"2.0","id":9,"result":{}}')
        wrong = bridge.next()
        bridge.call(2, "x")
        assert bridge.next()["id"] == 2
    assert (wrong["error"]["code"], wrong["id"]) == (code, message_id)


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("broken", "It broke."),
        ("page", "HTTP 200 without saying why"),
        ("fenced", "stop now, and do not retry"),
    ],
)
def test_c8_a_non_answer_to_a_tool_call_is_a_result_with_text_alone(
    seat: SeatFiles, tool: str, said: str
) -> None:
    """C8: an error has text and isError, and no structured content."""
    with seat.bridge() as bridge:
        bridge.call(1, tool)
        result = bridge.next()["result"]
    assert result["isError"] is True
    assert said in result["content"][0]["text"]
    assert set(result) == {"isError", "content"}


def test_a_non_answer_of_the_new_era_says_that_it_is_complete(seat: SeatFiles) -> None:
    with seat.bridge() as bridge:
        bridge.send("tools/call", {"name": "broken", **META}, id=1)
        assert bridge.next()["result"]["resultType"] == "complete"


def test_a_service_that_went_away_is_said_in_the_result(
    local_seat: SeatFiles, local_service: Double
) -> None:
    with local_seat.bridge() as bridge:
        bridge.call(1, "x")
        bridge.next()
        local_service.stop()
        with Double(lambda asked: b"SSH-2.0\r\n", unix=local_service.unix):
            bridge.call(2, "x")
            result = bridge.next()["result"]
            bridge.send("tools/list", id=3)
            error = bridge.next()
    assert result["isError"] is True
    assert "No answer from unix:" in result["content"][0]["text"]
    assert (error["id"], error["error"]["code"]) == (3, -32603)


def test_a_token_file_that_is_gone_is_said_in_the_result(seat: SeatFiles) -> None:
    with seat.bridge() as bridge:
        bridge.call(1, "x")
        bridge.next()
        seat.token.unlink()
        bridge.call(2, "x")
        text = bridge.next()["result"]["content"][0]["text"]
    assert "STEADMESH_TOKEN_FILE" in text


def test_an_error_of_the_protocol_is_passed_on_under_the_request_s_id(seat: SeatFiles) -> None:
    """The double refuses it before it has read the id."""
    params = {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}
    with seat.bridge() as bridge:
        bridge.send("no/such", {}, id=1)
        assert bridge.next()["error"]["code"] == -32601
        bridge.send("tools/list", params, id=2)
        refused = bridge.next()
    assert (refused["id"], refused["error"]["code"]) == (2, -32602)


def test_an_answer_over_several_lines_is_written_on_one(seat: SeatFiles) -> None:
    with seat.bridge() as bridge:
        bridge.call(1, "pretty")
        assert bridge.next()["result"] == {"content": []}


def test_x1_a_restart_under_the_bridge_goes_unnoticed(
    local_seat: SeatFiles, local_service: Double, platform: Platform
) -> None:
    """X1: there are no sessions; a call in flight is asked again under its own key."""
    with local_seat.bridge() as bridge:
        bridge.send("initialize", {"protocolVersion": "2025-11-25"}, id=0)
        bridge.next()
        bridge.call(1, "hold")
        local_service.wait_for(lambda asked: len(posts(local_service)) == 2)
        local_service.stop()
        bridge.call(2, "x")
        platform.released.set()
        with Double(platform, unix=local_service.unix) as restarted:
            assert {bridge.next()["id"], bridge.next()["id"]} == {1, 2}
    asked_again = {one["idempotency-key"] for one in posts(restarted)}
    assert posts(local_service)[1]["idempotency-key"] in asked_again
    assert all(one["mcp-protocol-version"] == "2025-11-25" for one in posts(restarted))


def test_a_stream_is_passed_on_event_by_event(seat: SeatFiles, platform: Platform) -> None:
    platform.updates = [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}]
    with seat.bridge() as bridge:
        bridge.send("subscriptions/listen", {"notifications": {}, **META}, id="l")
        assert bridge.next()["method"] == "notifications/subscriptions/acknowledged"
        assert bridge.next()["method"] == "notifications/tools/list_changed"
        bridge.call(1, "x")
        assert bridge.next()["id"] == 1
        platform.released.set()
        assert bridge.next()["id"] == "l"


def test_x1_a_stream_is_taken_up_again_after_a_restart(
    local_seat: SeatFiles, local_service: Double, platform: Platform
) -> None:
    """X1: no second acknowledgement, and one update for each resource, as some may be missed."""
    wanted = {"resourceSubscriptions": ["relay://inbox/a", "relay://inbox/b"]}
    with local_seat.bridge() as bridge:
        bridge.send("subscriptions/listen", {"notifications": wanted, **META}, id=5)
        assert bridge.next()["method"] == "notifications/subscriptions/acknowledged"
        local_service.stop()
        platform.updates = [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}]
        with Double(platform, unix=local_service.unix):
            updates = [bridge.next(), bridge.next()]
            assert bridge.next()["method"] == "notifications/tools/list_changed"
    assert {one["method"] for one in updates} == {"notifications/resources/updated"}
    assert [one["params"]["uri"] for one in updates] == wanted["resourceSubscriptions"]
    key = "io.modelcontextprotocol/subscriptionId"
    assert all(one["params"]["_meta"] == {key: 5} for one in updates)


def test_a_stream_ends_when_it_is_cancelled(
    seat: SeatFiles, service: Double, platform: Platform
) -> None:
    with seat.bridge() as bridge:
        bridge.send("subscriptions/listen", {"notifications": {}, **META}, id=5)
        bridge.next()
        bridge.send("notifications/cancelled", {"requestId": 5})
        bridge.close_input()
        assert bridge.end() == (0, [], "")


def test_a_stream_does_not_outlive_the_input(seat: SeatFiles, platform: Platform) -> None:
    with seat.bridge() as bridge:
        bridge.send("subscriptions/listen", {"notifications": {}, **META}, id=5)
        bridge.next()
        assert platform.listening.wait(10)
        bridge.close_input()
        assert bridge.end() == (0, [], "")


def test_a_stream_that_opens_after_the_input_ended_is_closed(
    seat: SeatFiles, service: Double
) -> None:
    params = {"notifications": {}, **META}
    message = {"jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": params}
    done = seat.run("mcp", stdin=json.dumps(message).encode())
    assert done.returncode == 0
    assert b'"id"' not in done.stdout  # its answer, for which the service would wait
    assert len(posts(service)) == 1


def test_a_terminated_bridge_ends_at_once(
    seat: SeatFiles, service: Double, platform: Platform
) -> None:
    with seat.bridge() as bridge:
        bridge.call(1, "hold")
        service.wait_for(lambda asked: len(posts(service)) == 1)
        bridge.terminate()
        assert bridge.end() == (143, [], "")


@pytest.mark.parametrize("missing", ["STEADMESH_PLATFORM_URL", "STEADMESH_TOKEN_FILE"])
def test_a_bridge_without_an_environment_exits_3(seat: SeatFiles, missing: str) -> None:
    del seat.environ[missing]
    with seat.bridge() as bridge:
        code, lines, errors = bridge.end()
    assert (code, lines) == (3, [])
    assert missing in errors
    assert errors.count("\n") == 1


def test_a_bridge_whose_token_is_refused_exits_3_and_answers_nothing(seat: SeatFiles) -> None:
    seat.token.write_text("sms_wrong")
    with seat.bridge() as bridge:
        bridge.send("tools/list", id=1)
        code, lines, errors = bridge.end()
    assert (code, lines) == (3, [])
    assert errors == "steadmesh-tools mcp: HTTP 401: The token is not known.\n"


def test_a_bridge_that_finds_no_service_exits_3(
    local_seat: SeatFiles, local_service: Double
) -> None:
    local_service.stop()
    with (
        Double(lambda asked: b"SSH-2.0\r\n", unix=local_service.unix),
        local_seat.bridge() as bridge,
    ):
        code, lines, errors = bridge.end()
    assert (code, lines) == (3, [])
    assert errors.count("\n") == 1


def test_input_at_its_end_is_no_error(seat: SeatFiles) -> None:
    assert seat.run("mcp").returncode == 0
