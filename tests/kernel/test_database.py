"""The small interface that both engines stand behind."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, LiteralString

import apsw
import psycopg
import pytest

from steadmesh.kernel.database import (
    Database,
    DatabaseProblem,
    DatabaseUnavailable,
    Transaction,
    exclusive,
    open_database,
    shared,
)
from steadmesh.kernel.database.locks import in_order
from steadmesh.kernel.database.sqlite import SQLite


@pytest.fixture
def counters(database: Database) -> Database:
    """A database with one table of numbers."""

    def make(tx: Transaction) -> None:
        tx.run("CREATE TABLE counters (name TEXT PRIMARY KEY, value BIGINT NOT NULL)")
        tx.run("INSERT INTO counters (name, value) VALUES ('a', 0), ('b', 0)")

    database.write_blocking(make)
    return database


def value(database: Database, name: str = "a") -> int:
    row = database.read_blocking(
        lambda tx: tx.one("SELECT value FROM counters WHERE name = :name", name=name)
    )
    assert row is not None
    return int(row["value"])


def add_one(tx: Transaction) -> None:
    """Read, then write: what loses updates without a lock."""
    row = tx.one("SELECT value FROM counters WHERE name = 'a'")
    assert row is not None
    tx.run("UPDATE counters SET value = :value WHERE name = 'a'", value=row["value"] + 1)


class Trouble(Exception):
    pass


def test_a_failed_write_leaves_nothing(counters: Database) -> None:
    def fail(tx: Transaction) -> None:
        add_one(tx)
        raise Trouble

    with pytest.raises(Trouble):
        counters.write_blocking(fail)
    assert value(counters) == 0


def test_a_failing_neighbour_in_the_same_batch_undoes_only_itself(counters: Database) -> None:
    def fail(tx: Transaction) -> None:
        add_one(tx)
        raise Trouble

    async def together() -> list[Any]:
        writes = [counters.write(fail if n % 2 else add_one, locks=alone) for n in range(20)]
        return await asyncio.gather(*writes, return_exceptions=True)

    outcomes = asyncio.run(together())
    assert [isinstance(outcome, Trouble) for outcome in outcomes] == [False, True] * 10
    assert value(counters) == 10


def alone(tx: Transaction) -> list[Any]:
    return [exclusive("counter", "a")]


def test_writers_that_are_alone_with_a_thing_lose_no_update(counters: Database) -> None:
    with ThreadPoolExecutor(8) as threads:
        for _ in range(40):
            threads.submit(counters.write_blocking, add_one, locks=alone)
    assert value(counters) == 40


def test_after_commit_actions_and_topics_come_once_and_only_after_success(
    counters: Database,
) -> None:
    seen: list[str] = []
    topics: list[str] = []
    counters.on_wake(topics.extend)

    def good(tx: Transaction) -> None:
        tx.after_commit(lambda: seen.append("good"))
        tx.wake("topic")

    def bad(tx: Transaction) -> None:
        tx.after_commit(lambda: seen.append("bad"))
        tx.wake("lost")
        raise Trouble

    counters.write_blocking(good)
    with pytest.raises(Trouble):
        counters.write_blocking(bad)
    assert seen == ["good"]
    assert "lost" not in topics
    assert "topic" in topics


def test_a_reader_sees_one_snapshot_while_others_write(counters: Database) -> None:
    def read_twice(tx: Transaction) -> tuple[Any, Any]:
        first = tx.one("SELECT value FROM counters WHERE name = 'a'")
        with ThreadPoolExecutor(1) as thread:
            thread.submit(counters.write_blocking, add_one).result(10)
        return first, tx.one("SELECT value FROM counters WHERE name = 'a'")

    first, second = counters.read_blocking(read_twice)
    assert first == second
    assert value(counters) == 1


def test_a_wrong_statement_is_not_taken_for_a_database_that_is_away(counters: Database) -> None:
    """Nobody is told to try again what never works; a neighbour in the batch is not touched."""

    def twice(tx: Transaction) -> None:
        tx.run("INSERT INTO counters (name, value) VALUES ('a', 0)")

    def unknown(tx: Transaction) -> Any:
        return tx.all("SELECT * FROM nowhere")

    async def together() -> list[Any]:
        writes = [counters.write(work) for work in (add_one, twice, unknown, add_one)]
        return await asyncio.gather(*writes, return_exceptions=True)

    _, second, third, _ = asyncio.run(together())
    assert "unique" in str(second).lower()
    assert "nowhere" in str(third)
    assert not isinstance(second, DatabaseUnavailable)
    assert not isinstance(third, DatabaseUnavailable)
    with pytest.raises(Exception, match="nowhere") as problem:
        counters.read_blocking(unknown)
    assert not isinstance(problem.value, DatabaseUnavailable)


def test_a_reading_transaction_cannot_write(counters: Database) -> None:
    with pytest.raises(DatabaseUnavailable):
        counters.read_blocking(add_one)
    assert value(counters) == 0


def test_a_write_of_a_caller_who_is_gone_is_not_run(tmp_path: Path) -> None:
    """A write of another thread has the turn; the second caller leaves before she gets it."""
    database = SQLite(tmp_path / "a.db")
    ran: list[str] = []
    inside, free = threading.Event(), threading.Event()

    def hold(tx: Transaction) -> None:
        inside.set()
        assert free.wait(10)

    async def leave() -> None:
        def write(name: str) -> asyncio.Future[Any]:
            return asyncio.ensure_future(_await(database.write(lambda tx: ran.append(name))))

        writes = [write("first"), write("second")]
        await asyncio.sleep(0)  # both wait for their turn
        writes[1].cancel()
        await asyncio.gather(writes[1], return_exceptions=True)
        free.set()
        await writes[0]

    with ThreadPoolExecutor(1) as thread:
        held = thread.submit(database.write_blocking, hold)
        assert inside.wait(10)
        asyncio.run(leave())
        held.result(10)
    database.close()
    assert ran == ["first"]


async def _await(awaitable: Any) -> Any:
    return await awaitable


def test_a_broken_shared_transaction_costs_only_the_call_that_broke_it(tmp_path: Path) -> None:
    database = SQLite(tmp_path / "a.db")
    database.write_blocking(lambda tx: tx.run("CREATE TABLE t (n INTEGER)"))

    def insert(tx: Transaction) -> None:
        tx.run("INSERT INTO t (n) VALUES (1)")

    def break_it(tx: Transaction) -> None:
        insert(tx)
        tx.run("ROLLBACK")  # what SQLite does by itself on a full disk
        raise apsw.FullError("disk full")

    async def together() -> list[Any]:
        hold = database.write(lambda tx: None)
        writes = [database.write(work) for work in (insert, insert, break_it, insert)]
        return await asyncio.gather(hold, *writes, return_exceptions=True)

    outcomes = asyncio.run(together())
    rows = database.read_blocking(lambda tx: tx.one("SELECT count(*) AS n FROM t"))
    database.close()
    assert [isinstance(outcome, Exception) for outcome in outcomes] == [
        False,
        False,
        False,
        True,
        False,
    ]
    assert "full" in str(outcomes[3])
    assert rows == {"n": 3}


def test_an_acknowledged_write_is_in_the_file(tmp_path: Path) -> None:
    database = SQLite(tmp_path / "a.db")
    database.write_blocking(lambda tx: tx.run("CREATE TABLE t (n INTEGER)"))
    other = apsw.Connection(str(tmp_path / "a.db"))
    assert other.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
    database.close()


def test_locks_are_asked_for_in_one_order_and_the_stronger_wins() -> None:
    first, second = exclusive("inbox", "1"), shared("inbox", "2")
    assert in_order([first, second]) == in_order([second, first])
    assert in_order([shared("inbox", "1"), first]) == [(first.number, False)]


def test_shared_locks_do_not_wait_for_each_other(postgres_url: str) -> None:
    database = open_database(postgres_url)
    both_inside = threading.Barrier(2, timeout=10)

    def meet(tx: Transaction) -> int:
        return both_inside.wait()

    with ThreadPoolExecutor(2) as threads:
        writes = [
            threads.submit(
                database.write_blocking, meet, locks=lambda tx: [shared("organisation", "x")]
            )
            for _ in range(2)
        ]
        assert sorted(write.result(15) for write in writes) == [0, 1]
    database.close()


def test_a_write_is_run_again_after_a_deadlock(postgres_url: str) -> None:
    database = open_database(postgres_url)

    def make(tx: Transaction) -> None:
        tx.run("CREATE TABLE counters (name TEXT PRIMARY KEY, value BIGINT NOT NULL)")
        tx.run("INSERT INTO counters (name, value) VALUES ('a', 0), ('b', 0)")

    database.write_blocking(make)
    crossed = threading.Barrier(2, timeout=10)
    attempts: list[str] = []

    def cross(first: str, second: str) -> None:
        waited: list[int] = []

        def work(tx: Transaction) -> None:
            attempts.append(first)
            bump = "UPDATE counters SET value = value + 1 WHERE name = :name"
            tx.run(bump, name=first)
            if not waited:
                waited.append(1)
                crossed.wait()
            tx.run(bump, name=second)

        database.write_blocking(work)

    with ThreadPoolExecutor(2) as threads:
        for crossing in (threads.submit(cross, "a", "b"), threads.submit(cross, "b", "a")):
            crossing.result(20)
    assert value(database) == value(database, "b") == 2
    assert len(attempts) >= 3
    database.close()


END_ALL = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def test_after_a_restart_of_the_server_no_call_meets_a_dead_connection(postgres_url: str) -> None:
    database = open_database(postgres_url)
    database.write_blocking(lambda tx: tx.run("CREATE TABLE t (n BIGINT)"))
    together = threading.Barrier(6)

    def at_once(tx: Transaction) -> None:
        together.wait(20)

    with ThreadPoolExecutor(6) as threads:
        for filling in [threads.submit(database.read_blocking, at_once) for _ in range(6)]:
            filling.result(20)

    def insert_and_count() -> list[Any]:
        with psycopg.connect(postgres_url, autocommit=True) as operator:
            operator.execute(END_ALL)
        database.write_blocking(lambda tx: tx.run("INSERT INTO t (n) VALUES (1)"))
        count: LiteralString = "SELECT count(*) AS n FROM t"
        with psycopg.connect(postgres_url, autocommit=True) as operator:
            operator.execute(END_ALL)
        found = database.read_blocking(lambda tx: tx.one(count))
        with psycopg.connect(postgres_url, autocommit=True) as operator:
            operator.execute(END_ALL)
        return [found, asyncio.run(_await(database.read(lambda tx: tx.one(count), brief=True)))]

    assert insert_and_count() == [{"n": 1}, {"n": 1}]
    database.close()


def test_a_commit_whose_answer_is_lost_is_not_made_again(postgres_url: str) -> None:
    """Nobody knows whether it was done: that is for the caller to find out, by its key."""
    database = open_database(postgres_url)
    ran: list[int] = []

    def end_own_connection(tx: Transaction) -> None:
        ran.append(1)
        with psycopg.connect(postgres_url, autocommit=True) as operator:
            operator.execute(END_ALL)

    with pytest.raises(DatabaseUnavailable, match="answer to a commit"):
        database.write_blocking(end_own_connection)
    assert ran == [1]
    database.close()


def test_a_topic_reaches_another_replica(postgres_url: str) -> None:
    one, other = open_database(postgres_url), open_database(postgres_url)
    stranger = psycopg.connect(postgres_url, autocommit=True)
    heard = threading.Event()
    other.on_wake(lambda topics: heard.set() if "inbox:1" in topics else None)
    try:
        # The listener may still be connecting, so the hint is given until it is heard; and a
        # stranger's words on the channel do not end the listening.
        for _ in range(50):
            stranger.execute("NOTIFY steadmesh, 'no json'")
            stranger.execute("NOTIFY steadmesh, '7'")
            one.write_blocking(lambda tx: tx.wake("inbox:1"))
            if heard.wait(0.2):
                break
        assert heard.is_set()
    finally:
        stranger.close()
        one.close()
        other.close()


def test_postgresql_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(DatabaseProblem) as problem:
        open_database("postgresql://ada:hunter2@127.0.0.1:1/nowhere")
    assert "cannot reach PostgreSQL at postgresql://ada:***@127.0.0.1:1/nowhere" in str(
        problem.value
    )
    assert "hunter2" not in str(problem.value)


def test_a_new_file_is_for_its_user_alone(tmp_path: Path) -> None:
    SQLite(tmp_path / "a.db").close()
    assert (tmp_path / "a.db").stat().st_mode & 0o077 == 0


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("this is no database, but long enough to be read as one" * 40)
    with pytest.raises(DatabaseProblem, match=r"a\.db"):
        open_database(tmp_path / "a.db")


def test_a_write_that_cannot_begin_is_told_so_and_the_next_one_goes_on(tmp_path: Path) -> None:
    """A stranger holds the file's write lock; once it is gone everything goes on."""
    database = SQLite(tmp_path / "a.db")
    database.write_blocking(lambda tx: tx.run("CREATE TABLE t (n INTEGER)"))
    stranger = apsw.Connection(str(tmp_path / "a.db"))
    stranger.execute("BEGIN IMMEDIATE")

    async def insert() -> None:
        await database.write(lambda tx: tx.run("INSERT INTO t (n) VALUES (1)"))

    with pytest.raises(DatabaseUnavailable):
        asyncio.run(insert())
    with pytest.raises(DatabaseUnavailable):
        database.write_blocking(lambda tx: tx.run("INSERT INTO t (n) VALUES (1)"))
    stranger.execute("ROLLBACK")
    asyncio.run(insert())
    rows = database.read_blocking(lambda tx: tx.one("SELECT count(*) AS n FROM t"))
    database.close()
    assert rows == {"n": 1}


