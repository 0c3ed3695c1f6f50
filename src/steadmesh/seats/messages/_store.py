"""SQL about conversations, messages and their deliveries."""

from __future__ import annotations

from typing import Any

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Row, Transaction

MESSAGE = (
    "m.number, m.id AS message_id, m.organisation_id, m.conversation_id, m.origin,"
    " m.sender_seat_id, m.sender_seat, m.recipient_seat_id, m.recipient_seat, m.binding,"
    " m.external_user_id, m.parent_id, m.correlation_id, m.body, m.created_at"
)
"""The columns of a message `m` that an envelope is made of."""


# Conversations


def add_conversation(
    tx: Transaction, conversation_id: str, *, organisation_id: str, kind: str, now: Instant
) -> None:
    tx.run(
        "INSERT INTO conversations (id, organisation_id, kind, created_at, last_message_at)"
        " VALUES (:id, :organisation, :kind, :now, :now)",
        id=conversation_id,
        organisation=organisation_id,
        kind=kind,
        now=now,
    )


def add_human_conversation(tx: Transaction, conversation_id: str, **row: Any) -> None:
    tx.run(
        "INSERT INTO conversations (id, organisation_id, kind, binding, connection,"
        " external_user_id, thread, created_at, last_message_at) VALUES (:id, :organisation_id,"
        " 'human', :binding, :connection, :external_user_id, :thread, :now, :now)",
        id=conversation_id,
        **row,
    )


def continue_conversation(tx: Transaction, conversation_id: str, now: Instant) -> bool:
    """Note a message in a conversation; false if it was trimmed meanwhile."""
    changed = tx.run(
        "UPDATE conversations SET last_message_at = :now WHERE id = :id",
        id=conversation_id,
        now=now,
    )
    return changed > 0


def continue_internal(tx: Transaction, conversation_id: str, *, seat_id: str, now: Instant) -> bool:
    """Note a message in a conversation between seats; false if the seat has no such conversation."""
    changed = tx.run(
        "UPDATE conversations SET last_message_at = :now WHERE id = :id AND kind = 'internal'"
        " AND EXISTS (SELECT 1 FROM participants WHERE conversation_id = :id AND seat_id = :seat)",
        id=conversation_id,
        seat=seat_id,
        now=now,
    )
    return changed > 0


def add_participant(tx: Transaction, conversation_id: str, seat_id: str) -> None:
    tx.run(
        "INSERT INTO participants (conversation_id, seat_id) VALUES (:conversation, :seat)"
        " ON CONFLICT (seat_id, conversation_id) DO NOTHING",
        conversation=conversation_id,
        seat=seat_id,
    )


def add_pair(tx: Transaction, conversation_id: str, first: str, second: str) -> None:
    """The two of a new conversation."""
    tx.run(
        "INSERT INTO participants (conversation_id, seat_id)"
        " VALUES (:conversation, :first), (:conversation, :second)",
        conversation=conversation_id,
        first=first,
        second=second,
    )


def own_conversation(tx: Transaction, conversation_id: str, seat_id: str) -> Row | None:
    """A conversation that the seat takes part in."""
    return tx.one(
        "SELECT c.id, c.kind, c.binding FROM conversations c JOIN participants p"
        " ON p.conversation_id = c.id WHERE c.id = :conversation AND p.seat_id = :seat",
        conversation=conversation_id,
        seat=seat_id,
    )


def human_conversation(
    tx: Transaction,
    *,
    organisation_id: str,
    binding: str,
    connection: str,
    external_user_id: str,
    seat_id: str,
    thread: str | None = None,
) -> str | None:
    """The newest one of this seat with this person, in one thread or in any."""
    row = tx.one(
        "SELECT c.id FROM conversations c JOIN participants p ON p.conversation_id = c.id"
        " WHERE c.organisation_id = :organisation AND c.binding = :binding AND c.kind = 'human'"
        " AND c.connection = :connection AND c.external_user_id = :user AND p.seat_id = :seat"
        " AND (:any_thread = 1 OR c.thread = :thread)"
        " ORDER BY c.last_message_at DESC, c.id DESC LIMIT 1",
        organisation=organisation_id,
        binding=binding,
        connection=connection,
        user=external_user_id,
        seat=seat_id,
        thread=thread or "",
        any_thread=int(thread is None),
    )
    return str(row["id"]) if row else None


