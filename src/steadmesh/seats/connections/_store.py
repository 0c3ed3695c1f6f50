"""SQL about what comes from people and goes to them: outside events, the outbox, terminal lines."""

from __future__ import annotations

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Row, Transaction

# Outside events


def take_event(
    tx: Transaction,
    *,
    organisation_id: str,
    connection: str,
    external_user_id: str,
    event_id: str,
    now: Instant,
) -> bool:
    """Note an event; false if it was taken before."""
    added = tx.run(
        "INSERT INTO ingress_events (organisation_id, connection, external_user_id, event_id,"
        " received_at) VALUES (:organisation, :connection, :user, :event, :now)"
        " ON CONFLICT (organisation_id, connection, external_user_id, event_id) DO NOTHING",
        organisation=organisation_id,
        connection=connection,
        user=external_user_id,
        event=event_id,
        now=now,
    )
    return added > 0


# The outbox of channels


def due_replies(tx: Transaction, now: Instant, limit: int) -> list[Row]:
    return tx.all(
        "SELECT o.number, o.organisation_id, o.seat_id, o.connection, o.binding,"
        " o.external_user_id, o.message_id, o.attempts, m.origin, m.body, m.created_at"
        " FROM channel_outbox o JOIN messages m ON m.number = o.number"
        " WHERE o.state = 'queued' AND o.due_at <= :now ORDER BY o.due_at, o.number LIMIT :limit",
        now=now,
        limit=limit,
    )


def settle_reply(
    tx: Transaction, number: int, *, state: str, error: str | None, now: Instant
) -> bool:
    """End a queued reply; false if somebody else did meanwhile."""
    changed = tx.run(
        "UPDATE channel_outbox SET state = :state, attempts = attempts + 1, error = :error,"
        " finished_at = :now WHERE number = :number AND state = 'queued'",
        number=number,
        state=state,
        error=error,
        now=now,
    )
    return changed > 0


def postpone_reply(
    tx: Transaction, number: int, *, attempts: int, due: Instant, error: str
) -> None:
    """Try again later, unless somebody else has tried since."""
    tx.run(
        "UPDATE channel_outbox SET attempts = attempts + 1, due_at = :due, error = :error"
        " WHERE number = :number AND state = 'queued' AND attempts = :attempts",
        number=number,
        attempts=attempts,
        due=due,
        error=error,
    )


# Terminals


def add_line(
    tx: Transaction,
    *,
    organisation_id: str,
    connection: str,
    external_user_id: str,
    line_id: str,
    text: str,
    at: Instant,
    origin: str | None,
) -> None:
    tx.run(
        "INSERT INTO terminal_lines"
        " (organisation_id, connection, external_user_id, id, text, at, origin)"
        " VALUES (:organisation, :connection, :user, :id, :text, :at, :origin)",
        organisation=organisation_id,
        connection=connection,
        user=external_user_id,
        id=line_id,
        text=text,
        at=at,
        origin=origin,
    )


def drop_old_lines(
    tx: Transaction, *, organisation_id: str, connection: str, external_user_id: str, kept: int
) -> None:
    """Keep the newest lines of a reader."""
    tx.run(
        "DELETE FROM terminal_lines WHERE organisation_id = :organisation"
        " AND connection = :connection AND external_user_id = :user AND number <="
        " (SELECT number FROM terminal_lines WHERE organisation_id = :organisation"
        "  AND connection = :connection AND external_user_id = :user"
        "  ORDER BY number DESC LIMIT 1 OFFSET :kept)",
        organisation=organisation_id,
        connection=connection,
        user=external_user_id,
        kept=kept,
    )


def lines(
    tx: Transaction,
    *,
    organisation_id: str,
    connection: str,
    external_user_id: str,
    after: int,
    limit: int,
) -> list[Row]:
    return tx.all(
        "SELECT number, id, text, at, origin FROM terminal_lines WHERE organisation_id = :organisation"
        " AND connection = :connection AND external_user_id = :user AND number > :after"
        " ORDER BY number LIMIT :limit",
        organisation=organisation_id,
        connection=connection,
        user=external_user_id,
        after=after,
        limit=limit,
    )


def past_lines(
    tx: Transaction,
    conversation_id: str,
    *,
    organisation_id: str,
    connection: str,
    external_user_id: str,
    position: int,
    limit: int,
) -> list[Row]:
    """What was said in a talk, newest first: by the person, and to her up to a position of her
    streams. One statement, so that no line falls between those that were shown and those to come."""
    return tx.all(
        "SELECT m.id, m.origin, m.body AS text, m.created_at AS at"
        " FROM messages m LEFT JOIN channel_outbox o ON o.number = m.number"
        " WHERE m.conversation_id = :conversation AND coalesce(o.state, 'succeeded') = 'succeeded'"
        " AND NOT EXISTS (SELECT 1 FROM terminal_lines l WHERE l.organisation_id = :organisation"
        "  AND l.connection = :connection AND l.external_user_id = :user"
        "  AND l.number > :position AND l.id = m.id)"
        " ORDER BY m.number DESC LIMIT :limit",
        conversation=conversation_id,
        organisation=organisation_id,
        connection=connection,
        user=external_user_id,
        position=position,
        limit=limit,
    )


def last_line(
    tx: Transaction, *, organisation_id: str, connection: str, external_user_id: str
) -> int:
    row = tx.one(
        "SELECT coalesce(max(number), 0) AS number FROM terminal_lines"
        " WHERE organisation_id = :organisation AND connection = :connection"
        " AND external_user_id = :user",
        organisation=organisation_id,
        connection=connection,
        user=external_user_id,
    )
    return int(row["number"]) if row else 0


def shown(tx: Transaction, *, organisation_id: str, connection: str, external_user_id: str) -> int:
    row = tx.one(
        "SELECT shown FROM terminal_readers WHERE organisation_id = :organisation"
        " AND connection = :connection AND external_user_id = :user",
        organisation=organisation_id,
        connection=connection,
        user=external_user_id,
    )
    return int(row["shown"]) if row else 0


def note_shown(
    tx: Transaction, *, organisation_id: str, connection: str, external_user_id: str, position: int
) -> None:
    """Remember the furthest position of a reader's streams."""
    tx.run(
        "INSERT INTO terminal_readers (organisation_id, connection, external_user_id, shown)"
        " VALUES (:organisation, :connection, :user, :position)"
        " ON CONFLICT (organisation_id, connection, external_user_id)"
        " DO UPDATE SET shown = excluded.shown WHERE terminal_readers.shown < excluded.shown",
        organisation=organisation_id,
        connection=connection,
        user=external_user_id,
        position=position,
    )


def forget_organisation(tx: Transaction, organisation_id: str, limit: int) -> int:
    """Some rows of what came in and what waits in terminals; 0 when all are gone."""
    lines = tx.run(
        "DELETE FROM terminal_lines WHERE number IN (SELECT number FROM terminal_lines"
        " WHERE organisation_id = :id ORDER BY number LIMIT :limit)",
        id=organisation_id,
        limit=limit,
    )
    if lines:
        return lines
    tx.run("DELETE FROM terminal_readers WHERE organisation_id = :id", id=organisation_id)
    return tx.run("DELETE FROM ingress_events WHERE organisation_id = :id", id=organisation_id)
