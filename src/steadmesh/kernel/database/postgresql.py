"""PostgreSQL: READ COMMITTED with advisory locks and compare-and-set; any number of replicas.

Locks are transaction-scoped and asked for in ascending order before the first row is changed. Topics
travel by NOTIFY after the commit, as a hint: inside the transaction it would serialise commits.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import queue
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, LiteralString, TypeVar

import psycopg
import psycopg_pool
from psycopg.rows import dict_row

from steadmesh.kernel.config_values import masked_url
from steadmesh.kernel.database import (
    DatabaseProblem,
    DatabaseUnavailable,
    Engine,
    Locks,
    Row,
    Transaction,
)
from steadmesh.kernel.database.commits import act_on_commit
from steadmesh.kernel.database.locks import in_order

log = logging.getLogger(__name__)

T = TypeVar("T")

CONNECTIONS = 16
ATTEMPTS = 4
WAIT_SECONDS = 10.0
CHANNEL = "steadmesh"
HINT_SECONDS = 0.005
HINT_BYTES = 7_000
SESSION = (
    "-c lock_timeout=2000 -c statement_timeout=10000 "
    "-c idle_in_transaction_session_timeout=30000 -c timezone=UTC"
)
UNHURRIED: tuple[LiteralString, ...] = (
    "SET LOCAL lock_timeout = 0",
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL idle_in_transaction_session_timeout = 0",
)
NETWORK: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""A peer that has vanished without a word is noticed in seconds: the server's time limits cannot."""

WORTH_REPEATING = (
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
    psycopg.errors.LockNotAvailable,
)
FAULTS = (
    psycopg.ProgrammingError,
    psycopg.IntegrityError,
    psycopg.DataError,
    psycopg.NotSupportedError,
)
"""What a wrong statement raises: trying again does not help, and it is no word on the server."""

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)")


@lru_cache(maxsize=2_048)
def _in_psycopg_words(sql: str) -> LiteralString:
    text = _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))
    return text


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Flags are integers in both engines' tables."""
    return {
        name: int(value) if isinstance(value, bool) else value for name, value in values.items()
    }


class _ConnectionLost(DatabaseUnavailable):
    """The database cannot do this now: the connection to the server was lost. Try again shortly."""


