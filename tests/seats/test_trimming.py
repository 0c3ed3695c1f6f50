"""Growth is bounded, and nothing goes that is waited for, worked on, unread, or needed to know what
was done before."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import pytest

from steadmesh.kernel.config_tables import Retention
from steadmesh.kernel.database import Transaction, open_database
from steadmesh.kernel.database.migrations import migrations_of
from steadmesh.service.assembly import FAMILIES, FEATURES
from steadmesh.tools import Catalogue
from tests.seats.test_retirement import leave
from tests.seats.test_terminal import EVENTS, TOKENS, alice
from tests.seats.test_turns import send
from tests.seats.world import Actor, World

DAY = 86_400
AT_ONCE = Retention(
    messages=0,
    deliveries=0,
    executions=0,
    execution_events=0,
    replies=0,
    terminal_lines=0,
    outside_events=0,
    events=0,
    audit=0,
)
"""What is done with goes at once: shorter than any setting can be."""


@pytest.fixture(autouse=True)
def _tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAT", json.dumps(TOKENS))


def count(world: World, table: str) -> int:
    def ask(tx: Transaction) -> int:
        row = tx.one(f"SELECT count(*) AS n FROM {table}")
        return int(row["n"]) if row else 0

    return world.database.read_blocking(ask)


def turn(actor: Actor, outcome: str = "completed") -> str | None:
    """Take the next message through a turn that reports an event; its body."""
    delivery = actor.next()
    if delivery is None:
        return None
    actor(
        "POST /v1/executions/{execution}/events",
        execution=delivery["execution_id"],
        kind="progress",
    )
    actor.finish(delivery, outcome)
    return str(delivery["message"]["body"])


def test_after_a_month_it_is_forgotten_how_a_message_went_and_after_three_its_turn(
    world: World,
) -> None:
    send(world.actor("lead"), "engineer", "build it")
    assert turn(world.actor("engineer")) == "build it"
    world.clock.advance(30 * DAY)
    assert world.trim("deliveries", "execution_events", "executions", "messages") == 0
    world.clock.advance(1)
    assert world.trimmed("deliveries", "execution_events", "executions", "messages") == {
        "deliveries": 1,
        "execution_events": 1,
        "executions": 0,
        "messages": 0,
    }
    world.clock.advance(60 * DAY)
    assert world.trimmed("executions", "messages") == {"executions": 1, "messages": 0}


def test_a_conversation_is_remembered_for_two_years_and_then_gone_with_its_talk(
    world: World,
) -> None:
    sent = send(world.actor("lead"), "engineer", "build it")
    turn(world.actor("engineer"))
    world.clock.advance(730 * DAY)
    world.trim()
    lead = world.actor("lead")
    page = lead("messages.history", conversation_id=sent["conversation_id"])
    assert [message["body"] for message in page["messages"]] == ["build it"]
    world.clock.advance(2 * DAY)
    world.trim()
    world.trim()
    assert world.actor("lead")("messages.history")["conversations"] == []
    assert [count(world, t) for t in ("messages", "conversations", "participants")] == [0, 0, 0]


def test_in_a_conversation_that_goes_on_old_messages_go_and_it_stays(world: World) -> None:
    sent = send(world.actor("lead"), "engineer", "old")
    turn(world.actor("engineer"))
    world.clock.advance(729 * DAY)
    send(world.actor("lead"), "engineer", "new", conversation_id=sent["conversation_id"])
    world.clock.advance(3 * DAY)
    for _ in range(2):  # first its way through the inbox is forgotten, then the message
        world.trim()
    page = world.actor("lead")("messages.history", conversation_id=sent["conversation_id"])
    assert [message["body"] for message in page["messages"]] == ["new"]


def test_a_conversation_whose_messages_went_is_not_gone_on_in(world: World) -> None:
    sent = send(world.actor("lead"), "engineer", "old")
    turn(world.actor("engineer"))
    world.clock.advance(740 * DAY)
    world.trim()
    world.trim()
    answer = world.actor("lead").answer(
        "messages.send", to="engineer", body="more", conversation_id=sent["conversation_id"]
    )
    assert answer.failure is not None
    assert answer.failure.kind == "not_found"


@pytest.mark.parametrize("wake", [True, False])
def test_mail_that_waits_is_kept_however_old_it_is(world: World, *, wake: bool) -> None:
    send(world.actor("lead"), "engineer", "patience", wake=wake)
    world.clock.advance(10_000 * DAY)
    world.trim()
    engineer = world.actor("engineer")
    if not wake:
        send(world.actor("lead"), "engineer", "act")
    delivery = engineer.next()
    bodies = [delivery["message"]["body"], *(m["body"] for m in delivery["passive"])]
    assert "patience" in bodies


def test_a_turn_that_runs_is_kept_with_its_mail_and_reports(world: World) -> None:
    send(world.actor("lead"), "engineer", "long work")
    engineer = world.actor("engineer")
    delivery = engineer.next()
    path = "POST /v1/executions/{execution}/events"
    engineer(path, execution=delivery["execution_id"], kind="progress")
    world.clock.advance(2)
    assert world.trim("deliveries", "executions", "messages", retention=AT_ONCE) == 0
    assert world.trim("execution_events", retention=AT_ONCE) == 0
    engineer.finish(delivery)
    world.clock.advance(1)
    assert world.trim("deliveries", "execution_events", retention=AT_ONCE) == 2


def test_a_dead_letter_waits_for_people(world: World) -> None:
    send(world.actor("lead"), "engineer", "poison")
    engineer = world.actor("engineer")
    for delay in (1, 8, 64, 300, 0):
        turn(engineer, "failed")
        world.clock.advance(delay)
    world.clock.advance(10_000 * DAY)
    world.trim()
    letters = world.operate("GET /internal/v1/dead-letters", organization=world.organisation_id)
    [letter] = letters["dead_letters"]
    world.operate("POST /internal/v1/dead-letters/{letter}:requeue", letter=letter["id"])
    assert turn(world.actor("engineer")) == "poison"


def test_dead_letters_of_a_seat_that_retired_are_forgotten_after_a_month(world: World) -> None:
    """They went back to who wrote them, and can be tried again no more."""
    send(world.actor("lead"), "engineer", "too late")
    leave(world, "engineer", grace="1m")
    world.clock.advance(120)
    world.jobs()
    world.jobs()
    world.clock.advance(29 * DAY)
    world.trim()
    letters = {"organization": world.organisation_id}
    assert len(world.operate("GET /internal/v1/dead-letters", **letters)["dead_letters"]) > 0
    world.clock.advance(2 * DAY)
    world.trim()
    assert world.operate("GET /internal/v1/dead-letters", **letters)["dead_letters"] == []


def test_an_end_of_a_turn_that_waited_long_may_be_told_twice(world: World) -> None:
    """Its message is old, its end is not."""
    send(world.actor("lead"), "engineer", "patience")
    world.clock.advance(300 * DAY)
    engineer = world.actor("engineer")
    delivery = engineer.next()
    engineer.finish(delivery)
    world.trim()
    engineer.finish(delivery)


def test_what_came_from_a_channel_within_a_month_does_nothing_the_second_time(
    world: World,
) -> None:
    alice(world).says("hello", "one")
    world.clock.advance(29 * DAY)
    world.trim()
    alice(world).says("hello", "one")
    assert count(world, "messages") == 1


def test_lines_that_nobody_saw_are_kept_and_seen_ones_a_month(world: World) -> None:
    def reply(body: str) -> None:
        world.actor("rep_a")("messages.reply", binding="alice", body=body)

    reply("seen")
    assert alice(world).reads() == ["seen"]
    reply("unseen")
    world.jobs()
    world.clock.advance(31 * DAY)
    assert world.trim("terminal_lines") == 0
    last = alice(world)(EVENTS)["after"]
    alice(world)(EVENTS, after=last)
    assert world.trim("terminal_lines") == 2


def test_a_reply_on_its_way_is_kept_however_long_the_way_is(world: World) -> None:
    world.actor("rep_a")("messages.reply", binding="alice", body="at last")
    world.clock.advance(10_000 * DAY)
    world.trim()
    assert alice(world).reads() == ["at last"]
    world.trim()
    assert count(world, "channel_outbox") == 1  # it has only now arrived


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_in_whatever_order_no_open_mail_is_lost(world: World, seed: int) -> None:
    """A hundred random steps of two seats and a person, with days between and everything that is done
    with removed at once."""
    chance = random.Random(seed)
    waiting: set[str] = set()
    actors = {key: world.actor(key) for key in ("lead", "engineer")}
    for step in range(100):
        match chance.choice(["send", "send", "turn", "turn", "fail", "leave", "days", "trim"]):
            case "send":
                body = f"message {step}"
                send(actors["lead"], "engineer", body, wake=chance.random() < 0.7)
                waiting.add(body)
            case "turn" | "fail" as outcome:
                delivery = actors["engineer"].next()
                if delivery is not None:
                    done = outcome == "turn"
                    actors["engineer"].finish(delivery, "completed" if done else "failed")
                    if done:
                        waiting -= {m["body"] for m in [delivery["message"], *delivery["passive"]]}
            case "leave":
                actors["engineer"].next()
            case "days":
                world.clock.advance(chance.choice([1, 300, DAY, 1_000 * DAY]))
                actors = {key: world.actor(key) for key in actors}
            case "trim":
                world.clock.advance(1)
                world.trim(retention=AT_ONCE)
        assert waiting == _open_mail(world)


def _open_mail(world: World) -> set[str]:
    """The messages that wait, are in a turn, or were given up."""
    rows = world.database.read_blocking(
        lambda tx: tx.all(
            "SELECT m.body FROM deliveries d JOIN messages m ON m.number = d.number"
            " WHERE d.state <> 'done'"
        )
    )
    return {row["body"] for row in rows}


def test_under_writers_and_two_trimming_replicas_nothing_is_lost(migrated_url: str) -> None:
    """Four pairs of seats write and work while all that is done with is removed again and again."""
    world = World(open_database(migrated_url))
    replica = open_database(migrated_url)
    finished = threading.Event()
    lead, engineer = world.actor("lead"), world.actor("engineer")

    def keep_small() -> int:
        removed = 0
        while not finished.is_set():
            world.clock.advance(0.001)
            removed += world.trim(retention=AT_ONCE)
        return removed

    def write(writer: int) -> list[str]:
        bodies = [f"{writer}-{n}" for n in range(25)]
        conversation = None
        for body in bodies:
            sent = send(lead, "engineer", body, conversation_id=conversation)
            conversation = sent["conversation_id"]
        return bodies

    def work() -> list[str]:
        done: list[str] = []
        while len(done) < 100:
            body = turn(engineer)
            if body is not None:
                done.append(body)
        return done

    with ThreadPoolExecutor(8) as threads:
        trimming = [threads.submit(keep_small) for _ in range(2)]
        working = threads.submit(work)
        writing = [threads.submit(write, n) for n in range(4)]
        sent = [body for writer in writing for body in writer.result(60)]
        done = working.result(60)
        finished.set()
        removed = sum(one.result(60) for one in trimming)
    assert sorted(done) == sorted(sent)
    for writer in range(4):
        assert [b for b in done if b.startswith(f"{writer}-")] == [
            f"{writer}-{n}" for n in range(25)
        ]
    assert removed > 0
    replica.close()
    world.database.close()


def test_a_person_who_writes_as_her_old_talk_is_removed_begins_a_new_one(
    migrated_url: str,
) -> None:
    world = World(open_database(migrated_url))
    alice(world).says("hello", "one")
    turn(world.actor("rep_a"))
    world.clock.advance(740 * DAY)
    world.trim("deliveries", "messages")
    removed, go_on = threading.Event(), threading.Event()

    def remove(tx: Transaction) -> None:
        tx.run("DELETE FROM conversations")
        removed.set()
        go_on.wait(10)

    with ThreadPoolExecutor(2) as threads:
        removing = threads.submit(world.database.write_blocking, remove)
        assert removed.wait(10)
        writing = threads.submit(alice(world).says, "me again", "two")
        _until_one_waits_for_a_lock(world)
        go_on.set()
        removing.result(10)
        writing.result(10)
    assert turn(world.actor("rep_a")) == "me again"
    assert count(world, "conversations") == 1
    world.database.close()


def _until_one_waits_for_a_lock(world: World) -> None:
    deadline = time.monotonic() + 10
    while not world.database.read_blocking(
        lambda tx: tx.all(
            "SELECT 1 AS found FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
    ):
        assert time.monotonic() < deadline, "nobody came to wait"


def test_every_table_that_grows_with_use_is_trimmed() -> None:
    """A new table has to say how it is kept small, or why it stays small by itself."""
    catalogue = Catalogue(FAMILIES, FEATURES)
    bounded = {
        "bindings", "bundles", "checkpoints", "event_positions", "handoffs", "leases", "migrations",
        "organisations", "person_notices", "probes", "retirements", "seats", "service", "supervisors",
        "terminal_readers",
    }  # fmt: skip
    own = {"events", "audit", "kept_answers"}
    trimmed = {trimming.table for trimming in catalogue.trimmings} | own
    declared = {
        name
        for package in catalogue.packages
        for migration in migrations_of(package)
        for name in re.findall(r"CREATE TABLE (\w+)", migration.script)
    } | {"migrations"}
    assert declared - bounded - trimmed == set()


def test_every_setting_bounds_a_table_and_every_table_is_bounded_by_one() -> None:
    named = {trimming.setting for trimming in Catalogue(FAMILIES, FEATURES).trimmings}
    settings = {setting.name for setting in fields(Retention)}
    assert named - {""} | {"events", "audit"} == settings
