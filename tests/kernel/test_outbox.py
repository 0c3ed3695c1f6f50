"""The outbox: written with what made it, read in an order that skips none."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from steadmesh.kernel import outbox
from steadmesh.kernel.clock import TurnedClock
from steadmesh.kernel.config_tables import Retention
from steadmesh.kernel.database import Database, Transaction, open_database
from steadmesh.kernel.database.migrations import migrate, migrations_of
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


def trim(database: Database, *, at: int) -> int:
    """Remove the events from before that moment."""
    clock = TurnedClock(at)
    context = JobContext(database, clock, lambda: False, retention=Retention(events=0))
    return outbox.TRIMMING.step(context)


def test_positions_go_on_where_they_were_after_all_events_were_trimmed(ready: Database) -> None:
    for name in "abc":
        record(ready, name)
    number(ready)
    assert trim(ready, at=2) == 3
    record(ready, "d")
    number(ready)
    assert names(ready, after=3) == ["d"]
    assert ready.read_blocking(outbox.last_position) == 4


def test_a_reader_for_whom_events_are_missing_is_told_to_start_over(ready: Database) -> None:
    for name in "abc":
        record(ready, name)
    number(ready)
    trim(ready, at=2)
    record(ready, "d")
    number(ready)
    with pytest.raises(outbox.StartOver) as caught:
        names(ready, after=2)
    assert caught.value.detail() == {"after": 2, "last": 4}
    assert names(ready, after=3) == ["d"]


def test_a_position_that_was_never_given_is_told_from_the_newest(ready: Database) -> None:
    record(ready, "a")
    number(ready)
    with pytest.raises(outbox.StartOver):
        names(ready, after=2)
    assert names(ready, after=1) == []


def test_an_event_without_a_position_is_not_trimmed(postgres_url: str) -> None:
    database = open_database(postgres_url)
    migrate(database, ["steadmesh.kernel"], TurnedClock())
    record(database, "numbered")
    number(database)
    record(database, "not yet")
    assert trim(database, at=2) == 1
    number(database)
    assert names(database, after=1) == ["not yet"]
    database.close()


def test_positions_of_a_replica_of_the_version_before_are_not_given_again(
    postgres_url: str,
) -> None:
    """It gives them without counting: for the seconds until it notices the new schema."""
    database = open_database(postgres_url)
    migrate(database, ["steadmesh.kernel"], TurnedClock())
    record(database, "by the old one")
    database.write_blocking(lambda tx: tx.run("UPDATE events SET position = 1"))
    record(database, "by the new one")
    number(database)
    assert names(database, after=1) == ["by the new one"]
    database.close()


def test_positions_of_a_database_that_has_events_go_on_behind_them(postgres_url: str) -> None:
    database = open_database(postgres_url)
    [events, positions] = [
        re.sub(r"--[^\n]*", "", migration.for_engine("postgresql")).split(";")
        for migration in migrations_of("steadmesh.kernel")
    ]
    old = "INSERT INTO events (scope, kind, data, at, position) VALUES ('o', 'k', '{}', 1, 7)"

    def upgrade(tx: Transaction) -> None:
        for statement in [*events[:-1], old, *positions]:
            tx.run(statement)

    database.write_blocking(upgrade)
    assert database.read_blocking(outbox.last_position) == 7
    database.close()


def test_a_follower_misses_nothing_while_old_events_are_trimmed(postgres_url: str) -> None:
    """Either it is handed every event between two positions, or it is told to start over."""
    database = open_database(postgres_url)
    migrate(database, ["steadmesh.kernel"], TurnedClock())
    written = threading.Event()
    seen: list[int] = []

    def follow() -> None:
        position = 0
        while not written.is_set() or position < 400:
            try:
                events = database.read_blocking(
                    lambda tx: outbox.read(tx, after=position, limit=7)  # noqa: B023 - run at once
                )
            except outbox.StartOver as gone:
                position = gone.detail()["last"]
                continue
            assert [event.position for event in events] == [
                position + n for n in range(1, len(events) + 1)
            ]
            seen.extend(event.position for event in events)
            position += len(events)

    def keep_small() -> None:
        while not written.is_set():
            number(database)
            trim(database, at=2)
        number(database)

    def write() -> None:
        for _ in range(100):
            record(database, "x")

    with ThreadPoolExecutor(6) as threads:
        others = [threads.submit(follow), threads.submit(keep_small)]
        for writer in [threads.submit(write) for _ in range(4)]:
            writer.result(60)
        written.set()
        for other in others:
            other.result(60)
    assert seen == sorted(set(seen))
    database.close()
