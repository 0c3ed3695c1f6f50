"""SQL that finds and removes what came from people and went to them."""

from __future__ import annotations

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Row, Transaction


def old_events(tx: Transaction, after: int, limit: int) -> list[Row]:
    return tx.all(
        "SELECT received_at AS key, received_at AS at FROM ingress_events"
        " WHERE received_at > :after ORDER BY received_at LIMIT :limit",
        after=after,
        limit=limit,
    )


def remove_events(tx: Transaction, *, after: int, last: int, before: Instant) -> int:
    return tx.run(
        "DELETE FROM ingress_events WHERE received_at > :after AND received_at <= :last"
        " AND received_at < :before",
        after=after,
        last=last,
        before=before,
    )


def old_replies(tx: Transaction, after: int, limit: int) -> list[Row]:
    return tx.all(
        "SELECT number AS key, created_at AS at FROM channel_outbox WHERE number > :after"
        " ORDER BY number LIMIT :limit",
        after=after,
        limit=limit,
    )


def remove_replies(tx: Transaction, *, after: int, last: int, before: Instant) -> int:
    return tx.run(
        "DELETE FROM channel_outbox WHERE number > :after AND number <= :last"
        " AND state <> 'queued' AND finished_at < :before",
        after=after,
        last=last,
        before=before,
    )


def old_lines(tx: Transaction, after: int, limit: int) -> list[Row]:
    return tx.all(
        "SELECT number AS key, at FROM terminal_lines WHERE number > :after"
        " ORDER BY number LIMIT :limit",
        after=after,
        limit=limit,
    )


def remove_lines(tx: Transaction, *, after: int, last: int, before: Instant) -> int:
    """Those that a stream of their reader has shown."""
    return tx.run(
        "DELETE FROM terminal_lines WHERE number > :after AND number <= :last AND at < :before"
        " AND EXISTS (SELECT 1 FROM terminal_readers r"
        "  WHERE r.organisation_id = terminal_lines.organisation_id"
        "  AND r.connection = terminal_lines.connection"
        "  AND r.external_user_id = terminal_lines.external_user_id"
        "  AND r.shown >= terminal_lines.number)",
        after=after,
        last=last,
        before=before,
    )
