"""Races on PostgreSQL: what holds however many call at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from steadmesh.kernel.database import Transaction, open_database
from tests.seats.test_messages import fill_inbox
from tests.seats.world import World


def test_the_inbox_cap_is_never_passed_by_32_senders_at_once(migrated_url: str) -> None:
    """992 wait already; of 32 sends at once exactly 8 are accepted."""
    world = World(open_database(migrated_url))
    fill_inbox(world, "lead", 992)
    senders = [world.actor(key) for key in ("rep_a", "rep_b", "engineer")]

    def send(n: int) -> str:
        answer = senders[n % len(senders)].answer("messages.send", to="lead", body=str(n))
        return answer.failure.code if answer.failure else "accepted"

    with ThreadPoolExecutor(32) as threads:
        outcomes = sorted(threads.map(send, range(32)))
    assert outcomes == ["accepted"] * 8 + ["inbox_full"] * 24

    def count(tx: Transaction) -> int:
        return len(tx.all("SELECT number FROM deliveries WHERE open = 1"))

    assert world.database.read_blocking(count) == 1_000
    world.database.close()


def test_passive_messages_are_handed_over_once_to_callers_at_once(migrated_url: str) -> None:
    world = World(open_database(migrated_url))
    lead, engineer = world.actor("lead"), world.actor("engineer")
    for n in range(40):
        lead("messages.send", to="engineer", body=str(n), wake=False)
    with ThreadPoolExecutor(8) as threads:
        calls = [threads.submit(engineer, "messages.inbox", max_results=7) for _ in range(8)]
        taken = [message["body"] for call in calls for message in call.result(30)["messages"]]
    assert sorted(taken, key=int) == [str(n) for n in range(40)]
    world.database.close()