class PostgreSQLTransaction:
    """Statements on one connection."""

    engine: Engine = "postgresql"

    def __init__(self, connection: psycopg.Connection[dict[str, Any]]) -> None:
        self._connection = connection
        self.actions: list[Callable[[], None]] = []
        self.topics: list[str] = []

    def all(self, sql: LiteralString, **values: Any) -> list[Row]:
        cursor = self._connection.execute(_in_psycopg_words(sql), _plain(values))
        return list(cursor.fetchall())

    def one(self, sql: LiteralString, **values: Any) -> Row | None:
        return self._connection.execute(_in_psycopg_words(sql), _plain(values)).fetchone()

    def run(self, sql: LiteralString, **values: Any) -> int:
        return self._connection.execute(_in_psycopg_words(sql), _plain(values)).rowcount

    def many(self, sql: LiteralString, rows: Iterable[Mapping[str, Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_in_psycopg_words(sql), [_plain(row) for row in rows])

    def after_commit(self, action: Callable[[], None]) -> None:
        self.actions.append(action)

    def wake(self, topic: str) -> None:
        self.topics.append(topic)


class PostgreSQL:
    """One database, shared with other replicas."""

    engine: Engine = "postgresql"
    has_one_writer = False

    def __init__(self, url: str, *, connections: int = CONNECTIONS) -> None:
        self._url = url
        self.place = masked_url(url)
        self.full = False
        self._notify: Callable[[Iterable[str]], None] = lambda topics: None
        self.batch_observed: Callable[[int, float], None] = lambda size, seconds: None
        options: dict[str, Any] = {
            **NETWORK,
            "autocommit": True,
            "row_factory": dict_row,
            "options": SESSION,
        }
        self._check(options)
        self._connections = psycopg_pool.ConnectionPool[psycopg.Connection[dict[str, Any]]](
            url, kwargs=options, min_size=1, max_size=connections, timeout=WAIT_SECONDS, open=True
        )
        self._most = connections
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="postgresql")
        self._hints = _Hints(url, self._hear)
        self._closed = False

    # Reading

    async def read(self, work: Callable[[Transaction], T], *, brief: bool = False) -> T:
        function = self._read_briefly if brief else self.read_blocking
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, work)

    def _read_briefly(self, work: Callable[[Transaction], T]) -> T:
        def read() -> T:
            with self._connected(repeats=False) as connection:
                return work(PostgreSQLTransaction(connection))

        return self._past_lost_connections(read)

    def read_blocking(self, work: Callable[[Transaction], T]) -> T:
        def read() -> T:
            with self._connected(repeats=False) as connection:
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", prepare=False)
                try:
                    return work(PostgreSQLTransaction(connection))
                finally:
                    connection.rollback()

        return self._past_lost_connections(read)

    # Writing

    def write(
        self,
        work: Callable[[Transaction], T],
        *,
        locks: Callable[[Transaction], Locks] | None = None,
    ) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: self.write_blocking(work, locks=locks)
        )

    def write_blocking(
        self,
        work: Callable[[Transaction], T],
        *,
        locks: Callable[[Transaction], Locks] | None = None,
        unhurried: bool = False,
    ) -> T:
        started = time.perf_counter()
        for attempt in range(ATTEMPTS):
            try:
                tx, result = self._past_lost_connections(
                    lambda: self._attempt(work, locks, unhurried)
                )
                break
            except WORTH_REPEATING as problem:
                if attempt == ATTEMPTS - 1:
                    raise DatabaseUnavailable(
                        reason="others kept what this needs locked for too long"
                    ) from problem
            except DatabaseUnavailable as problem:
                self.full = self.full or isinstance(problem.__cause__, psycopg.errors.DiskFull)
                raise
        self.batch_observed(1, time.perf_counter() - started)
        act_on_commit(tx.actions)
        if tx.topics:
            act_on_commit([lambda: self._notify(tx.topics), lambda: self._hints.send(tx.topics)])
        return result

    def _attempt(
        self,
        work: Callable[[Transaction], T],
        locks: Callable[[Transaction], Locks] | None,
        unhurried: bool,
    ) -> tuple[PostgreSQLTransaction, T]:
        with self._connected() as connection:
            tx = PostgreSQLTransaction(connection)
            wanted = locks(tx) if locks else []
            try:
                # One round trip; the server runs the statements, and so asks for the locks, in order.
                connection.execute(_begin(wanted, UNHURRIED if unhurried else ()), prepare=False)
                result = work(tx)
            except StopIteration as problem:  # a future cannot carry it
                connection.rollback()
                raise RuntimeError("a handler raised StopIteration") from problem
            except BaseException:
                connection.rollback()
                raise
            _commit(connection)
        return tx, result

    def on_wake(self, notify: Callable[[Iterable[str]], None]) -> None:
        self._notify = notify

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._threads.shutdown()
        self._hints.close()
        self._connections.close()

    # Connections

    def _connected(self, *, repeats: bool = True) -> _Connected:
        return _Connected(self._connections, (*WORTH_REPEATING, *FAULTS) if repeats else FAULTS)

    def _past_lost_connections(self, attempt: Callable[[], T]) -> T:
        """Make an attempt again that a lost connection ended before its commit: once the server has
        been restarted, every connection of the pool turns out to be one."""
        for _ in range(self._most):
            with contextlib.suppress(_ConnectionLost):
                return attempt()
        return attempt()

    def _hear(self, topics: Iterable[str]) -> None:
        self._notify(topics)

    def _check(self, options: dict[str, Any]) -> None:
        try:
            with psycopg.connect(self._url, **options) as connection:
                encoding = connection.execute("SHOW server_encoding").fetchone()
        except psycopg.ProgrammingError:  # its text quotes the URL, password and all
            raise DatabaseProblem(
                f"the PostgreSQL URL {self.place} cannot be read. Write it as "
                "postgresql://user@host:5432/name, special characters in it percent-encoded."
            ) from None
        except psycopg.Error as problem:
            raise DatabaseProblem(
                f"cannot reach PostgreSQL at {self.place}: {_first_line(problem)}. Check that it runs, "
                "the address and the user; a password belongs in the file that PGPASSFILE names."
            ) from None  # the cause's text may repeat the connection string
        if encoding and encoding["server_encoding"] != "UTF8":
            raise DatabaseProblem(
                f"the PostgreSQL database {self.place} is encoded in {encoding['server_encoding']}; "
                "steadmesh needs one made with ENCODING 'UTF8'."
            )


