"""Operators let seats rest, and delete organisations."""

from __future__ import annotations

from typing import Any

import pytest

from tests.seats.world import Actor, Refusal, World
from tests.support.organisations import fixture_f

SUSPEND = "POST /internal/v1/seats/{seat}:suspend"
RESUME = "POST /internal/v1/seats/{seat}:resume"
DELETE = "DELETE /internal/v1/organizations/{organization}"


def runtime(world: World) -> Any:
    return world.operate(
        "GET /internal/v1/organizations/{organization}/runtime",
        organization=world.organisation_id,
    )


def test_s67_a_suspended_seat_says_why_and_its_messages_wait(world: World) -> None:
    lead = world.actor("lead")
    world.operate(SUSPEND, seat=world.seats["engineer"], reason="the budget is spent")
    sent = lead("messages.send", to="engineer", body="later")
    assert sent["recipient_state"] == "Blocked"
    view = runtime(world)["seats"]["engineer"]
    assert view["suspended"] is True
    assert view["state_detail"] == "suspended by an operator: the budget is spent"
    [engineer] = lead("status", seats=["engineer"])["seats"]
    assert (engineer["state"], engineer["pending_messages"]) == ("Blocked", 1)
    assert "the budget is spent" in engineer["detail"]
    world.operate(RESUME, seat=world.seats["engineer"])
    view = runtime(world)["seats"]["engineer"]
    assert (view["suspended"], view["state"], view["pending_deliveries"]) == (False, "Stopped", 1)
    assert world.actor("engineer").next()["message"]["body"] == "later"


def test_suspending_twice_keeps_the_later_reason(world: World) -> None:
    world.operate(SUSPEND, seat=world.seats["engineer"], reason="one")
    world.operate(SUSPEND, seat=world.seats["engineer"])
    assert runtime(world)["seats"]["engineer"]["state_detail"] == "suspended by an operator"


@pytest.mark.parametrize("endpoint", [SUSPEND, RESUME])
def test_a_seat_that_is_not_there_cannot_be_suspended_or_resumed(
    world: World, endpoint: str
) -> None:
    with pytest.raises(Refusal) as refusal:
        world.operate(endpoint, seat="01890000-0000-7000-8000-000000000000")
    assert refusal.value.code == "not_found"


def busy(world: World) -> tuple[Actor, Actor]:
    """Two seats with mail, one of them in a turn."""
    lead, engineer = world.actor("lead"), world.actor("engineer")
    for number in range(3):
        lead("messages.send", to="engineer", body=f"{number}")
    engineer.next()
    engineer("handoff.update", objective="x")
    world.operate("POST /internal/v1/seats/{seat}/probe", seat=engineer.seat_id)
    return lead, engineer


def test_s10_a_deleted_organisations_tokens_open_nothing_and_its_data_stays(world: World) -> None:
    lead, engineer = busy(world)
    world.operate(DELETE, organization=world.organisation_id)
    for actor in (lead, engineer):
        with pytest.raises(Refusal) as refusal:
            actor("self")
        assert refusal.value.code == "forbidden"
    with pytest.raises(Refusal) as refusal:
        runtime(world)
    assert refusal.value.code == "not_found"
    assert rows(world, "SELECT count(*) AS n FROM messages") == 4
    assert rows(world, "SELECT count(*) AS n FROM deliveries WHERE open = 1") == 0
    assert rows(world, "SELECT count(*) AS n FROM executions WHERE state = 'running'") == 0
    world.jobs()
    assert rows(world, "SELECT count(*) AS n FROM messages") == 4


def test_s10_with_its_data_deleted_nobody_knows_its_tokens_any_more(world: World) -> None:
    lead, _ = busy(world)
    world.operate(DELETE, organization=world.organisation_id, retention="delete")
    with pytest.raises(Refusal) as refusal:
        lead("self")
    assert refusal.value.code == "unauthenticated"
    for _ in range(100):
        if not world.jobs():
            break
    for table in TABLES:
        assert rows(world, f"SELECT count(*) AS n FROM {table}") == 0, table


TABLES = (
    "organisations",
    "bundles",
    "bindings",
    "seats",
    "leases",
    "tokens",
    "conversations",
    "participants",
    "messages",
    "deliveries",
    "executions",
    "execution_events",
    "checkpoints",
    "handoffs",
    "retirements",
    "probes",
    "supervisors",
    "terminal_lines",
    "terminal_readers",
    "ingress_events",
)


def test_a_purge_leaves_other_organisations_alone(world: World) -> None:
    first = world.organisation_id
    busy(world)
    other = fixture_f() | {"key": "other"}
    world.apply(other)
    lead, engineer = busy(world)
    world.operate(DELETE, organization=first, retention="delete")
    for _ in range(100):
        world.jobs()
    assert lead("status", seats=["engineer"])["seats"][0]["pending_messages"] == 4
    assert engineer.next()["message"]["body"] == "0"


def test_a_deleted_organisations_key_is_free(world: World) -> None:
    deleted = world.organisation_id
    world.operate(DELETE, organization=deleted)
    again = world.apply(fixture_f())
    assert again["organization_id"] != deleted
    assert {seat["change"] for seat in again["seats"].values()} == {"new"}


def test_deleting_what_is_not_there_is_told(world: World) -> None:
    with pytest.raises(Refusal) as refusal:
        world.operate(DELETE, organization="01890000-0000-7000-8000-000000000000")
    assert refusal.value.code == "not_found"
    with pytest.raises(Refusal) as refusal:
        world.operate(DELETE, organization=world.organisation_id, retention="perhaps")
    assert refusal.value.code == "invalid"


def rows(world: World, sql: Any) -> int:
    found = world.database.read_blocking(lambda tx: tx.one(sql))
    assert found is not None
    return int(found["n"])
