"""Leases and fencing."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from steadmesh.kernel.database import open_database
from steadmesh.tools import Credentials
from tests.seats.world import Actor, Refusal, World

CHECKPOINT = {
    "harness_adapter": "fake",
    "format_version": "fake-session/1",
    "checkpoint_ref": "s:turns=1",
    "guarantee": "application_checkpoint",
}


def refused(code: str, actor: Actor, name: str, **arguments: Any) -> Refusal:
    with pytest.raises(Refusal) as refusal:
        actor(name, **arguments)
    assert refusal.value.code == code
    return refusal.value


def test_s2_a_writing_call_without_a_generation_is_fenced_and_a_reading_one_works(
    world: World,
) -> None:
    """S-2, with the tools that are there."""
    lead = Actor(world, "lead")
    refused("fenced", lead, "handoff.update", notes="x")
    assert lead("self")["seat_key"] == "lead"


def test_s3_after_a_fence_nothing_of_the_old_generation_gets_through(world: World) -> None:
    """S-3: write, poll, checkpoint and renew are fenced; after re-acquiring, the write succeeds."""
    lead = world.actor("lead")
    world.operate(
        "POST /internal/v1/seats/{seat}/fence",
        seat=lead.seat_id,
        expected_generation=lead.generation,
    )
    refused("fenced", lead, "handoff.update", notes="x")
    refused("fenced", lead, "GET /v1/inbox/next")
    refused("fenced", lead, "PUT /v1/checkpoint", **CHECKPOINT)
    refused("fenced", lead, "POST /v1/lease/renew", generation=lead.generation)
    lead.acquire()
    assert lead("handoff.update", notes="x") == {"saved": True}


def test_s4_a_held_lease_is_a_conflict_until_it_expires(world: World) -> None:
    """S-4: another instance has to wait; after expiry it gets the next generation."""
    first, second = world.actor("lead"), Actor(world, "lead", "two")
    refused("conflict", second, "POST /v1/lease/acquire")
    world.clock.advance(31)
    second.acquire()
    assert second.generation == first.generation + 1  # type: ignore[operator]  # both hold numbers


def test_s5_the_same_instance_acquires_again_and_its_old_number_is_stale(world: World) -> None:
    """S-5."""
    lead = world.actor("lead")
    old = lead.generation
    lead.acquire()
    assert lead.generation == old + 1  # type: ignore[operator]  # a number after acquire
    stale = Credentials(bearer=lead.token, generation=old)
    answer = world.run("handoff.update", {}, stale)
    assert json.loads(answer.content)["error"] == "fenced"


def test_renewing_keeps_the_lease(world: World) -> None:
    lead, other = world.actor("lead"), Actor(world, "lead", "two")
    for _ in range(5):
        world.clock.advance(20)
        lead("POST /v1/lease/renew", generation=lead.generation)
    refused("conflict", other, "POST /v1/lease/acquire")


def test_a_released_lease_no_longer_writes_but_an_expired_one_does(world: World) -> None:
    lead = world.actor("lead")
    world.clock.advance(3_600)
    assert lead("handoff.update", notes="late")["saved"]
    lead("POST /v1/lease/release", generation=lead.generation)
    refused("fenced", lead, "handoff.update", notes="later")


def test_an_old_holder_of_the_same_name_can_neither_renew_nor_release_the_new_lease(
    world: World,
) -> None:
    """L1 and L2: the generation is compared, not the name."""
    old = world.actor("lead")
    Actor(world, "lead").acquire()
    refused("fenced", old, "POST /v1/lease/renew", generation=old.generation)
    refused("fenced", old, "POST /v1/lease/release", generation=old.generation)


def test_a_body_with_another_generation_than_the_header_is_fenced(world: World) -> None:
    lead = world.actor("lead").acquire()
    refused("fenced", lead, "POST /v1/state", state="Warm", generation=1)
    refused("fenced", lead, "POST /v1/lease/release", generation=1)
    lead("POST /v1/state", state="Warm", generation=2)
    lead("POST /v1/lease/release", generation=2)


def test_a_fence_with_the_wrong_generation_changes_nothing(world: World) -> None:
    lead = world.actor("lead")
    with pytest.raises(Refusal) as refusal:
        world.operate(
            "POST /internal/v1/seats/{seat}/fence", seat=lead.seat_id, expected_generation=99
        )
    assert refusal.value.code == "conflict"
    assert refusal.value.details == {"generation": lead.generation}
    assert lead("handoff.update", notes="x")["saved"]


@pytest.mark.parametrize("state", ["Warm", "Executing", "Quiescing", "Stopped"])
def test_a_runner_reports_its_state(world: World, state: str) -> None:
    lead = world.actor("lead")
    lead("POST /v1/state", generation=lead.generation, state=state)
    assert lead("status")["self"]["state"] == state


def test_a_runner_cannot_report_a_state_of_the_platform(world: World) -> None:
    lead = world.actor("lead")
    refusal = refused("invalid", lead, "POST /v1/state", state="Retired")
    assert "Warm, Executing, Quiescing, Stopped" in refusal.failure.message


def test_a_token_of_another_seat_acts_as_that_seat_only(world: World) -> None:
    lead = world.actor("lead")
    engineer = world.actor("engineer")
    mixed = Credentials(bearer=engineer.token, generation=lead.generation)
    content = json.loads(world.run("self", {}, mixed).content)
    assert content["seat_key"] == "engineer"


def test_s1_no_token_and_a_bad_token_are_unauthenticated(world: World) -> None:
    """S-1, below the transports."""
    for bearer in (None, "sms_unknown", "nonsense", ""):
        answer = world.run("self", {}, Credentials(bearer=bearer))
        assert answer.failure is not None
        assert answer.failure.kind == "unauthenticated"


def test_a_token_ends_when_its_time_is_over_or_at_once_when_it_is_ended(world: World) -> None:
    lead = Actor(world, "lead")
    world.clock.advance(24 * 3_600 - 1)
    assert lead("self")
    world.clock.advance(2)
    refused("unauthenticated", lead, "self")
    other = Actor(world, "lead", "two")
    world.operate(
        "DELETE /internal/v1/seats/{seat}/tokens/{instance}", seat=lead.seat_id, instance="two"
    )
    refused("unauthenticated", other, "self")


def test_rotation_leaves_the_old_token_valid_for_ten_minutes(world: World) -> None:
    old, new = Actor(world, "lead"), Actor(world, "lead")
    world.clock.advance(599)
    assert old("self")
    world.clock.advance(2)
    refused("unauthenticated", old, "self")
    assert new("self")


def test_two_instances_that_acquire_at_once_get_one_lease(migrated_url: str) -> None:
    """A race on PostgreSQL: one of them holds it, the other is told so."""
    world = World(open_database(migrated_url))
    acquire = next(t for t in world.catalogue.endpoints if t.name == "POST /v1/lease/acquire")
    for round_number in range(10):
        seats = [Actor(world, "lead", f"{round_number}-{n}") for n in range(4)]

        async def together(seats: list[Actor] = seats) -> list[Any]:
            calls = [
                world.runner.run(acquire, {}, Credentials(bearer=seat.token)) for seat in seats
            ]
            return await asyncio.gather(*calls)

        answers = asyncio.run(together())
        codes = [answer.failure.code for answer in answers if answer.failure]
        assert codes == ["conflict"] * 3
        world.clock.advance(31)
    world.database.close()


def test_a_fence_lets_no_write_of_the_old_generation_through_afterwards(migrated_url: str) -> None:
    """A race on PostgreSQL: whatever was accepted was accepted before the fence."""
    world = World(open_database(migrated_url))
    for _ in range(6):
        lead = world.actor("lead")

        def write(n: int, lead: Actor = lead) -> tuple[bool, str]:
            answer = lead.answer("handoff.update", notes=f"{lead.generation}-{n}")
            return answer.failure is None, f"{lead.generation}-{n}"

        def fence(lead: Actor = lead) -> str:
            world.operate(
                "POST /internal/v1/seats/{seat}/fence",
                seat=lead.seat_id,
                expected_generation=lead.generation,
            )
            row = world.database.read_blocking(
                lambda tx: tx.one(
                    "SELECT document FROM handoffs WHERE seat_id = :s", s=lead.seat_id
                )
            )
            return row["document"] if row else ""

        with ThreadPoolExecutor(6) as threads:
            writes = [threads.submit(write, n) for n in range(8)]
            at_the_fence = threads.submit(fence).result(30)
            outcomes = [one.result(30) for one in writes]
        assert _handoff(world, lead) == at_the_fence
        assert lead.answer("handoff.update").failure is not None
        assert len(outcomes) == 8
    world.database.close()


def _handoff(world: World, actor: Actor) -> str:
    row = world.database.read_blocking(
        lambda tx: tx.one("SELECT document FROM handoffs WHERE seat_id = :s", s=actor.seat_id)
    )
    return row["document"] if row else ""
