"""Old rows go, a span in a transaction; what is young, or not done with, stays."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from steadmesh.kernel.clock import TurnedClock
from steadmesh.kernel.config_tables import Retention
from steadmesh.kernel.database import Database, Row, Transaction
from steadmesh.kernel.jobs import Job, JobContext, JobRunner
from steadmesh.kernel.trimming import BATCH, SPANS, Trimming, trimming_job

DAY = 86_400_000_000
KEPT = Retention(audit=30 * DAY * 1_000)


def _rows(tx: Transaction, after: int, limit: int) -> list[Row]:
    return tx.all(
        "SELECT n AS key, at FROM things WHERE n > :after ORDER BY n LIMIT :limit",
        after=after,
        limit=limit,
    )


def _remove(tx: Transaction, *, after: int, last: int, before: int) -> int:
    return tx.run(
        "DELETE FROM things WHERE n > :after AND n <= :last AND at < :before AND done = 1",
        after=after,
        last=last,
        before=before,
    )


THINGS = Trimming("things", _rows, _remove, setting="audit")


class Things:
    """A table of numbered things, on a clock that stands at day 100."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = TurnedClock(100 * DAY)
        self.context = self.service()
        self._numbers = 0
        database.write_blocking(
            lambda tx: tx.run(
                "CREATE TABLE things (n INTEGER PRIMARY KEY, at BIGINT, done INTEGER)"
            )
        )

    def service(self, stopping: Callable[[], bool] = lambda: False) -> JobContext:
        return JobContext(self.database, self.clock, stopping, retention=KEPT)

    def add(self, count: int, *, day: float, done: bool = True) -> None:
        rows = [
            {"n": self._numbers + n, "at": round(day * DAY), "done": int(done)}
            for n in range(1, count + 1)
        ]
        self._numbers += count
        self.database.write_blocking(
            lambda tx: tx.many("INSERT INTO things (n, at, done) VALUES (:n, :at, :done)", rows)
        )

    def left(self) -> int:
        row = self.database.read_blocking(lambda tx: tx.one("SELECT count(*) AS n FROM things"))
        return int(row["n"]) if row else 0


@pytest.fixture
def things(database: Database) -> Things:
    return Things(database)


def test_what_is_older_than_it_is_kept_goes(things: Things) -> None:
    things.add(3, day=69.9)
    things.add(4, day=70)
    assert THINGS.step(things.context) == 3
    assert things.left() == 4


def test_a_step_removes_about_a_batch_and_the_next_goes_on(things: Things) -> None:
    things.add(2 * BATCH + 7, day=1)
    assert [THINGS.step(things.context) for _ in range(4)] == [BATCH, BATCH, 7, 0]


def test_what_is_not_done_with_stays_and_hides_nothing_behind_it(things: Things) -> None:
    things.add(3 * BATCH, day=1, done=False)
    things.add(5, day=1)
    assert THINGS.step(things.context) == 5
    assert things.left() == 3 * BATCH


def test_a_step_ends_where_nearly_nothing_may_go_and_the_next_goes_on(things: Things) -> None:
    things.add(SPANS * BATCH, day=1, done=False)
    things.add(5, day=1)
    assert [THINGS.step(things.context) for _ in range(2)] == [0, 5]


def test_rows_of_a_clock_that_was_ahead_do_not_end_the_walk(things: Things) -> None:
    things.add(2 * BATCH, day=4_000)
    things.add(5, day=1)
    assert THINGS.step(things.context) == 5


def test_what_was_passed_because_it_was_in_use_goes_in_a_later_walk(things: Things) -> None:
    things.add(5, day=1, done=False)
    THINGS.step(things.context)
    things.database.write_blocking(lambda tx: tx.run("UPDATE things SET done = 1"))
    assert THINGS.step(things.context) == 5


def test_what_is_kept_for_ever_is_not_looked_at(things: Things) -> None:
    things.add(5, day=1)
    forever = JobContext(
        things.database, things.clock, lambda: False, retention=Retention(audit=None)
    )
    assert THINGS.step(forever) == 0
    assert things.left() == 5


def test_a_stopping_service_removes_no_more(things: Things) -> None:
    things.add(5, day=1)
    assert THINGS.step(things.service(stopping=lambda: True)) == 0


def test_a_table_that_cannot_be_trimmed_holds_up_no_other(
    things: Things, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(tx: Transaction, after: int, limit: int) -> list[Row]:
        raise LookupError("broken")

    things.add(5, day=1)
    job = trimming_job([Trimming("other", broken, _remove, setting="audit"), THINGS])
    assert job.run(things.context) == 5
    assert "table not trimmed" in caplog.text


def test_after_a_full_batch_a_job_leaves_the_database_to_others(things: Things) -> None:
    """It waits four times as long as it took; one without rest runs again at once."""
    taken: list[tuple[str, int, float]] = []
    jobs = [Job("greedy", lambda _: 1, batch=1), Job("modest", lambda _: 1, batch=1, rest=1e6)]
    runner = JobRunner(
        jobs, things.database, things.clock, observed=lambda *seen: taken.append(seen)
    )
    runner.start()
    deadline = time.monotonic() + 10
    while len(taken) < 50:
        assert time.monotonic() < deadline, f"only {len(taken)} runs"
    runner.stop()
    assert [name for name, _, _ in taken].count("modest") == 1
