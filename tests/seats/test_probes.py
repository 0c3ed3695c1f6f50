"""Probes: a seat is asked to show that it works, and what becomes of that."""

from __future__ import annotations

from typing import Any

import pytest

from tests.seats.world import Actor, Refusal, World
from tests.support.organisations import fixture_f

START = "POST /internal/v1/seats/{seat}/probe"
READ = "GET /internal/v1/seats/{seat}/probe/{probe}"
EVENTS = "POST /v1/executions/{execution}/events"
GOOD = {"tool": "ok", "workspace": "ok"}


def ask(world: World, key: str) -> str:
    """Probe a seat; the probe's id."""
    started = world.operate(START, seat=world.seats[key])
    assert started["status"] == "pending"
    return str(started["probe_id"])


def read(world: World, key: str, probe: str) -> Any:
    return world.operate(READ, seat=world.seats[key], probe=probe)


def report(actor: Actor, delivery: Any, checks: dict[str, Any], **more: Any) -> None:
    """Post checks, as a runner does."""
    data = {"checks": checks, **more}
    actor(EVENTS, execution=delivery["execution_id"], kind="completion", data=data)


def answer(actor: Actor, checks: dict[str, Any] | None = None, **more: Any) -> None:
    """Take the next delivery as a probe and complete it."""
    delivery = actor.next()
    assert delivery["message"]["origin"] == "probe"
    report(actor, delivery, GOOD if checks is None else checks, **more)
    actor.finish(delivery)


def without(key: str) -> dict[str, Any]:
    """Organisation F without one of its seats."""
    document = fixture_f()
    del document["seats"][key]
    document["message_routes"] = {
        name: route
        for name, route in document["message_routes"].items()
        if f"seat:{key}" not in (route["from"], route["to"])
    }
    document["grants"] = {
        name: grant
        for name, grant in document["grants"].items()
        if grant["subject"] != f"seat:{key}"
    }
    return document


def runtime(world: World, key: str) -> Any:
    view = world.operate(
        "GET /internal/v1/organizations/{organization}/runtime", organization=world.organisation_id
    )
    return view["seats"][key]


def test_a_probe_waits_in_the_inbox_and_wakes_a_stopped_seat(world: World) -> None:
    probe = ask(world, "engineer")
    assert runtime(world, "engineer")["pending_deliveries"] == 1
    found = read(world, "engineer", probe)
    assert (found["status"], found["checks"]) == ("pending", {})
    assert "ended_at" not in found


def test_a_probe_passes_when_it_is_completed_and_no_check_failed(world: World) -> None:
    probe = ask(world, "engineer")
    engineer = world.actor("engineer")
    delivery = engineer.next()
    report(engineer, delivery, GOOD)
    assert read(world, "engineer", probe)["status"] == "pending"
    world.clock.advance(3)
    engineer.finish(delivery)
    found = read(world, "engineer", probe)
    assert (found["status"], found["checks"]) == ("passed", GOOD)
    assert found["revision"] == runtime(world, "engineer")["config_revision"]
    assert found["created_at"] <= found["started_at"] < found["ended_at"]


def test_a_failing_check_fails_the_probe_and_is_its_reason(world: World) -> None:
    probe = ask(world, "engineer")
    answer(world.actor("engineer"), {"tool": "ok", "workspace": "fail: it is read-only"})
    found = read(world, "engineer", probe)
    assert (found["status"], found["reason"]) == ("failed", "workspace: fail: it is read-only")


def test_checks_of_several_events_count_together_and_the_last_word_on_one_wins(
    world: World,
) -> None:
    probe = ask(world, "engineer")
    engineer = world.actor("engineer")
    delivery = engineer.next()
    report(engineer, delivery, {"model": "ok", "tool": "fail: no answer yet"})
    report(engineer, delivery, {"tool": "ok"})
    engineer.finish(delivery)
    assert read(world, "engineer", probe)["checks"] == {"model": "ok", "tool": "ok"}
    assert read(world, "engineer", probe)["status"] == "passed"


def test_a_check_that_says_neither_ok_nor_fail_counts_as_failed(world: World) -> None:
    probe = ask(world, "engineer")
    answer(world.actor("engineer"), {"tool": True})
    assert read(world, "engineer", probe)["status"] == "failed"


def test_a_probe_acknowledged_as_failed_has_failed_and_is_not_tried_again(world: World) -> None:
    probe = ask(world, "engineer")
    engineer = world.actor("engineer")
    engineer.finish(engineer.next(), "failed", "the disk is gone")
    found = read(world, "engineer", probe)
    assert (found["status"], found["reason"]) == ("failed", "the disk is gone")
    world.clock.advance(600)
    assert engineer.next() is None
    assert runtime(world, "engineer")["dead_deliveries"] == 0


def test_a_probe_whose_turns_all_crash_is_a_dead_letter_and_has_failed(world: World) -> None:
    probe = ask(world, "engineer")
    for _ in range(5):
        assert world.actor("engineer").next() is not None
        world.actor("engineer")
        world.clock.advance(301)
    found = read(world, "engineer", probe)
    assert found["status"] == "failed"
    assert "lease reacquired" in found["reason"]


