"""Server-sent events: followed by position, taken up where a connection broke."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from steadmesh.service import streams
from tests.runner.waiting import until
from tests.service import notes
from tests.service.notes import ADA, PERSON
from tests.support.service import RunningService, whole

SEAT = {"Authorization": f"Bearer {ADA}", "X-Steadmesh-Generation": "1"}
MIA = {"Authorization": f"Bearer {PERSON}"}
PATH = "/v1/channels/acme/a/events"
LIMIT = 10.0


class Following:
    """An open stream, read event by event."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response

    def line(self) -> str:
        return self.response.readline().decode().removesuffix("\n")

    def event(self) -> tuple[int, Any]:
        """Position and data of the next event; comments are passed over."""
        fields: dict[str, str] = {}
        while line := self.line():
            name, _, value = line.partition(": ")
            fields[name] = value
        return (int(fields["id"]), json.loads(fields["data"])) if "data" in fields else self.event()


@contextmanager
def following(
    running: RunningService, path: str = PATH, headers: dict[str, str] = MIA
) -> Iterator[Following]:
    connection = running.connection(timeout=LIMIT)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        assert response.status == 200, whole(response)
        yield Following(response)
    finally:
        connection.close()


def write(running: RunningService, *texts: str, book: str = "a") -> None:
    events = [{"text": text} for text in texts]
    path = f"/v1/books/{book}/events"
    assert running.request("POST", path, events, headers=SEAT).status == 204


def test_a_stream_tells_what_is_there_and_what_comes(books: RunningService) -> None:
    write(books, "one", "zwei \u00fc \u2028 \n zeile")
    with following(books) as stream:
        headers = stream.response.headers
        assert headers["content-type"] == "text/event-stream"
        assert headers["cache-control"] == "no-store"
        first, second = stream.event(), stream.event()
        assert first[1] == {"text": "one"}
        assert second[1] == {"text": "zwei \u00fc \u2028 \n zeile"}
        write(books, "three")
        third = stream.event()
    assert third[1] == {"text": "three"}
    assert first[0] < second[0] < third[0]


def test_a_stream_goes_on_behind_the_last_event_that_was_received(books: RunningService) -> None:
    write(books, "one", "two", "three")
    with following(books) as stream:
        position, _ = stream.event()
    with following(books, headers=MIA | {"Last-Event-ID": str(position)}) as stream:
        assert stream.event()[1] == {"text": "two"}
    with following(books, f"{PATH}?after={position}") as stream:
        assert stream.event()[1] == {"text": "two"}


def test_more_than_a_round_holds_is_told_in_order(books: RunningService) -> None:
    texts = [f"note {number}" for number in range(25)]
    write(books, *texts)
    with following(books) as stream:
        assert [stream.event()[1]["text"] for _ in texts] == texts


def test_every_follower_is_told_everything(books: RunningService) -> None:
    with following(books) as one, following(books) as other:
        write(books, "for both")
        assert one.event() == other.event()


def test_events_of_others_are_not_told(books: RunningService) -> None:
    with following(books) as stream:
        write(books, "theirs", book="b")
        write(books, "mine")
        assert stream.event()[1] == {"text": "mine"}


@pytest.mark.parametrize(
    ("path", "headers", "error"),
    [
        (PATH, {}, (401, "unauthenticated")),
        (PATH, {"Authorization": "Bearer nobody"}, (401, "unauthenticated")),
        ("/v1/channels/other/a/events", MIA, (401, "unauthenticated")),
        (PATH, SEAT, (401, "unauthenticated")),
        (PATH, MIA | {"Last-Event-ID": "x"}, (400, "invalid")),
        (PATH, MIA | {"Last-Event-ID": "-1"}, (400, "invalid")),
        (f"{PATH}?after=x", MIA, (400, "invalid")),
    ],
)
def test_who_may_not_follow_is_refused_as_with_any_call(
    shared: RunningService, path: str, headers: dict[str, str], error: tuple[int, str]
) -> None:
    assert shared.request("GET", path, headers=headers).error == error


def test_a_silent_stream_shows_that_it_lives(
    shared: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "COMMENT_SECONDS", 0.05)
    monkeypatch.setattr(streams, "ROUND_SECONDS", 0.05)
    with following(shared, "/v1/channels/acme/silent/events") as stream:
        lines = [stream.line() for _ in range(6)]
    assert lines == [": steadmesh", ""] * 3


def test_a_follower_who_left_is_forgotten(
    shared: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watched() -> int:
        return shared.service.signals.watchers("book:left")

    with following(shared, "/v1/channels/acme/left/events") as stream:
        stream.line()
        until(watched, "a follower")
    until(lambda: not watched(), "the end of the stream")


def test_a_token_that_ends_ends_the_stream(
    shared: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    with following(shared, "/v1/channels/acme/ended/events") as stream:
        assert stream.line() == ": steadmesh"
        monkeypatch.setattr(notes, "PERSON", "another token")
        assert stream.response.read() == b"\n"


def test_a_stop_ends_a_stream_cleanly() -> None:
    running = RunningService(families=notes.FAMILIES, features=[notes.FEATURE])
    with running, following(running) as stream:
        stream.line()
        running.stop()
        assert stream.response.read() == b"\n"
