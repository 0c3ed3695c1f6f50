"""Calls of tools and endpoints over HTTP: arguments in, answers and failures out."""

from __future__ import annotations

import json
import logging
import socket
from typing import Any

import pytest

from tests.service.notes import ADA, AGENT
from tests.support.service import Response, RunningService

SEAT = {"Authorization": f"Bearer {ADA}", "X-Steadmesh-Generation": "1"}
COUNT = "/v1/tools/notes.count"
ADD = "/v1/tools/notes.add"
MIB = 1024 * 1024


def post(running: RunningService, path: str, body: object, **headers: str) -> Response:
    return running.request("POST", path, body, headers=SEAT | headers)


def add(running: RunningService, text: Any, **headers: str) -> Response:
    return post(running, ADD, {"arguments": {"text": text}}, **headers)


# Tools


def test_a_result_is_the_content(books: RunningService) -> None:
    response = add(books, "milk")
    assert response.status == 200
    assert response.json() == {"content": {"total": 1}}
    assert response.headers["content-type"] == "application/json"
    assert "date" in response.headers
    assert "server" not in response.headers


def test_a_tool_s_own_failure_is_content_too(shared: RunningService) -> None:
    response = add(shared, "taken")
    assert response.status == 200
    assert response.json() == {
        "content": {
            "error": "conflict",
            "message": "There is a note taken already.",
            "details": {"text": "taken"},
        },
        "is_error": True,
    }


@pytest.mark.parametrize("arguments", [{}, {"arguments": None}, {"arguments": {}}, None])
def test_no_arguments_and_null_are_the_empty_object(
    shared: RunningService, arguments: object
) -> None:
    response = shared.request("POST", COUNT, arguments, headers=SEAT)
    assert response.status == 200
    assert "is_error" not in response.json()


def test_arguments_may_come_as_a_json_string(shared: RunningService) -> None:
    assert post(shared, COUNT, {"arguments": "{}"}).status == 200


@pytest.mark.parametrize(
    "body", [[], "x", 1, {"text": "milk"}, {"arguments": []}, {"arguments": 1}]
)
def test_a_body_of_another_shape_is_refused(shared: RunningService, body: object) -> None:
    response = post(shared, ADD, body)
    assert response.error == (400, "invalid")
    assert "arguments" in response.json()["message"]


def test_unknown_arguments_are_the_tool_s_failure(shared: RunningService) -> None:
    response = post(shared, ADD, {"arguments": {"txt": "a"}})
    assert response.status == 200
    assert response.json()["content"]["error"] == "invalid"
    assert "did you mean text" in response.json()["content"]["message"]


def test_an_unknown_tool_is_not_found(shared: RunningService) -> None:
    response = post(shared, "/v1/tools/notes.burn", {})
    assert response.error == (404, "not_found")
    assert "notes.burn" in response.json()["message"]


def test_unknown_comes_before_who_asks(shared: RunningService) -> None:
    assert shared.request("POST", "/v1/tools/notes.burn", {}).status == 404


@pytest.mark.parametrize("name", ["notes_count", "notes%2Ecount"])
def test_a_tool_may_be_named_as_mcp_names_it_or_escaped(shared: RunningService, name: str) -> None:
    assert post(shared, f"/v1/tools/{name}", {}).status == 200


def test_without_a_generation_a_write_is_fenced(shared: RunningService) -> None:
    headers = {"Authorization": f"Bearer {ADA}"}
    response = shared.request("POST", ADD, {"arguments": {"text": "x"}}, headers=headers)
    assert response.error == (409, "fenced")
    assert shared.request("POST", COUNT, {}, headers=headers).status == 200


def test_a_stale_generation_is_fenced(shared: RunningService) -> None:
    assert add(shared, "x", **{"X-Steadmesh-Generation": "2"}).error == (409, "fenced")


def test_a_rate_limit_is_http_s_to_tell(shared: RunningService) -> None:
    assert add(shared, "hasty").error == (429, "rate_limited")


def test_a_database_away_while_asking_who_calls_is_unavailable(shared: RunningService) -> None:
    headers = {"Authorization": "Bearer sms_away"}
    assert shared.request("POST", COUNT, {}, headers=headers).error == (503, "unavailable")


