"""SQL about turns: deliveries on their way through an inbox, executions, events, checkpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Row, Transaction
from steadmesh.seats.messages import MESSAGE


def held_delivery(tx: Transaction, seat_id: str, generation: int) -> Row | None:
    """What this generation was handed out and has not acknowledged."""
    return tx.one(
        f"SELECT d.attempt, d.execution_id, {MESSAGE} FROM deliveries d"
        " JOIN messages m ON m.number = d.number WHERE d.seat_id = :seat AND d.open = 1"
        " AND d.state = 'leased' AND d.generation = :generation",
        seat=seat_id,
        generation=generation,
    )


def next_delivery(tx: Transaction, seat_id: str, now: Instant) -> Row | None:
    """The oldest that is due, and in whose conversation nothing is in a turn or waits before it."""
    return tx.one(
        f"SELECT d.attempt, d.execution_id, {MESSAGE} FROM deliveries d"
        " JOIN messages m ON m.number = d.number"
        " WHERE d.seat_id = :seat AND d.open = 1 AND d.state = 'pending' AND d.due_at <= :now"
        " AND NOT EXISTS (SELECT 1 FROM deliveries o WHERE o.seat_id = :seat AND o.open = 1"
        "  AND o.state = 'leased' AND o.conversation_id = d.conversation_id)"
        " AND NOT EXISTS (SELECT 1 FROM deliveries o WHERE o.seat_id = :seat AND o.open = 1"
        "  AND o.state = 'pending' AND o.number < d.number"
        "  AND o.conversation_id = d.conversation_id)"
        " ORDER BY d.number LIMIT 1",
        seat=seat_id,
        now=now,
    )


def something_waits(tx: Transaction, seat_id: str, generation: int, now: Instant) -> bool:
    """Whether a poll may find something: what is due, or what this generation still holds."""
    row = tx.one(
        "SELECT 1 AS found FROM deliveries WHERE seat_id = :seat AND open = 1"
        " AND ((state = 'pending' AND due_at <= :now)"
        "  OR (state = 'leased' AND generation = :generation)) LIMIT 1",
        seat=seat_id,
        generation=generation,
        now=now,
    )
    return row is not None


def lease_delivery(tx: Transaction, number: int, **values: Any) -> None:
    tx.run(
        "UPDATE deliveries SET state = 'leased', attempt = attempt + 1, generation = :generation,"
        " lease_expires_at = :until, execution_id = :execution, error = NULL WHERE number = :number",
        number=number,
        **values,
    )


def carry_passive(tx: Transaction, seat_id: str, number: int, limit: int) -> None:
    """Let the oldest queued-without-wake messages go with this delivery."""
    tx.run(
        "UPDATE deliveries SET carried_by = :number, state = 'carried', open = 0"
        " WHERE number IN (SELECT number FROM deliveries WHERE seat_id = :seat AND open = 1"
        "  AND state = 'passive' ORDER BY number LIMIT :limit)",
        seat=seat_id,
        number=number,
        limit=limit,
    )


def carried_count(tx: Transaction, number: int) -> int:
    row = tx.one("SELECT count(*) AS carried FROM deliveries WHERE carried_by = :n", n=number)
    return int(row["carried"]) if row else 0


def carried_messages(tx: Transaction, number: int) -> list[Row]:
    return tx.all(
        f"SELECT {MESSAGE} FROM deliveries d JOIN messages m ON m.number = d.number"
        " WHERE d.carried_by = :number ORDER BY d.number",
        number=number,
    )


def settle_carried(tx: Transaction, number: int) -> None:
    """The turn completed: what went with it was handed over."""
    tx.run(
        "UPDATE deliveries SET state = 'done', carried_by = NULL WHERE carried_by = :number",
        number=number,
    )


def leased_by(tx: Transaction, seat_id: str, number: int) -> Row | None:
    return tx.one(
        "SELECT number, message_id, conversation_id, state, attempt, generation, execution_id"
        " FROM deliveries WHERE seat_id = :seat AND number = :number",
        seat=seat_id,
        number=number,
    )


def is_probe(tx: Transaction, number: int) -> bool:
    row = tx.one("SELECT origin FROM messages WHERE number = :number", number=number)
    return row is not None and row["origin"] == "probe"


def stale_deliveries(tx: Transaction, seat_id: str) -> list[Row]:
    """Deliveries in a turn; whoever asks has just ended their generation."""
    return tx.all(
        "SELECT number, attempt, execution_id, seat_id FROM deliveries"
        " WHERE seat_id = :seat AND open = 1 AND state = 'leased' ORDER BY number",
        seat=seat_id,
    )


def expired_deliveries(tx: Transaction, now: Instant, limit: int) -> list[Row]:
    return tx.all(
        "SELECT d.number, d.attempt, d.execution_id, d.seat_id, s.organisation_id, s.key AS seat"
        " FROM deliveries d JOIN seats s ON s.id = d.seat_id"
        " WHERE d.state = 'leased' AND d.lease_expires_at <= :now"
        " ORDER BY d.lease_expires_at LIMIT :limit",
        now=now,
        limit=limit,
    )


def leased_and_expired(tx: Transaction, number: int, now: Instant) -> bool:
    row = tx.one(
        "SELECT 1 AS found FROM deliveries WHERE number = :number AND state = 'leased'"
        " AND lease_expires_at <= :now",
        number=number,
        now=now,
    )
    return row is not None


def finish_delivery(tx: Transaction, number: int) -> None:
    tx.run(
        "UPDATE deliveries SET state = 'done', open = 0, lease_expires_at = NULL"
        " WHERE number = :number",
        number=number,
    )


def requeue_delivery(tx: Transaction, number: int, **values: Any) -> None:
    tx.run(
        "UPDATE deliveries SET state = 'pending', open = 1, attempt = :attempt, due_at = :due,"
        " error = :error, generation = NULL, lease_expires_at = NULL WHERE number = :number",
        number=number,
        **values,
    )


def bury_delivery(tx: Transaction, number: int, error: str) -> None:
    tx.run(
        "UPDATE deliveries SET state = 'dead', open = 0, carried_by = NULL, error = :error, generation = NULL,"
        " lease_expires_at = NULL WHERE number = :number",
        number=number,
        error=error,
    )


def release_carried(tx: Transaction, number: int) -> None:
    """A dead letter's companions wait for the next turn again."""
    tx.run(
        "UPDATE deliveries SET state = 'passive', open = 1, carried_by = NULL"
        " WHERE carried_by = :number",
        number=number,
    )


