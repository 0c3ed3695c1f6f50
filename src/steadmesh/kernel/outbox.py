"""The outbox: events written with what made them happen, read in an order that skips none.

An id is drawn inside a transaction, so a later id may be committed before an earlier one, and a reader
that follows ids would pass the earlier one by. Positions are given to committed rows only, and never
twice: whoever follows them is told when what comes next was trimmed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Row, Transaction, exclusive
from steadmesh.kernel.errors import Invalid
from steadmesh.kernel.jobs import Job, JobContext
from steadmesh.kernel.trimming import Trimming

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


class StartOver(Invalid):
    """There is no way on from position {after}: {reason}. Read anew what you follow, and go on from position {last}."""

    code = "start_over"
    details = ("after", "last")


def read(tx: Transaction, *, after: int, limit: int = 100, scope: str | None = None) -> list[Event]:
    """The next events behind a position. Raises `StartOver` if some behind it may be gone already, or
    it is one that was never given (the database was restored since)."""
    last = last_position(tx)
    if after > last:
        raise StartOver(after=after, last=last, reason="it was never reached here")
    if after < _position(tx, "trimmed"):
        raise StartOver(after=after, last=last, reason="what comes next is not kept any more")
    return [_event(row) for row in _rows(tx, after=after, limit=limit, scope=scope)]


def last_position(tx: Transaction) -> int:
    """The newest position that was given; 0 before the first."""
    if tx.engine == "sqlite":
        row = tx.one("SELECT seq FROM sqlite_sequence WHERE name = 'events'")
        return int(row["seq"]) if row else 0
    return _position(tx, "given")


def number_committed(context: JobContext) -> int:
    """Give committed events their positions. One holder at a time; on SQLite there is nothing to do."""

    def number(tx: Transaction) -> int:
        # A service of the version before counts by the table alone: while both run, look there too.
        row = tx.one("SELECT coalesce(max(position), 0) AS position FROM events")
        last = max(_position(tx, "given"), int(row["position"]) if row else 0)
        done = tx.run(
            "UPDATE events SET position = numbered.position FROM ("
            "  SELECT id, :last + row_number() OVER (ORDER BY id) AS position"
            "  FROM (SELECT id FROM events WHERE position IS NULL ORDER BY id LIMIT :batch) AS waiting"
            ") AS numbered WHERE events.id = numbered.id",
            batch=BATCH,
            last=last,
        )
        if done:
            _raise_position(tx, "given", last + done)
        return done

    if context.database.engine == "sqlite":
        return 0
    return context.database.write_blocking(number, locks=lambda tx: [exclusive("outbox")])


NUMBERING = Job("number events", number_committed, every=0.5, batch=BATCH, topics=(TOPIC,))


def _old_events(tx: Transaction, after: int, limit: int) -> list[Row]:
    return tx.all(
        "SELECT id AS key, at FROM events WHERE id > :after ORDER BY id LIMIT :limit",
        after=after,
        limit=limit,
    )


def _remove_events(tx: Transaction, *, after: int, last: int, before: Instant) -> int:
    """Those that have their positions; the highest of them is noted in the same transaction."""
    span = {"after": after, "last": last, "before": before}
    if tx.engine == "sqlite":
        highest = tx.one(
            "SELECT max(id) AS position FROM events"
            " WHERE id > :after AND id <= :last AND at < :before",
            **span,
        )
    else:  # the sum keeps the planner from looking for the maximum along all positions
        highest = tx.one(
            "SELECT max(position + 0) AS position FROM events"
            " WHERE id > :after AND id <= :last AND at < :before",
            **span,
        )
    if highest is None or highest["position"] is None:
        return 0
    _raise_position(tx, "trimmed", highest["position"])
    if tx.engine == "sqlite":
        return tx.run(
            "DELETE FROM events WHERE id > :after AND id <= :last AND at < :before", **span
        )
    return tx.run(
        "DELETE FROM events WHERE id > :after AND id <= :last AND at < :before"
        " AND position <= :highest",
        highest=highest["position"],
        **span,
    )


TRIMMING = Trimming("events", _old_events, _remove_events, setting="events")


def _position(tx: Transaction, name: str) -> int:
    row = tx.one("SELECT position FROM event_positions WHERE name = :name", name=name)
    return int(row["position"]) if row else 0


def _raise_position(tx: Transaction, name: str, position: int) -> None:
    tx.run(
        "UPDATE event_positions SET position = :position"
        " WHERE name = :name AND position < :position",
        name=name,
        position=position,
    )


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