def test_a_fault_is_told_by_call_id_and_logged_whole(
    shared: RunningService, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        response = add(shared, "broken")
    content = response.json()["content"]
    assert content["error"] == "internal"
    assert "detail" not in content["message"]
    assert content["details"]["call_id"] in content["message"]
    assert any("a detail that nobody should see" in str(r.exc_info) for r in caplog.records)


def test_the_list_is_that_of_the_caller(shared: RunningService) -> None:
    mine = shared.request("GET", "/v1/tools", headers=SEAT).json()
    assert [tool["name"] for tool in mine] == ["notes.add", "notes.count"]
    assert mine[0].keys() == {"name", "description", "input_schema", "output_schema"}
    nobody = shared.request("GET", "/v1/tools").json()
    assert [tool["name"] for tool in nobody] == ["notes.other"]


def test_a_caller_of_the_other_family_calls_its_tools(shared: RunningService) -> None:
    agent = {"X-Agent-Token": AGENT}
    assert shared.request("POST", "/v1/tools/notes.other", {}, headers=agent).status == 200
    assert shared.request("POST", "/v1/tools/notes.other", {}).error == (401, "unauthenticated")


def test_a_repeated_key_gives_the_same_answer_and_does_nothing(books: RunningService) -> None:
    first = add(books, "milk", **{"Idempotency-Key": "k-1"})
    assert add(books, "milk", **{"Idempotency-Key": "k-1"}).body == first.body
    assert add(books, "tea", **{"Idempotency-Key": "k-1"}).json()["content"]["error"] == "invalid"
    assert post(books, COUNT, {}).json()["content"]["total"] == 1


# Bodies


def test_bad_json_is_refused_with_its_place(shared: RunningService) -> None:
    response = post(shared, ADD, b'{"arguments":\n {"text": x}}')
    assert response.error == (400, "invalid")
    assert "line 2, column 11" in response.json()["message"]


@pytest.mark.parametrize("body", [b"\xff{}", b'{"arguments":{"text":"\xc3"}}', b"\xef\xbb\xbf{}"])
def test_a_body_that_is_not_utf_8_is_refused(shared: RunningService, body: bytes) -> None:
    assert post(shared, ADD, body).error == (400, "invalid")


@pytest.mark.parametrize(
    "body",
    [
        b'{"arguments":{"text":' + b"[" * 50_000 + b"]" * 50_000 + b"}}",
        b'{"arguments":{"text":"x","data":' + b'{"a":' * 200 + b"1" + b"}" * 200 + b"}}",
        b"[" * 200_000,
        b'{"arguments":{"text":' + b"9" * 100_000 + b"}}",
    ],
    ids=["lists", "objects", "open", "digits"],
)
def test_a_bomb_is_refused(shared: RunningService, body: bytes) -> None:
    response = post(shared, ADD, body)
    assert response.error == (400, "invalid")


def test_a_bomb_in_a_string_is_refused_by_the_name_of_its_field(shared: RunningService) -> None:
    for bomb in ("[" * 50_000, '{"a":' * 300 + "1" + "}" * 300):
        body = {"arguments": {"text": "x", "data": bomb}}
        content = post(shared, ADD, body).json()["content"]
        assert content["error"] == "invalid"
        assert content["message"].startswith("data: ")


@pytest.mark.parametrize("depth", [90, 98])
def test_what_is_nested_but_no_bomb_is_taken(shared: RunningService, depth: int) -> None:
    data: dict[str, Any] = {}
    for _ in range(depth - 3):
        data = {"a": data, "b": []}
    body = {"arguments": {"text": "taken", "data": data}}
    assert post(shared, ADD, body).json()["content"]["error"] == "conflict"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ('{"text":"a\\u0000b"}', "text: holds a NUL"),
        ('{"text":"\\ud800"}', "text: holds a lone surrogate"),
        ('{"text":"x","data":{"a":NaN}}', "data: is not a number that JSON knows"),
        ('{"text":"x","data":{"a":1e999}}', "data: is not a number that JSON knows"),
        ('{"text":"x","data":{"a":123456789012345678901234567890}}', "data: is an integer of more"),
    ],
)
def test_what_no_text_or_number_can_hold_is_refused_by_name(
    shared: RunningService, arguments: str, complaint: str
) -> None:
    content = post(shared, ADD, b'{"arguments":%b}' % arguments.encode()).json()["content"]
    assert content["error"] == "invalid"
    assert content["message"].startswith(complaint)


def test_a_body_of_a_mebibyte_is_read_and_a_byte_more_is_not(shared: RunningService) -> None:
    frame = len(json.dumps({"arguments": {"text": ""}}))
    fits = post(shared, ADD, {"arguments": {"text": "x" * (MIB - frame)}})
    assert fits.status == 200
    too_much = post(shared, ADD, {"arguments": {"text": "x" * (MIB - frame + 1)}})
    assert too_much.error == (400, "invalid")
    assert "1048576 bytes" in too_much.json()["message"]