def extend_delivery(tx: Transaction, seat_id: str, execution_id: str, until: Instant) -> None:
    tx.run(
        "UPDATE deliveries SET lease_expires_at = :until WHERE seat_id = :seat AND open = 1"
        " AND state = 'leased' AND execution_id = :execution",
        seat=seat_id,
        execution=execution_id,
        until=until,
    )


# Executions


def add_execution(tx: Transaction, **row: Any) -> None:
    tx.run(
        "INSERT INTO executions (id, organisation_id, seat_id, delivery_number, message_id,"
        " generation, config_revision, adapter, attempt, state, started_at)"
        " VALUES (:id, :organisation_id, :seat_id, :delivery_number, :message_id, :generation,"
        " :config_revision, :adapter, :attempt, 'running', :now)",
        **row,
    )


def end_execution(
    tx: Transaction, execution_id: str, *, state: str, error: str | None, now: Instant
) -> None:
    tx.run(
        "UPDATE executions SET state = :state, error = :error, ended_at = :now"
        " WHERE id = :id AND state = 'running'",
        id=execution_id,
        state=state,
        error=error,
        now=now,
    )


def execution(tx: Transaction, execution_id: str) -> Row | None:
    return tx.one(
        "SELECT id, seat_id, delivery_number, state, generation FROM executions WHERE id = :id",
        id=execution_id,
    )


def executions_of(
    tx: Transaction, seat_id: str, *, before: tuple[int, str] | None, limit: int
) -> list[Row]:
    started, last = before or (2**62, "~")
    return tx.all(
        "SELECT id, message_id, generation, config_revision, adapter, attempt, state, error,"
        " started_at, ended_at FROM executions WHERE seat_id = :seat"
        " AND (started_at < :started OR (started_at = :started AND id < :last))"
        " ORDER BY started_at DESC, id DESC LIMIT :limit",
        seat=seat_id,
        started=started,
        last=last,
        limit=limit,
    )


def running_turns(tx: Transaction, organisation_id: str) -> list[Row]:
    """The turn that each live seat of an organisation is in, if it is in one."""
    return tx.all(
        "SELECT d.seat_id, x.id, x.attempt, x.started_at, m.origin, m.sender_seat,"
        " m.external_user_id FROM seats s"
        " JOIN deliveries d ON d.seat_id = s.id AND d.open = 1 AND d.state = 'leased'"
        " JOIN executions x ON x.id = d.execution_id JOIN messages m ON m.number = d.number"
        " WHERE s.organisation_id = :organisation AND s.retired_at IS NULL",
        organisation=organisation_id,
    )


def newest_execution(tx: Transaction, seat_id: str) -> Row | None:
    return tx.one(
        "SELECT id, state FROM executions WHERE seat_id = :seat"
        " ORDER BY started_at DESC, id DESC LIMIT 1",
        seat=seat_id,
    )


