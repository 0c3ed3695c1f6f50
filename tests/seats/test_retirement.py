"""Seats that leave: wind down, are cancelled, end in time or out of it; and are adopted."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.seats.test_apply import changed
from tests.seats.world import Actor, Refusal, World
from tests.support.organisations import fixture_f

MINUTE = 60.0


def without(*keys: str) -> dict[str, Any]:
    """Organisation F without some seats, and without the routes that name them."""
    document = copy.deepcopy(fixture_f())
    for key in keys:
        del document["seats"][key]
    document["message_routes"] = {
        name: route
        for name, route in document["message_routes"].items()
        if not {f"seat:{key}" for key in keys} & {route["from"], route["to"]}
        and not set(keys) & {route["from"], route["to"]}
    }
    return document


def leave(world: World, *keys: str, grace: str | None = None) -> Any:
    from tests.support.organisations import BUNDLES

    return world.operate(
        "POST /internal/v1/organizations:sync", file=without(*keys), bundles=BUNDLES, grace=grace
    )


def bodies(actor: Actor) -> list[str]:
    """What waits for a seat, handled one after another."""
    found = []
    while (delivery := actor.next()) is not None:
        found.append(delivery["message"]["body"])
        actor.finish(delivery)
    return found


def state_of(world: World, key: str) -> str | None:
    runtime = world.operate(
        "GET /internal/v1/organizations/{organization}/runtime",
        organization=world.organisation_id,
    )
    return runtime["seats"][key]["state"] if key in runtime["seats"] else None


def test_s105_a_busy_seat_finishes_its_turn_and_leaves_a_handoff(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    rep_a, rep_b = world.actor("rep_a"), world.actor("rep_b")
    lead("messages.send", to="engineer", body="build it")
    turn = engineer.next()
    lead("messages.send", to="engineer", body="and then test it")
    lead("messages.send", to="engineer", body="for your information", wake=False)
    retiring = leave(world, "engineer")["retiring"]
    assert list(retiring) == ["engineer"]

    [returned] = bodies(lead)
    assert returned.startswith("Not delivered: engineer")
    assert "and then test it" in returned
    assert "for your information" in returned
    world.jobs()
    assert state_of(world, "engineer") == "Retiring"  # its turn goes on
    engineer("handoff.update", objective="the build", unresolved=["the tests"], notes="see notes/")
    engineer.finish(turn)
    world.jobs()
    assert state_of(world, "engineer") == "Retiring"  # the notice waits

    notice = engineer.next()
    assert notice["message"]["origin"] == "system"
    assert notice["message"]["body"].startswith("Retirement notice")
    assert "and then test it" in notice["message"]["body"]
    engineer.finish(notice)
    world.jobs()
    assert state_of(world, "engineer") is None
    assert ("seats_retired_total",) in world.counted
    for representative in (rep_a, rep_b):
        [summary] = bodies(representative)
        assert "engineer" in summary
        assert "has finished" in summary
        assert "the build" in summary
        assert "the tests" in summary
    with pytest.raises(Refusal) as refusal:
        engineer("self")
    assert refusal.value.code == "forbidden"


def test_s106_a_turn_that_outlasts_the_grace_is_interrupted(world: World) -> None:
    lead, engineer, rep_a = world.actor("lead"), world.actor("engineer"), world.actor("rep_a")
    lead("messages.send", to="engineer", body="build it")
    engineer.next()
    leave(world, "engineer", grace="5m")
    world.clock.advance(4 * MINUTE)
    world.jobs()
    assert state_of(world, "engineer") == "Retiring"
    world.clock.advance(1 * MINUTE)
    world.jobs()
    assert state_of(world, "engineer") is None
    [summary] = bodies(rep_a)
    assert "ran out of time" in summary
    assert "interrupted" in summary
    assert "left no handoff" in summary
    assert "build it" in summary
    [returned] = bodies(lead)
    assert "build it" in returned
    with pytest.raises(Refusal) as refusal:
        engineer.next()
    assert refusal.value.code == "forbidden"


def test_s107_a_seat_that_is_declared_again_in_time_never_hears_of_it(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    engineer("handoff.update", objective="kept")
    leave(world, "engineer")
    world.clock.advance(5 * MINUTE)
    synced = world.apply(fixture_f())
    assert synced["seats"]["engineer"]["seat_id"] == engineer.seat_id
    assert engineer.next() is None
    world.clock.advance(6 * MINUTE)
    world.jobs()
    assert engineer("GET /v1/bootstrap")["recovery"]["handoff"] == {
        "objective": "kept",
        "unresolved": [],
        "record_ids": [],
        "pending_message_ids": [],
        "operation_ids": [],
    }
    lead("messages.send", to="engineer", body="welcome back")
    assert bodies(engineer) == ["welcome back"]


def test_a_seat_that_has_seen_its_notice_is_told_to_carry_on(world: World) -> None:
    engineer = world.actor("engineer")
    leave(world, "engineer")
    notice = engineer.next()
    world.apply(fixture_f())
    engineer.finish(notice)
    [carry_on] = bodies(engineer)
    assert "cancelled" in carry_on


def test_s108_a_retiring_seat_takes_no_messages(world: World) -> None:
    lead, reviewer = world.actor("lead"), world.actor("reviewer")
    engineer = world.actor("engineer")
    lead("messages.send", to="engineer", body="a question")
    question = engineer.next()
    engineer("messages.send", to="lead", body="an answer later")
    leave(world, "engineer")
    with pytest.raises(Refusal) as refusal:
        lead("messages.send", to="engineer", body="one more")
    assert refusal.value.code == "unavailable"
    assert refusal.value.details == {"recipient_state": "Retiring"}
    message = lead.next()["message"]
    with pytest.raises(Refusal) as refusal:
        lead("messages.reply", message_id=message["message_id"], body="one more")
    assert refusal.value.code == "unavailable"
    with pytest.raises(Refusal) as refusal:  # who had no route is told what it was told before
        reviewer("messages.send", to="engineer", body="x")
    assert refusal.value.code == "forbidden"
    engineer.finish(question)
    [notice] = bodies(engineer)
    assert notice.startswith("Retirement notice")


def test_a_retiring_seat_may_still_write(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    leave(world, "engineer")
    engineer("messages.send", to="lead", body="I am leaving; the build is yours")
    assert bodies(lead) == ["I am leaving; the build is yours"]


def test_a_grace_of_nothing_ends_a_seat_at_the_next_pass(world: World) -> None:
    lead = world.actor("lead")
    lead("messages.send", to="engineer", body="never read")
    leave(world, "engineer", grace="0")
    world.jobs()
    assert state_of(world, "engineer") is None
    assert any("never read" in body for body in bodies(lead))


def test_a_grace_that_is_no_duration_is_refused(world: World) -> None:
    with pytest.raises(Refusal) as refusal:
        leave(world, "engineer", grace="soon")
    assert refusal.value.code == "invalid"
    assert refusal.value.failure.message.startswith("grace: ")


def test_of_two_that_leave_neither_is_sent_the_others_mail(world: World) -> None:
    engineer, reviewer = world.actor("engineer"), world.actor("reviewer")
    engineer("messages.send", to="reviewer", body="between us")
    leave(world, "engineer", "reviewer")
    assert [body.split(":")[0] for body in bodies(reviewer)] == ["Retirement notice"]
    assert [body.split(":")[0] for body in bodies(engineer)] == ["Retirement notice"]


def test_the_notices_of_a_full_inbox_fit_into_a_message(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    for number in range(40):
        lead("messages.send", to="engineer", body=f"{number} " + "😀" * 2_000)
    leave(world, "engineer")
    [returned] = bodies(lead)
    assert "more" in returned.splitlines()[-1]
    assert len(returned.encode()) <= 12_288
    [notice] = bodies(engineer)
    assert len(notice.encode()) <= 12_288


def test_s109_a_retired_key_that_is_declared_again_is_a_new_seat(world: World) -> None:
    lead, before = world.actor("lead"), world.actor("engineer")
    lead("messages.send", to="engineer", body="old")
    before("handoff.update", objective="old")
    leave(world, "engineer", grace="0")
    world.jobs()
    world.apply(fixture_f())
    after = world.actor("engineer")
    assert after.seat_id != before.seat_id
    assert after("messages.history")["conversations"] == []
    assert "handoff" not in after("GET /v1/bootstrap")["recovery"]


def test_s109_an_adopting_seat_goes_on_with_conversations_and_handoff(world: World) -> None:
    lead, before = world.actor("lead"), world.actor("engineer")
    sent = lead("messages.send", to="engineer", body="old")
    delivery = before.next()
    before.finish(delivery)
    before("handoff.update", objective="old")
    leave(world, "engineer", grace="0")
    world.jobs()
    bodies(lead)
    adopting = changed(seats__engineer__adopt_from=before.seat_id)
    world.apply(adopting)
    after = world.actor("engineer")
    history = after("messages.history", conversation_id=sent["conversation_id"])
    assert [message["body"] for message in history["messages"]] == ["old"]
    assert after("GET /v1/bootstrap")["recovery"]["handoff"]["objective"] == "old"
    after("messages.reply", message_id=sent["message_id"], body="done at last")
    assert bodies(lead) == ["done at last"]
    again = world.apply(adopting)
    assert again["changed"] is False
    runtime = world.operate(
        "GET /internal/v1/organizations/{organization}/runtime",
        organization=world.organisation_id,
    )
    assert runtime["seats"]["engineer"]["workspace_of"] == before.seat_id


def test_s109_what_may_not_be_adopted_is_refused_with_its_reason(world: World) -> None:
    engineer, reviewer = world.actor("engineer"), world.actor("reviewer")

    def refused(document: dict[str, Any]) -> str:
        with pytest.raises(Refusal) as refusal:
            world.apply(document)
        [problem] = refusal.value.details["problems"]
        assert problem["path"] == "seats.engineer.adopt_from"
        return str(problem["message"])

    adopting = changed(seats__engineer__adopt_from=engineer.seat_id)
    assert "is live" in refused(adopting)
    leave(world, "engineer", "reviewer", grace="0")
    world.jobs()
    other = changed(seats__engineer__adopt_from=reviewer.seat_id)
    assert "was reviewer" in refused(other)
    nobody = changed(seats__engineer__adopt_from="01890000-0000-7000-8000-000000000000")
    assert "no seat of this organisation" in refused(nobody)
    world.apply(adopting)
    third = world.actor("engineer")
    leave(world, "engineer", grace="0")
    world.jobs()
    assert "was adopted before" in refused(adopting)
    world.apply(fixture_f())
    late = changed(seats__engineer__adopt_from=third.seat_id)
    assert "exists already" in refused(late)


def test_a_dead_letter_of_a_leaving_seat_stays_dead(world: World) -> None:
    lead = world.actor("lead")
    lead("messages.send", to="engineer", body="x")
    leave(world, "engineer")
    [letter] = world.operate("GET /internal/v1/dead-letters", organization=world.organisation_id)[
        "dead_letters"
    ]
    with pytest.raises(Refusal) as refusal:
        world.operate("POST /internal/v1/dead-letters/{letter}:requeue", letter=letter["id"])
    assert refusal.value.code == "not_found"
