"""Streaming answers, and ending a request from another thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from steadmesh.client.cancellation import Cancellation, Cancelled
from steadmesh.client.http import (
    Answer,
    Refused,
    Stream,
    Unreachable,
)
from tests.client.double import LIMIT, Asked, Bytes, Double, answer, event_stream
from tests.client.scripted import client, replies


def test_a_request_can_be_cancelled_while_it_waits_for_its_answer() -> None:
    cancellation = Cancellation()

    def cancel(asked: Asked) -> Iterator[bytes]:
        cancellation.cancel()
        yield b"HTTP/1.1 200 OK\r\n"
        double.hung_up.wait(LIMIT)

    with Double(cancel) as double, pytest.raises(Cancelled):
        client(double.url).exchange("GET", "/", cancellation=cancellation)
    assert len(double.asked) == 1


def test_a_cancellation_ends_the_retries(closed: str) -> None:
    cancellation = Cancellation()
    timer = threading.Timer(0.01, cancellation.cancel)
    timer.start()
    with pytest.raises(Cancelled):
        client(closed).exchange("GET", "/", retry_for=LIMIT, cancellation=cancellation)
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
