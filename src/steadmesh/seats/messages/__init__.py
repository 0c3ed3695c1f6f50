"""Messages between seats, and between a seat and its person."""

from __future__ import annotations

from dataclasses import dataclass

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Transaction
from steadmesh.seats.messages import _store, history, inbox, recipients, reply, send
from steadmesh.seats.messages.envelope import Envelope, envelope
from steadmesh.seats.messages.queueing import (
    Inbox,
    Sender,
    human_conversation,
    open_conversation,
    queue_message,
)
from steadmesh.tools import Feature

FEATURE = Feature(
    package="steadmesh.seats.messages",
    tools=[
        recipients.recipients,
        send.send,
        reply.reply,
        inbox.read_inbox,
        history.history,
    ],
)


@dataclass(frozen=True, slots=True)
class InboxCounts:
    """How an inbox stands: `pending` waits or is in a turn, `oldest` is when the oldest of it came,
    `next_due` when the next may be handed out, `dead` was given up."""

    pending: int = 0
    oldest: Instant | None = None
    next_due: Instant | None = None
    dead: int = 0


def inbox_counts(
    tx: Transaction, organisation_id: str, seat_id: str | None = None
) -> dict[str, InboxCounts]:
    """The counts of each seat that has something in its inbox, by seat id."""
    dead = {row["seat_id"]: row["dead"] for row in _store.dead_counts(tx, organisation_id, seat_id)}
    found = {
        row["seat_id"]: InboxCounts(
            pending=int(row["pending"]),
            oldest=row["oldest"],
            next_due=row["next_due"],
            dead=dead.pop(row["seat_id"], 0),
        )
        for row in _store.counts(tx, organisation_id, seat_id)
    }
    return found | {seat: InboxCounts(dead=count) for seat, count in dead.items()}


__all__ = [
    "FEATURE",
    "Envelope",
    "Inbox",
    "InboxCounts",
    "Sender",
    "envelope",
    "human_conversation",
    "inbox_counts",
    "open_conversation",
    "queue_message",
]
