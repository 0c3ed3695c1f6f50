"""From message to turn: order, retries, dead letters, and what goes with a turn."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from steadmesh.kernel.database import Row, Transaction, open_database
from steadmesh.kernel.jobs import JobContext
from steadmesh.seats.turns import requeue
from steadmesh.tools import Credentials
from tests.seats.test_leases import refused
from tests.seats.world import Actor, Refusal, World
from tests.support.organisations import BUNDLES, fixture_f


def send(sender: Actor, to: str, body: str, **arguments: object) -> dict[str, str]:
    sent: dict[str, str] = sender("messages.send", to=to, body=body, **arguments)
    return sent


def test_a_delivery_is_handed_out_until_it_is_acknowledged(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    send(lead, "engineer", "build it")
    first, again = engineer.next(), engineer.next()
    assert first["message"]["body"] == "build it"
    assert {k: first[k] for k in ("delivery_id", "execution_id", "attempt")} == {
        k: again[k] for k in ("delivery_id", "execution_id", "attempt")
    }
    engineer.finish(first)
    assert engineer.next() is None


def test_s56_order_in_a_conversation_is_kept_across_retries_and_holds_up_no_other(
    world: World,
) -> None:
    """S-56."""
    lead, engineer = world.actor("lead"), world.actor("engineer")
    one = send(lead, "engineer", "one")
    for body in ("two", "three"):
        send(lead, "engineer", body, conversation_id=one["conversation_id"])
    send(lead, "engineer", "elsewhere")
    engineer.finish(engineer.next(), "failed", "no")
    elsewhere = engineer.next()
    assert elsewhere["message"]["body"] == "elsewhere"
    engineer.finish(elsewhere)
    assert engineer.next() is None
    world.clock.advance(1)
    for body in ("one", "two", "three"):
        delivery = engineer.next()
        assert delivery["message"]["body"] == body
        engineer.finish(delivery)


def test_s58_a_failing_turn_is_tried_five_times_and_then_a_dead_letter(world: World) -> None:
    """S-58, the deliveries: 1, 8, 64, 300 s; later messages go through; people can requeue it."""
    lead, engineer = world.actor("lead"), world.actor("engineer")
    send(lead, "engineer", "poison")
    for attempt, delay in enumerate((1, 8, 64, 300), start=1):
        delivery = engineer.next()
        assert delivery["attempt"] == attempt
        engineer.finish(delivery, "failed", "scripted failure")
        world.clock.advance(delay - 0.001)
        assert engineer.next() is None
        world.clock.advance(0.001)
    last = engineer.next()
    assert last["attempt"] == 5
    engineer.finish(last, "failed", "scripted failure")
    world.clock.advance(3_600)
    assert engineer.next() is None
    assert engineer("status")["self"]["dead_letters"] == 1
    send(lead, "engineer", "later")
    later = engineer.next()
    assert later["message"]["body"] == "later"
    engineer.finish(later)
    letters = world.operate("GET /internal/v1/dead-letters", organization=world.organisation_id)
    [letter] = letters["dead_letters"]
    assert (letter["recipient_seat"], letter["error"]) == ("engineer", "scripted failure")
    world.operate("POST /internal/v1/dead-letters/{letter}:requeue", letter=letter["id"])
    assert engineer.next()["message"]["body"] == "poison"


def test_s48_a_message_without_wake_goes_with_the_next_turn_and_once(world: World) -> None:
    """S-48."""
    lead, engineer = world.actor("lead"), world.actor("engineer")
    send(lead, "engineer", "for information", wake=False)
    assert engineer.next() is None
    assert engineer("status")["self"]["pending_messages"] == 0
    send(lead, "engineer", "act")
    turn = engineer.next()
    assert [message["body"] for message in turn["passive"]] == ["for information"]
    engineer.finish(turn)
    send(lead, "engineer", "act again")
    assert engineer.next()["passive"] == []


def test_what_went_with_a_failed_turn_comes_again_with_its_retry(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    send(lead, "engineer", "for information", wake=False)
    send(lead, "engineer", "act")
    engineer.finish(engineer.next(), "failed")
    world.clock.advance(1)
    retry = engineer.next()
    assert retry["attempt"] == 2
    assert [message["body"] for message in retry["passive"]] == ["for information"]


def test_at_most_twenty_go_with_a_turn(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    for n in range(23):
        send(lead, "engineer", f"note {n}", wake=False)
    send(lead, "engineer", "act")
    turn = engineer.next()
    assert [m["body"] for m in turn["passive"]] == [f"note {n}" for n in range(20)]
    engineer.finish(turn)
    send(lead, "engineer", "act")
    assert [m["body"] for m in engineer.next()["passive"]] == ["note 20", "note 21", "note 22"]


def test_an_acquisition_puts_back_what_the_old_start_was_working_on(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    send(lead, "engineer", "build it")
    old = engineer.next()
    engineer.acquire()
    assert engineer.next() is None
    world.clock.advance(1)
    again = engineer.next()
    assert again["delivery_id"] == old["delivery_id"]
    assert again["execution_id"] != old["execution_id"]
    assert again["attempt"] == 2
    executions = world.operate("GET /internal/v1/seats/{seat}/executions", seat=engineer.seat_id)[
        "executions"
    ]
    assert [execution["state"] for execution in executions] == ["running", "interrupted"]
    assert executions[1]["error"] == "lease reacquired"


def test_a_turn_that_a_planned_stop_ended_is_no_failed_attempt(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    send(lead, "engineer", "build it")
    engineer.next()
    engineer("POST /v1/state", state="Quiescing")
    engineer("POST /v1/state", state="Stopped")
    engineer("POST /v1/lease/release")
    engineer.acquire()
    assert engineer.next()["attempt"] == 1


def test_an_acknowledgement_needs_the_execution_it_is_about(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    send(lead, "engineer", "build it")
    delivery = engineer.next()
    wrong = delivery | {"execution_id": "018f0000-0000-7000-8000-000000000000"}
    with pytest.raises(Refusal) as refusal:
        engineer.finish(wrong)
    assert refusal.value.code == "not_found"
    engineer.finish(delivery)
    engineer.finish(delivery)  # repeating an accepted one is fine


def test_a_failure_is_acknowledged_again_though_the_delivery_is_in_its_next_turn(
    world: World,
) -> None:
    """The answer was lost and another poll came first: the repetition ends no turn."""
    lead, engineer = world.actor("lead"), world.actor("engineer")
    send(lead, "engineer", "build it")
    first = engineer.next()
    engineer.finish(first, "failed", "no")
    world.clock.advance(1)
    second = engineer.next()
    engineer.finish(first, "failed", "no")
    assert engineer.next()["execution_id"] == second["execution_id"]
    with pytest.raises(Refusal):
        engineer.finish(first, "completed")
    other = send(lead, "engineer", "elsewhere")
    assert other["message_id"] != second["message"]["message_id"]
    with pytest.raises(Refusal):
        engineer.finish(first | {"delivery_id": second["delivery_id"] + 1}, "failed")


def test_one_expired_delivery_that_cannot_be_put_back_holds_up_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead, engineer, reviewer = (world.actor(key) for key in ("lead", "engineer", "reviewer"))
    send(lead, "engineer", "poison")
    poison = engineer.next()["delivery_id"]
    send(engineer, "reviewer", "fine")
    reviewer.next()
    fail = requeue.fail_delivery

    def refuse(tx: Transaction, delivery: Row, **values: Any) -> bool:
        if delivery["number"] == poison:
            raise RuntimeError("no")
        return fail(tx, delivery, **values)

    monkeypatch.setattr(requeue, "fail_delivery", refuse)
    world.clock.advance(16 * 60)
    context = JobContext(world.database, world.clock, lambda: False)
    assert requeue.requeue_expired(context) == 1
    world.clock.advance(1)
    assert reviewer.next()["attempt"] == 2


def test_a_poll_that_found_nothing_looks_again_under_its_key(world: World) -> None:
    """What it found is kept: the same poll repeated gets the same delivery, acknowledged or not."""
    lead, engineer = world.actor("lead"), world.actor("engineer")

    def poll() -> Any:
        credentials = Credentials(
            bearer=engineer.token, generation=engineer.generation, idempotency_key="poll"
        )
        return json.loads(world.run("GET /v1/inbox/next", {}, credentials).content)

    assert poll() is None
    send(lead, "engineer", "build it")
    delivery = poll()
    assert delivery["message"]["body"] == "build it"
    assert poll() == delivery
    engineer.finish(delivery)
    assert poll() == delivery


def test_a_requeued_delivery_can_no_longer_be_acknowledged(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    send(lead, "engineer", "build it")
    delivery = engineer.next()
    world.clock.advance(16 * 60)
    assert world.jobs() >= 1
    with pytest.raises(Refusal) as refusal:
        engineer.finish(delivery)
    assert refusal.value.code == "not_found"
    world.clock.advance(1)
    assert engineer.next()["attempt"] == 2


def test_a_renewal_that_names_the_execution_keeps_a_long_turn(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    send(lead, "engineer", "a long one")
    delivery = engineer.next()
    for _ in range(20):
        world.clock.advance(60)
        engineer(
            "POST /v1/lease/renew",
            generation=engineer.generation,
            execution_id=delivery["execution_id"],
        )
        world.jobs()
    engineer.finish(delivery)
    assert engineer.next() is None


def test_s65_the_envelope_says_when_the_turn_starts_in_the_seats_zone(world: World) -> None:
    """S-65: the message waited, so current_time is later than created_at."""
    lead, engineer = world.actor("lead"), world.actor("engineer")
    send(lead, "engineer", "build it")
    world.clock.advance(90)
    message = engineer.next()["message"]
    assert message["created_at"] == "2026-09-21T14:13:20Z"
    assert message["current_time"] == "Mon 2026-09-21T14:14:50+00:00 (UTC)"
    assert message["timezone"] == "UTC"


def test_s65_a_seat_elsewhere_reads_its_own_time(world: World) -> None:
    """S-65: in the seat's zone, Melbourne in winter."""
    document = fixture_f()
    document["timezone"] = "Australia/Melbourne"
    world.apply(document)
    lead, engineer = world.actor("lead"), world.actor("engineer")
    send(lead, "engineer", "build it")
    world.clock.advance(90)
    message = engineer.next()["message"]
    assert message["created_at"] == "2026-09-21T14:13:20Z"
    assert message["current_time"] == "Tue 2026-09-22T00:14:50+10:00 (Australia/Melbourne)"


