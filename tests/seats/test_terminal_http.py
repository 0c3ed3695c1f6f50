"""The terminal channel as a client sees it: over HTTP, against the running service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.seats.test_terminal import TOKENS
from tests.service.test_http_streams import following
from tests.support.organisations import fixture_f
from tests.support.seats import Client, apply
from tests.support.service import Response, RunningService

MESSAGES = "/v1/channels/f/chat/messages"
EVENTS = "/v1/channels/f/chat/events"
ALICE = {"Authorization": f"Bearer {TOKENS['alice']}"}


@pytest.fixture
def service(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[RunningService]:
    """A running service with organisation F, on each engine in turn."""
    url = request.getfixturevalue("migrated_url") if engine == "postgresql" else None
    secret = tmp_path / "tokens.json"
    secret.write_text(json.dumps(TOKENS))
    with RunningService(url) as running:
        apply(running, fixture_f(f"file:{secret}"))
        yield running


def post(
    service: RunningService, body: object, headers: dict[str, str] = ALICE, path: str = MESSAGES
) -> Response:
    return service.request("POST", path, body, headers=headers)


def representative(service: RunningService, tmp_path: Path) -> Client:
    """rep_a as a client, with its lease."""
    seats = apply(service, fixture_f(f"file:{tmp_path / 'tokens.json'}"))
    return Client.of(service, seats["rep_a"], tmp_path / "rep_a")


def say(service: RunningService, seat: Client, body: str) -> None:
    """The seat writes to its person."""
    arguments = {"arguments": {"binding": "alice", "body": body}}
    answer = service.request(
        "POST", "/v1/tools/messages.reply", arguments, headers=seat.headers
    ).json()
    assert answer["content"]["delivery"] == "queued"


def test_a_post_is_accepted_with_202_and_reaches_the_representative(
    service: RunningService, tmp_path: Path
) -> None:
    seat = representative(service, tmp_path)
    answer = post(service, {"id": "1", "text": "hello"})
    assert (answer.status, answer.json()) == (202, {"id": "1"})
    assert post(service, {"id": "1", "text": "hello"}).status == 202
    delivery = service.request("GET", "/v1/inbox/next?wait=5", headers=seat.headers).json()
    assert delivery["message"]["body"] == "hello"


def test_what_is_wrong_with_a_post_is_told_by_the_status(service: RunningService) -> None:
    good = {"id": "1", "text": "x"}
    wrong = {"Authorization": "Bearer wrong"}
    assert post(service, good, {}).error == (401, "unauthenticated")
    assert post(service, good, wrong).error == (401, "unauthenticated")
    assert post(service, good, ALICE, "/v1/channels/f/other/messages").status == 401
    assert post(service, {"text": "x"}).error == (400, "invalid")
    assert post(service, {"id": "1", "text": "  "}).error == (400, "invalid")
    assert post(service, {"id": "1", "text": "a" * 65_537}).error == (400, "invalid")


def test_a_channel_whose_tokens_could_never_be_read_is_unavailable(
    service: RunningService, tmp_path: Path
) -> None:
    (tmp_path / "tokens.json").unlink()
    assert post(service, {"id": "1", "text": "x"}).error == (503, "unavailable")
    assert service.request("GET", EVENTS, headers=ALICE).error == (503, "unavailable")


def test_an_open_stream_shows_a_reply_when_it_is_sent(
    service: RunningService, tmp_path: Path
) -> None:
    seat = representative(service, tmp_path)
    with following(service, EVENTS, ALICE) as stream:
        say(service, seat, "good morning")
        _, data = stream.event()
    assert data["text"] == "good morning"
    assert set(data) == {"id", "text", "at"}


def test_what_came_while_nobody_looked_is_shown_on_connecting_and_then_no_more(
    service: RunningService, tmp_path: Path
) -> None:
    seat = representative(service, tmp_path)
    say(service, seat, "one")
    with following(service, EVENTS, ALICE) as stream:
        position, data = stream.event()
        assert data["text"] == "one"
        say(service, seat, "two")  # sent in a round that began by noting the one before as shown
        assert stream.event()[1]["text"] == "two"
    with following(service, EVENTS, ALICE | {"Last-Event-ID": str(position)}) as stream:
        assert stream.event()[1]["text"] == "two"
    say(service, seat, "three")
    with following(service, EVENTS, ALICE) as stream:
        assert stream.event()[1]["text"] != "one"


def test_a_person_cannot_use_the_paths_of_seats_and_operators(service: RunningService) -> None:
    for path in ("/v1/self", "/v1/tools", "/internal/v1/organizations"):
        assert service.request("GET", path, headers=ALICE).status == 401
