"""SQLite: WAL, `synchronous=FULL`, one writing connection with group commit, readers of their own.

Writes that wait run one after another, each in a savepoint, on the event loop that they came from, and
share one commit, which a thread of its own waits for. So an acknowledged write survives a power cut, a
hundred callers share one fsync, and no two threads wrestle for the interpreter at every statement.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString, TypeVar

import apsw

from steadmesh.kernel.database import (
    DatabaseProblem,
    DatabaseUnavailable,
    Engine,
    Locks,
    Row,
    Transaction,
)

log = logging.getLogger(__name__)

T = TypeVar("T")

BATCH_CALLS = 64
BATCH_SECONDS = 0.005
READERS = 4
FAULTS = (
    apsw.SQLError,
    apsw.ConstraintError,
    apsw.MismatchError,
    apsw.RangeError,
    apsw.BindingsError,
    apsw.TooBigError,
    apsw.MisuseError,
)
"""What a wrong statement raises: trying again does not help, and it is no word on the database."""


class SQLiteTransaction:
    """Statements on one connection. Column names are remembered per text: asking costs a call."""

    engine: Engine = "sqlite"

    def __init__(self, connection: apsw.Connection, columns: dict[str, tuple[str, ...]]) -> None:
        self._execute = connection.execute
        self._connection = connection
        self._columns = columns
        self.actions: list[Callable[[], None]] = []
        self.topics: list[str] = []

    def all(self, sql: LiteralString, **values: Any) -> list[Row]:
        cursor = self._execute(sql, values)
        names = self._columns.get(sql)
        if names is None:
            names = _column_names(cursor)
            if names is None:
                return []
            self._columns[sql] = names
        return [dict(zip(names, row)) for row in cursor]  # noqa: B905 - both come from one statement

    def one(self, sql: LiteralString, **values: Any) -> Row | None:
        rows = self.all(
            sql, **values
        )  # read to the end: a statement runs only as far as it is read
        return rows[0] if rows else None

    def run(self, sql: LiteralString, **values: Any) -> int:
        self._execute(sql, values).fetchall()
        return self._connection.changes()

    def many(self, sql: LiteralString, rows: Iterable[Mapping[str, Any]]) -> None:
        self._connection.executemany(sql, rows).fetchall()

    def after_commit(self, action: Callable[[], None]) -> None:
        self.actions.append(action)

    def wake(self, topic: str) -> None:
        self.topics.append(topic)


def _column_names(cursor: apsw.Cursor) -> tuple[str, ...] | None:
    try:
        return tuple(column[0] for column in cursor.get_description())
    except apsw.ExecutionCompleteError:  # no row: the names are not needed
        return None


class _Job:
    """A write that waits for its turn, and then for the shared commit."""

    __slots__ = ("actions", "error", "future", "loop", "result", "topics", "work")

    def __init__(self, work: Callable[[Transaction], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.actions: list[Callable[[], None]] = []
        self.topics: list[str] = []
        self.loop: asyncio.AbstractEventLoop | None = None
        self.future: asyncio.Future[Any] | None = None

    def abandoned(self) -> bool:
        return self.future is not None and self.future.cancelled()

    def settle(self) -> None:
        """Hand result or error to the caller; runs on the caller's loop."""
        if self.future is not None and not self.future.done():
            if self.error is not None:
                self.future.set_exception(self.error)
            else:
                self.future.set_result(self.result)


