"""SQL about probes, and what has become of the messages they are."""

from __future__ import annotations

import json
from typing import Any

from steadmesh.kernel.database import Row, Transaction

_PROBE = (
    "SELECT p.number, p.id, p.organisation_id, p.seat_id, p.conversation_id, p.status, p.checks,"
    " p.reason, p.revision, p.created_at, p.started_at, p.ended_at FROM probes p"
)
_FOLLOWED = (
    "SELECT p.number, p.id, p.organisation_id, p.seat_id, p.conversation_id, p.status, p.created_at,"
    " s.retire_by, s.retired_at, d.state AS delivery_state, d.error AS delivery_error,"
    " d.execution_id, e.state AS execution_state, e.error AS execution_error,"
    " e.config_revision AS execution_revision, e.started_at, e.ended_at"
    " FROM probes p JOIN seats s ON s.id = p.seat_id"
    " LEFT JOIN messages m ON m.id = p.message_id LEFT JOIN deliveries d ON d.number = m.number"
    " LEFT JOIN executions e ON e.id = d.execution_id"
)


def add_probe(tx: Transaction, **row: Any) -> None:
    tx.run(
        "INSERT INTO probes (id, organisation_id, seat_id, message_id, conversation_id, status,"
        " created_at) VALUES (:id, :organisation_id, :seat_id, :message_id, :conversation_id,"
        " 'pending', :now)",
        **row,
    )


def probe(tx: Transaction, seat_id: str, probe_id: str) -> Row | None:
    return tx.one(f"{_PROBE} WHERE p.id = :id AND p.seat_id = :seat", id=probe_id, seat=seat_id)


def followed(tx: Transaction, probe_id: str) -> Row | None:
    """A pending probe with its seat, its delivery and the last execution."""
    return tx.one(f"{_FOLLOWED} WHERE p.id = :id AND p.status = 'pending'", id=probe_id)


def untried_probe(tx: Transaction, seat_id: str) -> str | None:
    """A probe that waits in the inbox and was never handed out."""
    row = tx.one(
        "SELECT p.id FROM probes p JOIN messages m ON m.id = p.message_id"
        " JOIN deliveries d ON d.number = m.number WHERE p.seat_id = :seat AND p.status = 'pending'"
        " AND d.state = 'pending' AND d.attempt = 0 ORDER BY p.number DESC LIMIT 1",
        seat=seat_id,
    )
    return str(row["id"]) if row else None


def pending_probes(tx: Transaction, *, after: int, limit: int) -> list[Row]:
    """Those that may have ended."""
    return tx.all(
        f"{_FOLLOWED} WHERE p.status = 'pending' AND p.number > :after"
        " ORDER BY p.number LIMIT :limit",
        after=after,
        limit=limit,
    )


def pending_of(tx: Transaction, organisation_id: str) -> list[Row]:
    """An organisation's pending probes, oldest first, followed."""
    return tx.all(
        f"{_FOLLOWED} WHERE p.status = 'pending' AND p.organisation_id = :organisation"
        " ORDER BY p.number",
        organisation=organisation_id,
    )


def newest_ended(tx: Transaction, organisation_id: str) -> list[Row]:
    """The newest ended probe of each live seat that has one."""
    return tx.all(
        f"{_PROBE} JOIN seats s ON s.id = p.seat_id WHERE s.organisation_id = :organisation"
        " AND s.retired_at IS NULL AND p.number = (SELECT max(q.number) FROM probes q"
        "  WHERE q.seat_id = s.id AND q.status <> 'pending')",
        organisation=organisation_id,
    )


def end_probe(tx: Transaction, probe_id: str, **values: Any) -> bool:
    """Keep how a pending probe ended; false if somebody else did meanwhile."""
    changed = tx.run(
        "UPDATE probes SET status = :status, checks = :checks, reason = :reason,"
        " revision = :revision, started_at = :started_at, ended_at = :ended_at"
        " WHERE id = :id AND status = 'pending'",
        id=probe_id,
        **values,
    )
    return changed > 0


def older_probes(tx: Transaction, seat_id: str, kept: int) -> list[Row]:
    """The ended ones behind the newest of a seat."""
    return tx.all(
        "SELECT id, conversation_id FROM probes WHERE seat_id = :seat AND status <> 'pending'"
        " ORDER BY number DESC LIMIT 100 OFFSET :kept",
        seat=seat_id,
        kept=kept,
    )


def all_probes(tx: Transaction, seat_id: str) -> list[Row]:
    return tx.all("SELECT id, conversation_id FROM probes WHERE seat_id = :seat", seat=seat_id)


def drop_probe(tx: Transaction, probe_id: str) -> None:
    tx.run("DELETE FROM probes WHERE id = :id", id=probe_id)


def reported(tx: Transaction, execution_id: str) -> list[dict[str, Any]]:
    """The data of an execution's events that speak of checks, oldest first."""
    rows = tx.all(
        "SELECT data FROM execution_events WHERE execution_id = :execution"
        " AND data LIKE :wanted ORDER BY number LIMIT 50",
        execution=execution_id,
        wanted='%"checks":%',
    )
    return [json.loads(row["data"]) for row in rows]
