"""Notices to people: why a representative does not answer, once per message and reason."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from steadmesh.kernel.database import Transaction, open_database
from steadmesh.seats.messages import tell_authors, tell_waiting
from tests.seats.test_terminal import EVENTS, TOKENS, Person, alice, counted
from tests.seats.test_terminal_outbox import outbox_rows
from tests.seats.test_turns import send
from tests.seats.world import Actor, World
from tests.support.organisations import fixture_f

TALK = "GET /v1/channels/{organization}/{connection}/talk"
STATE = "POST /internal/v1/seats/{seat}/state"
DELAYS = (1, 8, 64, 300, 0)


@pytest.fixture(autouse=True)
def _tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAT", json.dumps(TOKENS))


def told(person: Person, after: int = 0) -> list[str]:
    """What the platform has told somebody."""
    person.world.jobs()
    entries = person(EVENTS, after=after)["entries"]
    return [e["data"]["text"] for e in entries if e["data"].get("origin") == "platform"]


def block(world: World, seat: str = "rep_a", detail: str = "secret detail") -> None:
    world.operate(STATE, seat=world.seats[seat], state="Blocked", detail=detail)


def unblock(world: World, seat: str = "rep_a") -> None:
    world.operate(STATE, seat=world.seats[seat], state="Stopped")


def suspend(world: World, seat: str = "rep_a", *, suspended: int = 1) -> None:
    """As an operator does: the seat is suspended, and who waits hears it."""

    def write(tx: Transaction) -> None:
        tx.run(
            "UPDATE seats SET suspended = :suspended WHERE id = :id",
            id=world.seats[seat],
            suspended=suspended,
        )
        tell_waiting(tx, world.seats[seat], now=world.clock.now())

    world.database.write_blocking(write)


def fail_five_times(world: World, seat: Actor, error: str = "boom: /etc/internal") -> None:
    for delay in DELAYS:
        seat.finish(seat.next(), "failed", error)
        world.clock.advance(delay)


# Given up


def test_s58_a_person_hears_that_her_message_was_given_up(world: World) -> None:
    """S-58 and 7.5: one line, from the platform, without the error."""
    rep_a, person = world.actor("rep_a"), alice(world)
    person.says("/fail x")
    fail_five_times(world, rep_a)
    assert told(person) == [
        'rep_a could not deal with your message "/fail x" and has given it up after 5 attempts.'
        " Write it in other words, or ask whoever runs Organisation F to try it again."
    ]


def test_a_retry_is_no_news(world: World) -> None:
    rep_a, person = world.actor("rep_a"), alice(world)
    person.says("/fail x")
    rep_a.finish(rep_a.next(), "failed", "no")
    assert told(person) == []


def test_the_line_says_that_it_is_from_the_platform_and_a_reply_does_not(world: World) -> None:
    rep_a, person = world.actor("rep_a"), alice(world)
    rep_a("messages.reply", binding="alice", body="hello")
    block(world)
    person.says("anybody?")
    world.jobs()
    entries = person(EVENTS, after=0)["entries"]
    assert [entry["data"].get("origin") for entry in entries] == [None, "platform"]
    assert set(entries[1]["data"]) == {"id", "text", "at", "origin"}


def test_a_dead_letter_that_is_tried_again_and_dies_again_is_told_once(world: World) -> None:
    rep_a, person = world.actor("rep_a"), alice(world)
    person.says("/fail x")
    fail_five_times(world, rep_a)
    letters = world.operate("GET /internal/v1/dead-letters", organization=world.organisation_id)
    number = letters["dead_letters"][0]["id"]
    world.operate("POST /internal/v1/dead-letters/{letter}:requeue", letter=number)
    fail_five_times(world, rep_a)
    assert len(told(person)) == 1


def test_each_of_two_dead_letters_is_told(world: World) -> None:
    rep_a, person = world.actor("rep_a"), alice(world)
    person.says("one", "1")
    person.says("two", "2")
    fail_five_times(world, rep_a)
    fail_five_times(world, rep_a)
    assert ['"one"' in line for line in told(person)] == [True, False]
    assert len(told(person)) == 2


@pytest.mark.parametrize("way", ["expiry", "fence", "acquire"])
def test_a_message_that_dies_with_its_runner_is_told_and_counted(world: World, way: str) -> None:
    rep_a, person = world.actor("rep_a"), alice(world)
    person.says("hello")
    for _ in DELAYS:
        assert rep_a.next() is not None
        if way == "expiry":
            world.clock.advance(16 * 60)
            world.jobs()
        elif way == "fence":
            world.operate(
                "POST /internal/v1/seats/{seat}/fence",
                seat=rep_a.seat_id,
                expected_generation=rep_a.generation,
            )
        if way != "expiry":
            rep_a.acquire()
        world.clock.advance(300)
    assert len(told(person)) == 1
    assert world.counted.count(("deliveries_dead_lettered_total",)) == 1


def test_a_dead_letter_between_seats_tells_no_person(world: World) -> None:
    lead, engineer = world.actor("lead"), world.actor("engineer")
    send(lead, "engineer", "poison")
    fail_five_times(world, engineer)
    assert outbox_rows(world) == []


# Suspended, blocked


def test_writing_to_a_suspended_representative_is_answered_by_the_platform(world: World) -> None:
    person = alice(world)
    suspend(world)
    person.says("hello")
    assert told(person) == [
        "rep_a is suspended and answers nothing for now. Your message waits until rep_a is resumed."
    ]


def test_writing_to_a_blocked_one_too_and_the_reason_stays_with_the_operator(world: World) -> None:
    person = alice(world)
    block(world)
    person.says("hello")
    assert told(person) == [
        "rep_a cannot run at the moment. Your message waits; whoever runs Organisation F can see why."
    ]


def test_the_same_event_again_is_no_second_notice(world: World) -> None:
    person = alice(world)
    block(world)
    person.says("hello", "1")
    person.says("hello", "1")
    assert len(told(person)) == 1


@pytest.mark.parametrize("silence", [block, suspend])
def test_who_waits_hears_it_in_one_line_when_it_becomes_so(world: World, silence: Any) -> None:
    person = alice(world)
    for n in range(3):
        person.says(f"message {n}", str(n))
    assert told(person) == []
    silence(world)
    [line] = told(person)
    assert "Your 3 messages wait" in line


def test_the_same_reason_again_is_told_for_new_messages_only(world: World) -> None:
    person = alice(world)
    person.says("one", "1")
    block(world)
    block(world)
    unblock(world)
    block(world)
    assert len(told(person)) == 1
    person.says("two", "2")
    assert len(told(person)) == 2


def test_another_reason_is_told_too(world: World) -> None:
    person = alice(world)
    person.says("one")
    block(world)
    suspend(world)
    assert ["suspended" in line for line in told(person)] == [False, True]


def test_a_representative_that_runs_again_answers_and_the_platform_is_silent(world: World) -> None:
    person = alice(world)
    suspend(world)
    suspend(world, suspended=0)
    person.says("hello")
    assert told(person) == []
    rep_a = world.actor("rep_a")
    assert rep_a.next()["message"]["body"] == "hello"


def test_only_the_person_of_that_seat_hears_it(world: World) -> None:
    bob = Person(world, TOKENS["bob"])
    bob.says("hello")
    block(world, "rep_a")
    assert told(bob) == []
    assert told(alice(world)) == []


def test_a_message_of_a_seat_that_waits_tells_no_person(world: World) -> None:
    world.actor("lead")("messages.send", to="engineer", body="build it")
    block(world, "engineer")
    assert outbox_rows(world) == []


def test_the_representative_reads_in_the_talk_what_its_person_was_told(world: World) -> None:
    person = alice(world)
    block(world)
    person.says("hello")
    rep_a = world.actor("rep_a")
    asked = rep_a.next()["message"]
    page = rep_a("messages.history", conversation_id=asked["conversation_id"])
    question, notice = page["messages"]
    assert (notice["origin"], notice["recipient_binding"]) == ("system", "alice")
    assert notice["parent_id"] == question["message_id"]
    assert "sender_seat" not in notice


# Retiring


def without_rep_a(successor: str | None = None) -> dict[str, Any]:
    document = fixture_f()
    del document["seats"]["rep_a"]
    del document["grants"]["a_reads"]
    del document["message_routes"]["a_lead"]
    if successor is None:
        del document["channel_bindings"]["alice"]
        return document
    document["channel_bindings"]["alice"]["seat"] = successor
    del document["channel_bindings"]["bob"]
    return document


def return_messages(world: World, seat_id: str) -> None:
    """What retirement does for people: everything that died is handed over, whoever wrote it."""

    def write(tx: Transaction) -> None:
        rows = tx.all("SELECT number FROM deliveries WHERE seat_id = :seat", seat=seat_id)
        tell_authors(
            tx,
            seat_id,
            [row["number"] for row in rows],
            reason="retiring",
            now=world.clock.now(),
        )

    world.database.write_blocking(write)


def test_people_hear_that_a_retiring_representative_did_not_get_to_their_messages(
    world: World,
) -> None:
    person, seat_id = alice(world), world.seats["rep_a"]
    person.says("one", "1")
    person.says("two", "2")
    world.apply(without_rep_a())
    return_messages(world, seat_id)
    return_messages(world, seat_id)
    assert told(person) == [
        "rep_a is retiring and did not get to your last 2 messages."
        " Nobody represents you now; ask whoever runs Organisation F."
    ]


def test_they_hear_who_represents_them_now(world: World) -> None:
    person, seat_id = alice(world), world.seats["rep_a"]
    person.says("the  first\nand more " + "x" * 100)
    world.apply(without_rep_a("rep_b"))
    return_messages(world, seat_id)
    [line] = told(person)
    assert '"the first and more xxx' in line
    assert line.endswith("rep_b represents you now: write again if it still matters.")


def test_writing_to_one_that_is_retiring_goes_to_nobody_and_says_so_once(world: World) -> None:
    person = alice(world)
    person.says("one", "1")
    world.apply(without_rep_a())
    assert person.says("two", "2") == {"id": "2"}
    assert person.says("two", "2") == {"id": "2"}
    before, line = told(person)
    assert before.startswith('rep_a is retiring and did not get to your message "one"')
    assert "retiring and takes no new messages: this one went to nobody." in line
    assert counted(world, "ingress_events_total") == ["accepted", "unbound", "unbound"]


def test_somebody_whom_nobody_ever_represented_hears_it_in_the_answer(world: World) -> None:
    answer = Person(world, TOKENS["carol"]).says("hello")
    assert answer["note"] == (
        "nobody represents you here: what you write goes to nobody. Ask whoever runs Organisation F."
    )


# Nobody runs the seats


def claim(world: World) -> None:
    world.operate(
        "POST /internal/v1/organizations/{organization}/supervision",
        organization=world.organisation_id,
        instance="supervisor-1",
        host="here",
        pid=1,
    )


def test_the_answer_says_that_mail_will_wait_while_no_supervisor_is_there(world: World) -> None:
    person = alice(world)
    note = "no supervisor is running: mail will wait"
    assert person.says("one", "1")["note"] == note
    assert person(TALK)["note"] == note
    claim(world)
    assert "note" not in person.says("two", "2")
    assert "note" not in person(TALK)
    world.clock.advance(31)
    assert person.says("three", "3")["note"] == note


def test_a_seat_that_runs_by_hand_needs_no_supervisor(world: World) -> None:
    world.actor("rep_a")
    assert "note" not in alice(world).says("hello")


def test_whoever_begins_to_talk_hears_what_keeps_the_representative(world: World) -> None:
    suspend(world)
    person = alice(world)
    assert person(TALK)["note"] == "rep_a is suspended and answers nothing for now."
    assert person.says("hello") == {"id": "1"}  # the channel says it


# Races


def test_a_notice_races_with_replies_and_messages_and_comes_once(migrated_url: str) -> None:
    """A race on PostgreSQL: the representative replies, she writes, and it is blocked again and again."""
    world = World(open_database(migrated_url))
    person, rep_a = alice(world), Actor(world, "rep_a").acquire()
    with ThreadPoolExecutor(9) as threads:
        work = [
            task
            for n in range(10)
            for task in (
                threads.submit(person.says, f"message {n}", f"event {n}"),
                threads.submit(rep_a, "messages.reply", binding="alice", body=str(n)),
                threads.submit(block, world),
            )
        ]
        for task in work:
            task.result(60)
    block(world)
    notices = world.database.read_blocking(
        lambda tx: tx.all("SELECT parent_id FROM messages WHERE origin = 'system'")
    )
    parents = [row["parent_id"] for row in notices]
    assert 1 <= len(parents) <= 10
    assert len(set(parents)) == len(parents)
    world.database.close()