def person_of_conversation(tx: Transaction, conversation_id: str) -> Row | None:
    return tx.one(
        "SELECT connection, external_user_id FROM conversations WHERE id = :id",
        id=conversation_id,
    )


def conversations_of(
    tx: Transaction, seat_id: str, *, before: tuple[int, str] | None, limit: int
) -> list[Row]:
    """Most recent first."""
    last, last_id = before or (2**62, "~")
    return tx.all(
        "SELECT c.id, c.kind, c.binding, c.created_at, c.last_message_at FROM participants p"
        " JOIN conversations c ON c.id = p.conversation_id WHERE p.seat_id = :seat"
        " AND (c.last_message_at < :last OR (c.last_message_at = :last AND c.id < :last_id))"
        " ORDER BY c.last_message_at DESC, c.id DESC LIMIT :limit",
        seat=seat_id,
        last=last,
        last_id=last_id,
        limit=limit,
    )


def move_conversations(tx: Transaction, seat_id: str, to: str) -> None:
    """Let another seat stand in every conversation in the place of one."""
    tx.run(
        "UPDATE messages SET recipient_seat_id = :to WHERE recipient_seat_id = :seat"
        " AND conversation_id IN (SELECT conversation_id FROM participants WHERE seat_id = :seat)",
        seat=seat_id,
        to=to,
    )
    tx.run(
        "UPDATE messages SET sender_seat_id = :to WHERE sender_seat_id = :seat"
        " AND conversation_id IN (SELECT conversation_id FROM participants WHERE seat_id = :seat)",
        seat=seat_id,
        to=to,
    )
    tx.run("UPDATE participants SET seat_id = :to WHERE seat_id = :seat", seat=seat_id, to=to)


def forget_talk(tx: Transaction, seat_id: str, limit: int) -> int:
    """Some messages of one conversation of a seat, and the conversation when none is left; how many
    rows went, 0 when the seat has none any more."""
    row = tx.one(
        "SELECT conversation_id AS id FROM participants WHERE seat_id = :seat LIMIT 1", seat=seat_id
    )
    if row is None:
        return 0
    rows = tx.all(
        "SELECT number FROM messages WHERE conversation_id = :id ORDER BY number LIMIT :limit",
        id=row["id"],
        limit=limit,
    )
    tx.many("DELETE FROM deliveries WHERE number = :number", rows)
    tx.many("DELETE FROM channel_outbox WHERE number = :number", rows)
    tx.many("DELETE FROM messages WHERE number = :number", rows)
    if len(rows) < limit:
        tx.run("DELETE FROM conversations WHERE id = :id", id=row["id"])
        tx.run("DELETE FROM person_notices WHERE conversation_id = :id", id=row["id"])
        tx.run(
            "DELETE FROM participants WHERE seat_id = :seat AND conversation_id = :id",
            seat=seat_id,
            id=row["id"],
        )
    return len(rows) + 1


def forget_conversation(tx: Transaction, conversation_id: str) -> None:
    """Drop a conversation that no seat takes part in, with all that was said in it."""
    for row in tx.all(
        "SELECT number FROM messages WHERE conversation_id = :conversation",
        conversation=conversation_id,
    ):
        tx.run("DELETE FROM deliveries WHERE number = :number", number=row["number"])
    tx.run("DELETE FROM messages WHERE conversation_id = :id", id=conversation_id)
    tx.run("DELETE FROM conversations WHERE id = :id", id=conversation_id)


# Messages


def add_message(tx: Transaction, **row: Any) -> int:
    """Store a message; its number in the order of queues."""
    added = tx.one(
        "INSERT INTO messages (id, organisation_id, conversation_id, origin, sender_seat_id,"
        " sender_seat, recipient_seat_id, recipient_seat, binding, external_user_id, parent_id,"
        " correlation_id, body, created_at) VALUES (:id, :organisation_id, :conversation_id,"
        " :origin, :sender_seat_id, :sender_seat, :recipient_seat_id, :recipient_seat, :binding,"
        " :external_user_id, :parent_id, :correlation_id, :body, :now) RETURNING number",
        **row,
    )
    if added is None:
        raise LookupError("a stored message came back without its number")
    return int(added["number"])


