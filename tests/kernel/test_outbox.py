"""The outbox: written with what made it, read in an order that skips none."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from steadmesh.kernel import outbox
from steadmesh.kernel.clock import TurnedClock
from steadmesh.kernel.database import Database, Transaction, open_database
from steadmesh.kernel.database.migrations import migrate
from steadmesh.kernel.jobs import JobContext


@pytest.fixture
def ready(database: Database) -> Database:
    migrate(database, ["steadmesh.kernel"], TurnedClock())
    return database


def number(database: Database) -> None:
    context = JobContext(database, TurnedClock(), lambda: False)
    while outbox.number_committed(context):
        pass


def record(database: Database, name: str, scope: str = "org") -> None:
    database.write_blocking(lambda tx: outbox.record(tx, "made", scope=scope, at=1, name=name))


def names(database: Database, after: int = 0, scope: str | None = None) -> list[str]:
    events = database.read_blocking(lambda tx: outbox.read(tx, after=after, scope=scope))
    return [event.data["name"] for event in events]


def test_events_come_in_order_and_from_where_a_reader_stopped(ready: Database) -> None:
    for name in "abc":
        record(ready, name)
    number(ready)
    assert names(ready) == ["a", "b", "c"]
    assert names(ready, after=2) == ["c"]
    assert ready.read_blocking(outbox.last_position) == 3


def test_a_scope_sees_its_own_events_only(ready: Database) -> None:
    record(ready, "mine")
    record(ready, "theirs", scope="other")
    number(ready)
    assert names(ready, scope="org") == ["mine"]


def test_an_event_of_a_failed_write_never_was(ready: Database) -> None:
    def fail(tx: Transaction) -> None:
        outbox.record(tx, "made", scope="org", at=1, name="never")
        raise LookupError

    with pytest.raises(LookupError):
        ready.write_blocking(fail)
    number(ready)
    assert names(ready) == []


def test_an_event_committed_late_is_not_passed_by(postgres_url: str) -> None:
    """A transaction draws its id first and commits last: a reader of ids would miss it."""
    database = open_database(postgres_url)
    migrate(database, ["steadmesh.kernel"], TurnedClock())
    drawn, go_on = threading.Event(), threading.Event()

    def slow(tx: Transaction) -> None:
        outbox.record(tx, "made", scope="org", at=1, name="slow")
        drawn.set()
        go_on.wait(10)

    with ThreadPoolExecutor(1) as threads:
        late = threads.submit(database.write_blocking, slow)
        assert drawn.wait(10)
        record(database, "quick")
        number(database)
        assert names(database) == ["quick"]
        go_on.set()
        late.result(10)
    number(database)
    assert names(database, after=1) == ["slow"]
    database.close()


def test_positions_have_no_gap_and_no_double_under_16_writers(postgres_url: str) -> None:
    database = open_database(postgres_url)
    migrate(database, ["steadmesh.kernel"], TurnedClock())
    written = threading.Event()
    seen: list[tuple[int, str]] = []

    def follow() -> None:
        while not written.is_set() or len(seen) < 320:
            number(database)
            position = seen[-1][0] if seen else 0
            seen.extend((event.position, event.data["name"]) for event in after(position))

    def after(position: int) -> list[outbox.Event]:
        return database.read_blocking(lambda tx: outbox.read(tx, after=position))

    def write(writer: int) -> None:
        for n in range(20):
            record(database, f"{writer}-{n}")

    def number_again_and_again() -> None:
        while not written.is_set():
            number(database)

    with ThreadPoolExecutor(18) as threads:
        others = [threads.submit(follow), threads.submit(number_again_and_again)]
        for writer in [threads.submit(write, n) for n in range(16)]:
            writer.result(60)
        written.set()
        for other in others:
            other.result(60)
    assert [position for position, _ in seen] == list(range(1, 321))
    assert {name for _, name in seen} == {f"{w}-{n}" for w in range(16) for n in range(20)}
    database.close()
