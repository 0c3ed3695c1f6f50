"""SQLite: WAL, `synchronous=FULL`, one writing connection with group commit, readers of their own.

Writes that wait run one after another, each in a savepoint, on the event loop that they came from, and
share one commit, which a thread of its own waits for. So an acknowledged write survives a power cut, a
hundred callers share one fsync, and no two threads wrestle for the interpreter at every statement.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import apsw

from steadmesh.kernel.database import DatabaseUnavailable, Engine, Locks, Transaction
from steadmesh.kernel.database.commits import act_on_commit
from steadmesh.kernel.database.sqlite_connection import (
    FAULTS,
    SQLiteTransaction,
    connect,
    make_private,
    snapshot,
)

log = logging.getLogger(__name__)

T = TypeVar("T")

BATCH_CALLS = 64
BATCH_SECONDS = 0.005
READERS = 4


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
    has_one_writer = True

    def __init__(self, path: Path) -> None:
        self._path = path
        make_private(path)
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
        self._writer: apsw.Connection | None = connect(path, writing=True)
        """None after something broke it: the next batch begins with a new one."""
        self._brief = connect(path, writing=False)
        self._brief_lock = threading.Lock()
        self._readers: queue.SimpleQueue[apsw.Connection] = queue.SimpleQueue()
        for _ in range(READERS):
            self._readers.put(connect(path, writing=False))
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
        self._require_open()
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
        self._require_open()
        connection = self._readers.get()
        try:
            with snapshot(connection):
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
        job = _Job(work)  # locks are not needed: there is one writer
        job.loop = asyncio.get_running_loop()
        job.future = job.loop.create_future()
        self._waiting.append(job)
        if self._closed:  # after it was put there: either the close has written it, or it is ours
            with contextlib.suppress(ValueError):
                self._waiting.remove(job)
                self._require_open()
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
        unhurried: bool = False,  # nothing is hurried here
    ) -> T:
        job = _Job(work)
        with self._turn:
            self._require_open()
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
        if self._writer is not None:
            self._writer.close()

    def _require_open(self) -> None:
        if self._closed:
            raise DatabaseUnavailable(reason="the service is stopping")

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
            except Exception:  # this thread ends with the service, and not before
                log.exception("a batch was not committed in order")
            finally:
                self._turn.release()
            self._answer(batch)
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
            writer = self._begin()
            while waiting and len(batch) < BATCH_CALLS:
                job = waiting.popleft()
                if not job.abandoned():
                    batch.append(job)
                    if not self._perform(job, writer):
                        break
                if time.perf_counter() - self._started > BATCH_SECONDS:
                    break
        except BaseException as problem:
            while not batch and waiting:
                # Not even begun: a try for each that waits would hold up the loop for long.
                batch.extend(waiting)
                waiting.clear()
            self._lose(batch, problem)
        return batch

    def _commit(self, batch: list[_Job]) -> None:
        """Make a batch durable; nobody is answered before."""
        try:
            if self._writer is not None and self._writer.in_transaction:
                self._writer.execute("COMMIT").fetchall()
            elif any(job.error is None for job in batch):
                self._run_again(batch)
        except BaseException as problem:
            self._lose(batch, problem)
        self.batch_observed(len(batch), time.perf_counter() - self._started)

    def _begin(self) -> apsw.Connection:
        if self._writer is None:
            self._writer = connect(self._path, writing=True)
        self._writer.execute("BEGIN IMMEDIATE").fetchall()
        return self._writer

    def _perform(self, job: _Job, writer: apsw.Connection) -> bool:
        """Run one call in a savepoint; false if the shared transaction is gone with it."""
        execute = writer.execute
        tx = SQLiteTransaction(writer, self._columns)
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
            if not writer.in_transaction:
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
                writer = self._begin()
                self._perform(job, writer)
                if writer.in_transaction:
                    writer.execute("COMMIT").fetchall()
            except BaseException as problem:
                self._lose([job], problem)

    def _lose(self, batch: list[_Job], problem: BaseException) -> None:
        """Nothing of the batch is durable; the next one starts with a new connection."""
        error = self._unavailable(problem)
        error.__cause__ = problem
        for job in batch:
            job.error, job.result, job.actions, job.topics = error, None, [], []
        broken, self._writer = self._writer, None
        if broken is not None:
            broken.close(force=True)

    def _answer(self, batch: list[_Job]) -> None:
        """The commit is done: only now act on it, wake who waits, and let the callers go on."""
        loops: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
        for job in batch:
            act_on_commit(job.actions)
            if job.loop is not None:  # else its thread made the commit, and has the result
                loops.setdefault(job.loop, []).append(job)
        if topics := [topic for job in batch for topic in job.topics]:
            act_on_commit([lambda: self._notify(topics)])
        for loop, jobs in loops.items():
            with contextlib.suppress(RuntimeError):  # the loop has closed: nobody waits any more
                loop.call_soon_threadsafe(_settle_all, jobs)

    def _unavailable(self, problem: BaseException) -> DatabaseUnavailable:
        if isinstance(problem, apsw.FullError):
            self.full = True
            return DatabaseUnavailable(reason=f"the disk that holds {self._path.parent} is full")
        return DatabaseUnavailable(reason=f"{type(problem).__name__} in {self._path.name}")


def _settle_all(jobs: list[_Job]) -> None:
    for job in jobs:
        job.settle()