def test_writes_that_cannot_begin_are_told_so_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each try may hold up the event loop until the stranger's lock is given up on."""
    database = SQLite(tmp_path / "a.db")
    tries: list[int] = []

    def refuse() -> None:
        tries.append(1)
        raise apsw.BusyError("database is locked")

    monkeypatch.setattr(database, "_begin", refuse)

    async def together() -> list[Any]:
        writes = [database.write(lambda tx: None) for _ in range(20)]
        return await asyncio.gather(*writes, return_exceptions=True)

    outcomes = asyncio.run(together())
    assert {type(outcome) for outcome in outcomes} == {DatabaseUnavailable}
    assert len(tries) == 1
    database.close()


def test_a_closed_database_takes_no_writes_and_what_waited_is_written(tmp_path: Path) -> None:
    database = SQLite(tmp_path / "a.db")
    database.write_blocking(lambda tx: tx.run("CREATE TABLE t (n INTEGER)"))

    async def close_under_a_write() -> None:
        waiting = database.write(lambda tx: tx.run("INSERT INTO t (n) VALUES (1)"))
        database.close()
        assert await waiting == 1
        with pytest.raises(DatabaseUnavailable, match="stopping"):
            await database.write(lambda tx: None)

    asyncio.run(close_under_a_write())
    with pytest.raises(DatabaseUnavailable, match="stopping"):
        database.write_blocking(lambda tx: None)
    reopened = SQLite(tmp_path / "a.db")
    assert reopened.read_blocking(lambda tx: tx.one("SELECT n FROM t")) == {"n": 1}
    reopened.close()