def test_a_probe_carries_no_queued_messages_and_cannot_be_answered(world: World) -> None:
    lead = world.actor("lead")
    lead("messages.send", to="engineer", body="for later", wake=False)
    ask(world, "engineer")
    engineer = world.actor("engineer")
    delivery = engineer.next()
    assert delivery["passive"] == []
    assert "reply_route" not in delivery["message"]
    with pytest.raises(Refusal) as refused:
        engineer("messages.reply", message_id=delivery["message"]["message_id"], body="I work")
    assert refused.value.code == "invalid"
    engineer.finish(delivery)
    lead("messages.send", to="engineer", body="now")
    assert [m["body"] for m in engineer.next()["passive"]] == ["for later"]


def test_probes_are_no_part_of_a_seats_history(world: World) -> None:
    ask(world, "engineer")
    engineer = world.actor("engineer")
    answer(engineer)
    assert engineer("messages.history")["conversations"] == []


def test_s_108_a_retiring_seat_is_not_probed(world: World) -> None:
    engineer = world.seats["engineer"]
    world.apply(without("engineer"))
    with pytest.raises(Refusal) as refused:
        world.operate(START, seat=engineer)
    assert refused.value.kind == "not_found"
    assert "engineer is retiring" in str(refused.value)


def test_a_probe_that_waits_when_its_seat_retires_has_failed(world: World) -> None:
    engineer, probe = world.seats["engineer"], ask(world, "engineer")
    world.apply(without("engineer"))
    found = world.operate(READ, seat=engineer, probe=probe)
    assert (found["status"], found["reason"]) == (
        "failed",
        "given up: the seat leaves the organisation",
    )


def test_a_retiring_seat_is_told_of_no_probe_among_the_mail_that_went_back(world: World) -> None:
    ask(world, "engineer")
    engineer = world.actor("engineer")
    world.apply(without("engineer"))
    body = engineer.next()["message"]["body"]
    assert body.startswith("Retirement notice")
    assert "probe" not in body
    assert "went back" not in body


def test_probes_go_with_an_organisation_that_is_deleted_with_its_data(world: World) -> None:
    ask(world, "engineer")
    world.operate(
        "DELETE /internal/v1/organizations/{organization}",
        organization=world.organisation_id,
        retention="delete",
    )
    while world.jobs():
        pass
    assert [rows(world, table) for table in ("probes", "messages", "conversations")] == [0, 0, 0]


def test_a_probe_in_its_turn_when_the_seat_retires_may_still_pass(world: World) -> None:
    seat_id, probe = world.seats["engineer"], ask(world, "engineer")
    engineer = world.actor("engineer")
    delivery = engineer.next()
    world.apply(without("engineer"))
    assert world.operate(READ, seat=seat_id, probe=probe)["status"] == "pending"
    engineer.finish(delivery)
    assert world.operate(READ, seat=seat_id, probe=probe)["status"] == "passed"


@pytest.mark.parametrize("name", [START, READ])
def test_an_unknown_seat_has_no_probes(world: World, name: str) -> None:
    more = {"probe": "none"} if name == READ else {}
    with pytest.raises(Refusal) as refused:
        world.operate(name, seat="nobody", **more)
    assert refused.value.kind == "not_found"


def test_a_probe_of_another_seat_is_not_found(world: World) -> None:
    probe = ask(world, "engineer")
    with pytest.raises(Refusal) as refused:
        world.operate(READ, seat=world.seats["lead"], probe=probe)
    assert refused.value.kind == "not_found"


def test_asking_again_before_anybody_took_it_up_is_the_same_probe(world: World) -> None:
    first = ask(world, "engineer")
    assert ask(world, "engineer") == first
    assert runtime(world, "engineer")["pending_deliveries"] == 1
    engineer = world.actor("engineer")
    delivery = engineer.next()
    second = ask(world, "engineer")  # the first may have looked before whatever is to be shown
    assert second != first
    engineer.finish(delivery)
    answer(engineer)
    assert read(world, "engineer", second)["status"] == "passed"


def test_of_old_probes_only_the_newest_ten_are_kept_with_their_messages(world: World) -> None:
    engineer = world.actor("engineer")
    probes = []
    for _ in range(14):
        probes.append(ask(world, "engineer"))
        answer(engineer)
        world.jobs()
    latest = ask(world, "engineer")
    with pytest.raises(Refusal):
        read(world, "engineer", probes[3])
    assert [read(world, "engineer", probe)["status"] for probe in probes[4:]] == ["passed"] * 10
    assert read(world, "engineer", latest)["status"] == "pending"
    for table, expected in (("probes", 11), ("messages", 11), ("deliveries", 11)):
        assert rows(world, table) == expected
    assert rows(world, "conversations") == 11


def test_how_a_probe_ended_outlives_what_told_it(world: World) -> None:
    probe = ask(world, "engineer")
    answer(world.actor("engineer"), {"tool": "fail: no"})
    world.jobs()
    found = read(world, "engineer", probe)
    forget_everything(world)
    assert read(world, "engineer", probe) == found
    assert found["reason"] == "tool: fail: no"


def test_a_runner_says_itself_at_which_revision_it_answered(world: World) -> None:
    probe = ask(world, "engineer")
    answer(world.actor("engineer"), config_revision="the-old-one")
    assert read(world, "engineer", probe)["revision"] == "the-old-one"


def rows(world: World, table: str) -> int:
    found = world.database.read_blocking(
        lambda tx: tx.one(f"SELECT count(*) AS number FROM {table}")
    )
    assert found is not None
    return int(found["number"])


def forget_everything(world: World) -> None:
    def forget(tx: Any) -> None:
        for table in ("execution_events", "executions", "deliveries", "messages"):
            tx.run(f"DELETE FROM {table}")

    world.database.write_blocking(forget)