def test_a_body_without_an_announced_length_is_cut_off_at_the_limit(
    shared: RunningService,
) -> None:
    head = (
        b"POST /v1/tools/notes.add HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Authorization: Bearer sms_ada\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", shared.port), timeout=10) as opened:
        opened.sendall(head)
        answer = b""
        for _ in range(17):
            opened.sendall(chunk)
        while b"\r\n\r\n" not in answer:
            answer += opened.recv(65_536)
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_body_in_many_pieces_is_read_whole(shared: RunningService) -> None:
    with socket.create_connection(("127.0.0.1", shared.port), timeout=10) as opened:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.sendall(
            b"POST /v1/tools/notes.count HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Authorization: Bearer sms_ada\r\nContent-Type: application/json\r\n"
            b"Content-Length: 16\r\n\r\n"
        )
        for byte in b'{"arguments":{}}':
            opened.sendall(bytes([byte]))
        answer = b""
        while piece := opened.recv(65_536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_a_client_that_hangs_up_within_its_body_harms_nobody(shared: RunningService) -> None:
    with socket.create_connection(("127.0.0.1", shared.port), timeout=10) as opened:
        opened.sendall(
            b"POST /v1/tools/notes.count HTTP/1.1\r\nHost: localhost\r\n"
            b"Authorization: Bearer sms_ada\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000\r\n\r\n{"
        )
    assert post(shared, COUNT, {}).status == 200


def test_operators_may_send_more(shared: RunningService) -> None:
    body = {"text": "x" * (2 * MIB)}
    response = shared.request("POST", "/internal/v1/books/big:mend", body, local=True)
    assert response.status == 201


def test_only_an_operator_s_large_body_is_read(shared: RunningService) -> None:
    with socket.create_connection(("127.0.0.1", shared.port), timeout=10) as opened:
        opened.sendall(
            b"POST /internal/v1/books/a:mend HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: 33000000\r\n\r\n"
        )
        assert opened.recv(65_536).startswith(b"HTTP/1.1 401 ")


# Endpoints


def test_path_query_and_body_are_the_arguments(shared: RunningService) -> None:
    response = shared.request("GET", "/v1/books/b%2Fc%20d?limit=3&exact=true", headers=SEAT)
    assert response.json() == {"book": "b/c d", "limit": 3, "exact": True}


@pytest.mark.parametrize(
    "query",
    ["limit=many", "limit=1.5", "nope=1", "limit=1&limit=2", "book=b", "limit=", "limit=NaN"],
)
def test_a_bad_query_value_is_refused(shared: RunningService, query: str) -> None:
    response = shared.request("GET", f"/v1/books/a?{query}", headers=SEAT)
    assert response.error == (400, "invalid")


def test_no_result_is_no_content(books: RunningService) -> None:
    response = post(books, "/v1/books/a/events", {"text": "one"})
    assert (response.status, response.body) == (204, b"")
    assert "content-type" not in response.headers


def test_an_array_as_the_body_is_the_events(books: RunningService) -> None:
    assert post(books, "/v1/books/a/events", [{"text": "one"}, {"text": "two"}]).status == 204
    taken = [books.request("GET", "/v1/books/a/next", headers=SEAT).json() for _ in range(2)]
    assert taken == [{"text": "one"}, {"text": "two"}]


def test_a_failure_of_an_endpoint_has_the_status_of_its_kind(shared: RunningService) -> None:
    assert shared.request("DELETE", "/v1/books/none", headers=SEAT).error == (404, "not_found")
    stale = SEAT | {"X-Steadmesh-Generation": "7"}
    assert shared.request("DELETE", "/v1/books/none", headers=stale).error == (409, "fenced")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/v1/books/a", "DELETE, GET"),
        ("GET", "/mcp", "POST"),
        ("DELETE", "/mcp", "POST"),
        ("GET", "/v1/tools/notes.count", "POST"),
        ("PUT", "/v1/tools", "GET"),
        ("OPTIONS", "/v1/tools", "GET"),
        ("POST", "/healthz", "GET, HEAD"),
        ("GET", "/internal/v1/books/a:mend", "POST"),
    ],
)
def test_another_method_is_not_allowed_and_hears_which_is(
    shared: RunningService, method: str, path: str, allowed: str
) -> None:
    response = shared.request(method, path)
    assert response.error == (405, "invalid")
    assert response.headers["allow"] == allowed


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/", "/v1/tools/", "/v1/tools/a/b", "/v1/books/", "/v1/books/a/b/next/"]
)
def test_everything_else_is_not_found(shared: RunningService, path: str) -> None:
    assert shared.request("GET", path).error == (404, "not_found")


def test_a_connection_serves_many_requests(shared: RunningService) -> None:
    connection = shared.connection()
    try:
        for _ in range(3):
            connection.request("GET", "/healthz")
            assert connection.getresponse().read()
            assert connection.sock is not None
    finally:
        connection.close()
