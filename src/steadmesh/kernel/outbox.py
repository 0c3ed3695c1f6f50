"""The outbox: events written with what made them happen, read in an order that skips none.

An id is drawn inside a transaction, so a later id may be committed before an earlier one, and a reader
that follows ids would pass the earlier one by. Positions are given to committed rows only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Row, Transaction, exclusive
from steadmesh.kernel.jobs import Job, JobContext

TOPIC = "events"
BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. `scope` says whose it is: an organisation's id, or a family's name."""

    position: int
    scope: str
    kind: str
    data: dict[str, Any]
    at: Instant


def record(tx: Transaction, kind: str, *, scope: str, at: Instant, **data: Any) -> None:
    """Write an event in this transaction. Names and ids only: no bodies, no secrets."""
    tx.run(
        "INSERT INTO events (scope, kind, data, at) VALUES (:scope, :kind, :data, :at)",
        scope=scope,
        kind=kind,
        data=to_json(data).decode(),
        at=at,
    )
    tx.wake(TOPIC)


def read(tx: Transaction, *, after: int, limit: int = 100, scope: str | None = None) -> list[Event]:
    """The next events behind a position."""
    return [_event(row) for row in _rows(tx, after=after, limit=limit, scope=scope)]


def last_position(tx: Transaction) -> int:
    """The position of the newest event that has one; 0 before the first."""
    if tx.engine == "sqlite":
        row = tx.one("SELECT coalesce(max(id), 0) AS position FROM events")
    else:
        row = tx.one("SELECT coalesce(max(position), 0) AS position FROM events")
    return int(row["position"]) if row else 0


def number_committed(context: JobContext) -> int:
    """Give committed events their positions. One holder at a time; on SQLite there is nothing to do."""

    def number(tx: Transaction) -> int:
        return tx.run(
            "UPDATE events SET position = numbered.position FROM ("
            "  SELECT id, (SELECT coalesce(max(position), 0) FROM events)"
            "         + row_number() OVER (ORDER BY id) AS position"
            "  FROM (SELECT id FROM events WHERE position IS NULL ORDER BY id LIMIT :batch) AS waiting"
            ") AS numbered WHERE events.id = numbered.id",
            batch=BATCH,
        )

    if context.database.engine == "sqlite":
        return 0
    done = context.database.write_blocking(number, locks=lambda tx: [exclusive("outbox")])
    if done:
        context.database.write_blocking(lambda tx: tx.wake("positions"))
    return done


NUMBERING = Job("number events", number_committed, every=0.5, batch=BATCH, topics=(TOPIC,))


def _rows(tx: Transaction, *, after: int, limit: int, scope: str | None) -> list[Row]:
    values: Mapping[str, Any] = {"after": after, "limit": limit, "scope": scope or ""}
    if tx.engine == "sqlite":
        return tx.all(
            "SELECT id AS position, scope, kind, data, at FROM events WHERE id > :after"
            " AND (:scope = '' OR scope = :scope) ORDER BY id LIMIT :limit",
            **values,
        )
    return tx.all(
        "SELECT position, scope, kind, data, at FROM events WHERE position > :after"
        " AND (:scope = '' OR scope = :scope) ORDER BY position LIMIT :limit",
        **values,
    )


def _event(row: Row) -> Event:
    return Event(row["position"], row["scope"], row["kind"], json.loads(row["data"]), row["at"])
