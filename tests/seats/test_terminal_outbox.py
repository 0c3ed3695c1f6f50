"""Replies on their way to people, and the streams that show them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steadmesh.kernel.database import Row, Transaction
from steadmesh.kernel.jobs import JobContext
from steadmesh.seats.connections import outbox, terminal
from steadmesh.tools import Credentials
from tests.seats.test_messages import message_of
from tests.seats.test_terminal import EVENTS, TOKENS, Person, alice
from tests.seats.world import World
from tests.support.organisations import fixture_f


@pytest.fixture(autouse=True)
def _tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAT", json.dumps(TOKENS))


def outbox_rows(world: World) -> list[Row]:
    return world.database.read_blocking(
        lambda tx: tx.all(
            "SELECT state, attempts, error, due_at, finished_at FROM channel_outbox ORDER BY number"
        )
    )


def fill_terminal(world: World, count: int) -> None:
    """Show alice lines 0, 1, 2 …"""

    def show(tx: Transaction) -> None:
        for n in range(count):
            terminal.show(
                tx,
                organisation_id=world.organisation_id,
                connection="chat",
                external_user_id="alice",
                line_id=f"line-{n}",
                text=str(n),
                at=world.clock.now(),
            )

    world.database.write_blocking(show)


def test_s54_a_reply_by_binding_with_no_earlier_message_reaches_the_person(world: World) -> None:
    """S-54."""
    rep_a = world.actor("rep_a")
    sent = rep_a("messages.reply", binding="alice", body="good morning")
    assert sent["delivery"] == "queued"
    assert sent["correlation_id"] == sent["message_id"]
    assert "recipient_state" not in sent
    [row] = outbox_rows(world)
    assert (row["state"], row["attempts"]) == ("queued", 0)
    assert alice(world).reads() == ["good morning"]
    [row] = outbox_rows(world)
    assert (row["state"], row["attempts"], row["error"]) == ("succeeded", 1, None)


def test_her_answer_goes_on_in_the_conversation_that_the_seat_began(world: World) -> None:
    rep_a = world.actor("rep_a")
    sent = rep_a("messages.reply", binding="alice", body="good morning")
    alice(world).says("hello")
    assert message_of(rep_a)["conversation_id"] == sent["conversation_id"]


def test_a_reply_to_a_person_continues_conversation_and_correlation(world: World) -> None:
    rep_a, person = world.actor("rep_a"), alice(world)
    person.says("hello")
    asked = message_of(rep_a)
    sent = rep_a("messages.reply", message_id=asked["message_id"], body="hi", wake=False)
    assert sent["conversation_id"] == asked["conversation_id"]
    assert sent["correlation_id"] == asked.get("correlation_id", sent["message_id"])
    talk = rep_a("messages.history", conversation_id=sent["conversation_id"])["messages"]
    assert [message["body"] for message in talk] == ["hello", "hi"]
    assert talk[1]["recipient_binding"] == "alice"
    assert talk[1]["parent_id"] == asked["message_id"]
    assert "binding" not in talk[1]


def test_replies_are_shown_with_id_text_and_time_in_the_order_they_were_written(
    world: World,
) -> None:
    rep_a, person = world.actor("rep_a"), alice(world)
    sent = [rep_a("messages.reply", binding="alice", body=str(n)) for n in range(5)]
    world.jobs()
    entries = person(EVENTS)["entries"]
    assert [entry["data"]["text"] for entry in entries] == ["0", "1", "2", "3", "4"]
    assert entries[0]["data"] == {
        "id": sent[0]["message_id"],
        "text": "0",
        "at": "2026-09-21T14:13:20Z",
    }


def test_a_reply_wakes_the_outbox_and_sending_wakes_the_stream(world: World) -> None:
    rep_a = world.actor("rep_a")
    woken = set[str]()
    world.database.on_wake(woken.update)
    rep_a("messages.reply", binding="alice", body="x")
    assert set(outbox.SENDING.topics) <= woken
    world.jobs()
    assert f"terminal:{world.organisation_id}:chat:alice" in woken


def test_nobody_reads_the_lines_of_another(world: World) -> None:
    world.actor("rep_a")("messages.reply", binding="alice", body="for alice")
    assert Person(world, TOKENS["bob"]).reads() == []
    assert alice(world).reads() == ["for alice"]


# Streams


def test_a_fresh_stream_goes_on_behind_what_was_shown(world: World) -> None:
    rep_a, person = world.actor("rep_a"), alice(world)
    rep_a("messages.reply", binding="alice", body="one")
    world.jobs()
    first = person(EVENTS)
    assert person.reads() == ["one"]  # nothing says yet that it was shown
    person(EVENTS, after=first["after"])  # the next round of the stream does
    rep_a("messages.reply", binding="alice", body="two")
    assert person.reads() == ["two"]


def test_every_stream_gets_each_line_by_its_position(world: World) -> None:
    rep_a, person = world.actor("rep_a"), alice(world)
    starts = [person(EVENTS)["after"] for _ in range(2)]
    rep_a("messages.reply", binding="alice", body="one")
    world.jobs()
    for start in starts:
        followed = person(EVENTS, after=start)
        assert [entry["data"]["text"] for entry in followed["entries"]] == ["one"]
    assert person.reads(after=0) == ["one"]


def test_a_position_that_is_not_there_yet_hides_nothing_to_come(world: World) -> None:
    rep_a, person = world.actor("rep_a"), alice(world)
    assert person.reads(after=10**9) == []
    rep_a("messages.reply", binding="alice", body="one")
    assert person.reads() == ["one"]


def test_the_newest_200_lines_wait_for_a_person_who_is_not_looking(world: World) -> None:
    fill_terminal(world, 205)
    person, shown = alice(world), []
    after = None
    for _ in range(3):
        followed = person(EVENTS, **({} if after is None else {"after": after}))
        shown += [entry["data"]["text"] for entry in followed["entries"]]
        after = followed["after"]
    assert shown == [str(n) for n in range(5, 205)]


def test_an_idle_stream_writes_nothing_and_a_new_line_ends_the_idling(world: World) -> None:
    person = alice(world)
    tool = terminal.follow
    caller = world.database.read_blocking(
        lambda tx: world.catalogue.families["people"].authenticate(
            tx, Credentials(bearer=person.token, path=person.path), world.clock.now()
        )
    )

    def glance(after: int | None) -> Any:
        args = tool.args.read(person.path | {"after": after})
        assert tool.ready is not None
        ready = tool.ready
        return world.database.read_blocking(lambda tx: ready(tx, caller, args, world.clock.now()))

    assert not glance(None)
    fill_terminal(world, 1)
    assert glance(None)
    after = person(EVENTS)["after"]
    assert glance(after)  # to note that it was shown
    person(EVENTS, after=after)
    assert not glance(after)


# What cannot be sent


def test_a_reply_fails_when_the_binding_is_gone(world: World) -> None:
    world.actor("rep_a")("messages.reply", binding="alice", body="late")
    document = fixture_f()
    del document["channel_bindings"]["alice"]
    world.apply(document)
    assert alice(world).reads() == []
    [row] = outbox_rows(world)
    assert row["state"] == "failed"
    assert "no longer represents" in row["error"]
    assert row["finished_at"] is not None


def test_a_reply_fails_when_somebody_else_represents_the_person(world: World) -> None:
    world.actor("rep_a")("messages.reply", binding="alice", body="late")
    document = fixture_f()
    document["channel_bindings"]["alice"]["seat"] = "rep_b"
    del document["channel_bindings"]["bob"]
    world.apply(document)
    assert alice(world).reads() == []
    assert outbox_rows(world)[0]["state"] == "failed"


def test_a_channel_that_is_not_offered_fails_and_says_so(world: World) -> None:
    document = fixture_f()
    document["connections"]["desk"] = {
        "adapter": "slack",
        "secret_ref": "env:SLACK",
        "account_id": "T1",
    }
    document["channel_bindings"]["alice"]["connection"] = "desk"
    world.apply(document)
    world.actor("rep_a")("messages.reply", binding="alice", body="hello")
    world.jobs()
    [row] = outbox_rows(world)
    assert (row["state"], row["error"]) == (
        "failed",
        "adapter slack is not available in this version",
    )


def test_what_cannot_be_stored_is_put_off_four_times_and_holds_up_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    rep_a, rep_b = world.actor("rep_a"), world.actor("rep_b")
    rep_a("messages.reply", binding="alice", body="poison")
    rep_b("messages.reply", binding="bob", body="fine")
    show = terminal.show

    def refuse(tx: Transaction, **line: Any) -> None:
        if line["text"] == "poison":
            raise RuntimeError("no")
        show(tx, **line)

    monkeypatch.setattr(terminal, "show", refuse)
    assert Person(world, TOKENS["bob"]).reads() == ["fine"]
    for attempt, delay in enumerate((1, 8, 64, 300), start=1):
        row = outbox_rows(world)[0]
        assert (row["state"], row["attempts"]) == ("queued", attempt)
        assert row["due_at"] == world.clock.now() + delay * 1_000_000
        world.clock.advance(delay)
        world.jobs()
    row = outbox_rows(world)[0]
    assert (row["state"], row["attempts"]) == ("failed", 5)
    assert "could not store" in row["error"]


def test_two_replicas_that_send_at_once_show_a_reply_once(world: World) -> None:
    """The second finds the reply settled: the claim is in the transaction that shows it."""
    world.actor("rep_a")("messages.reply", binding="alice", body="once")
    context = JobContext(world.database, world.clock, lambda: False)
    stale = world.database.read_blocking(lambda tx: outbox.due(tx, world.clock.now()))
    outbox.send_queued(context)
    outbox.send(context, stale[0][0], "terminal")
    assert alice(world).reads() == ["once"]


def test_a_stopping_service_sends_no_more(world: World) -> None:
    world.actor("rep_a")("messages.reply", binding="alice", body="x")
    outbox.send_queued(JobContext(world.database, world.clock, lambda: True))
    assert outbox_rows(world)[0]["state"] == "queued"


def test_marks_of_outside_events_are_forgotten_after_30_days(world: World) -> None:
    alice(world).says("hello")
    world.clock.advance(30 * 86_400)
    assert world.trim("ingress_events") == 0
    world.clock.advance(1)
    assert world.trim("ingress_events") == 1
