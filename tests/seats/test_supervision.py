"""Who runs the seats of an organisation: one claim, and what others are told of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.seats.world import Actor, Refusal, World

CLAIM = "POST /internal/v1/organizations/{organization}/supervision"
END = "DELETE /internal/v1/organizations/{organization}/supervision/{instance}"
RUNTIME = "GET /internal/v1/organizations/{organization}/runtime"
STATUS = "GET /internal/v1/organizations/{organization}/status"
NOBODY = "no supervisor is running: mail will wait"


def claim(world: World, instance: str = "one", **more: Any) -> Any:
    given = {"instance": instance, "host": f"host-{instance}", "pid": 11, **more}
    return world.operate(CLAIM, organization=world.organisation_id, **given)


def runs(world: World) -> Any:
    """Who runs the seats, as both views have it."""
    views = [world.operate(view, organization=world.organisation_id) for view in (RUNTIME, STATUS)]
    found = [view.get("supervisor") for view in views]
    assert found[0] == found[1]
    return found[0]


def test_nobody_runs_the_seats_of_a_fresh_organisation(world: World) -> None:
    assert runs(world) is None


def test_a_claim_holds_for_thirty_seconds_and_is_renewed(world: World) -> None:
    first = claim(world)
    assert (first["ttl_seconds"], first["continued"]) == (30, False)
    world.clock.advance(29)
    assert runs(world)["host"] == "host-one"
    again = claim(world)
    assert again["continued"] is True
    assert again["expires_at"] > first["expires_at"]
    world.clock.advance(30)
    assert runs(world) is None


def test_a_second_supervisor_hears_who_is_there_and_until_when(world: World) -> None:
    first = claim(world, machine="m", started="s")
    with pytest.raises(Refusal) as refusal:
        claim(world, "two")
    assert refusal.value.code == "conflict"
    assert refusal.value.details == {
        "host": "host-one",
        "pid": 11,
        "expires_at": first["expires_at"],
        "instance": "one",
        "machine": "m",
        "started": "s",
    }
    assert runs(world)["host"] == "host-one"


def test_a_claim_that_ran_out_is_anybodys(world: World) -> None:
    claim(world)
    world.clock.advance(30)
    assert claim(world, "two")["continued"] is False
    with pytest.raises(Refusal):
        claim(world)


def test_a_claim_of_a_process_that_is_gone_is_not_waited_for(world: World) -> None:
    claim(world)
    with pytest.raises(Refusal):
        claim(world, "two", replaces="somebody else")
    claim(world, "two", replaces="one")
    assert runs(world)["host"] == "host-two"


def test_a_claim_that_is_given_back_is_free_at_once(world: World) -> None:
    claim(world)
    world.operate(END, organization=world.organisation_id, instance="two")
    assert runs(world) is not None
    world.operate(END, organization=world.organisation_id, instance="one")
    assert runs(world) is None
    claim(world, "two")


def test_a_supervisor_that_comes_back_hears_that_another_was_there(world: World) -> None:
    claim(world)
    world.clock.advance(31)
    assert claim(world)["continued"] is True  # nobody was
    world.clock.advance(31)
    claim(world, "two")
    world.operate(END, organization=world.organisation_id, instance="two")
    assert claim(world)["continued"] is False


def test_an_organisation_that_is_not_there_cannot_be_supervised(world: World) -> None:
    with pytest.raises(Refusal) as refusal:
        world.operate(CLAIM, organization="nowhere", instance="one", host="h", pid=1)
    assert refusal.value.kind == "not_found"


def test_whoever_follows_is_told_when_the_supervisor_changes_but_not_of_its_renewals(
    world: World,
) -> None:
    def cursor() -> Any:
        return world.operate(RUNTIME, organization=world.organisation_id)["cursor"]

    before = cursor()
    claim(world)
    with_one = cursor()
    assert with_one != before
    world.clock.advance(1)
    claim(world)
    assert cursor() == with_one
    claim(world, "two", replaces="one")
    assert cursor() != with_one


# What senders hear


def send(actor: Actor) -> Any:
    return actor("messages.send", to="lead", body="hello")


def test_a_sender_hears_that_nobody_would_start_the_recipient(world: World) -> None:
    rep = world.actor("rep_a")
    assert send(rep)["recipient_note"] == NOBODY
    claim(world)
    assert "recipient_note" not in send(rep)
    world.clock.advance(30)
    assert send(rep)["recipient_note"] == NOBODY


def test_a_recipient_that_runs_needs_no_supervisor_to_be_reached(world: World) -> None:
    rep, lead = world.actor("rep_a"), world.actor("lead")
    assert "recipient_note" not in send(rep)
    delivery = lead.next()
    answer = {"message_id": delivery["message"]["message_id"], "body": "yes"}
    assert "recipient_note" not in lead("messages.reply", **answer)
    rep("POST /v1/lease/release")
    assert lead("messages.reply", **answer)["recipient_note"] == NOBODY


def test_a_reply_to_a_person_says_nothing_of_supervisors(world: World) -> None:
    rep = world.actor("rep_a")
    assert "recipient_note" not in rep("messages.reply", binding="alice", body="hello")


# The supervisor's word


def test_a_supervisor_may_explain_without_touching_the_state(world: World) -> None:
    lead = world.actor("lead")
    lead("POST /v1/state", state="Warm")
    held = "lease held by instance one"
    world.operate("POST /internal/v1/seats/{seat}/state", seat=lead.seat_id, detail=held)
    row = world.operate(RUNTIME, organization=world.organisation_id)["seats"]["lead"]
    assert (row["state"], row["state_detail"]) == ("Warm", held)
