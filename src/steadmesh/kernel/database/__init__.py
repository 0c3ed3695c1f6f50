"""Two engines behind one small interface: `read`, `write` with locks, and what happens after a commit.

A unit of work is a plain function given a `Transaction`. It does no network and never sleeps, and it
is safe to run again: a write is repeated after a deadlock, and after a neighbour in the same batch
broke the shared transaction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, LiteralString, Protocol, TypeVar

from steadmesh.kernel.database.locks import Lock, Locks, exclusive, shared
from steadmesh.kernel.errors import Unavailable

__all__ = [
    "Database",
    "DatabaseProblem",
    "DatabaseUnavailable",
    "Lock",
    "Locks",
    "Row",
    "Transaction",
    "exclusive",
    "open_database",
    "shared",
]

T = TypeVar("T")
Row = Mapping[str, Any]
Engine = Literal["sqlite", "postgresql"]


class DatabaseUnavailable(Unavailable):
    """The database cannot do this now: {reason}. Try again shortly."""


class DatabaseProblem(Exception):
    """The database cannot be opened or is not ours to use; the text says what to do."""


class Transaction(Protocol):
    """One unit of work. SQL is one text for both engines, with `:named` parameters."""

    @property
    def engine(self) -> Engine: ...

    def all(self, sql: LiteralString, **values: Any) -> list[Row]:
        """Every row of the answer."""

    def one(self, sql: LiteralString, **values: Any) -> Row | None:
        """The first row of the answer, or nothing."""

    def run(self, sql: LiteralString, **values: Any) -> int:
        """Change rows; how many were changed."""

    def many(self, sql: LiteralString, rows: Iterable[Mapping[str, Any]]) -> None:
        """The same change for each row."""

    def after_commit(self, action: Callable[[], None]) -> None:
        """Do this once the work is durable, and never if it is not. Must be quick and not fail."""

    def wake(self, topic: str) -> None:
        """Tell those who wait for the topic, once the work is durable."""


class Database(Protocol):
    """Where all durable state lives."""

    full: bool
    """A write failed for want of space on the disk. Whoever sees one succeed again takes it back."""
    batch_observed: Callable[[int, float], None]
    """Is told of each commit: how many writes shared it, and the seconds it took."""

    @property
    def engine(self) -> Engine: ...

    @property
    def has_one_writer(self) -> bool:
        """Whether writes run one after another anyway: then locks need no names, and nothing that a
        write reads at its beginning can change before its end."""

    @property
    def place(self) -> str:
        """Where the data is, in words fit for a message."""

    def read(self, work: Callable[[Transaction], T], *, brief: bool = False) -> Awaitable[T]:
        """Run reading work on one snapshot. `brief`: a single statement that finds a few rows by
        index; it may run where the caller stands."""

    def write(
        self,
        work: Callable[[Transaction], T],
        *,
        locks: Callable[[Transaction], Locks] | None = None,
    ) -> Awaitable[T]:
        """Run writing work alone with what `locks` names; returns once it is durable.

        `locks` may read to resolve names; the work has to check again what it read.
        """

    def read_blocking(self, work: Callable[[Transaction], T]) -> T:
        """`read` for a thread of its own, such as a background job."""

    def write_blocking(
        self,
        work: Callable[[Transaction], T],
        *,
        locks: Callable[[Transaction], Locks] | None = None,
        unhurried: bool = False,
    ) -> T:
        """`write` for a thread of its own. `unhurried`: whatever time its statements take, and those
        that it has to wait for."""

    def on_wake(self, notify: Callable[[Iterable[str]], None]) -> None:
        """Where topics go that finished work has named (on PostgreSQL also those of other replicas)."""

    def close(self) -> None: ...


def open_database(place: str | Path) -> Database:
    """Open a SQLite file (a path) or a PostgreSQL database (a `postgresql://` URL).

    Raises `DatabaseProblem` if it cannot be opened.
    """
    text = str(place)
    if text.startswith(("postgresql://", "postgres://")):
        from steadmesh.kernel.database.postgresql import PostgreSQL

        return PostgreSQL(text)
    from steadmesh.kernel.database.sqlite import SQLite

    return SQLite(Path(place))
