"""SQLite: WAL, `synchronous=FULL`, one writer thread with group commit, readers of their own.

Waiting writes run one after another, each in a savepoint, and share one commit: an acknowledged
write survives a power cut, and a hundred callers share one fsync.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
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

T = TypeVar("T")

BATCH_CALLS = 64
BATCH_SECONDS = 0.005
LINGER_SECONDS = 0.0003
READERS = 4


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
        return [dict(zip(names, row, strict=True)) for row in cursor]

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

    __slots__ = ("actions", "done", "error", "future", "loop", "result", "topics", "work")

    def __init__(self, work: Callable[[Transaction], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.actions: list[Callable[[], None]] = []
        self.topics: list[str] = []
        self.loop: asyncio.AbstractEventLoop | None = None
        self.future: asyncio.Future[Any] | None = None
        self.done: threading.Event | None = None

    def abandoned(self) -> bool:
        return self.future is not None and self.future.cancelled()

    def settle(self) -> None:
        """Hand result or error to the caller; runs on the caller's loop or releases its thread."""
        if self.done is not None:
            self.done.set()
        elif self.future is not None and not self.future.done():
            if self.error is not None:
                self.future.set_exception(self.error)
            else:
                self.future.set_result(self.result)


class SQLite:
    """One file."""

    engine: Engine = "sqlite"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.full = False
        self._columns: dict[str, tuple[str, ...]] = {}
        self._usual = 1
        """How many calls the last batch held."""
        self._notify: Callable[[Iterable[str]], None] = lambda topics: None
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self.batch_observed: Callable[[int, float], None] = lambda size, seconds: None
        self._writer = self._open(writing=True)
        self._brief = self._open(writing=False)
        self._brief_lock = threading.Lock()
        self._readers: queue.SimpleQueue[apsw.Connection] = queue.SimpleQueue()
        for _ in range(READERS):
            self._readers.put(self._open(writing=False))
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="sqlite-reader")
        self._thread = threading.Thread(
            target=self._write_batches, name="sqlite-writer", daemon=True
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
            except apsw.Error as problem:
                raise self._unavailable(problem) from problem

    def read_blocking(self, work: Callable[[Transaction], T]) -> T:
        connection = self._readers.get()
        try:
            with _snapshot(connection):
                return work(SQLiteTransaction(connection, self._columns))
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
        job = _Job(work)  # locks are not needed: there is one writer
        job.loop = asyncio.get_running_loop()
        job.future = job.loop.create_future()
        self._queue.put(job)
        return job.future

    def write_blocking(
        self,
        work: Callable[[Transaction], T],
        *,
        locks: Callable[[Transaction], Locks] | None = None,
    ) -> T:
        job = _Job(work)
        job.done = threading.Event()
        self._queue.put(job)
        job.done.wait()
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def on_wake(self, notify: Callable[[Iterable[str]], None]) -> None:
        self._notify = notify

    def close(self) -> None:
        """Finish what waits, then close every connection (the last one folds the WAL into the file)."""
        self._queue.put(None)
        self._thread.join()
        self._pool.shutdown()
        self._brief.close()
        while not self._readers.empty():
            self._readers.get().close()
        self._writer.close()

    # The writer thread

    def _write_batches(self) -> None:
        while (job := self._queue.get()) is not None:
            if self._write_batch(job):
                return

    def _write_batch(self, first: _Job) -> bool:
        """Run what waits under one commit; whether the end of the queue was met."""
        started = time.perf_counter()
        batch: list[_Job] = []
        ended = False
        try:
            self._begin()
            job: _Job | None = first
            while job is not None:
                if not job.abandoned():
                    batch.append(job)
                    if not self._perform(job):
                        break
                if len(batch) >= BATCH_CALLS or time.perf_counter() - started > BATCH_SECONDS:
                    break
                try:
                    job = self._next(len(batch))
                    ended = job is None
                except queue.Empty:
                    break
            if self._writer.in_transaction:
                self._writer.execute("COMMIT").fetchall()
            else:
                self._run_again(batch)
        except BaseException as problem:
            self._lose(batch or [first], problem)
        self._usual = len(batch)
        self._answer(batch)
        self.batch_observed(len(batch), time.perf_counter() - started)
        return ended

    def _next(self, done: int) -> _Job | None:
        """The next call that waits. Callers who shared the last commit are likely on their way again:
        for them the batch lingers, which costs less than a commit of their own. Raises queue.Empty."""
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            if done >= self._usual:
                raise
            return self._queue.get(timeout=LINGER_SECONDS)

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
            if isinstance(problem, apsw.Error):
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
                action()
            topics += job.topics
            if job.loop is None:
                job.settle()
            else:
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
            connection.set_busy_timeout(5_000)
            # This build collects value statistics, and would compile a statement anew whenever a
            # bound value could change its plan: at every call (46 µs instead of 10 for a token).
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            pragmas = [
                "journal_mode=WAL",
                "synchronous=FULL",
                "temp_store=MEMORY",
                f"cache_size={-65_536 if writing else -8_192}",
                "mmap_size=268435456",
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
