"""What a seat reads: recipients, its conversations, and what was queued without wake."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steadmesh.kernel.database import Transaction
from steadmesh.seats.messages import InboxCounts, inbox_counts
from tests.seats.test_leases import refused
from tests.seats.test_messages import NOBODY, message_of
from tests.seats.world import Actor, World
from tests.support.organisations import fixture_f

CAP = 16_384
CONTROLS = "!" + "\x01" * 12_287
"""As long as a body may be; six times as long once it is JSON."""


def size(content: Any) -> int:
    return len(json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode())


def pages(actor: Actor, name: str, entries: str, **arguments: Any) -> list[list[Any]]:
    """Every page of a list, each within the cap."""
    found, cursor = [], ""
    for _ in range(500):
        page = actor(name, cursor=cursor, **arguments)
        assert size(page) <= CAP
        found.append(page[entries])
        cursor = page["next_cursor"]
        if not cursor:
            return found
    raise AssertionError("the list does not end")


def crowd(count: int) -> dict[str, Any]:
    """Organisation F with many more seats that rep_a may write to."""
    document = fixture_f()
    template = {k: v for k, v in document["seats"]["rep_a"].items() if k != "personal_memory"}
    for n in range(count):
        key = f"worker_{n:03d}"
        document["seats"][key] = template | {"display_name": f"Worker {n} \N{GRINNING FACE}" * 4}
        document["message_routes"][key] = {"from": "seat:rep_a", "to": f"seat:{key}"}
    return document


# Recipients


def test_recipients_are_sorted_and_say_whether_they_may_answer(world: World) -> None:
    engineer = world.actor("engineer")
    assert engineer("messages.recipients") == {
        "recipients": [
            {"seat": "lead", "display_name": "lead", "can_reply": True},
            {"seat": "reviewer", "display_name": "reviewer", "can_reply": False},
        ],
        "next_cursor": "",
    }


def test_many_recipients_come_in_pages_that_fit_and_each_comes_once(world: World) -> None:
    world.apply(crowd(150))
    rep_a = world.actor("rep_a")
    found = pages(rep_a, "messages.recipients", "recipients")
    assert len(found) > 1
    keys = [entry["seat"] for page in found for entry in page]
    assert keys == sorted(keys)
    assert len(keys) == len(set(keys)) == 151


def test_u11_a_cursor_belongs_to_its_list_and_its_caller(world: World) -> None:
    world.apply(crowd(150))
    rep_a, lead = world.actor("rep_a"), world.actor("lead")
    cursor = rep_a("messages.recipients", cursor="")["next_cursor"]
    changed = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
    refused("invalid", rep_a, "messages.history", cursor=cursor)
    refused("invalid", lead, "messages.recipients", cursor=cursor)
    refused("invalid", rep_a, "messages.recipients", cursor=changed)
    refused("invalid", rep_a, "messages.recipients", cursor="nonsense")


# History


def test_s46_only_participants_read_a_conversation(world: World) -> None:
    """S-46."""
    rep_a, lead, engineer = world.actor("rep_a"), world.actor("lead"), world.actor("engineer")
    sent = rep_a("messages.send", to="lead", body="x")
    talk = sent["conversation_id"]
    for conversation in (talk, NOBODY, "nonsense", ""):
        refused("not_found", engineer, "messages.history", conversation_id=conversation)
    refused("not_found", engineer, "messages.history", message_id=sent["message_id"])
    for participant in (rep_a, lead):
        assert participant("messages.history", conversation_id=talk)["messages"]


def test_history_lists_conversations_most_recent_first(world: World) -> None:
    lead = world.actor("lead")
    first = lead("messages.send", to="engineer", body="one")["conversation_id"]
    world.clock.advance(1)
    second = lead("messages.send", to="engineer", body="two")["conversation_id"]
    world.clock.advance(1)
    lead("messages.send", to="engineer", body="again", conversation_id=first)
    listed = lead("messages.history")["conversations"]
    assert [entry["conversation_id"] for entry in listed] == [first, second]
    assert listed[0] == {
        "conversation_id": first,
        "kind": "internal",
        "created_at": "2026-09-21T14:13:20Z",
        "last_message_at": "2026-09-21T14:13:22Z",
    }


def test_u6_conversations_of_the_same_moment_are_each_listed_once(world: World) -> None:
    lead = world.actor("lead")
    sent = {lead("messages.send", to="engineer", body="x")["conversation_id"] for _ in range(130)}
    found = pages(lead, "messages.history", "conversations", limit=50)
    listed = [entry["conversation_id"] for page in found for entry in page]
    assert len(listed) == 130
    assert set(listed) == sent


def test_history_reads_a_conversation_oldest_first_in_pages(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    sent = lead("messages.send", to="engineer", body="0")
    talk = sent["conversation_id"]
    for n in range(1, 45):
        lead("messages.send", to="engineer", body=str(n), conversation_id=talk)
    found = pages(engineer, "messages.history", "messages", conversation_id=talk)
    assert [len(page) for page in found] == [20, 20, 5]
    assert [message["body"] for page in found for message in page] == [str(n) for n in range(45)]
    assert found[0][0] == {
        "message_id": sent["message_id"],
        "conversation_id": talk,
        "origin": "seat",
        "sender_seat": "lead",
        "recipient_seat": "engineer",
        "correlation_id": sent["message_id"],
        "body": "0",
        "created_at": "2026-09-21T14:13:20Z",
    }


@pytest.mark.parametrize(("limit", "shown"), [(-1, 20), (0, 20), (10**9, 50), ("7", 7)])
def test_u12_a_page_size_is_clamped(world: World, limit: Any, shown: int) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    talk = lead("messages.send", to="engineer", body="x")["conversation_id"]
    for _ in range(59):
        lead("messages.send", to="engineer", body="x", conversation_id=talk)
    page = engineer("messages.history", conversation_id=talk, limit=limit)
    assert len(page["messages"]) == shown


def test_long_bodies_are_cut_at_4_kib_and_shown_whole_alone(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    body = "é" * 6_144
    sent = lead("messages.send", to="engineer", body=body)
    talk = sent["conversation_id"]
    lead("messages.send", to="engineer", body="short", conversation_id=talk)
    long, short = engineer("messages.history", conversation_id=talk)["messages"]
    assert (long["body"], long["truncated"]) == ("é" * 2_048, True)
    assert "truncated" not in short
    [first] = engineer("messages.history", conversation_id=talk, limit=1)["messages"]
    assert first["body"] == body
    alone = engineer("messages.history", message_id=sent["message_id"])
    assert alone["messages"][0]["body"] == body
    assert alone["conversation_id"] == talk
    assert alone["next_cursor"] == ""


def test_a_message_of_another_conversation_is_not_found_in_this_one(world: World) -> None:
    lead = world.actor("lead")
    one = lead("messages.send", to="engineer", body="x")
    two = lead("messages.send", to="engineer", body="x")
    refused(
        "not_found",
        lead,
        "messages.history",
        conversation_id=one["conversation_id"],
        message_id=two["message_id"],
    )


def test_a_page_that_escaping_makes_too_large_holds_fewer_or_shorter_bodies(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    talk = lead("messages.send", to="engineer", body=CONTROLS)["conversation_id"]
    lead("messages.send", to="engineer", body=CONTROLS, conversation_id=talk)
    for limit in (1, 20):
        found = pages(engineer, "messages.history", "messages", conversation_id=talk, limit=limit)
        assert [len(page) for page in found] == [1, 1]
        for [message] in found:
            assert message["truncated"]
            assert 2_000 < len(message["body"]) < 2_731


# What was queued without wake


def test_s49_the_inbox_hands_over_in_the_middle_of_a_turn_and_once(world: World) -> None:
    """S-49."""
    lead, engineer = world.actor("lead"), world.actor("engineer")
    lead("messages.send", to="engineer", body="act")
    turn = engineer.next()
    sent = lead("messages.send", to="engineer", body="for information", wake=False)
    [message] = engineer("messages.inbox")["messages"]
    assert message["message_id"] == sent["message_id"]
    assert message["body"] == "for information"
    assert (message["sender_seat"], message["recipient_seat"]) == ("lead", "engineer")
    assert "current_time" not in message
    assert engineer("messages.inbox") == {"messages": []}
    engineer.finish(turn)
    lead("messages.send", to="engineer", body="act again")
    assert engineer.next()["passive"] == []


def test_what_the_inbox_handed_over_can_be_answered(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    lead("messages.send", to="engineer", body="for information", wake=False)
    [message] = engineer("messages.inbox")["messages"]
    engineer("messages.reply", message_id=message["message_id"], body="thanks")
    assert message_of(lead)["parent_id"] == message["message_id"]


def test_the_inbox_hands_over_the_oldest_first_as_many_as_asked(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    for n in range(25):
        lead("messages.send", to="engineer", body=str(n), wake=False)
    taken = [engineer("messages.inbox", max_results=n)["messages"] for n in (3, 0, 99)]
    assert [[message["body"] for message in some] for some in taken] == [
        ["0", "1", "2"],
        [str(n) for n in range(3, 23)],
        ["23", "24"],
    ]


def test_the_inbox_hands_over_what_fits_and_the_rest_stays_queued(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    for n in range(5):
        lead("messages.send", to="engineer", body=str(n) * 7_000, wake=False)
    taken = []
    for _ in range(3):
        content = engineer("messages.inbox")
        assert size(content) <= CAP
        taken.append([message["body"][0] for message in content["messages"]])
    assert taken == [["0", "1"], ["2", "3"], ["4"]]


def test_a_body_that_fits_in_no_answer_is_cut_and_stays_in_the_history(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    sent = lead("messages.send", to="engineer", body=CONTROLS, wake=False)
    content = engineer("messages.inbox")
    assert size(content) <= CAP
    assert content["messages"][0]["truncated"]
    assert engineer("messages.inbox") == {"messages": []}
    assert engineer("messages.history", message_id=sent["message_id"])["messages"]


def test_reading_the_inbox_needs_the_lease(world: World) -> None:
    engineer = Actor(world, "engineer")
    refused("fenced", engineer, "messages.inbox")
    assert engineer("messages.history")


def test_what_was_handed_over_makes_room_in_the_inbox(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    lead("messages.send", to="engineer", body="x", wake=False)
    engineer("messages.inbox")

    def open_deliveries(tx: Transaction) -> int:
        rows = tx.all("SELECT number FROM deliveries WHERE open = 1")
        return len(rows)

    assert world.database.read_blocking(open_deliveries) == 0


# Counts


def test_counts_of_an_inbox_tell_what_waits_since_when_until_when_and_what_is_dead(
    world: World,
) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    began = world.clock.now()

    def counts(seat: Actor) -> InboxCounts | None:
        return world.database.read_blocking(
            lambda tx: inbox_counts(tx, world.organisation_id).get(seat.seat_id)
        )

    assert counts(engineer) is None
    lead("messages.send", to="engineer", body="quiet", wake=False)
    assert counts(engineer) is None
    lead("messages.send", to="engineer", body="one")
    world.clock.advance(5)
    lead("messages.send", to="engineer", body="two")
    later = world.clock.now()
    assert counts(engineer) == InboxCounts(pending=2, oldest=began, next_due=began)
    turn = engineer.next()
    assert counts(engineer) == InboxCounts(pending=2, oldest=began, next_due=later)
    engineer.finish(turn)
    for _ in range(5):
        engineer.finish(engineer.next(), "failed")
        world.clock.advance(300)
    assert counts(engineer) == InboxCounts(dead=1)
    only = world.database.read_blocking(
        lambda tx: inbox_counts(tx, world.organisation_id, lead.seat_id)
    )
    assert only == {}
