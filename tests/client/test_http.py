"""The HTTP client: addresses, ways a body comes, retries, limits."""

from __future__ import annotations

import itertools
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from steadmesh.client import exchange
from steadmesh.client.cancellation import Cancellation, Cancelled
from steadmesh.client.http import (
    Answer,
    BadAddress,
    Refused,
    Service,
    Stream,
    Unreachable,
    percent_encoded,
)
from tests.client.double import LIMIT, Asked, Bytes, Double, Reset, answer, event_stream, raw

Reply = bytes | Bytes | Reset


class Clock:
    """Time that passes only when somebody waits; the waits are kept."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def pause(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def __call__(self) -> float:
        return self.now


def client(*addresses: str, clock: Clock | None = None) -> Service:
    clock = clock or Clock()
    return Service(addresses, pause=clock.pause, clock=clock)


def replies(*script: Reply) -> Double:
    """A double that gives these answers in turn, the last one for ever."""
    turns = itertools.chain(script, itertools.repeat(script[-1]))
    return Double(lambda asked: next(turns))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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


def test_a_reset_and_a_503_are_retried_under_one_key() -> None:
    with replies(Reset(), answer(503), raw(200, b"ok")) as double:
        assert client(double.url).request("POST", "/x", body={}).body == b"ok"
        first, *others = double.keys("/x")
    assert others == [first, first]


def test_an_answer_that_breaks_off_is_retried() -> None:
    cut = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhel"
    with replies(cut, raw(200, b"hello")) as double:
        assert client(double.url).request("GET", "/").body == b"hello"


def test_another_request_has_another_key_and_a_reading_one_has_none() -> None:
    with replies(answer(200)) as double:
        service = client(double.url)
        service.request("PUT", "/x")
        service.request("POST", "/x")
        service.request("GET", "/x")
    keys = [asked.headers.get("idempotency-key") for asked in double.asked]
    assert keys[0] != keys[1]
    assert keys[2] is None


def test_a_key_and_a_header_of_the_caller_replace_ours() -> None:
    with replies(answer(200)) as double:
        client(double.url).request(
            "POST", "/x", headers={"idempotency-key": "mine", "accept": "*/*"}
        )
    assert double.keys("/x") == ["mine"]
    assert double.asked[0].headers["accept"] == "*/*"


def test_a_write_without_a_key_is_not_sent_twice() -> None:
    with replies(Reset()) as double:
        with pytest.raises(Unreachable):
            client(double.url).request("POST", "/x", body={}, idempotent_key=False)
        assert len(double.asked) == 1


def test_a_write_without_a_key_waits_for_a_service_that_refuses_connections() -> None:
    clock = Clock()
    with pytest.raises(Unreachable):
        client(f"http://127.0.0.1:{free_port()}", clock=clock).request(
            "POST", "/x", idempotent_key=False
        )
    assert sum(clock.waits) == pytest.approx(10.0)


def test_retries_end_in_time_with_growing_pauses() -> None:
    clock = Clock()
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(Unreachable) as caught:
        client(url, clock=clock).request("GET", "/")
    assert str(caught.value) == f"no answer from {url} after trying for 10 s: connection refused"
    assert sum(clock.waits) == pytest.approx(10.0)
    assert clock.waits[0] <= 0.05
    assert max(clock.waits) <= 1.0


def test_no_retries_means_every_address_once() -> None:
    clock = Clock()
    with replies(Reset()) as first, replies(Reset()) as second:
        with pytest.raises(Unreachable):
            client(first.url, second.url, clock=clock).request("GET", "/", retry_for=0)
        assert (len(first.asked), len(second.asked)) == (1, 1)
    assert clock.waits == []


def test_a_503_at_the_end_is_the_answer() -> None:
    with replies(answer(503, {"code": "unavailable"})) as double:
        found = client(double.url, f"http://127.0.0.1:{free_port()}").request("GET", "/")
    assert found.status == 503
    assert found.json() == {"code": "unavailable"}


def test_a_503_may_ask_for_a_longer_pause() -> None:
    clock = Clock()
    with replies(answer(503, Retry_After="2"), answer(200)) as double:
        client(double.url, clock=clock).request("GET", "/")
    assert clock.waits == [2.0]


def test_the_address_that_answered_is_asked_first_the_next_time() -> None:
    with replies(Reset()) as dead, replies(answer(200)) as live:
        service = client(dead.url, live.url)
        service.request("GET", "/")
        service.request("GET", "/")
        assert (len(dead.asked), len(live.asked)) == (1, 2)


def test_an_answer_that_does_not_come_in_time_is_not_asked_for_again() -> None:
    silent = threading.Event()

    def never(asked: Asked) -> bytes:
        silent.wait(LIMIT)
        return answer(200)

    with Double(never) as double:
        with pytest.raises(Unreachable, match=r"did not answer within 0\.05 s"):
            client(double.url).request("GET", "/", timeout=0.05)
        assert len(double.asked) == 1
        silent.set()


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


def test_a_request_can_be_cancelled_while_it_waits_for_its_answer() -> None:
    cancellation = Cancellation()

    def cancel(asked: Asked) -> Iterator[bytes]:
        cancellation.cancel()
        yield b"HTTP/1.1 200 OK\r\n"
        double.hung_up.wait(LIMIT)

    with Double(cancel) as double, pytest.raises(Cancelled):
        client(double.url).exchange("GET", "/", cancellation=cancellation)
    assert len(double.asked) == 1


def test_a_cancellation_ends_the_retries() -> None:
    cancellation = Cancellation()
    url = f"http://127.0.0.1:{free_port()}"
    timer = threading.Timer(0.01, cancellation.cancel)
    timer.start()
    with pytest.raises(Cancelled):
        client(url).exchange("GET", "/", retry_for=LIMIT, cancellation=cancellation)
    timer.join()


def test_a_stream_gives_its_lines_as_they_come() -> None:
    heard = threading.Event()

    def lines(asked: Asked) -> Bytes:
        def pieces() -> Iterator[bytes]:
            yield b"data: 1\r\n\r\nda"
            assert heard.wait(LIMIT)
            yield b"ta: 2\n\n"

        return event_stream(pieces())

    with Double(lines) as double, client(double.url).stream("/v1/events") as stream:
        assert next(stream) == b"data: 1"
        assert next(stream) == b""
        heard.set()
        assert list(stream) == [b"data: 2", b""]
    assert double.asked[0].headers["accept"] == "text/event-stream"


def test_a_stream_that_breaks_says_so() -> None:
    def broken(asked: Asked) -> Bytes:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked"
        return [head + b"\r\n\r\n", b"9\r\ndata: 1\n\n\r\n"]

    with Double(broken) as double, client(double.url).stream("/") as stream:
        assert next(stream) == b"data: 1"
        assert next(stream) == b""
        with pytest.raises(Unreachable, match="the stream broke"):
            next(stream)


def test_a_silent_stream_ends_at_the_limit_of_silence() -> None:
    def silent(asked: Asked) -> Bytes:
        def pieces() -> Iterator[bytes]:
            yield b": here\n"
            double.hung_up.wait(LIMIT)

        return event_stream(pieces())

    with Double(silent) as double:
        with client(double.url).stream("/", timeout=0.05) as stream:
            assert next(stream) == b": here"
            with pytest.raises(Unreachable, match="timed out"):
                next(stream)
        double.hung_up.set()


def test_a_stream_that_is_refused_carries_the_answer() -> None:
    with (
        replies(answer(401, {"code": "unauthenticated"})) as double,
        pytest.raises(Refused) as caught,
    ):
        client(double.url).stream("/")
    assert caught.value.answer.status == 401


def test_closing_a_stream_from_another_thread_wakes_its_reader() -> None:
    def one_line(asked: Asked) -> Bytes:
        def pieces() -> Iterator[bytes]:
            yield b": here\n"
            double.hung_up.wait(LIMIT)

        return event_stream(pieces())

    with Double(one_line) as double:
        stream = client(double.url).stream("/")
        next(stream)
        ended = threading.Event()

        def read_on() -> None:
            with pytest.raises((Unreachable, StopIteration)):
                next(stream)
            ended.set()

        reader = threading.Thread(target=read_on)
        reader.start()
        stream.close()
        assert ended.wait(LIMIT)
        double.hung_up.set()
        reader.join(LIMIT)


def test_exchange_opens_only_event_streams() -> None:
    with replies(event_stream([b"data: 1\n\n"]), answer(200)) as double:
        service = client(double.url)
        with service.exchange("POST", "/mcp", body={}) as stream:  # type: ignore[union-attr]  # checked next
            assert isinstance(stream, Stream)
        assert isinstance(service.exchange("POST", "/mcp", body={}), Answer)


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