def test_writes_from_loops_and_threads_at_once_are_all_done(tmp_path: Path) -> None:
    database = SQLite(tmp_path / "a.db")
    database.write_blocking(lambda tx: tx.run("CREATE TABLE t (n INTEGER)"))

    def insert(tx: Transaction) -> int:
        return tx.run("INSERT INTO t (n) VALUES (1)")

    async def many() -> None:
        for _ in range(10):
            assert await asyncio.gather(*[database.write(insert) for _ in range(20)]) == [1] * 20

    def blocking() -> None:
        for _ in range(100):
            assert database.write_blocking(insert) == 1

    with ThreadPoolExecutor(6) as threads:
        work = [threads.submit(asyncio.run, many()) for _ in range(3)]
        work += [threads.submit(blocking) for _ in range(3)]
        for one in work:
            one.result(60)
    rows = database.read_blocking(lambda tx: tx.one("SELECT count(*) AS n FROM t"))
    database.close()
    assert rows == {"n": 900}


def test_a_handler_that_raises_stop_iteration_holds_up_nobody(counters: Database) -> None:
    def stop(tx: Transaction) -> None:
        next(iter(()))

    async def together() -> list[Any]:
        writes = [counters.write(work, locks=alone) for work in (add_one, stop, add_one)]
        waiting = asyncio.gather(*writes, return_exceptions=True)
        return await asyncio.wait_for(waiting, 10)

    outcomes = asyncio.run(together())
    assert [isinstance(outcome, RuntimeError) for outcome in outcomes] == [False, True, False]
    assert value(counters) == 2


