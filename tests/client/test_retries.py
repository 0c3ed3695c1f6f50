"""When the HTTP client asks again, and under which key."""

from __future__ import annotations

import threading

import pytest

from steadmesh.client.http import Unreachable
from tests.client.double import LIMIT, Asked, Double, Reset, answer, raw
from tests.client.scripted import Clock, client, replies


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


def test_a_write_without_a_key_waits_for_a_service_that_refuses_connections(closed: str) -> None:
    clock = Clock()
    with pytest.raises(Unreachable):
        client(closed, clock=clock).request("POST", "/x", idempotent_key=False)
    assert sum(clock.waits) == pytest.approx(10.0)


def test_retries_end_in_time_with_growing_pauses(closed: str) -> None:
    clock = Clock()
    with pytest.raises(Unreachable) as caught:
        client(closed, clock=clock).request("GET", "/")
    assert str(caught.value) == f"no answer from {closed} after trying for 10 s: connection refused"
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


def test_a_503_at_the_end_is_the_answer(closed: str) -> None:
    with replies(answer(503, {"code": "unavailable"})) as double:
        found = client(double.url, closed).request("GET", "/")
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
