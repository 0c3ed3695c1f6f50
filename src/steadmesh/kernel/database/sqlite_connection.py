"""Connections to a SQLite file, and the statements of one transaction."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString

import apsw

from steadmesh.kernel.database import DatabaseProblem, Engine, Row

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
        names = self._columns.get(sql)
        if names is None:
            return next(iter(self.all(sql, **values)), None)
        # Read to the end: a statement runs only as far as it is read.
        rows = self._execute(sql, values).fetchall()
        return dict(zip(names, rows[0])) if rows else None  # noqa: B905 - of one statement

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


def make_private(path: Path) -> None:
    """A new file is for this user alone; the log beside it takes over its mode."""
    with contextlib.suppress(OSError):  # what is wrong with the place is told when it is opened
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def connect(path: Path, *, writing: bool) -> apsw.Connection:
    """A connection to a file that is there; `DatabaseProblem` if it cannot be opened."""
    try:
        connection = apsw.Connection(
            str(path), flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=512
        )
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
            f"cannot open the database {path}: {problem}. "
            "Check that the folder is writable and the file is a steadmesh database."
        ) from problem
    return connection


@contextmanager
def snapshot(connection: apsw.Connection) -> Iterator[None]:
    """Everything read inside is of one moment."""
    connection.execute("BEGIN").fetchall()
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK").fetchall()