def add_delivery(tx: Transaction, **row: Any) -> None:
    tx.run(
        "INSERT INTO deliveries (number, message_id, seat_id, conversation_id, state, open, due_at,"
        " created_at) VALUES (:number, :message_id, :seat_id, :conversation_id, :state, 1, :now,"
        " :now)",
        **row,
    )


def message_to(tx: Transaction, message_id: str, seat_id: str) -> Row | None:
    """A message that was sent to this seat."""
    return tx.one(
        f"SELECT {MESSAGE} FROM messages m WHERE m.id = :message AND m.recipient_seat_id = :seat",
        message=message_id,
        seat=seat_id,
    )


def conversation_of_message(tx: Transaction, message_id: str) -> str | None:
    row = tx.one("SELECT conversation_id FROM messages WHERE id = :id", id=message_id)
    return str(row["conversation_id"]) if row else None


def messages_of(tx: Transaction, conversation_id: str, *, after: int, limit: int) -> list[Row]:
    """Oldest first."""
    return tx.all(
        f"SELECT {MESSAGE} FROM messages m WHERE m.conversation_id = :conversation"
        " AND m.number > :after ORDER BY m.number LIMIT :limit",
        conversation=conversation_id,
        after=after,
        limit=limit,
    )


def message_of(tx: Transaction, conversation_id: str, message_id: str) -> Row | None:
    return tx.one(
        f"SELECT {MESSAGE} FROM messages m WHERE m.id = :message"
        " AND m.conversation_id = :conversation",
        message=message_id,
        conversation=conversation_id,
    )


# Inboxes


def load(tx: Transaction, seat_id: str) -> Row:
    """What counts to the cap, and what of it waits for a turn or is in one, in one look."""
    row = tx.one(
        # Two counts of index entries: looking at each one's state takes four times as long.
        "SELECT (SELECT count(*) FROM deliveries WHERE seat_id = :seat AND open = 1) AS waiting,"
        " (SELECT count(*) FROM deliveries WHERE seat_id = :seat AND open = 1"
        "  AND state = 'passive') AS passive",
        seat=seat_id,
    )
    waiting, passive = (row["waiting"], row["passive"]) if row else (0, 0)
    return {"waiting": waiting, "pending": waiting - passive}


def passive_messages(tx: Transaction, seat_id: str, limit: int) -> list[Row]:
    """The oldest that wait without wake and went with no turn."""
    return tx.all(
        f"SELECT {MESSAGE} FROM deliveries d JOIN messages m ON m.number = d.number"
        " WHERE d.seat_id = :seat AND d.open = 1 AND d.state = 'passive'"
        " ORDER BY d.number LIMIT :limit",
        seat=seat_id,
        limit=limit,
    )


def hand_over(tx: Transaction, numbers: list[int]) -> None:
    tx.many(
        "UPDATE deliveries SET state = 'done', open = 0 WHERE number = :number",
        [{"number": number} for number in numbers],
    )


def open_counts(tx: Transaction, organisation_id: str, seat_id: str | None) -> list[Row]:
    """What waits and what is in a turn, for each seat of an organisation that has any."""
    return tx.all(
        "SELECT d.seat_id, count(*) AS pending, min(d.created_at) AS oldest,"
        " min(CASE WHEN d.state = 'pending' THEN d.due_at END) AS next_due"
        " FROM seats s JOIN deliveries d ON d.seat_id = s.id AND d.open = 1"
        " WHERE s.organisation_id = :organisation AND s.retired_at IS NULL"
        " AND (:seat = '' OR s.id = :seat) AND d.state IN ('pending', 'leased')"
        " GROUP BY d.seat_id",
        organisation=organisation_id,
        seat=seat_id or "",
    )


def dead_counts(tx: Transaction, organisation_id: str, seat_id: str | None) -> list[Row]:
    return tx.all(
        "SELECT d.seat_id, count(*) AS dead FROM seats s"
        " JOIN deliveries d ON d.seat_id = s.id AND d.state = 'dead'"
        " WHERE s.organisation_id = :organisation AND s.retired_at IS NULL"
        " AND (:seat = '' OR s.id = :seat) GROUP BY d.seat_id",
        organisation=organisation_id,
        seat=seat_id or "",
    )


# Replies to people