class SQLite:
    """One file."""

    engine: Engine = "sqlite"

    def __init__(self, path: Path) -> None:
        self._path = path
        _make_private(path)
        self.full = False
        self._columns: dict[str, tuple[str, ...]] = {}
        self._waiting: deque[_Job] = deque()
        self._scheduled: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._started = 0.0
        self._turn = threading.Lock()
        """Held by whoever uses the writing connection, from the first call of a batch to its commit."""
        self._notify: Callable[[Iterable[str]], None] = lambda topics: None
        self._commits: queue.SimpleQueue[list[_Job] | None] = queue.SimpleQueue()
        self.batch_observed: Callable[[int, float], None] = lambda size, seconds: None
        self._writer = self._open(writing=True)
        self._brief = self._open(writing=False)
        self._brief_lock = threading.Lock()
        self._readers: queue.SimpleQueue[apsw.Connection] = queue.SimpleQueue()
        for _ in range(READERS):
            self._readers.put(self._open(writing=False))
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="sqlite-reader")
        self._thread = threading.Thread(
            target=self._commit_batches, name="sqlite-commit", daemon=True
        )
        self._thread.start()

    @property
    def place(self) -> str:
        return str(self._path)

    # Reading

    async def read(self, work: Callable[[Transaction], T], *, brief: bool = False) -> T:
        if brief:  # shorter than handing it to another thread would take
            return self._read_briefly(work)
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, self.read_blocking, work
        )

    def _read_briefly(self, work: Callable[[Transaction], T]) -> T:
        with self._brief_lock:
            try:
                return work(SQLiteTransaction(self._brief, self._columns))
            except FAULTS:
                raise
            except apsw.Error as problem:
                raise self._unavailable(problem) from problem

    def read_blocking(self, work: Callable[[Transaction], T]) -> T:
        connection = self._readers.get()
        try:
            with _snapshot(connection):
                return work(SQLiteTransaction(connection, self._columns))
        except FAULTS:
            raise
        except apsw.Error as problem:
            raise self._unavailable(problem) from problem
        finally:
            self._readers.put(connection)

    # Writing

    def write(
        self,
        work: Callable[[Transaction], T],
        *,
        locks: Callable[[Transaction], Locks] | None = None,
    ) -> Awaitable[T]:
        if self._closed:
            raise DatabaseUnavailable(reason="the service is stopping")
        job = _Job(work)  # locks are not needed: there is one writer
        job.loop = asyncio.get_running_loop()
        job.future = job.loop.create_future()
        self._waiting.append(job)
        if self._scheduled is not job.loop:
            self._scheduled = job.loop
            # After what is already to be read: calls that come at once share a commit.
            job.loop.call_soon(job.loop.call_soon, self._write_waiting)
        return job.future

    def write_blocking(
        self,
        work: Callable[[Transaction], T],
        *,
        locks: Callable[[Transaction], Locks] | None = None,
    ) -> T:
        job = _Job(work)
        with self._turn:
            if self._closed:
                raise DatabaseUnavailable(reason="the service is stopping")
            self._write_batch(deque([job]))
            self._commit([job])
        self._answer([job])
        self._go_on()
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def on_wake(self, notify: Callable[[Iterable[str]], None]) -> None:
        self._notify = notify

    def close(self) -> None:
        """Finish what waits, then close every connection (the last one folds the WAL into the file)."""
        with self._turn:
            if self._closed:
                return
            self._closed = True
            while self._waiting:
                batch = self._write_batch(self._waiting)
                self._commit(batch)
                self._answer(batch)
        self._commits.put(None)
        self._thread.join()
        self._pool.shutdown()
        self._brief.close()
        while not self._readers.empty():
            self._readers.get().close()
        self._writer.close()

    # A batch: calls run where they wait, the commit in a thread of its own

    def _write_waiting(self) -> None:
        """Run what waits, on the event loop, and hand it over to be committed."""
        self._scheduled = None
        if not self._waiting or not self._turn.acquire(blocking=False):
            return  # whoever has the turn sees afterwards that calls wait
        self._commits.put(self._write_batch(self._waiting))

    def _commit_batches(self) -> None:
        while (batch := self._commits.get()) is not None:
            try:
                self._commit(batch)
            except Exception:
                log.exception("a batch was not committed in order")
            finally:
                self._turn.release()
            try:
                self._answer(batch)
            except Exception:  # this thread ends with the service, and not before
                log.exception("an action after a commit failed")
            self._go_on()

    def _go_on(self) -> None:
        """The turn is free: let the calls that came meanwhile have it."""
        while True:
            try:
                loop = self._waiting[0].loop
            except IndexError:  # none came, or their loop has taken the turn already
                return
            try:
                if loop is not None:
                    loop.call_soon_threadsafe(self._write_waiting)
                return
            except RuntimeError:  # that loop has closed: its callers are gone
                self._forget(loop)

    def _forget(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Drop the calls of a loop that has closed."""
        for job in list(self._waiting):
            if job.loop is loop:
                with contextlib.suppress(ValueError):
                    self._waiting.remove(job)

    def _write_batch(self, waiting: deque[_Job]) -> list[_Job]:
        """Run calls in one transaction, up to the limits of a batch."""
        self._started = time.perf_counter()
        batch: list[_Job] = []
        try:
            self._begin()
            while waiting and len(batch) < BATCH_CALLS:
                job = waiting.popleft()
                if not job.abandoned():
                    batch.append(job)
                    if not self._perform(job):
                        break
                if time.perf_counter() - self._started > BATCH_SECONDS:
                    break
        except BaseException as problem:
            if (
                not batch
            ):  # not even begun: a try for each that waits would hold up the loop for long
                while waiting:
                    batch.append(waiting.popleft())
            self._lose(batch, problem)
        return batch

    def _commit(self, batch: list[_Job]) -> None:
        """Make a batch durable; nobody is answered before."""
        try:
            if self._writer.in_transaction:
                self._writer.execute("COMMIT").fetchall()
            elif any(job.error is None for job in batch):
                self._run_again(batch)
        except BaseException as problem:
            self._lose(batch, problem)
        self.batch_observed(len(batch), time.perf_counter() - self._started)

    def _begin(self) -> None:
        self._writer.execute("BEGIN IMMEDIATE").fetchall()

    def _perform(self, job: _Job) -> bool:
        """Run one call in a savepoint; false if the shared transaction is gone with it."""
        execute = self._writer.execute
        tx = SQLiteTransaction(self._writer, self._columns)
        try:
            execute("SAVEPOINT call").fetchall()
            job.result = job.work(tx)
            execute("RELEASE call").fetchall()
            job.actions, job.topics = tx.actions, tx.topics
        except BaseException as problem:
            job.error = problem
            if isinstance(problem, StopIteration):  # a future cannot carry it
                job.error = RuntimeError("a handler raised StopIteration")
                job.error.__cause__ = problem
            if isinstance(problem, apsw.Error) and not isinstance(problem, FAULTS):
                job.error = self._unavailable(problem)
                job.error.__cause__ = problem  # for the log
            # A full disk or an interrupt ends the whole transaction, the neighbours' savepoints too.
            if not self._writer.in_transaction:
                return False
            execute("ROLLBACK TO call").fetchall()
            execute("RELEASE call").fetchall()
        return True

    def _run_again(self, batch: list[_Job]) -> None:
        """The last call of the batch broke the shared transaction: run every other one alone."""
        for job in batch[:-1]:
            job.result = job.error = None
            job.actions, job.topics = [], []
            try:
                self._begin()
                self._perform(job)
                if self._writer.in_transaction:
                    self._writer.execute("COMMIT").fetchall()
            except BaseException as problem:
                self._lose([job], problem)

    def _lose(self, batch: list[_Job], problem: BaseException) -> None:
        """Nothing of the batch is durable; start over with a new connection."""
        error = self._unavailable(problem)
        error.__cause__ = problem
        for job in batch:
            job.error, job.result, job.actions, job.topics = error, None, [], []
        self._writer.close(force=True)
        try:
            self._writer = self._open(writing=True)
        except DatabaseProblem:
            self._writer = apsw.Connection(":memory:")  # the next batch fails, and tries again
            self._writer.close(force=True)

    def _answer(self, batch: list[_Job]) -> None:
        """The commit is done: only now act on it, wake who waits, and let the callers go on."""
        topics: list[str] = []
        loops: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
        for job in batch:
            for action in job.actions:
                with contextlib.suppress(Exception):  # its caller has to be answered all the same
                    action()
            topics += job.topics
            if job.loop is not None:  # else its thread made the commit, and has the result
                loops.setdefault(job.loop, []).append(job)
        if topics:
            self._notify(topics)
        for loop, jobs in loops.items():
            try:
                loop.call_soon_threadsafe(_settle_all, jobs)
            except RuntimeError:  # the loop has closed: nobody waits any more
                continue

    # Connections

    def _open(self, *, writing: bool) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        try:
            connection = apsw.Connection(str(self._path), flags=flags, statementcachesize=512)
            # Only this service writes; a stranger's lock must not hold up the event loop for long.
            connection.set_busy_timeout(1_000 if writing else 5_000)
            # This build collects value statistics, and would compile a statement anew whenever a
            # bound value could change its plan: at every call (46 µs instead of 10 for a token).
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            pragmas = [
                "journal_mode=WAL",
                "synchronous=FULL",
                "temp_store=MEMORY",
                f"cache_size={-65_536 if writing else -8_192}",
                "mmap_size=268435456",
                "wal_autocheckpoint=8000",  # 32 MiB: most pages of a busy log are the same few
                "journal_size_limit=67108864",
            ]
            if not writing:
                pragmas.append("query_only=ON")
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}").fetchall()
        except apsw.Error as problem:
            raise DatabaseProblem(
                f"cannot open the database {self._path}: {problem}. "
                "Check that the folder is writable and the file is a steadmesh database."
            ) from problem
        return connection

    def _unavailable(self, problem: BaseException) -> DatabaseUnavailable:
        if isinstance(problem, apsw.FullError):
            self.full = True
            return DatabaseUnavailable(reason=f"the disk that holds {self._path.parent} is full")
        return DatabaseUnavailable(reason=f"{type(problem).__name__} in {self._path.name}")


def _make_private(path: Path) -> None:
    """A new file is for this user alone; the log beside it takes over its mode."""
    with contextlib.suppress(OSError):  # what is wrong with the place is told when it is opened
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


@contextmanager
def _snapshot(connection: apsw.Connection) -> Iterator[None]:
    connection.execute("BEGIN").fetchall()
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK").fetchall()


def _settle_all(jobs: list[_Job]) -> None:
    for job in jobs:
        job.settle()
