"""SQL that finds and removes deliveries and turns that are done with."""

from __future__ import annotations

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Row, Transaction


def old_deliveries(tx: Transaction, after: int, limit: int) -> list[Row]:
    return tx.all(
        "SELECT number AS key, created_at AS at FROM deliveries WHERE number > :after"
        " ORDER BY number LIMIT :limit",
        after=after,
        limit=limit,
    )


def remove_deliveries(tx: Transaction, *, after: int, last: int, before: Instant) -> int:
    """What is done, unless its turn ended only lately: its end may still be told again. Dead letters
    of a seat that has retired can be tried again no more."""
    return tx.run(
        "DELETE FROM deliveries WHERE number > :after AND number <= :last AND created_at < :before"
        " AND (state = 'done' OR state = 'dead' AND EXISTS (SELECT 1 FROM seats s"
        "  WHERE s.id = deliveries.seat_id AND s.retired_at < :before))"
        " AND NOT EXISTS (SELECT 1 FROM executions x"
        "  WHERE x.id = deliveries.execution_id"
        "  AND (x.state = 'running' OR x.ended_at >= :before))",
        after=after,
        last=last,
        before=before,
    )


def old_executions(tx: Transaction, after: str, limit: int) -> list[Row]:
    return tx.all(
        "SELECT id AS key, started_at AS at FROM executions WHERE id > :after"
        " ORDER BY id LIMIT :limit",
        after=after,
        limit=limit,
    )


def remove_executions(tx: Transaction, *, after: str, last: str, before: Instant) -> int:
    return tx.run(
        "DELETE FROM executions WHERE id > :after AND id <= :last AND state <> 'running'"
        " AND ended_at < :before",
        after=after,
        last=last,
        before=before,
    )


def old_execution_events(tx: Transaction, after: int, limit: int) -> list[Row]:
    """As old as their turn: what they say of their own time is the runner's word."""
    return tx.all(
        "SELECT e.number AS key, coalesce(x.started_at, 0) AS at FROM execution_events e"
        " LEFT JOIN executions x ON x.id = e.execution_id WHERE e.number > :after"
        " ORDER BY e.number LIMIT :limit",
        after=after,
        limit=limit,
    )


def remove_execution_events(tx: Transaction, *, after: int, last: int, before: Instant) -> int:
    return tx.run(
        "DELETE FROM execution_events WHERE number > :after AND number <= :last"
        " AND NOT EXISTS (SELECT 1 FROM executions x WHERE x.id = execution_events.execution_id"
        "  AND (x.state = 'running' OR x.ended_at >= :before))",
        after=after,
        last=last,
        before=before,
    )
