"""People in a terminal: what they write reaches their representative, and what it answers them."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from steadmesh.kernel.database import Transaction, open_database
from steadmesh.tools import Credentials
from tests.seats.test_leases import refused
from tests.seats.test_messages import fill_inbox, message_of
from tests.seats.world import Actor, Refusal, World
from tests.support.organisations import fixture_f

TOKENS = {"alice": "token-of-alice", "bob": "token-of-bob", "carol": "token-of-carol"}
POST = "POST /v1/channels/{organization}/{connection}/messages"
EVENTS = "GET /v1/channels/{organization}/{connection}/events"


@pytest.fixture(autouse=True)
def _tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAT", json.dumps(TOKENS))


class Person:
    """Somebody with a token of the terminal connection."""

    def __init__(self, world: World, token: str, *, organization: str = "f") -> None:
        self.world = world
        self.token: str | None = token
        self.path = {"organization": organization, "connection": "chat"}

    def __call__(self, name: str, **arguments: Any) -> Any:
        credentials = Credentials(bearer=self.token, path=self.path)
        answer = self.world.run(name, self.path | arguments, credentials)
        if answer.failure is not None:
            raise Refusal(answer.failure)
        return json.loads(answer.content)

    def says(self, text: str, event: str = "1") -> Any:
        return self(POST, id=event, text=text)

    def reads(self, after: int | None = None) -> list[str]:
        """The texts of one round of a stream, after what is queued was sent."""
        self.world.jobs()
        followed = self(EVENTS, **({} if after is None else {"after": after}))
        return [entry["data"]["text"] for entry in followed["entries"]]


def alice(world: World) -> Person:
    return Person(world, TOKENS["alice"])


def counted(world: World, metric: str) -> list[str]:
    return [labels[1] for labels in world.counted if labels[0] == metric]


# From people


def test_what_a_person_writes_is_a_message_of_origin_human(world: World) -> None:
    rep_a = world.actor("rep_a")
    assert alice(world).says("hello") == {"id": "1"}
    envelope = message_of(rep_a)
    assert envelope["origin"] == "human"
    assert envelope["body"] == "hello"
    assert (envelope["binding"], envelope["external_user_id"]) == ("alice", "alice")
    assert envelope["reply_route"] == "binding:alice"
    assert "sender_seat" not in envelope
    assert counted(world, "messages_accepted_total") == ["human"]
    assert counted(world, "ingress_events_total") == ["accepted"]


def test_s52_the_same_event_twice_is_one_turn_and_one_reply(world: World) -> None:
    """S-52."""
    rep_a, person = world.actor("rep_a"), alice(world)
    for _ in range(2):
        assert person.says("hello", "event 1") == {"id": "event 1"}
    asked = message_of(rep_a)
    rep_a("messages.reply", message_id=asked["message_id"], body="ack: hello")
    assert rep_a.next() is None
    assert person.reads() == ["ack: hello"]
    assert counted(world, "ingress_events_total") == ["accepted", "duplicate"]


def test_one_person_cannot_use_up_the_ids_of_another(world: World) -> None:
    rep_b = world.actor("rep_b")
    alice(world).says("from alice", "1")
    Person(world, TOKENS["bob"]).says("from bob", "1")
    assert message_of(rep_b)["body"] == "from bob"


def test_a_person_without_a_binding_is_acknowledged_dropped_and_counted(world: World) -> None:
    Person(world, TOKENS["carol"]).says("anybody?")
    assert counted(world, "ingress_events_total") == ["unbound"]

    def messages(tx: Transaction) -> int:
        return len(tx.all("SELECT number FROM messages"))

    assert world.database.read_blocking(messages) == 0


def test_s47_a_person_is_heard_over_the_cap(world: World) -> None:
    """S-47, second half."""
    rep_a = world.actor("rep_a")
    fill_inbox(world, "rep_a", 1_000)
    alice(world).says("hello")
    assert rep_a("status")["self"]["pending_messages"] == 1_001


def test_a_person_has_one_conversation_with_her_representative(world: World) -> None:
    rep_a, person = world.actor("rep_a"), alice(world)
    person.says("one", "1")
    person.says("two", "2")
    talks = {message_of(rep_a)["conversation_id"] for _ in range(2)}
    assert len(talks) == 1
    [listed] = rep_a("messages.history")["conversations"]
    assert (listed["kind"], listed["binding"]) == ("human", "alice")


def test_a_new_representative_starts_a_fresh_conversation_and_the_old_one_closes(
    world: World,
) -> None:
    rep_a, person = world.actor("rep_a"), alice(world)
    person.says("for rep_a", "1")
    asked = message_of(rep_a)
    talk = asked["conversation_id"]
    document = fixture_f()
    document["channel_bindings"]["alice"]["seat"] = "rep_b"
    del document["channel_bindings"]["bob"]
    world.apply(document)
    person.says("for rep_b", "2")
    rep_b = world.actor("rep_b")
    assert message_of(rep_b)["conversation_id"] != talk
    refused("not_found", rep_b, "messages.history", conversation_id=talk)
    refused("not_found", rep_a, "messages.history", conversation_id=talk)
    assert rep_a("messages.history")["conversations"] == []
    refused("forbidden", rep_a, "messages.reply", message_id=asked["message_id"], body="late")


def test_a_binding_that_names_another_person_inherits_no_conversation(world: World) -> None:
    """What was meant for alice must not reach carol."""
    rep_a = world.actor("rep_a")
    alice(world).says("my secret", "1")
    asked = message_of(rep_a)
    document = fixture_f()
    document["channel_bindings"]["alice"]["external_user_id"] = "carol"
    world.apply(document)
    carol = Person(world, TOKENS["carol"])
    refused("forbidden", rep_a, "messages.reply", message_id=asked["message_id"], body="yours")
    fresh = rep_a("messages.reply", binding="alice", body="hello carol")
    assert fresh["conversation_id"] != asked["conversation_id"]
    assert carol.reads() == ["hello carol"]


def test_s53_a_conversation_with_a_person_is_for_her_representative_alone(world: World) -> None:
    """S-53."""
    rep_a, rep_b = world.actor("rep_a"), world.actor("rep_b")
    alice(world).says("hello")
    asked = message_of(rep_a)
    talk = asked["conversation_id"]
    refused("not_found", rep_b, "messages.history", conversation_id=talk)
    refused("not_found", rep_b, "messages.reply", message_id=asked["message_id"], body="x")
    refused("forbidden", rep_b, "messages.reply", binding="alice", body="x")
    [message] = rep_a("messages.history", conversation_id=talk)["messages"]
    assert (message["origin"], message["binding"], message["body"]) == ("human", "alice", "hello")


# Who is it?


@pytest.mark.parametrize("token", [None, "", "nonsense", "token-of-alic", "alice", "sms_x"])
def test_a_token_of_nobody_is_unauthenticated(world: World, token: str | None) -> None:
    person = Person(world, "")
    person.token = token
    for name, arguments in ((POST, {"id": "1", "text": "x"}), (EVENTS, {})):
        with pytest.raises(Refusal) as refusal:
            person(name, **arguments)
        assert refusal.value.kind == "unauthenticated"
        assert not token or token not in refusal.value.failure.message


@pytest.mark.parametrize(
    "path",
    [
        {"organization": "other", "connection": "chat"},
        {"organization": "f", "connection": "tracker"},
        {"organization": "f", "connection": "nowhere"},
        {"organization": "f\0", "connection": "chat"},
        {"organization": "f", "connection": "chat\0"},
        {},
    ],
)
def test_a_token_counts_on_its_own_channel_only(world: World, path: dict[str, str]) -> None:
    person = alice(world)
    person.path = path
    with pytest.raises(Refusal) as refusal:
        person.says("x")
    assert refusal.value.kind == "unauthenticated"


def test_the_token_of_a_seat_or_an_instance_is_of_no_person(world: World) -> None:
    rep_a = world.actor("rep_a")
    with pytest.raises(Refusal) as refusal:
        Person(world, rep_a.token).says("x")
    assert refusal.value.kind == "unauthenticated"
    rep_a.token = TOKENS["alice"]
    refused("unauthenticated", rep_a, "self")


@pytest.mark.parametrize(
    "arguments",
    [
        {"text": "x"},
        {"id": " ", "text": "x"},
        {"id": "1"},
        {"id": "1", "text": " \n"},
        {"id": "1", "text": "a" * 65_537},
        {"id": "1", "text": "\N{GRINNING FACE}" * 16_385},
        {"id": "1", "text": "a\0b"},
    ],
)
def test_a_post_without_id_or_with_no_or_too_much_text_is_invalid(
    world: World, arguments: dict[str, str]
) -> None:
    with pytest.raises(Refusal) as refusal:
        alice(world)(POST, **arguments)
    assert refusal.value.kind == "invalid"


def test_a_person_may_write_64_kib(world: World) -> None:
    rep_a = world.actor("rep_a")
    alice(world).says("a" * 65_536)
    assert len(message_of(rep_a)["body"]) == 65_536


def test_a_changed_token_counts_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    alice(world).says("one", "1")
    monkeypatch.setenv("CHAT", json.dumps({"alice": "another token"}))
    with pytest.raises(Refusal) as refusal:
        alice(world).says("two", "2")
    assert refusal.value.kind == "unauthenticated"
    assert Person(world, "another token").says("two", "2")


def secret_in_a_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: None, "No such file"),
        (secret_in_a_folder, "no regular file"),
        (lambda path: path.write_text('{"alice": "s3cret"'), "holds no JSON"),
        (lambda path: path.write_text('["s3cret"]'), "no JSON object"),
        (lambda path: path.write_text('{"alice": ["s3cret"]}'), "no JSON object"),
        (lambda path: path.write_bytes(b'{"alice": "s3cret\xff"}'), "not UTF-8"),
    ],
)
def test_s110_an_unreadable_secret_is_unavailable_and_only_the_log_says_why(
    world: World,
    spoil: Callable[[Path], object],
    reason: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """S-110 and Z8: neither answer nor log holds a value, and the answer no path."""
    secret = tmp_path / "tokens.json"
    spoil(secret)
    world.apply(fixture_f(f"file:{secret}"))
    with pytest.raises(Refusal) as refusal:
        alice(world).says("x")
    assert refusal.value.kind == "unavailable"
    assert str(tmp_path) not in refusal.value.failure.message
    [record] = caplog.records
    fields = getattr(record, "fields")  # noqa: B009 - set by `extra`, unknown to the type
    assert reason in fields["reason"]
    assert "s3cret" not in json.dumps(fields) + caplog.text


def test_tokens_are_read_from_a_file(world: World, tmp_path: Path) -> None:
    secret = tmp_path / "tokens.json"
    secret.write_text(json.dumps({"alice": "one"}))
    world.apply(fixture_f(f"file:{secret}"))
    assert Person(world, "one").says("x", "1")
    secret.write_text(json.dumps({"alice": "two"}))
    assert Person(world, "two").says("x", "2")


def damage(path: Path) -> None:
    path.write_text("{")


@pytest.mark.parametrize("spoil", [Path.unlink, damage])
def test_tokens_that_were_deleted_or_damaged_are_used_for_ten_minutes_more(
    world: World, tmp_path: Path, spoil: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    secret = tmp_path / "tokens.json"
    secret.write_text(json.dumps(TOKENS))
    world.apply(fixture_f(f"file:{secret}"))
    alice(world).says("x", "1")
    spoil(secret)
    alice(world).says("x", "2")
    world.clock.advance(600)
    alice(world).says("x", "3")
    assert [record.getMessage() for record in caplog.records] == [
        "what was last read of a secret is used on"
    ]
    world.clock.advance(1)
    with pytest.raises(Refusal) as refusal:
        alice(world).says("x", "4")
    assert refusal.value.kind == "unavailable"
    secret.write_text(json.dumps(TOKENS))
    alice(world).says("x", "5")


def test_tokens_of_a_store_that_cannot_be_read_are_used_for_a_day_more(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "tokens.json"
    secret.write_text(json.dumps(TOKENS))
    world.apply(fixture_f(f"file:{secret}"))
    alice(world).says("x", "1")
    away = _Away(secret)
    monkeypatch.setattr("steadmesh.seats.connections._secrets.os.stat", away)
    world.clock.advance(1)
    alice(world).says("x", "2")
    world.clock.advance(24 * 3_600)
    alice(world).says("x", "3")
    world.clock.advance(1)
    with pytest.raises(Refusal) as refusal:
        alice(world).says("x", "4")
    assert refusal.value.kind == "unavailable"


class _Away:
    """A file on a disk that does not answer."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._stat = os.stat

    def __call__(self, path: Any, *given: Any, **named: Any) -> os.stat_result:
        if str(path) == self._path:
            raise OSError(errno.EIO, "Input/output error")
        return self._stat(path, *given, **named)


def test_a_token_that_was_taken_out_of_the_file_counts_no_more(
    world: World, tmp_path: Path
) -> None:
    secret = tmp_path / "tokens.json"
    secret.write_text(json.dumps(TOKENS))
    world.apply(fixture_f(f"file:{secret}"))
    alice(world).says("x", "1")
    secret.write_text(json.dumps({"bob": TOKENS["bob"]}))
    with pytest.raises(Refusal) as refusal:
        alice(world).says("x", "2")
    assert refusal.value.kind == "unauthenticated"


def test_the_same_event_from_8_threads_is_one_message(migrated_url: str) -> None:
    """A race on PostgreSQL."""
    world = World(open_database(migrated_url))
    person = alice(world)
    for n in range(5):
        with ThreadPoolExecutor(8) as threads:
            posts = [threads.submit(person.says, "hello", f"event {n}") for _ in range(8)]
            assert [post.result(30)["id"] for post in posts] == [f"event {n}"] * 8
    rep_a = Actor(world, "rep_a").acquire()
    assert rep_a("status")["self"]["pending_messages"] == 5
    assert len(rep_a("messages.history")["conversations"]) == 1
    world.database.close()