def latest_turns(tx: Transaction, seat_id: str, *, limit: int) -> list[Row]:
    """Newest first, each with what began it and what became of its delivery since."""
    return tx.all(
        f"{_TURN} WHERE x.seat_id = :seat ORDER BY x.started_at DESC, x.id DESC LIMIT :limit",
        seat=seat_id,
        limit=limit,
    )


def turns_from(
    tx: Transaction, seat_id: str, *, started: Instant, execution_id: str, limit: int
) -> list[Row]:
    """This one and those that began later, oldest first."""
    return tx.all(
        f"{_TURN} WHERE x.seat_id = :seat AND x.started_at >= :started"
        " AND (x.started_at > :started OR x.id >= :execution)"
        " ORDER BY x.started_at, x.id LIMIT :limit",
        seat=seat_id,
        started=started,
        execution=execution_id,
        limit=limit,
    )


_TURN = (
    "SELECT x.id, x.delivery_number, x.message_id, x.generation, x.config_revision, x.adapter,"
    " x.attempt, x.state, x.error, x.started_at, x.ended_at, m.origin, m.sender_seat,"
    " m.external_user_id, d.state AS delivery_state, d.due_at, d.execution_id AS last_execution"
    " FROM executions x LEFT JOIN messages m ON m.number = x.delivery_number"
    " LEFT JOIN deliveries d ON d.number = x.delivery_number"
)