def test_an_action_that_fails_after_the_commit_does_not_undo_or_hold_up_anything(
    counters: Database,
) -> None:
    heard: list[str] = []

    def notify(topics: Any) -> None:
        heard.extend(topics)
        raise Trouble

    def fail() -> None:
        raise Trouble

    def work(tx: Transaction) -> None:
        add_one(tx)
        tx.after_commit(fail)
        tx.after_commit(lambda: heard.append("second action"))
        tx.wake("topic")

    counters.on_wake(notify)
    counters.write_blocking(work, locks=alone)

    async def again() -> None:
        await asyncio.wait_for(_await(counters.write(work, locks=alone)), 10)

    asyncio.run(again())
    assert value(counters) == 2
    assert [word for word in heard if word != "topic"] == ["second action"] * 2
    assert "topic" in heard


def test_a_closed_database_is_not_read(tmp_path: Path) -> None:
    database = SQLite(tmp_path / "a.db")
    database.close()
    with pytest.raises(DatabaseUnavailable, match="stopping"):
        database.read_blocking(lambda tx: tx.one("SELECT 1 AS n"))


def test_a_file_that_was_taken_away_is_not_made_anew(tmp_path: Path) -> None:
    """An empty database in its place would look like one that lost everything."""
    database = SQLite(tmp_path / "a.db")
    database.write_blocking(lambda tx: tx.run("CREATE TABLE t (n INTEGER)"))
    for file in tmp_path.iterdir():
        file.unlink()

    def break_it(tx: Transaction) -> None:
        raise SystemError  # with the connection closed beneath it, the next batch opens a new one

    assert database._writer is not None
    database._writer.close(force=True)
    with pytest.raises(DatabaseUnavailable):
        database.write_blocking(break_it)
    with pytest.raises(DatabaseUnavailable):
        database.write_blocking(lambda tx: tx.run("INSERT INTO t (n) VALUES (1)"))
    assert not (tmp_path / "a.db").exists()
    database.close()