class _Connected:
    """A connection of the pool; trouble with the server becomes `DatabaseUnavailable`, but for `kept`."""

    def __init__(
        self,
        pool: psycopg_pool.ConnectionPool[psycopg.Connection[dict[str, Any]]],
        kept: tuple[type[psycopg.Error], ...],
    ) -> None:
        self._pool = pool
        self._kept = kept
        self._connection: psycopg.Connection[dict[str, Any]] | None = None

    def __enter__(self) -> psycopg.Connection[dict[str, Any]]:
        try:
            self._connection = self._pool.getconn()
        except psycopg_pool.PoolTimeout as problem:
            raise DatabaseUnavailable(reason="no connection became free in time") from problem
        except psycopg.Error as problem:
            raise DatabaseUnavailable(reason="the server does not answer") from problem
        return self._connection

    def __exit__(self, kind: object, problem: BaseException | None, traceback: object) -> None:
        lost = self._connection is not None and self._connection.broken
        if self._connection is not None:
            self._pool.putconn(self._connection)
        if lost and isinstance(problem, psycopg.Error):
            raise _ConnectionLost() from problem
        if isinstance(problem, psycopg.Error) and not isinstance(problem, self._kept):
            raise DatabaseUnavailable(
                reason=f"{type(problem).__name__}: {_first_line(problem)}"
            ) from problem


def _commit(connection: psycopg.Connection[dict[str, Any]]) -> None:
    """Commit, once: if its answer is lost, nobody here knows whether it was done."""
    try:
        connection.commit()
    except psycopg.OperationalError as problem:
        if isinstance(problem, WORTH_REPEATING):
            raise
        raise DatabaseUnavailable(reason="the answer to a commit was lost") from problem


class _Hints:
    """Topics to and from other replicas: one connection speaks, at most every 5 ms, one listens."""

    def __init__(self, url: str, hear: Callable[[Iterable[str]], None]) -> None:
        self._url = url
        self._hear = hear
        self._outgoing: queue.SimpleQueue[list[str] | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._speaker = threading.Thread(target=self._speak, name="postgresql-notify", daemon=True)
        self._listener = threading.Thread(
            target=self._listen, name="postgresql-listen", daemon=True
        )
        self._speaker.start()
        self._listener.start()

    def send(self, topics: list[str]) -> None:
        self._outgoing.put(topics)

    def close(self) -> None:
        self._stop.set()
        self._outgoing.put(None)
        self._speaker.join(timeout=2)
        self._listener.join(timeout=2)

    def _speak(self) -> None:
        connection: psycopg.Connection[Any] | None = None
        while (topics := self._outgoing.get()) is not None:
            gathered = dict.fromkeys(topics)
            self._stop.wait(HINT_SECONDS)
            while not self._outgoing.empty():
                more = self._outgoing.get()
                if more is None:
                    self._outgoing.put(None)
                    break
                gathered.update(dict.fromkeys(more))
            try:
                if connection is None or connection.closed:
                    connection = psycopg.connect(self._url, autocommit=True, **NETWORK)
                for payload in _payloads(gathered):
                    connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))
            except psycopg.Error:  # a hint lost costs a poll's delay, nothing else
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def _listen(self) -> None:
        while not self._stop.is_set():
            try:
                with psycopg.connect(self._url, autocommit=True, **NETWORK) as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    while not self._stop.is_set():
                        for notice in connection.notifies(timeout=0.2):
                            self._take(notice.payload)
            except psycopg.Error:
                self._stop.wait(1.0)

    def _take(self, payload: str) -> None:
        """Pass on what another replica said; a stranger on the channel must not end the listening."""
        try:
            topics = json.loads(payload)
            self._hear([topic for topic in topics if isinstance(topic, str)])
        except Exception:
            log.warning("a hint on the channel could not be passed on", exc_info=True)


def _payloads(topics: Iterable[str]) -> Iterable[str]:
    """JSON lists that each fit in a notification (8 000 bytes)."""
    part: list[str] = []
    size = 2
    for topic in topics:
        cost = len(json.dumps(topic)) + 2
        if part and size + cost > HINT_BYTES:
            yield json.dumps(part)
            part, size = [], 2
        part.append(topic)
        size += cost
    if part:
        yield json.dumps(part)


def _begin(locks: Locks, settings: Iterable[LiteralString] = ()) -> LiteralString:
    statements = ["BEGIN", *settings]
    for number, is_shared in in_order(locks):
        function = "pg_advisory_xact_lock_shared" if is_shared else "pg_advisory_xact_lock"
        statements.append(f"SELECT {function}({number})")
    return "; ".join(statements)


def _first_line(problem: BaseException) -> str:
    lines = str(problem).strip().splitlines()
    return lines[0] if lines else type(problem).__name__