def add_events(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
    tx.many(
        "INSERT INTO execution_events (execution_id, kind, correlation_id, data, at)"
        " VALUES (:execution, :kind, :correlation, :data, :at)",
        rows,
    )


def events_of(tx: Transaction, execution_id: str, *, after: int, limit: int) -> list[Row]:
    return tx.all(
        "SELECT number, kind, correlation_id, data, at FROM execution_events"
        " WHERE execution_id = :execution AND number > :after ORDER BY number LIMIT :limit",
        execution=execution_id,
        after=after,
        limit=limit,
    )


def events_since(
    tx: Transaction, seat_id: str, *, started: Instant, after: int, limit: int
) -> list[Row]:
    """What turns of a seat reported that began at this moment or later, in order."""
    return tx.all(
        "SELECT e.number, e.execution_id, e.kind, e.correlation_id, e.data, e.at"
        " FROM executions x JOIN execution_events e ON e.execution_id = x.id AND e.number > :after"
        " WHERE x.seat_id = :seat AND x.started_at >= :started ORDER BY e.number LIMIT :limit",
        seat=seat_id,
        started=started,
        after=after,
        limit=limit,
    )


def has_event_after(tx: Transaction, execution_id: str, number: int) -> bool:
    row = tx.one(
        "SELECT 1 AS found FROM execution_events WHERE execution_id = :execution"
        " AND number > :number LIMIT 1",
        execution=execution_id,
        number=number,
    )
    return row is not None


# Checkpoints


def save_checkpoint(tx: Transaction, **row: Any) -> None:
    tx.run(
        "INSERT INTO checkpoints (seat_id, adapter, format_version, checkpoint_ref, guarantee,"
        " saved_at) VALUES (:seat_id, :adapter, :format_version, :checkpoint_ref, :guarantee, :now)"
        " ON CONFLICT (seat_id, adapter) DO UPDATE SET format_version = excluded.format_version,"
        " checkpoint_ref = excluded.checkpoint_ref, guarantee = excluded.guarantee,"
        " saved_at = excluded.saved_at",
        **row,
    )


def checkpoints(tx: Transaction, seat_id: str) -> list[Row]:
    """Newest first."""
    return tx.all(
        "SELECT adapter, format_version, checkpoint_ref, guarantee, saved_at FROM checkpoints"
        " WHERE seat_id = :seat ORDER BY saved_at DESC",
        seat=seat_id,
    )


def checkpoints_of(tx: Transaction, organisation_id: str) -> dict[str, str]:
    """The newest checkpoint of each seat of an organisation that has one, by seat id."""
    rows = tx.all(
        "SELECT c.seat_id, c.checkpoint_ref FROM checkpoints c JOIN seats s ON s.id = c.seat_id"
        " WHERE s.organisation_id = :organisation ORDER BY c.saved_at",
        organisation=organisation_id,
    )
    return {row["seat_id"]: row["checkpoint_ref"] for row in rows}


# Handoffs, whose table was made by the briefing


def save_handoff(tx: Transaction, seat_id: str, document: dict[str, Any], now: Instant) -> None:
    tx.run(
        "INSERT INTO handoffs (seat_id, document, saved_at) VALUES (:seat, :document, :now)"
        " ON CONFLICT (seat_id) DO UPDATE SET document = excluded.document,"
        " saved_at = excluded.saved_at",
        seat=seat_id,
        document=json.dumps(document, separators=(",", ":"), ensure_ascii=False),
        now=now,
    )


def handoff(tx: Transaction, seat_id: str) -> dict[str, Any] | None:
    row = tx.one("SELECT document FROM handoffs WHERE seat_id = :seat", seat=seat_id)
    if row is None:
        return None
    document: dict[str, Any] = json.loads(row["document"])
    return document


def move_handoff(tx: Transaction, seat_id: str, to: str) -> None:
    tx.run("UPDATE handoffs SET seat_id = :to WHERE seat_id = :seat", seat=seat_id, to=to)


# Inboxes that end


def open_messages(tx: Transaction, seat_id: str, *, with_turns: bool) -> list[Row]:
    """What waits for a seat, and what is in a turn or went with one if that is to end too."""
    return tx.all(
        f"SELECT d.state, d.execution_id, {MESSAGE} FROM deliveries d"
        " JOIN messages m ON m.number = d.number WHERE d.seat_id = :seat AND (d.open = 1"
        "  AND (:all = 1 OR d.state <> 'leased') OR :all = 1 AND d.carried_by IN"
        "  (SELECT number FROM deliveries WHERE seat_id = :seat AND open = 1))"
        " ORDER BY d.number",
        seat=seat_id,
        all=int(with_turns),
    )


def is_idle(tx: Transaction, seat_id: str) -> bool:
    """Whether nothing waits for a seat and nothing is in a turn."""
    row = tx.one(
        "SELECT 1 AS found FROM deliveries WHERE seat_id = :seat AND open = 1"
        " AND state <> 'passive' LIMIT 1",
        seat=seat_id,
    )
    return row is None


def delivery_state(tx: Transaction, message_id: str) -> Row | None:
    return tx.one(
        "SELECT d.number, d.state FROM messages m JOIN deliveries d ON d.number = m.number"
        " WHERE m.id = :message",
        message=message_id,
    )


def forget_executions(tx: Transaction, seat_id: str, limit: int) -> int:
    """Some executions of a seat with their events, the oldest first; how many rows went."""
    rows = tx.all(
        "SELECT id FROM executions WHERE seat_id = :seat ORDER BY started_at LIMIT :limit",
        seat=seat_id,
        limit=max(1, limit // 10),
    )
    done = 0
    for row in rows:
        events = tx.run(
            "DELETE FROM execution_events WHERE number IN (SELECT number FROM execution_events"
            " WHERE execution_id = :id ORDER BY number LIMIT :limit)",
            id=row["id"],
            limit=limit,
        )
        done += events
        if events < limit:
            done += tx.run("DELETE FROM executions WHERE id = :id", id=row["id"])
        if done >= limit:
            break
    return done


def forget_checkpoints(tx: Transaction, seat_id: str) -> None:
    tx.run("DELETE FROM checkpoints WHERE seat_id = :seat", seat=seat_id)
    tx.run("DELETE FROM handoffs WHERE seat_id = :seat", seat=seat_id)


# Dead letters


def dead_letters(
    tx: Transaction, organisation_id: str, *, seat: str, after: int, limit: int
) -> list[Row]:
    """In queue order; of one seat only unless `seat`, a key, is empty."""
    return tx.all(
        f"{_DEAD} AND m.organisation_id = :organisation AND d.number > :after"
        " AND (:seat = '' OR m.recipient_seat = :seat) ORDER BY d.number LIMIT :limit",
        organisation=organisation_id,
        seat=seat,
        after=after,
        limit=limit,
    )


def dead_letter_text(tx: Transaction, number: int) -> Row | None:
    """Whole, of a live seat or not."""
    return tx.one(f"{_DEAD} AND d.number = :number", number=number)


_DEAD = (
    "SELECT d.number, d.message_id, d.attempt, d.error, d.created_at, d.seat_id, m.origin,"
    " m.sender_seat, m.recipient_seat, m.binding, m.external_user_id, m.conversation_id, m.body,"
    " m.organisation_id, s.retired_at, s.retire_by FROM deliveries d"
    " JOIN messages m ON m.number = d.number JOIN seats s ON s.id = d.seat_id"
    " WHERE d.state = 'dead'"
)


def dead_letter(tx: Transaction, number: int) -> Row | None:
    return tx.one(
        "SELECT d.number, d.seat_id, s.organisation_id FROM deliveries d"
        " JOIN seats s ON s.id = d.seat_id"
        " WHERE d.number = :number AND d.state = 'dead' AND s.retire_by IS NULL",
        number=number,
    )
