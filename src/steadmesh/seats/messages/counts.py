"""What waits in the inboxes of an organisation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from steadmesh.kernel.clock import SECOND, Instant
from steadmesh.kernel.database import Transaction
from steadmesh.seats.messages import _store
from steadmesh.seats.organisation import organisations
from steadmesh.tools import Gauge


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


def _oldest_pending(tx: Transaction, now: Instant) -> Iterable[tuple[Sequence[str], float]]:
    waiting = [
        counts.oldest
        for row in organisations(tx)
        for counts in inbox_counts(tx, row["id"]).values()
        if counts.oldest is not None
    ]
    yield (), max(0, now - min(waiting)) / SECOND if waiting else 0.0


OLDEST_PENDING = Gauge(
    "inbox_oldest_pending_seconds", "Age of the oldest message in an inbox.", _oldest_pending
)
