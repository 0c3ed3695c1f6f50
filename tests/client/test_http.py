"""The HTTP client: addresses, ways a body comes, what is refused."""

from __future__ import annotations

import signal
import socket
import threading
from pathlib import Path
from types import FrameType

import pytest

from steadmesh.client import exchange
from steadmesh.client.http import (
    BadAddress,
    Service,
    Unreachable,
    percent_encoded,
)
from tests.client.double import LIMIT, Asked, Bytes, Double, answer, raw
from tests.client.scripted import client, replies


def test_a_request_has_its_method_path_headers_and_json_body() -> None:
    with replies(answer(200, {"ok": True}, X_Thing="1")) as double:
        found = client(double.url + "/prefix/").request(
            "POST", "/v1/state", body={"a": "é"}, headers={"X-Mine": "2"}
        )
    asked = double.asked[0]
    assert (asked.method, asked.path) == ("POST", "/prefix/v1/state")
    assert asked.body == '{"a":"é"}'.encode()
    assert asked.headers["host"] == f"127.0.0.1:{double.port}"
    assert asked.headers["x-mine"] == "2"
    assert (found.status, found.headers["x-thing"], found.json()) == (200, "1", {"ok": True})


def test_a_unix_socket_is_an_address(tmp_path: Path) -> None:
    with Double(lambda asked: answer(200, 1), unix=tmp_path / "s.sock") as double:
        service = client(double.url)
        assert service.request("GET", "/healthz").json() == 1
        assert service.is_local
    assert double.asked[0].headers["host"] == "localhost"


def test_an_ipv6_host_stands_in_brackets() -> None:
    with Double(lambda asked: answer(200, 1), host="::1") as double:
        service = client(f"http://[::1]:{double.port}")
        assert service.request("GET", "/healthz").status == 200
        assert not service.is_local
    assert double.asked[0].headers["host"] == f"[::1]:{double.port}"


@pytest.mark.parametrize(
    "address",
    [
        "",
        "127.0.0.1:3777",
        "ftp://host",
        "http://",
        "http://:80",
        "http://host:0",
        "http://host:65536",
        "http://host:x",
        "http://[::1",
        "http://[host]:1",
        "http://[::1]x",
        "http://host/a b",
        "http://host/?q",
        "http://host/\n",
        "unix:relative.sock",
        "unix:",
    ],
)
def test_a_wrong_address_is_refused(address: str) -> None:
    with pytest.raises(BadAddress):
        Service([address])


def test_no_address_at_all_is_refused() -> None:
    with pytest.raises(BadAddress):
        Service([])


@pytest.mark.parametrize(
    "reply",
    [
        raw(200, b"hello"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: t\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        b"HTTP/1.1 100 Continue\r\n\r\n" + raw(200, b"hello"),
        b"HTTP/1.1 200\nContent-Length: 5\n\nhello",
    ],
    ids=["length", "chunked", "until close", "after an interim answer", "bare line ends"],
)
def test_a_body_may_come_in_any_way_and_in_any_pieces(reply: bytes) -> None:
    def by_bytes(asked: Asked) -> Bytes:
        return (reply[at : at + 1] for at in range(len(reply)))

    with Double(by_bytes) as double:
        assert client(double.url).request("GET", "/").body == b"hello"


def test_an_answer_without_a_body_ends_at_its_head() -> None:
    with replies(b"HTTP/1.1 204 No Content\r\n\r\n") as double:
        assert client(double.url).request("DELETE", "/x").body == b""


@pytest.mark.parametrize(
    "reply",
    [
        b"SSH-2.0-OpenSSH_9\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 40_000 + b"\r\n",
    ],
    ids=lambda reply: repr(reply)[2:40],
)
def test_what_is_no_http_is_refused_and_not_asked_again(reply: bytes) -> None:
    with replies(reply) as double:
        with pytest.raises(Unreachable, match="the answer cannot be used"):
            client(double.url).request("GET", "/")
        assert len(double.asked) == 1


def test_an_answer_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "ANSWER_LIMIT", 10)
    with (
        replies(raw(200, b"x" * 11)) as double,
        pytest.raises(Unreachable, match="larger than 10 bytes"),
    ):
        client(double.url).request("GET", "/")


def test_an_answer_before_the_body_was_read_is_heard() -> None:
    """A service that refuses a large body need not read it first."""
    too_large = raw(413, b"")
    listener = socket.create_server(("127.0.0.1", 0))

    def refuse() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(10)
            connection.sendall(too_large)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass

    thread = threading.Thread(target=refuse)
    thread.start()
    with listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert client(url).request("POST", "/", body=b"x" * 8_000_000).status == 413
    thread.join(LIMIT)


def test_x10_a_signal_while_reading_is_no_failure() -> None:
    """X10: the read goes on after the handler."""
    seen = threading.Event()

    def handler(_number: int, _frame: FrameType | None) -> None:
        seen.set()

    def interrupting(asked: Asked) -> bytes:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        assert seen.wait(LIMIT)
        return raw(200, b"ok")

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with Double(interrupting) as double:
            assert client(double.url).request("GET", "/", retry_for=0).body == b"ok"
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("value", ["a\r\nInjected: 1", "caf\u00e9", "\x00"])
def test_a_header_that_would_break_the_message_is_refused(value: str) -> None:
    with replies(answer(200)) as double:
        with pytest.raises(ValueError, match="X-A"):
            client(double.url).request("GET", "/", headers={"X-A": value})
        assert double.asked == []


@pytest.mark.parametrize("path", ["/a b", "/a\r\nb", "/é"])
def test_a_path_that_would_break_the_message_is_refused(path: str) -> None:
    with replies(answer(200)) as double, pytest.raises(ValueError, match="request path"):
        client(double.url).request("GET", path)


def test_a_segment_is_percent_encoded() -> None:
    assert percent_encoded("a/b ~é") == "a%2Fb%20~%C3%A9"


def test_a_lone_surrogate_is_sent_escaped() -> None:
    with replies(answer(200)) as double:
        client(double.url).request("POST", "/", body={"a": "\ud800"})
    assert double.asked[0].body == b'{"a":"\\ud800"}'


def test_an_unknown_name_is_unreachable_not_a_crash() -> None:
    with pytest.raises(Unreachable, match="no answer from"):
        client("http://no-such-host.invalid:1").request("GET", "/", retry_for=0)