def add_to_outbox(tx: Transaction, **row: Any) -> None:
    tx.run(
        "INSERT INTO channel_outbox (number, organisation_id, seat_id, connection, binding,"
        " external_user_id, conversation_id, message_id, state, due_at, created_at)"
        " VALUES (:number, :organisation_id, :seat_id, :connection, :binding, :external_user_id,"
        " :conversation_id, :message_id, 'queued', :now, :now)",
        **row,
    )


# Notices to people


def untold_message(tx: Transaction, number: int, reason: str) -> Row | None:
    """A message of a person who was not told this about it or a later one; by its number."""
    return tx.one(
        "SELECT m.conversation_id, m.number, m.id AS message_id, m.body, 1 AS messages"
        " FROM messages m LEFT JOIN person_notices n"
        " ON n.conversation_id = m.conversation_id AND n.reason = :reason"
        " WHERE m.number = :number AND m.origin = 'human' AND m.number > coalesce(n.number, 0)",
        number=number,
        reason=reason,
    )


def untold_waiting(tx: Transaction, seat_id: str, reason: str) -> list[Row]:
    """What waits for a seat or is in a turn, and its author was not told this: the newest of each
    talk, and how many they are."""
    return tx.all(
        "SELECT w.conversation_id, w.number, w.messages, m.id AS message_id, m.body FROM ("
        "  SELECT d.conversation_id, max(d.number) AS number, count(*) AS messages"
        "  FROM deliveries d JOIN messages h ON h.number = d.number LEFT JOIN person_notices n"
        "  ON n.conversation_id = d.conversation_id AND n.reason = :reason"
        "  WHERE d.seat_id = :seat AND d.open = 1 AND h.origin = 'human'"
        "  AND d.number > coalesce(n.number, 0) GROUP BY d.conversation_id"
        ") AS w JOIN messages m ON m.number = w.number ORDER BY w.number",
        seat=seat_id,
        reason=reason,
    )


def note_told(tx: Transaction, conversation_id: str, reason: str, number: int) -> None:
    tx.run(
        "INSERT INTO person_notices (conversation_id, reason, number)"
        " VALUES (:conversation, :reason, :number)"
        " ON CONFLICT (conversation_id, reason) DO UPDATE SET number = excluded.number"
        " WHERE person_notices.number < excluded.number",
        conversation=conversation_id,
        reason=reason,
        number=number,
    )


def talk(tx: Transaction, conversation_id: str) -> Row | None:
    """A conversation with a person, and who that is."""
    return tx.one(
        "SELECT id, organisation_id, binding, connection, external_user_id FROM conversations"
        " WHERE id = :id AND kind = 'human'",
        id=conversation_id,
    )


def newest_talk(
    tx: Transaction, organisation_id: str, *, connection: str, external_user_id: str
) -> Row | None:
    """The last talk of a person with any seat, and with which: whoever wrote or was written to last."""
    return tx.one(
        "SELECT c.id, c.organisation_id, c.binding, c.connection, c.external_user_id,"
        " (SELECT coalesce(m.recipient_seat_id, m.sender_seat_id) FROM messages m"
        "  WHERE m.conversation_id = c.id AND m.origin IN ('human', 'seat')"
        "  ORDER BY m.number DESC LIMIT 1) AS seat_id"
        " FROM conversations c WHERE c.organisation_id = :organisation AND c.kind = 'human'"
        " AND c.connection = :connection AND c.external_user_id = :user"
        " ORDER BY c.last_message_at DESC, c.id DESC LIMIT 1",
        organisation=organisation_id,
        connection=connection,
        user=external_user_id,
    )


def binding_of_message(tx: Transaction, number: int) -> str | None:
    """The binding over which a person wrote a message; nothing for one of somebody else."""
    row = tx.one(
        "SELECT binding FROM messages WHERE number = :number AND origin = 'human'", number=number
    )
    return str(row["binding"]) if row else None


def bindings_waiting(tx: Transaction, seat_id: str) -> list[str]:
    """The bindings over which people wrote what waits for a seat or is in a turn."""
    rows = tx.all(
        "SELECT DISTINCT m.binding FROM deliveries d JOIN messages m ON m.number = d.number"
        " WHERE d.seat_id = :seat AND d.open = 1 AND m.origin = 'human'",
        seat=seat_id,
    )
    return [str(row["binding"]) for row in rows]
