"""What operators see of turns: the log of a seat, its status, and dead letters."""

from __future__ import annotations

from typing import Any

import pytest

from steadmesh.seats.turns.log import EVENTS, ReadLog, has_news
from steadmesh.tools import Credentials
from steadmesh.tools.run import NOTHING
from tests.seats.test_apply import without_reviewer
from tests.seats.world import Actor, Refusal, World

LOG = "GET /internal/v1/organizations/{organization}/seats/{seat}/log"
STATUS = "GET /internal/v1/organizations/{organization}/status"
DEAD = "GET /internal/v1/dead-letters"
EVENT = "POST /v1/executions/{execution}/events"


def log_of(world: World, seat: str, **arguments: Any) -> Any:
    return world.operate(LOG, organization=world.organisation_id, seat=seat, **arguments)


def is_news(world: World, seat: str, cursor: str) -> bool:
    args = ReadLog(organization=world.organisation_id, seat=seat, after=cursor, wait=1.0)
    caller: Any = None
    return world.database.read_blocking(lambda tx: has_news(tx, caller, args, world.clock.now()))


def operator_refused(world: World, name: str, **arguments: Any) -> Refusal:
    with pytest.raises(Refusal) as refusal:
        world.operate(name, **arguments)
    return refusal.value


def row_of(world: World, seat: str) -> Any:
    seats = world.operate(STATUS, organization=world.organisation_id)["seats"]
    return next(row for row in seats if row["seat"] == seat)


def give_up(world: World, actor: Actor) -> int:
    """Let the message that waits fail five times; the id of the dead letter."""
    for delay in (1, 8, 64, 300, 0):
        delivery = actor.next()
        actor.finish(delivery, "failed", "no paper")
        world.clock.advance(delay)
    return int(delivery["delivery_id"])


def test_the_log_tells_a_turn_from_what_began_it_to_what_becomes_of_its_message(
    world: World,
) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    lead("messages.send", to="engineer", body="build it")
    delivery = engineer.next()
    engineer(EVENT, execution=delivery["execution_id"], kind="progress", data={"text": "half"})
    engineer.finish(delivery, "failed", "no paper")
    page = log_of(world, "engineer")
    [turn], [event] = page["turns"], page["events"]
    assert (turn["origin"], turn["sender_seat"], turn["attempt"]) == ("seat", "lead", 1)
    assert (turn["state"], turn["error"]) == ("failed", "no paper")
    assert turn["next_attempt_at"] > turn["ended_at"]
    assert (event["execution_id"], event["data"]) == (turn["execution_id"], {"text": "half"})
    assert page["more"] is False


