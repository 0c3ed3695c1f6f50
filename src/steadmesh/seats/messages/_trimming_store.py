"""SQL that finds and removes what was said long ago."""

from __future__ import annotations

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Row, Transaction


def old_messages(tx: Transaction, after: int, limit: int) -> list[Row]:
    return tx.all(
        "SELECT number AS key, created_at AS at FROM messages WHERE number > :after"
        " ORDER BY number LIMIT :limit",
        after=after,
        limit=limit,
    )


def remove_messages(tx: Transaction, *, after: int, last: int, before: Instant) -> int:
    """What still is on its way, or whose way is still kept, stays."""
    return tx.run(
        "DELETE FROM messages WHERE number > :after AND number <= :last AND created_at < :before"
        " AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.number = messages.number)"
        " AND NOT EXISTS (SELECT 1 FROM channel_outbox o WHERE o.number = messages.number)",
        after=after,
        last=last,
        before=before,
    )


def old_conversations(tx: Transaction, after: str, limit: int) -> list[Row]:
    return tx.all(
        "SELECT id AS key, created_at AS at FROM conversations WHERE id > :after"
        " ORDER BY id LIMIT :limit",
        after=after,
        limit=limit,
    )


def remove_conversations(
    tx: Transaction, *, after: str, last: str, before: Instant, quiet: Instant
) -> int:
    """Those without a message; `quiet` is how much longer than messages they are kept."""
    removed = tx.run(
        "DELETE FROM conversations WHERE id > :after AND id <= :last AND last_message_at < :before"
        " AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.conversation_id = conversations.id)",
        after=after,
        last=last,
        before=before - quiet,
    )
    if removed:
        tx.run(
            "DELETE FROM person_notices WHERE conversation_id > :after AND conversation_id <= :last"
            " AND NOT EXISTS (SELECT 1 FROM conversations c"
            "  WHERE c.id = person_notices.conversation_id)",
            after=after,
            last=last,
        )
    return removed


def old_participants(tx: Transaction, after: str, limit: int) -> list[Row]:
    """Those of no conversation have no age; the others are as young as it."""
    seat, _, conversation = after.partition(" ")
    return tx.all(
        "SELECT p.seat_id || ' ' || p.conversation_id AS key, coalesce(c.last_message_at, 0) AS at"
        " FROM participants p LEFT JOIN conversations c ON c.id = p.conversation_id"
        " WHERE (p.seat_id, p.conversation_id) > (:seat, :conversation)"
        " ORDER BY p.seat_id, p.conversation_id LIMIT :limit",
        seat=seat,
        conversation=conversation,
        limit=limit,
    )


def remove_participants(tx: Transaction, *, after: str, last: str, before: Instant) -> int:
    seat, _, conversation = after.partition(" ")
    last_seat, _, last_conversation = last.partition(" ")
    return tx.run(
        "DELETE FROM participants WHERE (seat_id, conversation_id) > (:seat, :conversation)"
        " AND (seat_id, conversation_id) <= (:last_seat, :last_conversation) AND NOT EXISTS"
        " (SELECT 1 FROM conversations c WHERE c.id = participants.conversation_id)",
        seat=seat,
        conversation=conversation,
        last_seat=last_seat,
        last_conversation=last_conversation,
    )
