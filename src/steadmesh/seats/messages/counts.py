"""What waits in the inboxes of an organisation."""

from __future__ import annotations

from dataclasses import dataclass, replace

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Transaction
from steadmesh.seats.messages import _store


@dataclass(frozen=True, slots=True)
class InboxCounts:
    """One inbox. What is queued without wake counts to none of these."""

    pending: int = 0
    """Waiting or in a turn."""
    oldest: Instant | None = None
    """When the oldest of those was written."""
    next_due: Instant | None = None
    """When the first of the waiting ones may be handed out."""
    dead: int = 0
    """Given up after the last attempt."""


def inbox_counts(
    tx: Transaction, organisation_id: str, seat_id: str | None = None
) -> dict[str, InboxCounts]:
    """By seat id, for every live seat of an organisation or for one; a seat with nothing is left out."""
    found = {
        row["seat_id"]: InboxCounts(row["pending"], row["oldest"], row["next_due"])
        for row in _store.open_counts(tx, organisation_id, seat_id)
    }
    for row in _store.dead_counts(tx, organisation_id, seat_id):
        inbox = found.get(row["seat_id"], InboxCounts())
        found[row["seat_id"]] = replace(inbox, dead=row["dead"])
    return found