def test_events_of_a_turn_are_kept_in_order_and_bounded(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    send(lead, "engineer", "build it")
    execution = engineer.next()["execution_id"]
    post = "POST /v1/executions/{execution}/events"
    engineer(post, execution=execution, events=[{"kind": "progress"}, {"kind": "output"}])
    engineer(post, execution=execution, kind="output", data={"text": "é" * 5_000})
    events = world.operate("GET /internal/v1/executions/{execution}/events", execution=execution)[
        "events"
    ]
    assert [event["kind"] for event in events] == ["progress", "output", "output"]
    assert events[2]["data"] == {"truncated": True, "bytes": 10_011}
    refused("invalid", engineer, post, execution=execution, events=[{"kind": ""}])
    refused("not_found", lead, post, execution=execution, kind="progress")


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_an_event_beyond_the_calendar_is_refused_and_spoils_no_list(
    world: World, time: str
) -> None:
    """S7: one bad row must not make every look at its neighbours fail."""
    lead, engineer = world.actor("lead"), world.actor("engineer")
    send(lead, "engineer", "build it")
    execution = engineer.next()["execution_id"]
    post = "POST /v1/executions/{execution}/events"
    refused("invalid", engineer, post, execution=execution, kind="output", time=time)
    listed = world.operate("GET /internal/v1/executions/{execution}/events", execution=execution)
    assert listed == {"events": []}


def test_the_bootstrap_has_the_handoff_and_the_session_of_its_adapter(world: World) -> None:
    engineer = world.actor("engineer")
    engineer("handoff.update", objective="finish", unresolved=["tests"])
    engineer(
        "PUT /v1/checkpoint",
        harness_adapter="fake",
        format_version="fake-session/1",
        checkpoint_ref="s:turns=1",
        guarantee="application_checkpoint",
    )
    recovery = engineer("GET /v1/bootstrap")["recovery"]
    assert recovery["handoff"]["objective"] == "finish"
    assert recovery["session"]["checkpoint_ref"] == "s:turns=1"
    assert "note" not in recovery


def test_the_bootstrap_names_every_instruction_though_self_has_no_room(world: World) -> None:
    texts = {
        f"file:{n:03}.md#sha256:{hashlib.sha256(str(n).encode()).hexdigest()}": str(n)
        for n in range(200)
    }
    document = fixture_f()
    document["seats"]["lead"]["instruction_refs"] = list(texts)
    world.apply(document, BUNDLES | texts)
    lead = world.actor("lead")
    about = lead("self")
    assert about["instructions_omitted"] > 0
    told = lead("GET /v1/bootstrap")
    assert told["self"] == about
    assert [entry["ref"] for entry in told["instructions"]] == [*BUNDLES, *texts]


def test_s64_a_session_of_another_adapter_is_not_continued(world: World) -> None:
    """S-64, the bootstrap: a note says so, and the handoff is there."""
    engineer = world.actor("engineer")
    engineer("handoff.update", objective="finish")
    engineer(
        "PUT /v1/checkpoint",
        harness_adapter="codex",
        format_version="codex-thread/1",
        checkpoint_ref="t",
        guarantee="application_checkpoint",
    )
    recovery = engineer("GET /v1/bootstrap")["recovery"]
    assert "session" not in recovery
    assert "cannot be continued" in recovery["note"]
    assert recovery["handoff"]["objective"] == "finish"


def test_two_pollers_of_one_inbox_get_one_delivery(migrated_url: str) -> None:
    """A race on PostgreSQL: the same execution, never two."""
    world = World(open_database(migrated_url))
    lead, engineer = world.actor("lead"), world.actor("engineer")
    for n in range(12):
        send(lead, "engineer", f"message {n}")
        with ThreadPoolExecutor(4) as threads:
            polls = [threads.submit(engineer.next) for _ in range(4)]
            deliveries = [poll.result(30) for poll in polls]
        assert len({delivery["execution_id"] for delivery in deliveries}) == 1
        engineer.finish(deliveries[0])
    world.database.close()