def test_only_the_last_attempt_of_a_message_that_was_given_up_says_so(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    lead("messages.send", to="engineer", body="poison")
    give_up(world, engineer)
    turns = log_of(world, "engineer")["turns"]
    assert [turn.get("given_up", False) for turn in turns] == [False] * 4 + [True]
    assert not any("next_attempt_at" in turn for turn in turns)


def test_behind_a_cursor_stands_only_what_is_new_and_a_running_turn_comes_again(
    world: World,
) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    lead("messages.send", to="engineer", body="one")
    first = engineer.next()
    engineer(EVENT, execution=first["execution_id"], kind="progress")
    seen = log_of(world, "engineer")
    engineer(EVENT, execution=first["execution_id"], kind="completion")
    engineer.finish(first)
    later = log_of(world, "engineer", after=seen["cursor"])
    assert [turn["state"] for turn in later["turns"]] == ["completed"]
    assert [event["kind"] for event in later["events"]] == ["completion"]


def test_a_reader_is_stirred_by_turns_events_and_states_and_by_nothing_else(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")

    def cursor() -> str:
        return str(log_of(world, "engineer")["cursor"])

    quiet = cursor()
    lead("messages.send", to="engineer", body="one")
    engineer("messages.send", to="lead", body="two")
    assert not is_news(world, "engineer", quiet)
    delivery = engineer.next()
    assert is_news(world, "engineer", quiet)
    in_turn = cursor()
    assert not is_news(world, "engineer", in_turn)
    engineer(EVENT, execution=delivery["execution_id"], kind="progress")
    assert is_news(world, "engineer", in_turn)
    reported = cursor()
    engineer("POST /v1/state", state="Executing")
    assert is_news(world, "engineer", reported)
    executing = cursor()
    engineer.finish(delivery)
    assert is_news(world, "engineer", executing)
    assert not is_news(world, "engineer", cursor())


def test_waiting_for_news_answers_nothing_while_there_is_none(world: World) -> None:
    cursor = log_of(world, "engineer")["cursor"]
    arguments = {
        "organization": world.organisation_id,
        "seat": "engineer",
        "after": cursor,
        "wait": 1.0,
    }
    answer = world.run(LOG, arguments, Credentials(local=True))
    assert (answer.failure, answer.content) == (None, NOTHING)


def test_more_events_than_fit_on_a_page_come_on_the_next_ones_each_once(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    for body in ("one", "two"):
        lead("messages.send", to="engineer", body=body)
        delivery = engineer.next()
        events = [{"kind": "progress", "data": {"n": n}} for n in range(EVENTS - 100)]
        engineer(EVENT, execution=delivery["execution_id"], events=events)
        engineer.finish(delivery)
    pages = [log_of(world, "engineer")]
    while pages[-1]["more"]:
        pages.append(log_of(world, "engineer", after=pages[-1]["cursor"]))
    told = [event["number"] for page in pages for event in page["events"]]
    assert len(told) == len(set(told)) == 2 * (EVENTS - 100)
    assert told == sorted(told)
    assert len(pages) == 2


def test_more_turns_than_were_asked_for_come_page_by_page(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    cursor = ""
    for number in range(5):
        lead("messages.send", to="engineer", body=str(number))
        engineer.finish(engineer.next())
        world.clock.advance(1)
        if number == 0:
            cursor = log_of(world, "engineer")["cursor"]
    seen: list[str] = []
    more = True
    while more:
        page = log_of(world, "engineer", after=cursor, limit=2)
        cursor, more = page["cursor"], page["more"]
        seen += [turn["execution_id"] for turn in page["turns"]]
    assert list(dict.fromkeys(seen)) == [
        turn["execution_id"] for turn in log_of(world, "engineer")["turns"]
    ]


def test_the_first_page_has_the_newest_turns_in_their_order(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    for body in ("one", "two", "three"):
        lead("messages.send", to="engineer", body=body)
        engineer.finish(engineer.next())
        world.clock.advance(1)
    turns = log_of(world, "engineer", limit=2)["turns"]
    assert [turn["delivery_id"] for turn in turns] == sorted(turn["delivery_id"] for turn in turns)
    assert turns == log_of(world, "engineer")["turns"][1:]


def test_a_seat_is_found_by_its_id_and_an_unknown_one_is_not(world: World) -> None:
    assert log_of(world, world.seats["engineer"])["seat"] == "engineer"
    unknown = operator_refused(world, LOG, organization=world.organisation_id, seat="nobody")
    assert (unknown.kind, "nobody" in unknown.failure.message) == ("not_found", True)
    assert operator_refused(world, LOG, organization="x", seat="lead").kind == "not_found"


@pytest.mark.parametrize("after", ["x", "1.2.3", "9" * 30 + "...", "1.é.x.1.y"])
def test_a_cursor_that_is_none_is_invalid(world: World, after: str) -> None:
    refusal = operator_refused(
        world, LOG, organization=world.organisation_id, seat="lead", after=after
    )
    assert refusal.code == "invalid"


# Status


def test_the_status_says_since_when_which_attempt_and_from_whom_a_seat_works(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    lead("messages.send", to="engineer", body="build it")
    engineer.finish(engineer.next(), "failed")
    world.clock.advance(1)
    engineer.next()
    turn = row_of(world, "engineer")["turn"]
    assert (turn["attempt"], turn["origin"], turn["sender_seat"]) == (2, "seat", "lead")
    assert turn["since"].startswith("2026-")
    assert "turn" not in row_of(world, "lead")


def test_the_status_says_until_when_mail_waits_only_if_none_of_it_is_due(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    lead("messages.send", to="engineer", body="one")
    assert "next_attempt_at" not in row_of(world, "engineer")
    engineer.finish(engineer.next(), "failed")
    assert row_of(world, "engineer")["next_attempt_at"] == "2026-09-21T14:13:21Z"
    lead("messages.send", to="engineer", body="two")
    assert "next_attempt_at" not in row_of(world, "engineer")


def test_the_status_says_who_holds_the_lease(world: World) -> None:
    assert "lease_holder" not in row_of(world, "engineer")
    world.actor("engineer", "by-hand")
    row = row_of(world, "engineer")
    assert (row["lease_holder"], row["running"], row["suspended"]) == ("by-hand", True, False)
    assert row["lease_expires_at"] == "2026-09-21T14:13:50Z"


# Dead letters


def test_dead_letters_of_an_organisation_that_is_not_there_are_not_found(world: World) -> None:
    refusal = operator_refused(world, DEAD, organization="nowhere")
    assert refusal.kind == "not_found"
    assert "steadmesh status" in refusal.failure.message


def test_dead_letters_are_listed_by_seat_and_shown_with_their_text(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    lead("messages.send", to="engineer", body="poison")
    number = give_up(world, engineer)

    def listed(seat: str) -> list[int]:
        found = world.operate(DEAD, organization=world.organisation_id, seat=seat)
        return [letter["id"] for letter in found["dead_letters"]]

    assert (listed("engineer"), listed(""), listed("lead")) == ([number], [number], [])
    shown = world.operate("GET /internal/v1/dead-letters/{letter}", letter=number)
    assert (shown["body"], shown["sender_seat"], shown["attempts"]) == ("poison", "lead", 5)
    assert shown["can_be_requeued"] is True
    refusal = operator_refused(world, "GET /internal/v1/dead-letters/{letter}", letter=number + 1)
    assert refusal.kind == "not_found"


def test_the_letter_of_a_retiring_seat_is_shown_as_one_that_nobody_would_take(
    world: World,
) -> None:
    engineer, reviewer = world.actor("engineer"), world.actor("reviewer")
    engineer("messages.send", to="reviewer", body="poison")
    number = give_up(world, reviewer)
    world.apply(without_reviewer())
    shown = world.operate("GET /internal/v1/dead-letters/{letter}", letter=number)
    assert shown["can_be_requeued"] is False
