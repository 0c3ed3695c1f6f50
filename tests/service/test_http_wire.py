"""What comes over a connection before it is a request."""

from __future__ import annotations

import json
import socket
import time

import pytest

from steadmesh.service import wire
from tests.service import notes
from tests.support.service import RunningService, whole

LIMIT = 10.0


def received(opened: socket.socket) -> bytes:
    answer = bytearray()
    while piece := opened.recv(65_536):
        answer += piece
    return bytes(answer)


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"hello\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nbroken\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_what_is_no_http_is_told_so_and_hung_up_on(shared: RunningService, data: bytes) -> None:
    head, _, body = shared.raw(data).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["code"] == "invalid"


@pytest.mark.parametrize(
    "data",
    [
        b"GET /" + b"a" * 300_000,
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: b\r\n" * 40_000,
        b"GET / HTTP/1.1\r\nX-A: " + b"b" * 300_000,
    ],
    ids=["address", "many", "long"],
)
def test_a_head_without_end_is_cut_off(shared: RunningService, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", shared.port), timeout=LIMIT) as opened:
        opened.sendall(data)
        assert received(opened).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("said", [b"", b"GET /healthz HTTP/1.1\r\nHost: loc"])
def test_who_does_not_say_what_it_wants_is_hung_up_on(
    monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(wire, "HEAD_SECONDS", 0.05)
    with (
        RunningService(families=notes.FAMILIES, features=[notes.FEATURE]) as running,
        socket.create_connection(("127.0.0.1", running.port), timeout=LIMIT) as opened,
    ):
        opened.sendall(said)
        assert received(opened) == b""


@pytest.mark.parametrize("said", [b"", b'{"argu'])
def test_a_body_that_does_not_come_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    """Nor one whose first byte never comes."""
    monkeypatch.setattr(wire, "BODY_SECONDS", 0.05)
    head = (
        b"POST /v1/tools/books.add HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n"
    )
    with (
        RunningService(families=notes.FAMILIES, features=[notes.FEATURE]) as running,
        socket.create_connection(("127.0.0.1", running.port), timeout=LIMIT) as opened,
    ):
        opened.sendall(head + said)
        assert opened.recv(65_536).startswith(b"HTTP/1.1 400 ")


def test_the_time_for_a_head_begins_anew_with_each_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "HEAD_SECONDS", 0.2)
    with RunningService(families=notes.FAMILIES, features=[notes.FEATURE]) as running:
        connection = running.connection(timeout=LIMIT)
        headers = {"Authorization": f"Bearer {notes.ADA}", "X-Steadmesh-Generation": "1"}
        for _ in range(3):
            connection.request("GET", "/v1/books/a/next?wait=0.15", headers=headers)
            assert whole(connection.getresponse()).status == 204
        connection.close()


def test_requests_may_be_sent_before_the_last_was_answered(shared: RunningService) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert shared.raw(request * 3 + last).count(b"HTTP/1.1 200 ") == 4


def test_blanks_around_a_header_s_value_are_no_part_of_it(shared: RunningService) -> None:
    body = json.dumps({"arguments": {"text": "blanks"}}).encode()

    def add(blanks: bytes) -> bytes:
        return shared.raw(
            b"POST /v1/tools/notes.add HTTP/1.1\r\nHost: localhost%b\r\nConnection: close\r\n"
            b"Content-Type: application/json%b\r\nContent-Length: %d%b\r\n"
            b"Authorization: Bearer %b%b\r\nX-Steadmesh-Generation: 1%b\r\n"
            b"Idempotency-Key: blanks%b\r\n\r\n%b"
            % (*(blanks,) * 2, len(body), blanks, notes.ADA.encode(), *(blanks,) * 3, body)
        )

    first = add(b"")
    assert first.startswith(b"HTTP/1.1 200 ")
    answer = first.partition(b"\r\n\r\n")[2]
    assert add(b" \t ").partition(b"\r\n\r\n")[2] == answer  # kept under the same key


def refusable(*, length: int, connection: str, path: str = "/v1/nothing") -> bytes:
    """A head that is refused whatever follows it."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\nConnection: {connection}\r\n\r\n"
    ).encode()


@pytest.mark.parametrize("connection", ["close", "keep-alive"])
@pytest.mark.parametrize(
    ("path", "status"), [("/v1/nothing", b"404"), ("/v1/books/a/next", b"405"), ("/mcp", b"400")]
)
def test_who_still_sends_what_was_refused_reads_why(
    shared: RunningService, path: str, status: bytes, connection: str
) -> None:
    """The answer comes after the head; the body goes on coming, and is far more than fits in between."""
    body = b"x" * 8_000_000
    with socket.create_connection(("127.0.0.1", shared.port), timeout=LIMIT) as opened:
        opened.sendall(refusable(length=len(body), connection=connection, path=path))
        first = opened.recv(12)
        opened.sendall(body)
        if connection == "keep-alive":
            opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        rest = received(opened)
    assert first == b"HTTP/1.1 " + status
    assert rest.count(b"HTTP/1.1 200") == (1 if connection == "keep-alive" else 0)


def test_over_the_socket_too(shared: RunningService) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        opened.settimeout(LIMIT)
        opened.connect(str(shared.socket))
        opened.sendall(refusable(length=3_000_000, connection="close"))
        assert opened.recv(12) == b"HTTP/1.1 404"
        opened.sendall(b"x" * 3_000_000)
        assert b"there is nothing at" in received(opened)


@pytest.mark.parametrize("connection", ["close", "keep-alive"])
def test_who_goes_on_sending_after_the_answer_is_hung_up_on(
    monkeypatch: pytest.MonkeyPatch, connection: str
) -> None:
    monkeypatch.setattr(wire, "DRAIN_SECONDS", 0.1)
    with (
        RunningService(families=notes.FAMILIES, features=[notes.FEATURE]) as running,
        socket.create_connection(("127.0.0.1", running.port), timeout=LIMIT) as opened,
    ):
        opened.sendall(refusable(length=10**9, connection=connection))
        assert received(opened).startswith(b"HTTP/1.1 404 ")
        with pytest.raises(OSError, match=r"reset|pipe"):
            _send_until_refused(opened)


def test_who_sends_without_end_after_the_answer_is_hung_up_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "DRAIN_SECONDS", 60.0)
    with (
        RunningService(families=notes.FAMILIES, features=[notes.FEATURE]) as running,
        socket.create_connection(("127.0.0.1", running.port), timeout=LIMIT) as opened,
    ):
        opened.sendall(refusable(length=10**9, connection="close"))
        assert opened.recv(12) == b"HTTP/1.1 404"
        with pytest.raises(OSError, match=r"reset|pipe"):
            _send_until_refused(opened, b"x" * 1_000_000)


def _send_until_refused(opened: socket.socket, piece: bytes = b"x") -> None:
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        opened.sendall(piece)
        opened.recv(1)  # what was sent to a closed connection is answered by a reset


def test_a_service_ends_while_somebody_still_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "DRAIN_SECONDS", 60.0)
    with (
        RunningService(families=notes.FAMILIES, features=[notes.FEATURE]) as running,
        socket.create_connection(("127.0.0.1", running.port), timeout=LIMIT) as opened,
    ):
        opened.sendall(refusable(length=1_000, connection="close"))
        assert opened.recv(12) == b"HTTP/1.1 404"
        running.stop()
